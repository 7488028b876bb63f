"""Manifold neural ordinary differential equation."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from .._inputs import as_count
from .._xla import scan
from ..geometry import AbstractGeometry, Euclidean, SO
from ..paths import SampledPath
from ..solvers import AbstractSolver, as_solver
from ._base import AbstractModel
from ._checks import as_output, finite
from ._layers import flatten, point_size, unflatten
from ._mlp import MLP


class MNODE(AbstractModel):
    r"""An ordinary differential equation on a manifold from its first sample alone.

    Over each sample interval the solution runs in the geodesic chart at its start $c$:
    $\dot u = \tanh f_\theta(u, c, t)$ in frame coordinates, $y = \exp_c u$, by
    `substeps` steps of the solver; then the chart moves. The driver is not used beyond
    its first sample, so there is nothing to stream.

    ??? cite "Reference"

        A. Lou, D. Lim, I. Katsman, L. Huang, Q. Jiang, S.-N. Lim, C. De Sa, Neural
        manifold ordinary differential equations, NeurIPS 2020.
    """

    geometry: AbstractGeometry = eqx.field(static=True)
    mlp: MLP
    solver: AbstractSolver
    channels: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)

    def __init__(
        self,
        geometry: AbstractGeometry | None = None,
        *,
        width: int = 32,
        depth: int = 3,
        activation: Callable = jax.nn.softplus,
        solver: AbstractSolver | diffrax.AbstractSolver | None = None,
        substeps: int = 4,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `geometry`: where the solution lives; default `SO(3)`.
        - `width`, `depth`, `activation`: of the MLP.
        - `solver`: scheme inside a chart, default Tsit5; `substeps` of it per sample.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        self.geometry = SO(3) if geometry is None else as_output(geometry, "geometry")
        self.channels = 1 + point_size(self.geometry)  # time, and the entries
        self.mlp = MLP(
            self.geometry.dim + self.channels,
            self.geometry.dim,
            width,
            depth,
            activation=activation,
            final_activation=jnp.tanh,
            dtype=dtype,
            key=key,
        )
        scheme = diffrax.Tsit5() if solver is None else solver
        self.solver = as_solver(scheme, Euclidean(self.geometry.dim))
        self.substeps = as_count("substeps", substeps)

    def _interval(self, y: PyTree[Array], t: Array, dt: Array) -> PyTree[Array]:
        dim, entries = self.geometry.dim, flatten(y)
        h = jnp.ones((), entries.dtype) / self.substeps

        def f(s, u):
            inputs = jnp.concatenate([u, entries, (t + s * dt)[None]])
            return dt * self.mlp(inputs)

        def body(u, s):
            return self.solver.step(f, Euclidean(dim), s, u, h), None

        grid = jnp.arange(self.substeps, dtype=entries.dtype) * h
        u, _ = scan(body, jnp.zeros((dim,), entries.dtype), grid)
        return self.geometry.exp(y, u)

    def __call__(self, path: SampledPath) -> PyTree[Float[Array, "..."]]:
        """Points at all times of one path with channels time and (flattened) point, of
        which the first sample is used."""
        path = self.check(path)
        clock = path.xs[:, 0]
        y0 = unflatten(self.geometry, path.xs[0, 1:])

        def body(y, row):
            y = self._interval(y, *row)
            return y, y

        _, ys = scan(body, y0, (clock[:-1], jnp.diff(clock)))
        joined = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), y0, ys)
        return finite(joined)
