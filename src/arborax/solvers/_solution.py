"""The result of a solve, and states between its knots."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, PyTree, Real

from .._values import refuse
from ..geometry import AbstractGeometry
from ..lifts import WindowField
from ._base import AbstractSolver
from ._checks import as_times
from ._results import RESULTS
from ._window import join_states, state_inside


class DenseStates(eqx.Module):
    """States between knots, from the states at the knots.

    All that is not an array is static and hashable, so that a solution can be returned
    from compiled functions and passed to them.
    """

    knots: Real[Array, " knots"]
    arrays: list[Any]
    others: tuple = eqx.field(static=True)
    structure: Any = eqx.field(static=True)
    geometry: AbstractGeometry = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def __init__(
        self,
        knots: Real[Array, " knots"],
        geometry: AbstractGeometry,
        kind: str,
        problem: tuple[WindowField, AbstractSolver, int, Any] | None = None,
    ):
        """`problem` is the window field, the scheme, its number of steps per window and
        the control, for the kind `"log-ode"`."""
        self.knots, self.geometry, self.kind = knots, geometry, kind
        leaves, self.structure = jtu.tree_flatten(problem)
        known = [isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves]
        self.arrays = [leaf if is_ else None for leaf, is_ in zip(leaves, known)]
        self.others = tuple(None if is_ else x for x, is_ in zip(leaves, known))

    def evaluate(
        self, states: PyTree[Array], ts: Real[Array, " times"]
    ) -> PyTree[Array]:
        """States at times within the knots, NaN at others."""
        return jax.vmap(lambda t: self._at(states, t))(ts)

    def _problem(self) -> Any:
        pairs = zip(self.arrays, self.others)
        leaves = [other if array is None else array for array, other in pairs]
        return jtu.tree_unflatten(self.structure, leaves)

    def _at(self, states: PyTree[Array], t: Real[Array, ""]) -> PyTree[Array]:
        knots = self.knots
        bad = ~((t >= knots[0]) & (t <= knots[-1]))
        t = refuse(t, bad, str(RESULTS.times_outside))
        last = knots.shape[0] - 2
        k = jnp.clip(jnp.searchsorted(knots, t, side="right") - 1, 0, last)
        y, z = (jtu.tree_map(lambda leaf, i=i: leaf[i], states) for i in (k, k + 1))
        if self.kind == "log-ode":
            field, solver, substeps, control = self._problem()
            scheme = field, solver, substeps, control
            return state_inside(*scheme, k, y, z, t, self.kind)
        ends = (knots[k], y), (knots[k + 1], z)
        return join_states(self.geometry, self.kind, *ends, t)


class Solution(eqx.Module):
    """The solution of a rough differential equation.

    - `ts`: times at which states were saved, shape `(times,)`, in the dtype of the
        knots.
    - `ys`: the states, with leading axis `times`.
    - `result`: a member of [`arborax.RESULTS`][]. Compare it with `RESULTS.successful`,
        or print it.
    - `stats`: the numbers of windows and steps.
    - `dense`: what `evaluate` needs, or `None` if it was not kept.
    - `states`: the states at the knots, for `evaluate`; `None` if they are `ys`.
    """

    ts: Real[Array, " times"]
    ys: PyTree[Array]
    result: RESULTS
    stats: dict[str, Any]
    dense: DenseStates | None = None
    states: PyTree[Array] | None = None

    def evaluate(self, t: Any) -> PyTree[Array]:
        """States at any times within the knots, the same as from `SaveAt(ts=..)`. The
        `interpolation` of the solve decides how they are found.

        **Arguments:**

        - `t`: a time, or an array of times. Times outside the knots raise an error; in
            compiled code their states are NaN.

        **Returns:**

        The states, with the axes of `t` in front. For a batch of solutions write
        `jax.vmap(lambda sol: sol.evaluate(t))(sol)`.
        """
        if self.dense is None:
            raise ValueError(
                "this solution does not hold what lies between its knots. Solve with "
                "the default `saveat`, or with `diffrax.SaveAt(.., dense=True)`, and "
                "with a control from `arborax.rough_path`. With `solve_sde` ask for "
                "all times in `ts`."
            )
        knots = self.dense.knots
        if knots.ndim != 1:
            raise ValueError(
                "this is a batch of solutions. Evaluate it with "
                "`jax.vmap(lambda sol: sol.evaluate(t))(sol)`."
            )
        ts, _ = as_times(t, knots)
        states = self.ys if self.states is None else self.states
        ys = self.dense.evaluate(states, ts.ravel())
        return jtu.tree_map(lambda y: y.reshape(ts.shape + y.shape[1:]), ys)

    def __repr__(self) -> str:
        ts, ys = (eqx.tree_pformat(x) for x in (self.ts, self.ys))
        result, stats = self.result, self.stats
        return f"Solution({ts=!s}, {ys=!s}, {result=}, {stats=})"
