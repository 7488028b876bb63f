"""Windows and depths chosen for a tolerance."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .harness import bounded_fields, flow_reference


@pytest.fixture(scope="module")
def case():
    geometry = abx.SO(3)
    fields = bounded_fields(2, geometry)
    y0 = geometry.random_point(jr.PRNGKey(0), jnp.float64)
    steps = 256
    dx = jr.normal(jr.PRNGKey(4), (steps, 2), jnp.float64) / np.sqrt(steps)
    # Quiet in the second half.
    quiet = jnp.where(jnp.arange(steps) < steps // 2, 1.0, 0.05)
    dx = dx * jnp.broadcast_to(quiet[:, None], dx.shape)
    xs = jnp.concatenate([jnp.zeros((1, 2)), jnp.cumsum(dx, axis=0)])
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    reference = flow_reference(fields, y0, xs[None], geometry)[0]
    control = abx.dyadic_control(ts, xs, abx.Shuffle(2, 3))
    return geometry, fields, y0, ts, xs, control, reference


def test_dyadic_levels_are_log_signatures(case):
    _, _, _, _, xs, control, _ = case
    assert [level.shape[0] for level in control.levels] == [2**k for k in range(9)]
    whole = abx.log_signature(xs, control.alg)
    np.testing.assert_allclose(control.levels[0][0], whole, atol=1e-10)
    half = abx.log_signature(xs[:129], control.alg)
    np.testing.assert_allclose(control.levels[1][0], half, atol=1e-10)


def test_tolerance_is_met_and_windows_follow_the_path(case):
    geometry, fields, y0, _, _, control, reference = case
    windows, gaps = [], []
    for tol in (1e-2, 3e-4):
        sol = abx.solve_adaptive(
            fields, y0, control, geometry=geometry, rtol=0.0, atol=tol
        )
        assert sol.result == abx.RESULTS.successful
        windows.append(sol.stats["num_windows"])
        gaps.append(float(jnp.abs(sol.ys[-1] - reference).max()))
        assert gaps[-1] < 3 * tol
        assert sol.ts[0] == 0.0 and sol.ts[-1] == 1.0
        assert len(sol.stats["depths"]) == sol.ts.shape[0] - 1
        assert set(sol.stats["depths"]) <= {2, 3}
    assert windows[1] > windows[0] and gaps[1] < gaps[0]
    first = int(np.sum(np.asarray(sol.ts[1:]) <= 0.5))
    assert first > windows[1] - first  # more windows where the path moves
    assert bool(geometry.belongs(sol.ys[-1]))


def test_limits_and_refusals(case):
    geometry, fields, y0, ts, xs, control, _ = case
    options = {"geometry": geometry, "rtol": 0.0, "atol": 1e-3}
    sol = abx.solve_adaptive(fields, y0, control, max_windows=2, throw=False, **options)
    assert sol.result == abx.RESULTS.max_steps_reached
    with pytest.raises(Exception, match="max_windows"):
        abx.solve_adaptive(fields, y0, control, max_windows=2, **options)
    with pytest.raises(ValueError, match="host"):
        jax.jit(lambda y: abx.solve_adaptive(fields, y, control, **options).ys)(y0)
    with pytest.raises(TypeError):
        abx.solve_adaptive(fields, y0, xs, **options)
    with pytest.raises(ValueError, match="tolerances"):
        abx.solve_adaptive(fields, y0, control, geometry=geometry, rtol=0.0, atol=0.0)
    with pytest.raises(ValueError, match="would leave"):
        abx.solve_adaptive(fields, y0, control, solver=abx.Heun(), **options)
    with pytest.raises(ValueError, match="negative"):
        abx.dyadic_control(ts, xs, abx.Shuffle(2, 2), levels=-1)
