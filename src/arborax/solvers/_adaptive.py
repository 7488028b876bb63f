"""Windows and depths chosen on the fly, from cached dyadic log-signatures."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._inputs import as_count, as_kind
from .._values import is_concrete
from ..algebra import AbstractHopfAlgebra
from ..geometry import AbstractGeometry
from ..lifts import check_lift, lift, WindowField
from ..paths import SampledPath
from ..signatures import rough_path, signature_tree
from ._base import AbstractSolver
from ._checks import as_state, check_calculus, check_geometry
from ._low_storage import CF4
from ._results import RESULTS, throw_failure
from ._runge_kutta import as_solver
from ._solution import DenseStates, Solution
from ._solve import judge
from ._window import step_window


class DyadicControl(eqx.Module):
    """Log-signatures of a path over all dyadic intervals of its time span.

    Level `l` has `2**l` intervals of equal length; coarser levels are joined from the
    finest by Chen's relation. Made by [`arborax.dyadic_control`][], once per path.
    """

    alg: AbstractHopfAlgebra = eqx.field(static=True)
    calculus: str = eqx.field(static=True)
    knots: Float[Array, " finest"]
    levels: tuple[Float[Array, "_ primitives"], ...]


def dyadic_control(
    ts,
    xs,
    alg: AbstractHopfAlgebra,
    brackets: Any = None,
    *,
    levels: int | None = None,
) -> DyadicControl:
    """Cache the log-signatures of all dyadic intervals.

    **Arguments:**

    - `ts`, `xs`, `brackets`: as in [`arborax.rough_path`][].
    - `alg`: the algebra, of the greatest depth that may be used.
    - `levels`: the finest level; by default one interval for each step, or fewer.

    **Returns:**

    A `DyadicControl`, `2**(levels + 1) - 1` log-signatures.
    """
    path = xs if isinstance(xs, SampledPath) else SampledPath(ts, xs)
    if levels is None:
        levels = max(0, int(math.log2(max(path.num_times - 1, 1))))
    levels = as_count("levels", levels, 0)
    filled = path.filled().ts
    if not is_concrete(filled):
        raise ValueError(
            "`dyadic_control` cuts the time span on the host, so its times must not be "
            "traced. Build the control outside `jit`."
        )
    if path.batch_shape:
        raise ValueError(
            f"`dyadic_control` takes one path, got batch shape {path.batch_shape}."
        )
    grid = np.asarray(filled[0]) + np.linspace(0.0, 1.0, 2**levels + 1) * np.asarray(
        filled[-1] - filled[0]
    )
    grid[-1] = np.asarray(filled[-1])
    control = rough_path(None, path, alg, knots=grid, brackets=brackets)
    _, *coarser = signature_tree(control).levels
    out = [control.log_signatures]
    out += [alg.to_primitive(alg.log(group)) for group in coarser]
    return DyadicControl(alg, control.calculus, control.knots, tuple(out[::-1]))


@eqx.filter_jit
def _step(field: WindowField, solver: AbstractSolver, substeps: int, y, lam, t0, t1):
    """One window, coarse and fine in time."""
    lam = lam[: field.alg.primitive_size]
    coarse = step_window(field, solver, substeps, y, lam, t0, t1)
    fine = step_window(field, solver, 2 * substeps, y, lam, t0, t1)
    return coarse, fine


def _shares(control: DyadicControl) -> np.ndarray:
    """The share of the tolerance that each finest interval may use."""
    finest = np.asarray(control.levels[-1])
    increments = finest[:, control.alg.primitive_weights == 1]
    squares = np.sum(increments**2, axis=1)
    even = np.full(len(squares), 1 / len(squares))
    total = squares.sum()
    return (even + squares / total) / 2 if total > 0 else even


def _pieces(shares: np.ndarray, start: int, width: int) -> list[tuple[int, int]]:
    """The halves of a window, as starts and widths; a half with most of its share is
    halved again."""
    if width == 1:
        return [(start, 1)]
    half, out = width // 2, []
    most = 2 / 3 * shares[start : start + width].sum()
    for first in (start, start + half):
        whole = shares[first : first + half].sum() <= most
        out += [(first, half)] if whole else _pieces(shares, first, half)
    return out


def _distance(x: PyTree[Array], y: PyTree[Array]) -> float:
    gaps = jtu.tree_map(
        lambda a, b: np.max(np.abs(np.asarray(a) - np.asarray(b))), x, y
    )
    return float(max(jtu.tree_leaves(gaps)))


def _size(y: PyTree[Array]) -> float:
    return float(max(np.max(np.abs(np.asarray(leaf))) for leaf in jtu.tree_leaves(y)))


def solve_adaptive(
    fields: Callable | Sequence[Callable],
    y0: PyTree[Array],
    control: DyadicControl,
    *,
    geometry: AbstractGeometry,
    rtol: float = 1e-3,
    atol: float = 1e-4,
    solver: AbstractSolver | diffrax.AbstractSolver = CF4(),
    substeps: int = 1,
    args: PyTree = None,
    max_windows: int = 4096,
    throw: bool = True,
) -> Solution:
    r"""The log-ODE method with windows and depths chosen for a tolerance.

    Starting from the whole interval, a dyadic window is tried at depth 1, 2, ... up to
    that of the algebra. Truncating a log-signature is free, so the difference of the
    states at depths $m$ and $m + 1$ is an embedded estimate of what depth $m$ leaves
    out; the difference between `substeps` and twice as many estimates the error in
    time. In long windows two depths may agree by chance, so the window is also compared
    with its halves (and with theirs, where one of them holds nearly all movement). If
    the estimate is below (tolerance) x (share of the window), the state of the higher
    depth is kept; otherwise the depth is raised, and at the last depth the window is
    halved.

    Shares add up to one, so that local errors add up to about the tolerance, with no
    account of how the equation amplifies them. The share of a window is the mean of
    two: of the time span, and of the sum of squared increments of the driver over the
    finest intervals, so that a short stretch of much movement may have a larger error.

    The loop runs on the host, so it cannot be jitted or differentiated: it is for
    inference and for preparing data, for instance to choose the knots of a training
    set.

    **Arguments:**

    - `fields`, `y0`, `geometry`, `args`: as in [`arborax.solve`][].
    - `control`: from [`arborax.dyadic_control`][].
    - `rtol`, `atol`: relative and absolute tolerance.
    - `solver`, `substeps`: the scheme inside a window.
    - `max_windows`: number of accepted windows after which to give up.
    - `throw`: whether to raise a `ValueError` on failure; otherwise see `result`.

    **Returns:**

    A [`arborax.Solution`][] at the knots chosen, whose `evaluate` follows geodesics
    between them. Its `stats` hold `num_windows`,
    `num_rejected`, `num_forced` (windows of the finest level accepted above tolerance),
    `depths` and `errors`, one entry for each window.
    """
    must = "come from `arborax.dyadic_control`"
    as_kind("control", control, DyadicControl, must)
    if not is_concrete(y0, control, args):
        raise ValueError(
            "`solve_adaptive` runs on the host and cannot be jitted, vmapped or "
            "differentiated. Use it to choose knots, then call `solve`."
        )
    check_geometry(geometry)
    y0, geometry = as_state(y0, geometry)
    check_calculus(control.calculus, geometry)
    solver = as_solver(solver, geometry, control.calculus)
    substeps = as_count("substeps", substeps)
    max_windows = as_count("max_windows", max_windows)
    if not (rtol >= 0 and atol >= 0 and 0 < rtol + atol < math.inf):
        raise ValueError(f"tolerances must be positive, got {rtol=}, {atol=}.")
    depth = control.alg.depth
    lifted = [
        lift(fields, dataclasses.replace(control.alg, depth=m), geometry, args=args)
        for m in range(1, depth + 1)
    ]
    grid = np.asarray(control.knots)
    check_lift(lifted[0], y0, jnp.asarray(grid[0]))
    dtype = jtu.tree_leaves(y0)[0].dtype
    levels = [np.asarray(level, dtype) for level in control.levels]
    finest = len(levels) - 1
    cells = 2**finest
    shares = _shares(control)

    y, start, level = y0, 0, 0
    ts, ys, depths, errors = [grid[0]], [y0], [], []
    rejected = forced = 0
    finite = True
    while start < cells and len(depths) < max_windows and finite:
        while start % (cells >> level):
            level += 1
        width = cells >> level
        lam = levels[level][start // width]
        t0, t1 = grid[start], grid[start + width]
        allowed = (atol + rtol * _size(y)) * shares[start : start + width].sum()
        before, m, fine, error = None, 0, y, math.inf

        def in_pieces(field, z=y, pieces=_pieces(shares, start, width)):
            for first, length in pieces:
                lam = levels[finest - length.bit_length() + 1][first // length]
                t0, t1 = grid[first], grid[first + length]
                _, z = _step(field, solver, substeps, z, lam, t0, t1)
            return z

        for m, field in enumerate(lifted, start=1):
            coarse, fine = _step(field, solver, substeps, y, lam, t0, t1)
            missing = 0.0 if before is None else _distance(before, fine)
            error = missing + _distance(coarse, fine)
            if (before is not None or depth == 1) and error <= allowed:
                error = max(error, _distance(fine, in_pieces(field)))
                if error <= allowed:
                    break
            before = fine
        good = error <= allowed
        if not good and level < finest:
            rejected += 1
            level += 1
            continue
        forced += not good
        y, start = fine, start + width
        finite = math.isfinite(_size(y))
        ts.append(t1)
        ys.append(y)
        depths.append(m)
        errors.append(error)
        level = max(level - 1, 0)

    stacked = jtu.tree_map(lambda *leaf: jnp.stack(leaf), *ys)
    result = judge(geometry, y0, y, stacked)
    if finite and start < cells and result != RESULTS.off_manifold:
        result = RESULTS.max_steps_reached
    if throw:
        stacked = throw_failure(result, stacked)
    stats = {
        "num_windows": len(depths),
        "num_rejected": rejected,
        "num_forced": forced,
        "depths": np.array(depths),
        "errors": np.array(errors),
    }
    knots = jnp.asarray(np.array(ts))
    between = DenseStates(knots, geometry, "geodesic")
    return Solution(knots, stacked, result, stats, between)
