"""Stochastic differential equations from drift and diffusion."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._inputs import as_choice, as_count, as_flag, as_floating, as_key
from .._values import refuse_times
from ..algebra import AbstractHopfAlgebra, Ito, Shuffle
from ..geometry import AbstractGeometry
from ..paths import brownian_areas, BrownianSteps
from ..signatures import rough_path_from_areas, RoughPath
from ._adjoint import AbstractAdjoint, CheckpointedAdjoint
from ._base import AbstractSolver
from ._checks import as_state, check_calculus
from ._equation import Equation, read_equation
from ._low_storage import CF4, CFEES25
from ._results import RESULTS, throw_failure
from ._runge_kutta import as_solver
from ._solution import Solution
from ._solve import solve


# Numbers in the log-signatures of a chunk: some megabytes, which caches hold.
_CHUNK_SIZE = 2**19
# How many paths share a random key; making one for each path takes longer than noise.
_BLOCK = 16


class _Plan(eqx.Module):
    """What all paths share and JAX does not trace."""

    alg: AbstractHopfAlgebra
    method: str | None
    solver: AbstractSolver
    substeps: int
    windows: int
    adjoint: AbstractAdjoint
    antithetic: bool
    block: int
    blocks: int
    chunk: int


def solve_sde(
    drift: Callable,
    diffusion: Callable,
    y0: PyTree[Any],
    ts: Any,
    *,
    key: Any = None,
    calculus: str = "ito",
    geometry: AbstractGeometry | None = None,
    args: PyTree = None,
    paths: int | None = None,
    windows: int = 1,
    levy_area: str | None = "foster",
    weak_order: int = 1,
    antithetic: bool = False,
    solver: AbstractSolver | diffrax.AbstractSolver | None = None,
    substeps: int = 1,
    chunk: int | None = None,
    adjoint: AbstractAdjoint = CheckpointedAdjoint(),
    throw: bool = True,
) -> Solution:
    r"""Simulate paths of $dY = f(t, Y)\,dt + g(t, Y)\,dW$, Itô or Stratonovich, in flat
    space or on a manifold.

    The noise is drawn window by window, as Brownian increments and approximate Lévy
    areas ([`arborax.brownian_areas`][] says what is exact), and [`arborax.solve`][]
    does the rest. The strong order is 1 for any noise, with respect to the driver that
    is drawn, and states stay on their manifold. An Itô equation on a manifold is
    defined by the connection of the geometry.

    !!! example

        ```python
        sol = abx.solve_sde(
            lambda t, y, args: args["mu"] * y,
            lambda t, y, args: args["sigma"] * y,
            jnp.array([1.0]), jnp.linspace(0.0, 1.0, 5),
            key=jax.random.key(0), args={"mu": 0.1, "sigma": 0.2}, paths=1000,
        )
        sol.ys                           # (1000, 5, 1)
        ```

    **Arguments:**

    - `drift`: `drift(t, y, args)` or `drift(y)`, returning `(dim,)`, in the frame of
        the geometry, or one number for all coordinates.
    - `diffusion`: as `drift`, returning `(dim, d)`, one column for each of `d` Brownian
        motions, or `(dim,)`, a diagonal. One Brownian motion in all coordinates:
        `(dim, 1)`.
    - `y0`: the initial state, a point of the geometry, shared by all paths.
    - `ts`: `(times,)`, strictly increasing, at least two: the solution starts at
        `ts[0]` and is saved at all of them.
    - `key`: a JAX random key. The noise depends only on the key, the path's index and
        the windows, so changing parameters or adding paths does not change it.
        Derivatives of any order, with respect to `args`, `y0` and arrays in the
        callables, hold the noise fixed.
    - `calculus`: `"ito"` or `"stratonovich"`.
    - `geometry`: where the state lives; by default Euclidean, from the shape of `y0`.
    - `args`: passed to the callables; any PyTree.
    - `paths`: number of paths, the first axis of the result; `None` for one path
        without that axis.
    - `windows`: number of windows between two successive times.
    - `levy_area`: `"foster"`, `"davie"`, or `None` to draw no areas: the strong order
        is then 1/2, unless the noise commutes (one Brownian motion, or a diagonal whose
        `g_i` depends on `y_i` alone). Shapes do not tell whether it does, so areas are
        the default: `d (d - 1) / 2` of them per window, each with a Lie bracket of
        fields. For commuting noise in many dimensions pass `None`.
    - `weak_order`: 2 adds the conditional mean of the next order
        ([`arborax.rough_path_from_areas`][]), for coefficients that do not depend on
        `t` (make time a state if they do). It needs second derivatives of the fields,
        areas if there is more than one Brownian motion, and a solver of order 4. Its
        terms grow with the length of the windows. If states overflow, for instance on
        `SPD`, use more windows.
    - `antithetic`: paths come in pairs, the second driven by $-W$ with the same areas.
    - `solver`: the scheme inside a window. `None`: `CFEES25()`, and `CF4()` if
        `weak_order` is 2.
    - `substeps`: number of solver steps per window.
    - `chunk`: how many paths (or pairs) are computed at a time, which bounds the memory
        of value and gradient. `None`: as many as keep their log-signatures within a few
        megabytes.
    - `adjoint`: as in [`arborax.solve`][].
    - `throw`: whether a failure of any path is an error, as in [`arborax.solve`][].

    Coefficients must be smooth wherever the paths go. The square root in the Heston and
    CIR models is not smooth at zero: see [`arborax.square_root_driver`][].

    **Returns:**

    A [`arborax.Solution`][] with `ys` of shape `(paths, times, *point)` and a `result`
    for each path.
    """
    key = as_key(key)
    calculus = as_choice("calculus", calculus, ("ito", "stratonovich"))
    weak = _weak(weak_order)
    times = _as_times(ts)
    y0, geometry = as_state(y0, geometry)
    check_calculus(calculus, geometry)
    antithetic = as_flag("antithetic", antithetic)
    count = 1 if paths is None else as_count("paths", paths)
    if antithetic and count % 2:
        raise ValueError(
            f"antithetic paths come in pairs: `paths` must be even, got {paths}."
        )
    corrected = weak and calculus == "ito"
    equation = read_equation(drift, diffusion, geometry, times[0], y0, args, corrected)
    channels = 1 + equation.noise
    if weak:
        alg = Shuffle(channels, 3)
    else:
        alg = Ito(channels, 2) if calculus == "ito" else Shuffle(channels, 2)
    if solver is None:
        solver = CF4() if weak else CFEES25()
    solver = as_solver(solver, geometry, calculus)
    method = as_choice("levy_area", levy_area, ("foster", "davie", None))
    if weak:
        _check_weak(solver, method, equation.noise)
    windows = as_count("windows", windows)
    block = 1 if paths is None else _BLOCK
    blocks = -(-count // (2 * block if antithetic else block))
    if chunk is None:
        size = windows * (times.shape[0] - 1) * alg.primitive_size
        chunk = max(1, _CHUNK_SIZE // size)
    chunk = min(blocks, -(-as_count("chunk", chunk) // block))
    chunk = -(-blocks // -(-blocks // chunk))  # chunks of one size, or nearly
    plan = _Plan(
        alg,
        method,
        solver,
        as_count("substeps", substeps),
        windows,
        adjoint,
        antithetic,
        block,
        blocks,
        chunk,
    )
    # Python floats would be constants of the compiled program, one for each value.
    args = jtu.tree_map(lambda x: jnp.asarray(x) if isinstance(x, float) else x, args)
    ys, result = _simulate(equation, y0, times, key, args, plan)
    keep = 0 if paths is None else slice(count)
    ys, result = jtu.tree_map(lambda leaf: leaf[keep], (ys, result))
    if throw:
        ys = throw_failure(result, ys)
    number = windows * (times.shape[0] - 1)
    stats = {"num_windows": number, "num_steps": number * plan.substeps}
    return Solution(times, ys, result, stats)


def _weak(weak_order: Any) -> bool:
    if as_count("weak_order", weak_order) > 2:
        raise ValueError(f"`weak_order` is 1 or 2, got {weak_order}.")
    return weak_order == 2


def _check_weak(solver: AbstractSolver, method: str | None, noise: int) -> None:
    """Refuse what has weak order 1 whatever `weak_order` says."""
    if solver.order < 4:
        raise ValueError(
            f"`weak_order=2` needs a scheme of order 4; {type(solver).__name__} has "
            f"order {solver.order}. Leave `solver` out, or take `CF4()`."
        )
    if method is None and noise > 1:
        raise ValueError(
            f"`weak_order=2` needs the areas of {noise} Brownian motions; without them "
            'means have order 1. Take `levy_area="davie"`, the cheaper one.'
        )


def _as_times(ts: Any) -> Array:
    times = as_floating("ts", ts)
    if times.ndim != 1 or times.shape[0] < 2:
        raise ValueError(
            f"`ts` must have shape (times,) with two times at least, the first being "
            f"the start; got {times.shape}."
        )
    message = "`ts` must be finite and strictly increasing: sort it, drop repeats."
    return refuse_times(times, times, ts, message)


@eqx.filter_jit
def _simulate(
    equation: Equation, y0, times: Array, key, args, plan: _Plan
) -> tuple[PyTree[Array], RESULTS]:
    """States `(paths, times, ..)` and outcomes `(paths,)`, of whole blocks."""
    share = jnp.arange(plan.windows, dtype=times.dtype) / plan.windows
    spans = jnp.diff(times)[:, None]
    inner = times[:-1, None] + share[None] * spans
    knots = jnp.concatenate([inner.ravel(), times[-1:]])
    # Differences of the knots would have the rounding errors of large times.
    h = jnp.broadcast_to(spans / plan.windows, inner.shape).reshape(-1, 1)
    h = h.astype(jtu.tree_leaves(y0)[0].dtype)
    every = diffrax.SaveAt(t0=True, steps=plan.windows)
    saveat = diffrax.SaveAt(t0=True, t1=True) if times.shape[0] == 2 else every

    def run(control: RoughPath):
        sol = solve(
            equation,
            y0,
            control,
            geometry=equation.geometry,
            solver=plan.solver,
            substeps=plan.substeps,
            args=args,
            saveat=saveat,
            adjoint=plan.adjoint,
            throw=False,
        )
        return sol.ys, sol.result

    def together(numbers):
        """All paths of some blocks."""
        keys = jax.vmap(lambda number: jr.fold_in(key, number))(numbers)
        steps = jax.vmap(draw)(keys)
        return jax.vmap(each)(jtu.tree_map(_joined, steps))

    def draw(own):
        unit = jnp.arange(h.shape[0] + 1, dtype=times.dtype)
        shape, noise = (plan.block,), equation.noise
        w, space_time, areas = brownian_areas(
            unit, noise, shape, key=own, method=plan.method, dtype=h.dtype
        )
        root = jnp.sqrt(h)[None]
        return BrownianSteps(root * w, root * space_time, h[None] * areas)

    def each(steps: BrownianSteps):
        if not plan.antithetic:
            return run(brownian_control(knots, h, steps, plan.alg))
        mirrored = BrownianSteps(-steps.increments, -steps.space_time, steps.areas)
        both = jtu.tree_map(lambda *leaves: jnp.stack(leaves), steps, mirrored)
        control = lambda one: brownian_control(knots, h, one, plan.alg)  # noqa: E731
        return jax.vmap(lambda one: run(control(one)))(both)

    chunks = -(-plan.blocks // plan.chunk)
    numbers = jnp.arange(chunks * plan.chunk).reshape(chunks, plan.chunk)
    if chunks == 1:
        out = jtu.tree_map(lambda leaf: leaf[None], together(numbers[0]))
    else:
        out = jax.lax.map(jax.checkpoint(together), numbers)
    out = jtu.tree_map(_joined, out)
    return jtu.tree_map(_joined, out) if plan.antithetic else out


def _joined(leaf: Array) -> Array:
    """The first two axes as one."""
    return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])


def brownian_control(
    ts: Array, h: Array, steps: BrownianSteps, alg: AbstractHopfAlgebra
) -> RoughPath:
    """The control of the driver $(t, W)$ with which [`arborax.solve_sde`][] solves.

    **Arguments:**

    - `ts`: ends of the windows, `(windows + 1,)`; values are not checked.
    - `h`: lengths of the windows, `(windows, 1)`, in the dtype of the states.
    - `steps`: increments and areas of one path, as [`arborax.brownian_areas`][] draws
        them.
    - `alg`: `Ito(1 + dim, 2)` (Itô), `Shuffle(1 + dim, 2)` (Stratonovich) or, with the
        conditional means of weak order 2, `Shuffle(1 + dim, 3)`.
    """
    w, space_time, areas = steps
    increments = jnp.concatenate([h, w], axis=-1)
    # The area of time and W is -h H.
    areas = jnp.concatenate([-h * space_time, areas], axis=-1)
    spread = jnp.concatenate([jnp.zeros_like(h), jnp.broadcast_to(h, w.shape)], axis=-1)
    brackets = variances = None
    if alg.calculus == "ito":
        brackets = jax.vmap(jnp.diag)(spread)
    elif alg.depth == 3:
        variances = spread
    return rough_path_from_areas(
        ts, increments, areas, alg, brackets, variances=variances, check=False
    )
