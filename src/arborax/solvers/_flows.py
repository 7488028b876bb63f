"""Windows whose flows are known exactly: the scheme for linear fields, and linear flows
one after another or all at once."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._xla import scan
from ..lifts import Blocks
from ._base import AbstractSolver


_LONG = 64  # windows from which an accelerator multiplies maps in parallel


class Magnus(AbstractSolver):
    r"""The exact flow of [`arborax.LinearFields`][] over a window: one exponential of
    the window matrix (in Euclidean space) or of a group element.

    The default for linear fields; it refuses all others. What remains is the error of
    the truncated log-signature, as in a Magnus expansion. A step back undoes a step, so
    [`arborax.ReversibleAdjoint`][] is exact to rounding.
    """

    order = 16  # that of the series inside the exponential, exact to rounding
    reversible = True
    euclidean = False

    def step(self, f: Any, geometry, s, y, h) -> PyTree[Array]:
        return f.flow(y, h)


def choose_mode(
    mode: Literal["scan", "associative"] | None, windows: int
) -> Literal["scan", "associative"]:
    """The mode, by default `"scan"` on a CPU and for few windows, otherwise
    `"associative"`."""
    if mode is not None:
        return mode
    serial = jax.default_backend() == "cpu" or windows < _LONG
    return "scan" if serial else "associative"


def run_flows(
    blocks: Blocks,
    flows: Float[Array, "windows size columns blocks"],
    y0: Float[Array, "size blocks"],
    mode: Literal["scan", "associative"] | None = None,
) -> Float[Array, "knots size blocks"]:
    """States at all knots, the first of them `y0`.

    `"scan"` applies one flow after another: `size * columns` operations per block and
    window. `"associative"` multiplies flows in a tree of logarithmic depth, which takes
    some `2 * size` times as many operations, but few steps.
    """
    if choose_mode(mode, flows.shape[0]) == "associative":
        compose = lambda earlier, later: blocks.compose(later, earlier)  # noqa: E731
        whole = jax.lax.associative_scan(compose, flows)
        return jnp.concatenate([y0[None], blocks.act(whole, y0[None])])

    def body(y, flow):
        y = blocks.act(flow, y)
        return y, y

    _, rest = scan(body, y0, flows)
    return jnp.concatenate([y0[None], jnp.asarray(rest)])
