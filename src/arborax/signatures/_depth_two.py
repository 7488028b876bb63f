"""Signatures of depth two in closed form: one product over time of the path itself.

At depth two the signature is the increment, half its square, the Lévy area

    A = 1/2 sum_t (X_t - X_0) ^ dX_t,   a ^ b = a (x) b - b (x) a,

and, with brackets, their sum. No running sum, no quadrature and no stream is needed.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import barrier, custom_jvp, in_pieces, is_symbolic
from ..algebra import AbstractWordAlgebra


_FEW = 3  # channels: for these, products of shifted copies beat small matrix products
_CACHE = 2**19  # bytes of paths that a CPU keeps at hand with what is made of them
_SHORT = 4096  # times: up to here, since a table of their size goes into the program

Batch = Float[Array, "batch times dim"]


def _time_last(values: Batch) -> bool:
    """Whether products over time are faster with time as the last axis."""
    return values.dtype == jnp.float32 or values.shape[-1] <= _FEW


def _over_time(x: Batch, y: Batch) -> Float[Array, "batch dim dim"]:
    if _time_last(x):
        x, y = barrier(jnp.swapaxes(x, 1, 2)), jnp.swapaxes(y, 1, 2)
        return jnp.einsum("bit,bjt->bij", x, y)
    return jnp.einsum("bti,btj->bij", x, y)


def _steps(values: Batch) -> Batch:
    """With a last step of zero, since XLA multiplies even lengths faster."""
    return jnp.pad(values[:, 1:] - values[:, :-1], ((0, 0), (0, 1), (0, 0)))


def _mixed(values: Batch) -> Float[Array, "batch dim dim"]:
    """The path times its steps from a transposed copy of the path, which is faster in
    double precision."""
    path = barrier(jnp.swapaxes(values - values[:, :1], 1, 2))
    return jnp.einsum("bit,btj->bij", path, _steps(values))


def _wedge(x: Array, y: Array) -> Array:
    product = x[:, :, None] * y[:, None, :]
    return product - jnp.swapaxes(product, 1, 2)


def _area_of_few(values: Batch) -> Float[Array, "batch dim dim"]:
    """The area from the path read as one long row, times and channels together.

    For channels `i` and `i + m` all products are products of the row with copies of it
    that are shifted by `m` and `dim` places; a matrix of ones and zeros adds them up.
    """
    batch, times, dim = values.shape
    row = barrier(values - values[:, :1]).reshape(batch, times * dim)
    sums, pairs = [], []
    for m in range(1, dim):
        count = (times - 1) * dim - m

        def shifted(by: int, count=count):
            return row[:, by : by + count]

        here, there = shifted(0), shifted(m)
        terms = here * (shifted(m + dim) - there) - there * (shifted(dim) - here)
        channel = np.tile(np.eye(dim), (times - 1, 1))[:count, : dim - m]
        sums.append(terms @ jnp.asarray(channel, values.dtype))
        pairs += [(i, i + m) for i in range(dim - m)]
    place = np.zeros((len(pairs), dim, dim))
    for k, (i, j) in enumerate(pairs):
        place[k, i, j], place[k, j, i] = 0.5, -0.5
    place = jnp.asarray(place.reshape(len(pairs), -1), values.dtype)
    return (jnp.concatenate(sums, axis=1) @ place).reshape(batch, dim, dim)


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


@custom_jvp
def _area(values: Batch) -> Float[Array, "batch dim dim"]:
    """`A^ij`, antisymmetric."""
    batch, times, dim = values.shape
    one = times * dim * values.dtype.itemsize
    if dim == 1:
        return jnp.zeros((batch, 1, 1), values.dtype)
    if dim <= _FEW and times <= _SHORT:
        return _area_of_few(values)
    if _time_last(values):
        last = jnp.swapaxes(values, 1, 2)
        step = jnp.pad(last[..., 1:] - last[..., :-1], ((0, 0), (0, 0), (0, 1)))
        product = jnp.einsum("bit,bjt->bij", last - last[..., :1], step)
    elif is_symbolic(batch) or batch * one <= 4 * _CACHE or not _on_cpu():
        product = _mixed(values)
    else:
        product = in_pieces(_mixed, (values,), max(4, _CACHE // one), axis=0)
    return 0.5 * (product - jnp.swapaxes(product, 1, 2))


@_area.defjvp
def _area_jvp(primals, tangents):
    """`dA = 1/2 (sum_t v_t ^ (X_{t+1} - X_{t-1}) - (v_0 + v_T) ^ X_0T)`."""
    (values,), (v,) = primals, tangents
    step = _steps(values)
    central = step + jnp.pad(step[:, :-1], ((0, 0), (1, 0), (0, 0)))
    product = _over_time(v, central)
    inner = product - jnp.swapaxes(product, 1, 2)
    outer = _wedge(v[:, 0] + v[:, -1], values[:, -1] - values[:, 0])
    return _area(values), 0.5 * (inner - outer)


def _bracket_sums(values: Batch, brackets) -> Float[Array, "batch letters"]:
    """Total increments of the letters `(i, j)`, `i <= j`; see `letter_increments`."""
    batch, _, dim = values.shape
    if isinstance(brackets, str):
        step = _steps(values)
        total = _over_time(step, step)
    else:
        total = brackets.sum(axis=1)
    i, j = np.triu_indices(dim)
    pick = np.zeros((dim * dim, len(i)))  # a product, since a gather pulls back slowly
    pick[i * dim + j, np.arange(len(i))] = np.where(i == j, -0.5, -1.0)
    return total.reshape(batch, dim * dim) @ jnp.asarray(pick, values.dtype)


def two_levels(
    words: AbstractWordAlgebra, values: Batch, brackets, log: bool
) -> list[Float[Array, "batch _"]]:
    """Levels one and two of the signature over words, or of its logarithm.

    **Arguments:**

    - `words`: of depth two.
    - `values`: the path.
    - `brackets`: for `Ito` a string for realised ones, or `(batch, steps, dim, dim)`.
    - `log`: whether the logarithm is wanted, which is the area and the brackets.
    """
    batch, times, dim = values.shape
    if times == 1:  # the unit
        values, brackets = jnp.repeat(values, 2, axis=1), "realised"
    total = values[:, -1] - values[:, 0]
    square = _area(values)
    if not log:
        square = square + 0.5 * total[:, :, None] * total[:, None, :]
    second = [square.reshape(batch, dim * dim)]
    if len(words.letter_counts) > 1:
        second.append(_bracket_sums(values, brackets))
    return [total, second[0] if len(second) == 1 else jnp.concatenate(second, axis=1)]
