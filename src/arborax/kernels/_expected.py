"""Expected signatures, with a martingale control variate."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._xla import scan
from ._features import tensor_multiply
from ._kernel import Path
from ._prepare import as_sample, check_kind, prepare


def _with_martingales(dx: Array, depth: int) -> tuple[Array, Array]:
    """Words of piecewise linear paths, and the left-point sums of their last letter.

    Both `(batch, words)` from increments `(batch, steps, d)`. The second is
    `sum_n S_n(w) dx_n^i` for the word `w i`: mean zero if channel `i` is a martingale.
    """
    batch, _, d = dx.shape

    def zeros():
        return [jnp.zeros((batch, *(d,) * k), dx.dtype) for k in range(1, depth + 1)]

    def step(carry, increment):
        total, sums = carry
        new_sums = [sums[0] + increment]
        for k in range(1, depth):
            before = total[k - 1]
            wide = before[..., None] * increment.reshape(batch, *(1,) * k, d)
            new_sums.append(sums[k] + wide)
        power, factor = increment, [increment]
        for k in range(2, depth + 1):
            power = power[..., None] * increment.reshape(batch, *(1,) * (k - 1), d) / k
            factor.append(power)
        return (tensor_multiply(total, factor), new_sums), None

    start = (zeros(), zeros())
    (total, sums), _ = scan(step, start, jnp.moveaxis(dx, 1, 0))
    flat = lambda levels: jnp.concatenate(  # noqa: E731
        [v.reshape(batch, -1) for v in levels], axis=1
    )
    return flat(total), flat(sums)


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
    flags = [martingale] * own if isinstance(martingale, bool) else list(martingale)
    if len(flags) != own:
        raise ValueError(
            f"`martingale` needs one flag for each of the {own} channels, got "
            f"{len(flags)}."
        )
    flags = [False] * int(add_time) + flags
    steps = jnp.diff(points, axis=1)
    values, controls = _with_martingales(steps, depth)
    mean = jnp.mean(values, axis=0)
    if not any(flags):
        return mean
    last = np.concatenate(
        [np.tile(np.array(flags), d ** (k - 1)) for k in range(1, depth + 1)]
    )
    centred = controls - jnp.mean(controls, axis=0, keepdims=True)
    variance = jnp.mean(centred * centred, axis=0)
    covariance = jnp.mean(centred * (values - mean[None]), axis=0)
    usable = jnp.asarray(last) & (variance > 0)
    beta = jnp.where(usable, covariance / jnp.where(variance > 0, variance, 1), 0)
    return mean - beta * jnp.mean(controls, axis=0)
