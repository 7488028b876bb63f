"""Contractions of small tensors, one for each path of a batch.

Tensors whose last axis is a few numbers long leave a processor's wide registers empty,
and a library call for each path of the batch costs more than the work. Here sums are
written out term by term, and the batch comes last, so that neighbouring numbers belong
to neighbouring paths and are computed together. As a primitive whose transposes are of
the same kind it stays so in derivatives of all orders.
"""

import functools as ft
import itertools as it
import math

import jax.numpy as jnp
from jax.interpreters import ad, batching
from jax.lax import Precision
from jaxtyping import Array

from ._primitive import bilinear, broadcast_size
from ._settle import settle


_TERMS = 256  # longer sums are left to the library
_CHAIN = 24  # longer sums are taken in two steps


def _parse(spec: str) -> tuple[str, str, str]:
    inputs, out = spec.split("->")
    a, b = inputs.split(",")
    return a, b, out


def _shapes(spec: str, a, b, leading: bool) -> tuple[dict[str, int], tuple]:
    """Sizes of the letters, and the batch axes."""
    sizes, batches = {}, []
    for letters, x in zip(_parse(spec), (a, b)):
        cut = x.ndim - len(letters) if leading else len(letters)
        first, second = x.shape[:cut], x.shape[cut:]
        own, batch = (second, first) if leading else (first, second)
        sizes |= dict(zip(letters, own))
        batches.append(batch)
    return sizes, tuple(map(broadcast_size, *batches))


def _arrange(x: Array, letters: str, summed: str, out: str, leading: bool) -> Array:
    """Axes of the summed letters first, then the batch and the letters of the output,
    of size one where a letter does not occur."""
    count = x.ndim - len(letters)
    start = count if leading else 0
    batch = tuple(range(count) if leading else range(len(letters), x.ndim))
    place = lambda these: tuple(  # noqa: E731
        start + letters.index(letter) for letter in these if letter in letters
    )
    inner = (batch + place(out)) if leading else (place(out) + batch)
    x = jnp.transpose(x, place(summed) + inner)
    order = summed + "." * count * leading + out
    missing = [
        k for k, letter in enumerate(order) if letter != "." and letter not in letters
    ]
    return jnp.expand_dims(x, missing)


def _evaluate(a: Array, b: Array, *, spec: str, leading: bool) -> Array:
    left, right, out = _parse(spec)
    sizes, batch = _shapes(spec, a, b, leading)
    summed = "".join(letter for letter in sizes if letter not in out)
    ranges = [range(sizes[letter]) for letter in summed]
    terms = math.prod(map(len, ranges))
    if terms > _TERMS:
        return _by_library(a, b, spec, leading, batch)
    if terms > _CHAIN and len(summed) > 1 and not leading:
        # In two steps: a chain that is too long is not computed side by side.
        inner = _evaluate(
            a, b, spec=f"{left},{right}->{summed[:-1]}{out}", leading=False
        )
        inner = settle(inner, keep=True, store=True)
        inner = inner.reshape(-1, *inner.shape[len(summed) - 1 :])
        return ft.reduce(jnp.add, list(inner))
    a = _arrange(a, left, summed, out, leading)
    b = _arrange(b, right, summed, out, leading)
    take = lambda x, term: x[tuple(k % n for n, k in zip(x.shape, term))]  # noqa: E731
    products = (take(a, term) * take(b, term) for term in it.product(*ranges))
    return ft.reduce(jnp.add, products)


def _by_library(a: Array, b: Array, spec: str, leading: bool, batch) -> Array:
    axes = "ABCDEFGHIJ"[: len(batch)]
    named = []
    for letters, x in zip(_parse(spec), (a, b)):
        count = len(letters)
        own = x.shape[len(batch) :] if leading else x.shape[:count]
        shape = (*batch, *own) if leading else (*own, *batch)
        named.append(jnp.broadcast_to(x, shape))
    names = [axes + part if leading else part + axes for part in _parse(spec)]
    spec = f"{names[0]},{names[1]}->{names[2]}"
    return jnp.einsum(spec, *named, precision=Precision.HIGHEST)


def _shape(a, b, *, spec: str, leading: bool) -> tuple:
    sizes, batch = _shapes(spec, a, b, leading)
    own = tuple(sizes[letter] for letter in _parse(spec)[2])
    return batch + own if leading else own + batch


_einsum_p, _bind = bilinear("small_einsum", _evaluate, _shape, "spec", "leading")


def _sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the batch axes that were broadcast."""
    pairs = enumerate(zip(x.shape, shape))
    axes = tuple(k for k, (have, want) in pairs if have != want)
    return jnp.sum(x, axis=axes, keepdims=True) if axes else x


def _transpose(cotangent, a, b, *, spec, leading):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    left, right, out = _parse(spec)
    bind = ft.partial(_bind, cotangent, leading=leading)
    if ad.is_undefined_primal(a):
        return [_sum_to(bind(b, spec=f"{out},{right}->{left}"), a.aval.shape), None]
    return [None, _sum_to(bind(a, spec=f"{out},{left}->{right}"), b.aval.shape)]


def _batch(args, dims, *, spec, leading):
    axis = 0 if leading else -1
    moved = [
        jnp.expand_dims(x, axis) if d is None else jnp.moveaxis(x, d, axis)
        for x, d in zip(args, dims)
    ]
    out = _bind(*moved, spec=spec, leading=leading)
    return out, 0 if leading else out.ndim - 1


ad.primitive_transposes[_einsum_p] = _transpose
batching.primitive_batchers[_einsum_p] = _batch


def small_einsum(spec: str, a: Array, b: Array, *, leading: bool = False) -> Array:
    """`jnp.einsum(spec, a, b)` for small tensors: every letter of an input occurs in
    the other input or in the output, none twice in one. It costs as many operations in
    the compiled program as there are terms in the sum. With `leading` axes from `vmap`
    come first: better if the last axis is long."""
    return _bind(a, b, spec=spec, leading=leading)
