"""Expected signatures, with a martingale control variate."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._inputs import as_flag
from ..algebra import Shuffle
from ..signatures import expanding_signature, signature
from ._kernel import Path
from ._prepare import as_sample, check_kind, prepare


def _left_point_sums(points: Array, depth: int) -> Array:
    """`sum_n S_n(w) dx_n^i` for each word `w i`, in the order of the basis.

    `(batch, words)` from `(batch, times, d)`: mean zero if channel `i` is a martingale.
    """
    dx = jnp.diff(points, axis=1)
    before = jnp.ones_like(dx[..., :1])
    if depth > 1:
        words = Shuffle(points.shape[-1], depth - 1)
        shorter = expanding_signature(points, words)[:, :-1]
        before = jnp.concatenate([before, shorter], axis=-1)
    sums = jnp.einsum("btw,bti->bwi", before, dx)
    return sums.reshape(sums.shape[0], -1)


def expected_signature(
    x: Path,
    depth: int,
    *,
    martingale: bool | Sequence[bool] = False,
    add_time: bool = False,
    add_basepoint: bool = False,
    lengths: Int[Array, "..."] | None = None,
    mask: Bool[Array, "..."] | None = None,
) -> Float[Array, " words"]:
    r"""Mean signature of a sample of paths (words, canonical lift).

    With `martingale`, the estimator is corrected: for a word `w i` whose last channel
    is a martingale, `C = sum_n S_n(w) dx_n^i` has mean zero, and `mean(S - beta C)`,
    `beta = cov(S, C) / var(C)`, has the same limit and a smaller variance, by the
    factor `1 - corr(S, C)^2`: often an order of magnitude (Lucchese, Pakkanen,
    Veraart, "Learning with expected signatures", 2025). Estimating `beta` from the
    same sample costs a bias of order one over the sample size.

    **Arguments:**

    - `x`: paths `(n, times, d)`.
    - `depth`: largest word length.
    - `martingale`: whether the channels are martingales: one flag, or one for each
        channel before augmentation. Time never is one.
    - `add_time`, `add_basepoint`, `lengths`, `mask`: as in the kernels.

    **Returns:**

    Array `(words,)`, by length then lexicographically, without the empty word: the
    coordinates of `Shuffle(d, depth)`.
    """
    check_kind("geometric", depth)
    add_time = as_flag("add_time", add_time)
    add_basepoint = as_flag("add_basepoint", add_basepoint)
    points, _ = prepare(
        as_sample("x", x),
        None,
        kind="geometric",
        time=add_time,
        basepoint=add_basepoint,
        lengths=lengths,
        mask=mask,
    )
    d = points.shape[-1]
    own = d - int(add_time)
    each = martingale if isinstance(martingale, tuple | list) else [martingale] * own
    flags = [as_flag("martingale", flag) for flag in each]
    if len(flags) != own:
        raise ValueError(
            f"`martingale` needs one flag for each of the {own} channels, got "
            f"{len(flags)}."
        )
    flags = [False] * int(add_time) + flags
    values = signature(points, Shuffle(d, depth))
    mean = jnp.mean(values, axis=0)
    if not any(flags):
        return mean
    controls = _left_point_sums(points, depth)
    last = np.concatenate(
        [np.tile(np.array(flags), d ** (k - 1)) for k in range(1, depth + 1)]
    )
    centred = controls - jnp.mean(controls, axis=0, keepdims=True)
    variance = jnp.mean(centred * centred, axis=0)
    covariance = jnp.mean(centred * (values - mean[None]), axis=0)
    usable = jnp.asarray(last) & (variance > 0)
    beta = jnp.where(usable, covariance / jnp.where(variance > 0, variance, 1), 0)
    return mean - beta * jnp.mean(controls, axis=0)
