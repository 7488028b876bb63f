"""Sums of products of two small tensors, written out term by term.

XLA's CPU backend hands a product that is followed by a sum to library routines made for
large arrays. For axes of a few numbers a call costs more than the work, once per path
of a batch. Here such sums are chains of additions that fuse with whatever is around
them. As a primitive whose transposes are of the same kind they stay so in derivatives
of every order; the derivative of a broadcast product is such a sum as well.

The axis that `vmap` adds may go to three places:

* `"first"`: the usual one, best if the last axis of the tensors is long;
* `"last"`: for tensors whose axes are all short. Neighbouring numbers then belong to
  neighbouring paths and are computed together;
* `"rows"`: into the axis `r` that one operand and the output share. All rows, whatever
  axes they come from, enter one matrix product of the library.
"""

import functools as ft
import itertools as it
import math
from typing import Any, Literal

import jax
import jax.lax as lax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from ._barrier import barrier
from ._sizes import broadcast_size, first_size, is_symbolic
from ._switch import uses
from ._varying import vary_alike


Place = Literal["first", "last", "rows"]

_TERMS = {"first": 32, "last": 256, "rows": 0}  # longer sums are left to the library
_SHORT_ROW = 8  # the same for sums along the last axis, which do not run side by side
_CHAIN = 24  # longer sums, batch last, are taken in two steps
_BROADCAST = 16  # length of sums over broadcast batch axes that are written out


def _parse(spec: str) -> tuple[str, str, str]:
    inputs, out = spec.split("->")
    a, b = inputs.split(",")
    return a, b, out


def _split(shape: tuple, letters: str, place: Place) -> tuple[tuple, tuple]:
    """The axes of the batch, and those of the letters."""
    if place == "last":
        return shape[len(letters) :], shape[: len(letters)]
    cut = len(shape) - len(letters)
    return shape[:cut], shape[cut:]


def _sizes(spec: str, a: Any, b: Any, place: Place) -> tuple[dict[str, Any], tuple]:
    """Sizes of the letters, and the axes of the batch."""
    sizes, batches = {}, []
    for letters, x in zip(_parse(spec), (a, b)):
        batch, own = _split(x.shape, letters, place)
        sizes |= dict(zip(letters, own))
        batches.append(batch)
    return sizes, tuple(map(broadcast_size, *batches))


def _shape(a: Any, b: Any, *, spec: str, place: Place) -> tuple:
    sizes, batch = _sizes(spec, a, b, place)
    own = tuple(sizes[letter] for letter in _parse(spec)[2])
    return own + batch if place == "last" else batch + own


def _limit(spec: str, place: Place) -> int:
    """The longest sum to be written out."""
    a, b, out = _parse(spec)
    if place == "first" and (not out or out[-1] not in (a[-1:], b[-1:])):
        return _SHORT_ROW
    return _TERMS[place]


def _evaluate(a: Array, b: Array, *, spec: str, place: Place) -> Array:
    left, right, out = _parse(spec)
    sizes, batch = _sizes(spec, a, b, place)
    summed = "".join(letter for letter in sizes if letter not in out)
    lengths = [sizes[letter] for letter in summed]
    if is_symbolic(*lengths) or math.prod(lengths) > _limit(spec, place):
        return _by_library(a, b, spec, place)
    if place == "last" and math.prod(lengths) > _CHAIN and len(summed) > 1:
        # A chain that is too long is not computed side by side.
        inner = f"{left},{right}->{summed[:-1]}{out}"
        parts = barrier(_evaluate(a, b, spec=inner, place=place))
        parts = parts.reshape(-1, *parts.shape[len(summed) - 1 :])
        return ft.reduce(jnp.add, list(parts))
    terms = []
    for term in it.product(*map(range, lengths)):
        chosen = dict(zip(summed, term))
        factors = (
            _pick(x, letters, chosen, out, place)
            for x, letters in ((a, left), (b, right))
        )
        terms.append(ft.reduce(jnp.multiply, factors))
    return ft.reduce(jnp.add, terms)


def _pick(
    x: Array, letters: str, chosen: dict[str, int], out: str, place: Place
) -> Array:
    """The part of a tensor where some letters have these values, as an array over the
    letters of `out`, of size one where a letter does not occur. Cut out in place:
    moving axes first would change the layout of whatever comes before."""
    count = x.ndim - len(letters)
    names = letters + "." * count if place == "last" else "." * count + letters
    start = [chosen.get(name, 0) for name in names]
    sizes = zip(names, start, x.shape)
    stop = [k + 1 if name in chosen else n for name, k, n in sizes]
    x = lax.slice(x, start, stop)
    x = lax.squeeze(x, [k for k, name in enumerate(names) if name in chosen])
    left = "".join(name for name in names if name not in chosen)
    batch = [k for k, name in enumerate(left) if name == "."]
    own = [left.index(name) for name in out if name in left]
    x = jnp.transpose(x, own + batch if place == "last" else batch + own)
    order = out + "." * count if place == "last" else "." * count + out
    missing = [k for k, a in enumerate(order) if a != "." and a not in letters]
    return jnp.expand_dims(x, missing)


def _by_library(a: Array, b: Array, spec: str, place: Place) -> Array:
    parts = _parse(spec)
    _, batch = _sizes(spec, a, b, place)
    full = []
    for letters, x in zip(parts, (a, b)):
        own = _split(x.shape, letters, place)[1]
        shape = own + batch if place == "last" else batch + own
        full.append(jnp.broadcast_to(x, shape))
    names = "ABCDEFGHIJ"[: len(batch)]
    a_, b_, out = (p + names if place == "last" else names + p for p in parts)
    precision = None if place == "rows" else lax.Precision.HIGHEST
    return jnp.einsum(f"{a_},{b_}->{out}", *full, precision=precision)


_einsum_p = Primitive("arborax_einsum")


def _bind(a: Any, b: Any, *, spec: str, place: Place) -> Array:
    return _einsum_p.bind(*vary_alike(a, b), spec=spec, place=place)


def _jvp(primals, tangents, **params):
    (a, b), (da, db) = primals, tangents
    terms = []
    if not isinstance(da, ad.Zero):
        terms.append(_bind(da, b, **params))
    if not isinstance(db, ad.Zero):
        terms.append(_bind(a, db, **params))
    return _bind(a, b, **params), ft.reduce(jnp.add, terms)


def _sum_to(x: Array, shape: tuple, place: Place) -> Array:
    """Sum over the batch axes that were broadcast, written out if they are short and
    not the last ones."""
    for axis, (have, want) in enumerate(zip(x.shape, shape)):
        if have == want:
            continue
        if place == "last" or is_symbolic(have) or have > _BROADCAST:
            x = jnp.sum(x, axis=axis, keepdims=True)
        else:
            x = ft.reduce(jnp.add, lax.split(x, (1,) * have, axis=axis))
    return x


def _transpose(cotangent, a, b, *, spec, place):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    left, right, out = _parse(spec)
    if ad.is_undefined_primal(a):
        out = _bind(cotangent, b, spec=f"{out},{right}->{left}", place=place)
        return [_sum_to(out, a.aval.shape, place), None]
    out = _bind(cotangent, a, spec=f"{out},{left}->{right}", place=place)
    return [None, _sum_to(out, b.aval.shape, place)]


def _batch(args, dims, *, spec: str, place: Place):
    if place == "rows":
        return _batch_rows(args, dims, spec)
    axis = -1 if place == "last" else 0
    moved = [
        jnp.expand_dims(x, axis) if d is None else jnp.moveaxis(x, d, axis)
        for x, d in zip(args, dims)
    ]
    out = _bind(*moved, spec=spec, place=place)
    return out, out.ndim - 1 if place == "last" else 0


def _batch_rows(args, dims, spec: str):
    left, right, out = _parse(spec)
    mapped = [d is not None for d in dims]
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims)]
    if "r" not in out or any(
        "r" not in p for p, on in zip((left, right), mapped) if on
    ):
        names = [f"Z{p}" if on else p for p, on in zip((left, right), mapped)]
        return jnp.einsum(f"{names[0]},{names[1]}->Z{out}", *moved), 0
    size = first_size(args, dims)
    joined = [
        _join(x, p.index("r")) if on else x
        for x, p, on in zip(moved, (left, right), mapped)
    ]
    value = _bind(*joined, spec=spec, place="rows")
    place = out.index("r")
    shape = value.shape
    value = value.reshape(*shape[:place], size, -1, *shape[place + 1 :])
    return value, place


def _join(x: Array, axis: int) -> Array:
    """The first axis joins another one."""
    x = jnp.moveaxis(x, 0, axis)
    return x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :])


_einsum_p.def_impl(jax.jit(_evaluate, static_argnames=("spec", "place")))
_einsum_p.def_abstract_eval(lambda a, b, **p: a.update(shape=_shape(a, b, **p)))
ad.primitive_jvps[_einsum_p] = _jvp
ad.primitive_transposes[_einsum_p] = _transpose
batching.primitive_batchers[_einsum_p] = _batch
mlir.register_lowering(_einsum_p, mlir.lower_fun(_evaluate, multiple_results=False))


def small_einsum(spec: str, a: Array, b: Array, *, place: Place = "first") -> Array:
    """`jnp.einsum(spec, a, b)` for small tensors.

    **Arguments:**

    - `spec`: of two inputs. Every letter of an input occurs in the other one or in the
        output, none twice in one.
    - `a`, `b`: of one dtype. Further axes, in both alike, are a batch, at the end where
        `place` says so.
    - `place`: where axes from `vmap` go: `"first"`, `"last"`, or `"rows"`.

    A sum that is written out costs as many operations in the compiled program as it has
    terms.
    """
    if uses("rows" if place == "rows" else "sums"):
        return _bind(a, b, spec=spec, place=place)
    a_, b_, out = (p + "..." if place == "last" else "..." + p for p in _parse(spec))
    return jnp.einsum(f"{a_},{b_}->{out}", a, b)


def small_product(
    a: Float[Array, "m k"], b: Float[Array, "k n"]
) -> Float[Array, "m n"]:
    """`a @ b` for matrices with a short inner axis."""
    return small_einsum("mk,kn->mn", a, b)


def scale(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """`a * b` for arrays with the same number of axes. Axes of size one are broadcast,
    and in derivatives the sums over these are written out if they are short."""
    names = "abcdefghij"[: a.ndim]
    sizes = list(zip(names, a.shape, b.shape))
    thin = [[n for n, x, y in sizes if (x, y) == (1, y) and x != y]]
    thin.append([n for n, x, y in sizes if (x, y) == (x, 1) and x != y])
    parts = ["".join(n for n in names if n not in t) for t in thin]
    a, b = (
        x.reshape([size for n, size in zip(names, x.shape) if n not in t])
        for x, t in zip((a, b), thin)
    )
    return small_einsum(f"{parts[0]},{parts[1]}->{names}", a, b)


def rows_product(
    x: Float[Array, "*rows in"], weight: Float[Array, "out in"]
) -> Float[Array, "*rows out"]:
    """`x @ weight.T`. All axes of `x` but the last, and those that `vmap` gives to it,
    become rows of one product, and of one product in the gradient of `weight`."""
    dtype = jnp.result_type(weight, x)
    rows = jnp.asarray(x, dtype).reshape(-1, x.shape[-1])
    out = small_einsum("ri,oi->ro", rows, jnp.asarray(weight, dtype), place="rows")
    return out.reshape(*x.shape[:-1], weight.shape[0])


def outer(
    left: Float[Array, "batch m times"], right: Float[Array, "batch n times"]
) -> Float[Array, "batch mn times"]:
    """`left_u right_v` for all words `u`, `v`, the second running faster."""
    product = small_einsum("mt,nt->mnt", left, right)
    batch, m, n, times = product.shape
    return product.reshape(batch, m * n, times)
