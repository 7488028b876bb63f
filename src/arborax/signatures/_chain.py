"""Signatures of long paths, block by block, whose gradients run Chen's identity back.

The signature of a path is the ordered product of the signatures of its blocks,
`S_k = S_{k-1} C_k`. The backward pass keeps `S_K` alone: it recomputes `C_k` from the
increments, steps back by `S_{k-1} = S_k C_k^{-1}` and differentiates one block at a
time. Memory is that of one block, of a few signatures and of the increments, so it
grows with the length as the path itself does.

Written as three JAX primitives (value, tangent, transposed tangent), so that the
reversed recursion serves reverse mode, while forward mode and higher orders, which a
custom VJP would forbid, differentiate the same blocks in the ordinary way.
"""

import functools as ft
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from .._xla import barrier, first_size, scan, vary_alike
from ..algebra import Ito, Shuffle
from ._left_point import left_point_signature, TreeAlgebra
from ._tensor import tensor_levels
from ._tree_rows import tree_divide, tree_multiply
from ._words import level_divide, level_multiply


_BLOCK = 128  # steps; smaller blocks save memory, but their products take time


class Chain(NamedTuple):
    """A path cut into blocks, as static data.

    `piece` is the signature of a block, `product` and `divide` Chen's identity and its
    solution for the left factor. Signatures are tuples of `parts` arrays `(_, batch)`.
    """

    piece: Callable
    product: Callable
    divide: Callable
    parts: int


@ft.cache
def word_chain(words: Shuffle | Ito) -> Chain:
    """Signatures over words, level by level, from increments of letters."""
    return Chain(
        ft.partial(tensor_levels, words),
        ft.partial(level_multiply, words),
        ft.partial(level_divide, words),
        words.depth,
    )


def _left_point_piece(alg: TreeAlgebra, moves: list) -> list:
    return [left_point_signature(alg, moves[0])]


@ft.cache
def left_point_chain(alg: TreeAlgebra) -> Chain:
    """Left-point sums over trees from the increments of the path."""
    return Chain(
        ft.partial(_left_point_piece, alg),
        ft.partial(tree_multiply, alg),
        ft.partial(tree_divide, alg),
        1,
    )


def is_long(moves: list[Float[Array, "batch _ steps"]]) -> bool:
    """Whether blocks pay."""
    return moves[0].shape[-1] > 2 * _BLOCK


def chained(chain: Chain, moves: list[Float[Array, "batch _ steps"]]) -> list:
    """Signature of the whole path from the increments of each step, time last."""
    return _value_p.bind(*vary_alike(*moves), chain=chain)


def _blocks(moves: Any) -> list:
    """`(batch, _, steps)` to `(blocks, batch, _, block)`, filled up with zeros."""
    steps = moves[0].shape[-1]
    count = -(-steps // _BLOCK)
    block = -(-steps // count)
    out = []
    for x in moves:
        x = jnp.pad(x, ((0, 0), (0, 0), (0, count * block - steps)))
        x = x.reshape(*x.shape[:2], count, block)
        out.append(jnp.transpose(x, (2, 0, 1, 3)))
    return out


def _joined(blocks: Any, steps: int) -> list:
    """The inverse of `_blocks`."""
    whole = [jnp.transpose(x, (1, 2, 0, 3)) for x in blocks]
    return [x.reshape(*x.shape[:2], -1)[:, :, :steps] for x in whole]


def _signature_of(block: list, chain: Chain) -> list:
    """Of one block, which is barrier, as is its cotangent: else XLA cuts it out of the
    whole, or places it there, one number at a time and in every loop that uses it."""
    return chain.piece([barrier(x) for x in block])


def _value(*moves, chain: Chain) -> list:
    blocks = _blocks(moves)
    first = _signature_of([x[0] for x in blocks], chain)

    def advance(state, block):
        return chain.product(state, _signature_of(block, chain)), None

    advance = jax.checkpoint(advance, prevent_cse=False)  # for higher derivatives
    return scan(advance, first, [x[1:] for x in blocks])[0]


def _split(args: tuple, chain: Chain, live: tuple[bool, ...]):
    """Increments, signature, and what comes after them."""
    count = len(live)
    end = count + chain.parts
    return list(args[:count]), list(args[count:end]), list(args[end:])


def _chosen(live: tuple[bool, ...], values) -> list:
    return [x for on, x in zip(live, values) if on]


def _filled(live: tuple[bool, ...], some, rest) -> list:
    """The values of `some` where live, of `rest` elsewhere."""
    some = iter(some)
    return [next(some) if on else x for on, x in zip(live, rest)]


def _tangent(*args, chain: Chain, live: tuple[bool, ...]) -> list:
    """From increments, signature and tangents of the live increments: its tangent."""
    moves, _, tangents = _split(args, chain, live)

    def value(*some):
        return _value(*_filled(live, some, moves), chain=chain)

    return jax.jvp(value, tuple(_chosen(live, moves)), tuple(tangents))[1]


def _cotangent(*args, chain: Chain, live: tuple[bool, ...]) -> list:
    """From increments, signature and its cotangent: those of the live increments."""
    moves, state, cotangent = _split(args, chain, live)

    def retreat(carry, block):
        state, cotangent = carry

        def piece(*some):
            return _signature_of(_filled(live, some, block), chain)

        here, pull = jax.vjp(piece, *_chosen(live, block))
        before = chain.divide(state, here)
        _, pull_product = jax.vjp(chain.product, before, here)
        cotangent, at_piece = pull_product(cotangent)
        return (before, cotangent), pull(at_piece)

    retreat = jax.checkpoint(retreat, prevent_cse=False)
    start = (state, cotangent)
    pulled = scan(retreat, start, _blocks(moves), reverse=True)[1]
    return _joined(pulled, moves[0].shape[-1])


def _primitive(name: str, evaluate: Callable, *static: str) -> Primitive:
    primitive = Primitive(f"arborax_chain_{name}")
    primitive.multiple_results = True
    primitive.def_impl(jax.jit(evaluate, static_argnames=static))
    lowering = mlir.lower_fun(evaluate, multiple_results=True)
    mlir.register_lowering(primitive, lowering)

    @primitive.def_abstract_eval
    def _(*args, **options):
        shaped = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
        out = jax.eval_shape(ft.partial(evaluate, **options), *shaped)
        return [args[0].update(shape=x.shape) for x in out]

    batching.primitive_batchers[primitive] = ft.partial(_batch, primitive)
    return primitive


def _batch(primitive: Primitive, args, dims, **options):
    """Another batch axis joins the one that is there: first for increments of three
    axes, last for signatures of two."""
    size = first_size(args, dims)
    flat = []
    for a, d in zip(args, dims):
        if d is None:
            a, d = jnp.broadcast_to(a[None], (size, *a.shape)), 0
        if a.ndim == 4:
            flat.append(jnp.moveaxis(a, d, 0).reshape(-1, *_without(a, d)[1:]))
        else:
            flat.append(jnp.moveaxis(a, d, 1).reshape(_without(a, d)[0], -1))
    out = []
    axes = []
    for x in primitive.bind(*vary_alike(*flat), **options):
        if x.ndim == 3:
            out.append(x.reshape(size, -1, *x.shape[1:]))
            axes.append(0)
        else:
            out.append(x.reshape(x.shape[0], size, -1))
            axes.append(1)
    return out, axes


def _without(x: Array, axis: int) -> tuple[int, ...]:
    return (*x.shape[:axis], *x.shape[axis + 1 :])


_value_p = _primitive("value", _value, "chain")
_tangent_p = _primitive("tangent", _tangent, "chain", "live")
_cotangent_p = _primitive("cotangent", _cotangent, "chain", "live")


def _moves(tangent) -> bool:
    return not isinstance(tangent, ad.Zero)


def _value_jvp(primals, tangents, *, chain: Chain):
    out = _value_p.bind(*primals, chain=chain)
    live = tuple(map(_moves, tangents))
    options = {"chain": chain, "live": live}
    args = vary_alike(*primals, *out, *_chosen(live, tangents))
    return out, _tangent_p.bind(*args, **options)


def _linear_jvp(primitive: Primitive, evaluate: Callable, primals, tangents, **options):
    """Derivative of a map that is linear in its last arguments."""
    moves, state, last = _split(tuple(primals), **options)
    fixed = [*moves, *state]
    out = primitive.bind(*primals, **options)
    if not any(map(_moves, tangents[: len(fixed)])):
        tangents = [
            ad.instantiate_zeros(t) if isinstance(t, ad.Zero) else t
            for t in tangents[len(fixed) :]
        ]
        return out, primitive.bind(*vary_alike(*fixed, *tangents), **options)
    tangents = tuple(map(ad.instantiate_zeros, tangents))
    function = ft.partial(evaluate, **options)
    return out, jax.jvp(function, tuple(primals), tangents)[1]


def _transpose(primitive: Primitive, cotangents, *args, **options):
    """Tangent and cotangent are each other's transposes."""
    moves, state, last = _split(args, **options)
    args = vary_alike(*moves, *state, *map(ad.instantiate_zeros, cotangents))
    pulled = primitive.bind(*args, **options)
    return [*[None] * (len(moves) + len(state)), *pulled]


ad.primitive_jvps[_value_p] = _value_jvp
ad.primitive_jvps[_tangent_p] = ft.partial(_linear_jvp, _tangent_p, _tangent)
ad.primitive_jvps[_cotangent_p] = ft.partial(_linear_jvp, _cotangent_p, _cotangent)
ad.primitive_transposes[_tangent_p] = ft.partial(_transpose, _cotangent_p)
ad.primitive_transposes[_cotangent_p] = ft.partial(_transpose, _tangent_p)
