"""Signatures of long paths, block by block, whose gradients run Chen's identity back.

The signature of a path is the ordered product of the signatures of its blocks,
`S_k = S_{k-1} C_k`. The backward pass keeps `S_K` alone: it recomputes `C_k` from the
increments, steps back by `S_{k-1} = S_k C_k^{-1}` and differentiates one block at a
time. Memory is that of one block, of a few signatures and of the increments, so it
grows with the length as the path itself does.

The transpose of the tangent is written by hand, so that the reversed recursion serves
reverse mode, while forward mode and higher orders, which a custom VJP would forbid,
differentiate the same blocks in the ordinary way.
"""

import dataclasses
import functools as ft
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._xla import barrier, first_size, Function, Linear, scan
from ..algebra import AbstractHopfAlgebra, AbstractWordAlgebra
from ._tensor import tensor_levels
from ._trees import left_point_signature, tree_divide, tree_multiply
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
def word_chain(words: AbstractWordAlgebra) -> Chain:
    """Signatures over words, level by level, from increments of letters."""
    return Chain(
        ft.partial(tensor_levels, words),
        ft.partial(level_multiply, words),
        ft.partial(level_divide, words),
        words.depth,
    )


def _left_point_piece(alg: AbstractHopfAlgebra, moves: list) -> list:
    return [left_point_signature(alg, moves[0])]


@ft.cache
def left_point_chain(alg: AbstractHopfAlgebra) -> Chain:
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
    return _Value(chain)(*moves)


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


def _signature_of(block: Any, chain: Chain) -> list:
    """Of one block, which is stored, as is its cotangent. Otherwise XLA cuts it out of
    the whole, or places it there, one number at a time and in every loop that uses
    it."""
    return chain.piece([barrier(x) for x in block])


def _batch(self: Any, args: Any, dims: Any) -> tuple[list, list]:
    """Another batch axis joins the one that is there: the first of increments, which
    have three axes, the last of signatures, which have two."""
    size = first_size(args, dims)
    flat = []
    for x, axis in zip(args, dims):
        if axis is None:
            x, axis = jnp.broadcast_to(x[None], (size, *x.shape)), 0
        place = 0 if x.ndim == 4 else 1
        x = jnp.moveaxis(x, axis, place)
        flat.append(x.reshape(*x.shape[:place], -1, *x.shape[place + 2 :]))
    out, axes = [], []
    for x in self(*flat):
        place = 0 if x.ndim == 3 else 1
        out.append(x.reshape(*x.shape[:place], size, -1, *x.shape[place + 1 :]))
        axes.append(place)
    return out, axes


@dataclasses.dataclass(frozen=True)
class _Value(Function):
    """Increments to signature."""

    chain: Chain
    batch = _batch

    def value(self, *moves):
        blocks = _blocks(moves)
        first = _signature_of([x[0] for x in blocks], self.chain)

        def advance(state, block):
            return self.chain.product(state, _signature_of(block, self.chain)), None

        advance = jax.checkpoint(advance, prevent_cse=False)  # for higher derivatives
        return scan(advance, first, [x[1:] for x in blocks])[0]

    def jvp(self, primals, tangents):
        out = self(*primals)
        return out, _Tangent(self.chain, len(primals))(*primals, *out, *tangents)


@dataclasses.dataclass(frozen=True)
class _Derivative(Linear):
    """Linear in what follows `count` arrays of increments and the signature."""

    chain: Chain
    count: int
    batch = _batch

    @property
    def fixed(self) -> int:  # pyright: ignore
        return self.count + self.chain.parts


class _Tangent(_Derivative):
    """Tangents of increments to that of the signature."""

    @property
    def transpose(self):
        return _Cotangent(self.chain, self.count)

    def value(self, *args):
        primals, tangents = args[: self.count], args[self.fixed :]
        return jax.jvp(_Value(self.chain).value, primals, tangents)[1]


class _Cotangent(_Derivative):
    """The cotangent of the signature to those of the increments."""

    @property
    def transpose(self):
        return _Tangent(self.chain, self.count)

    def value(self, *args):
        chain, moves = self.chain, args[: self.count]
        state, cotangent = list(args[self.count : self.fixed]), list(args[self.fixed :])

        def retreat(carry, block):
            state, cotangent = carry
            here, pull = jax.vjp(lambda *x: _signature_of(x, chain), *block)
            before = chain.divide(state, here)
            _, pull_product = jax.vjp(chain.product, before, here)
            cotangent, at_piece = pull_product(cotangent)
            return (before, cotangent), list(pull(at_piece))

        retreat = jax.checkpoint(retreat, prevent_cse=False)
        start = (state, cotangent)
        pulled = scan(retreat, start, _blocks(moves), reverse=True)[1]
        return _joined(pulled, moves[0].shape[-1])
