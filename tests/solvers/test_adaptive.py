"""Windows and depths chosen for a tolerance."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .harness import bounded_fields, distances, flow_reference, log_ode, pad


STEPS = 2048
BURST = (0.5, 0.625)


@pytest.fixture(scope="module")
def case():
    """Paths that are Brownian in an eighth of the time, next to nothing elsewhere."""
    geometry = abx.SO(3)
    fields = bounded_fields(2, geometry)
    y0 = geometry.random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    times = np.arange(STEPS) / STEPS
    size = np.where((times >= BURST[0]) & (times < BURST[1]), 4.0, 0.03)
    dx = [jr.normal(jr.PRNGKey(k), (STEPS, 2), jnp.float64) for k in range(3)]
    dx = np.stack(dx) * size[:, None] / np.sqrt(STEPS)
    xs = jnp.asarray(np.pad(np.cumsum(dx, axis=1), ((0, 0), (1, 0), (0, 0))))
    ts = jnp.linspace(0.0, 1.0, STEPS + 1)
    references = flow_reference(fields, y0, xs, geometry)
    controls = [abx.dyadic_control(ts, x, abx.Shuffle(2, 3)) for x in xs]
    return geometry, fields, y0, ts, xs, controls, references


def test_dyadic_levels_are_log_signatures(case):
    _, _, _, _, (xs, *_), (control, *_), _ = case
    assert [level.shape[0] for level in control.levels] == [2**k for k in range(12)]
    whole = abx.log_signature(xs, control.alg)
    np.testing.assert_allclose(control.levels[0][0], whole, atol=1e-10)
    half = abx.log_signature(xs[: STEPS // 2 + 1], control.alg)
    np.testing.assert_allclose(control.levels[1][0], half, atol=1e-10)


def uniform_errors(case):
    """`{windows: errors}` of uniform partitions at the full depth."""
    geometry, fields, y0, _, _, controls, references = case
    levels = zip(*(control.levels for control in controls))
    levels = {rows[0].shape[0]: np.stack(rows) for rows in levels}
    ends = log_ode(fields, y0, pad(levels), controls[0].alg, geometry)
    return dict(zip(levels, distances(ends, references, geometry)))


def test_tolerance_is_met_with_windows_where_the_path_is_rough(case):
    """Estimates add up to the tolerance at most, and errors are below four of it.

    Why four: halving the windows of a method of order 1 takes away half of its error,
    so the true error may be twice what the halves show, and the flow of these equations
    makes local errors about twice as large at the end. The tolerance is used, not only
    kept: the estimates add up to a hundredth of it at least, and smaller tolerances
    take more windows. These lie where the path is rough: a uniform partition into as
    many windows or more, at full depth, is five times worse.
    """
    geometry, fields, y0, _, _, controls, references = case
    uniform = uniform_errors(case)
    for path, (control, reference) in enumerate(zip(controls, references)):
        windows = []
        for tol in (1e-1, 1e-2, 1e-3):
            sol = abx.solve_adaptive(
                fields, y0, control, geometry=geometry, rtol=0.0, atol=tol
            )
            assert sol.result == abx.RESULTS.successful
            assert sol.ts[0] == 0.0 and sol.ts[-1] == 1.0
            assert bool(geometry.belongs(sol.ys[-1]))
            assert sol.stats["num_forced"] == 0
            count, depths = sol.stats["num_windows"], sol.stats["depths"]
            assert len(depths) == count == sol.ts.shape[0] - 1
            assert set(depths) <= {2, 3}

            error = float(geometry.distance(sol.ys[-1], reference))
            assert error < 4 * tol, (error, tol)
            estimate = float(np.sum(sol.stats["errors"]))
            assert tol / 100 < estimate <= tol, (estimate, tol)
            windows.append(count)
            if tol > 1e-2:
                continue
            starts = np.asarray(sol.ts[:-1])
            inside = np.sum((starts >= BURST[0]) & (starts < BURST[1]))
            assert inside > 0.9 * count
            as_many = min(n for n in uniform if n >= count)
            assert error < uniform[as_many][path] / 5, (error, uniform[as_many])
        assert windows == sorted(set(windows)), windows


def test_limits_and_refusals(case):
    geometry, fields, y0, ts, (xs, *_), (control, *_), _ = case
    options = {"geometry": geometry, "rtol": 0.0, "atol": 1e-3}
    sol = abx.solve_adaptive(fields, y0, control, max_windows=2, throw=False, **options)
    assert sol.result == abx.RESULTS.max_steps_reached
    with pytest.raises(ValueError, match="max_windows"):
        abx.solve_adaptive(fields, y0, control, max_windows=2, **options)
    with pytest.raises(ValueError, match="host"):
        jax.jit(lambda y: abx.solve_adaptive(fields, y, control, **options).ys)(y0)
    with pytest.raises(TypeError, match="dyadic_control|Type-check error"):
        abx.solve_adaptive(fields, y0, xs, **options)
    with pytest.raises(ValueError, match="not on the manifold"):
        abx.solve_adaptive(fields, 2 * y0, control, max_windows=2, **options)
    with pytest.raises(ValueError, match="tolerances"):
        abx.solve_adaptive(fields, y0, control, geometry=geometry, rtol=0.0, atol=0.0)
    with pytest.raises(ValueError, match="would leave"):
        abx.solve_adaptive(fields, y0, control, solver=abx.Heun(), **options)
    with pytest.raises(ValueError, match="levels"):
        abx.dyadic_control(ts, xs, abx.Shuffle(2, 2), levels=-1)
