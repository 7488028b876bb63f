"""Expected signatures, with a martingale control variate."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._inputs import as_count, as_flag
from ..algebra import Shuffle
from ..signatures import expanding_signature, signature
from ._prepare import as_sample, Path, prepare


def expected_signature(
    x: Path,
    depth: int,
    *,
    martingale: bool | Sequence[bool] = False,
) -> Float[Array, " words"]:
    r"""Mean signature of a sample of paths (words, canonical lift).

    With `martingale`, the estimator is corrected: for a word `w i` whose last channel
    is a martingale, `C = sum_n S_n(w) dx_n^i` has mean zero, and `mean(S - beta C)`,
    `beta = cov(S, C) / var(C)`, has the same limit and a smaller variance, by the
    factor `1 - corr(S, C)^2`: often an order of magnitude (Lucchese, Pakkanen,
    Veraart, "Learning with expected signatures", 2025). Estimating `beta` from the
    same sample costs a bias of order one over the sample size.

    **Arguments:**

    - `x`: paths `(n, times, d)`, or a [`arborax.SampledPath`][].
    - `depth`: largest word length.
    - `martingale`: whether the channels are martingales: one flag, or one for each
        channel. Channels of finite variation, such as time, never are.

    **Returns:**

    Array `(words,)`, by length then lexicographically, without the empty word: the
    coordinates of `Shuffle(d, depth)`.
    """
    depth, x = as_count("depth", depth), as_sample("x", x)
    points, _ = prepare(x, None, kind="geometric")
    d = points.shape[-1]
    each = martingale if isinstance(martingale, tuple | list) else [martingale] * d
    flags = [as_flag("martingale", flag) for flag in each]
    if len(flags) != d:
        raise ValueError(
            f"`martingale` needs one flag for each of the {d} channels, got "
            f"{len(flags)}."
        )
    for channel in getattr(x, "finite_variation", ()):
        flags[channel] = False
    values = signature(points, Shuffle(d, depth))
    mean = jnp.mean(values, axis=0)
    if not any(flags):
        return mean
    # `sum_n S_n(w) dx_n^i` for each word `w i`: mean zero if `i` is a martingale.
    dx = jnp.diff(points, axis=1)
    before = jnp.ones_like(dx[..., :1])
    if depth > 1:
        shorter = expanding_signature(points, Shuffle(d, depth - 1))[:, :-1]
        before = jnp.concatenate([before, shorter], axis=-1)
    controls = jnp.einsum("btw,bti->bwi", before, dx).reshape(len(dx), -1)
    last = np.concatenate(
        [np.tile(np.array(flags), d ** (k - 1)) for k in range(1, depth + 1)]
    )
    centred = controls - jnp.mean(controls, axis=0, keepdims=True)
    variance = jnp.mean(centred * centred, axis=0)
    covariance = jnp.mean(centred * (values - mean[None]), axis=0)
    usable = jnp.asarray(last) & (variance > 0)
    beta = jnp.where(usable, covariance / jnp.where(variance > 0, variance, 1), 0)
    return mean - beta * jnp.mean(controls, axis=0)
