"""Sums of products of two small tensors, written out term by term.

XLA's CPU backend hands a product that is followed by a sum to library routines made for
large arrays. For axes of a few numbers a call costs more than the work, once per path
of a batch. Here such sums are chains of additions that fuse with whatever is around
them. They are a primitive whose transposes are of the same kind, so this also holds for
derivatives of every order. The derivative of a broadcast product is such a sum as well.

The axis that `vmap` adds may go to two places:

* `"first"`: the usual one, best if the last axis of the tensors is long;
* `"last"`: for tensors whose axes are all short. Neighbouring numbers then belong to
  neighbouring paths and are computed together.
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

from ._barrier import barrier, is_symbolic
from ._switch import uses
from ._varying import vary_alike


Place = Literal["first", "last"]

_TERMS = {"first": 32, "last": 256}  # longer sums are left to the library
_SHORT_ROW = 8  # the same for sums along the last axis, which do not run side by side
_CHAIN = 24  # longer sums, batch last, are taken in two steps
_CHANNELS = 16  # length of sums along the last axis of points
_MATRIX = 4  # size of matrices whose formulas are written out entry by entry
_BROADCAST = 16  # length of sums over broadcast batch axes that are written out


def _parse(spec: str) -> tuple[str, str, str]:
    inputs, out = spec.split("->")
    a, b = inputs.split(",")
    return a, b, out


def _axes(a: Any, b: Any, spec: str, place: Place) -> tuple[list[str], dict[str, Any]]:
    """A letter for each axis of the operands and of the result, capitals for the batch,
    and the sizes."""
    parts = _parse(spec)
    batch = "ABCDEFGHIJ"[: a.ndim - len(parts[0])]
    names = [p + batch if place == "last" else batch + p for p in parts]
    sizes: dict[str, Any] = {}
    for own, x in zip(names, (a, b)):
        for name, size in zip(own, x.shape):
            known = sizes.get(name, 1)
            sizes[name] = size if isinstance(known, int) and known == 1 else known
    return names, sizes


def _shape(a: Any, b: Any, *, spec: str, place: Place) -> tuple:
    (_, _, out), sizes = _axes(a, b, spec, place)
    return tuple(sizes[name] for name in out)


def _limit(spec: str, place: Place) -> int:
    """The longest sum to be written out."""
    a, b, out = _parse(spec)
    if place == "first" and (not out or out[-1] not in (a[-1:], b[-1:])):
        return _SHORT_ROW
    return _TERMS[place]


def _evaluate(a: Array, b: Array, *, spec: str, place: Place) -> Array:
    (left, right, out), sizes = _axes(a, b, spec, place)
    summed = "".join(letter for letter in sizes if letter not in out)
    lengths = [sizes[letter] for letter in summed]
    if is_symbolic(*lengths) or math.prod(lengths) > _limit(spec, place):
        a = jnp.broadcast_to(a, [sizes[name] for name in left])
        b = jnp.broadcast_to(b, [sizes[name] for name in right])
        return jnp.einsum(f"{left},{right}->{out}", a, b, precision="highest")
    if place == "last" and math.prod(lengths) > _CHAIN and len(summed) > 1:
        # A chain that is too long is not computed side by side.
        inputs, own = spec.split("->")
        inner = f"{inputs}->{summed[:-1]}{own}"
        parts = barrier(_evaluate(a, b, spec=inner, place=place))
        parts = parts.reshape(-1, *parts.shape[len(summed) - 1 :])
        return ft.reduce(jnp.add, list(parts))
    terms = []
    for term in it.product(*map(range, lengths)):
        chosen = dict(zip(summed, term))
        terms.append(_pick(a, left, chosen, out) * _pick(b, right, chosen, out))
    return ft.reduce(jnp.add, terms)


def _pick(x: Array, names: str, chosen: dict[str, int], out: str) -> Array:
    """The part of a tensor where some axes have these values, as an array over the axes
    of `out`, of size one where an axis does not occur. Cut out in place: moving axes
    first would change the layout of whatever comes before."""
    start = [chosen.get(name, 0) for name in names]
    ends = zip(names, start, x.shape)
    stop = [k + 1 if name in chosen else size for name, k, size in ends]
    x = lax.slice(x, start, stop)
    x = lax.squeeze(x, [k for k, name in enumerate(names) if name in chosen])
    kept = [name for name in names if name not in chosen]
    x = jnp.transpose(x, [kept.index(name) for name in out if name in kept])
    return jnp.expand_dims(x, [k for k, name in enumerate(out) if name not in kept])


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


def _pull_left(cotangent, a, b, *, spec: str, place: Place):
    left, right, out = _parse(spec)
    pulled = _bind(cotangent, b, f"{out},{right}->{left}", place)
    return _sum_to(pulled, a.aval.shape, place)


def _pull_right(cotangent, a, b, *, spec: str, place: Place):
    left, right, out = _parse(spec)
    return _pull_left(cotangent, b, a, spec=f"{right},{left}->{out}", place=place)


def _batch(args, dims, *, spec: str, place: Place):
    axis = -1 if place == "last" else 0
    a, b = (
        jnp.expand_dims(x, axis) if d is None else jnp.moveaxis(x, d, axis)
        for x, d in zip(args, dims)
    )
    out = _bind(a, b, spec, place)
    return out, out.ndim - 1 if place == "last" else 0


_einsum_p = Primitive("arborax_einsum")
_einsum_p.def_impl(jax.jit(_evaluate, static_argnames=("spec", "place")))
_einsum_p.def_abstract_eval(lambda a, b, **p: a.update(shape=_shape(a, b, **p)))
ad.defbilinear(_einsum_p, _pull_left, _pull_right)
batching.primitive_batchers[_einsum_p] = _batch
mlir.register_lowering(_einsum_p, mlir.lower_fun(_evaluate, multiple_results=False))


def _bind(a: Any, b: Any, spec: str, place: Place) -> Array:
    return _einsum_p.bind(*vary_alike(a, b), spec=spec, place=place)


def small_einsum(spec: str, a: Array, b: Array, *, place: Place = "first") -> Array:
    """`jnp.einsum(spec, a, b)` for small tensors of one dtype.

    Every letter of an input occurs in the other one or in the output, none twice in
    one. `place` says where axes from `vmap` go. A sum that is written out costs as many
    operations in the compiled program as it has terms.
    """
    if uses("sums"):
        return _bind(a, b, spec, place)
    a_, b_, out = (p + "..." if place == "last" else "..." + p for p in _parse(spec))
    return jnp.einsum(f"{a_},{b_}->{out}", a, b)


def written_out(size: int) -> bool:
    """Whether formulas of matrices of this size are written out entry by entry: these
    fuse, where a batch of library calls becomes a slow loop."""
    return size <= _MATRIX and uses("sums")


def small_product(
    a: Float[Array, "m k"], b: Float[Array, "k n"]
) -> Float[Array, "m n"]:
    """`a @ b` for matrices with a short inner axis."""
    return small_einsum("mk,kn->mn", a, b)


def inner(
    x: Float[Array, "*#batch channels"], y: Float[Array, "*#batch channels"]
) -> Float[Array, "*batch"]:
    """Sums of products along the last axis, written out if it is short."""
    if x.shape[-1] > _CHANNELS or not uses("sums"):
        return jnp.sum(x * y, axis=-1)
    return ft.reduce(jnp.add, (x[..., i] * y[..., i] for i in range(x.shape[-1])))


def scale(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """`a * b` for arrays with the same number of axes. Axes of size one are broadcast,
    and in derivatives the sums over these are written out if they are short."""
    names = "abcdefghij"[: a.ndim]

    def squeezed(x: Array, other: Array) -> tuple[str, Array]:
        thin = [k for k in range(x.ndim) if x.shape[k] == 1 != other.shape[k]]
        kept = "".join(name for k, name in enumerate(names) if k not in thin)
        return kept, lax.squeeze(x, thin)

    (left, a_), (right, b_) = squeezed(a, b), squeezed(b, a)
    return small_einsum(f"{left},{right}->{names}", a_, b_)


def outer(
    left: Float[Array, "batch m times"], right: Float[Array, "batch n times"]
) -> Float[Array, "batch mn times"]:
    """`left_u right_v` for all words `u`, `v`, the second running faster."""
    product = small_einsum("mt,nt->mnt", left, right)
    batch, m, n, times = product.shape
    return product.reshape(batch, m * n, times)
