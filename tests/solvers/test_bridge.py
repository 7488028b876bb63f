"""The same solution from `diffeqsolve`."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import arborax as abx

from .harness import bounded_fields, flow_reference


def sampled(seed=1, steps=64):
    dx = jr.normal(jr.PRNGKey(seed), (steps, 2), jnp.float64) / np.sqrt(steps)
    xs = jnp.concatenate([jnp.zeros((1, 2)), jnp.cumsum(dx, axis=0)])
    return jnp.linspace(0.0, 1.0, steps + 1), xs


def make(geometry, alg, seed=1):
    fields = bounded_fields(2, geometry)
    y0 = geometry.random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    ts, xs = sampled(seed)
    brackets = None if isinstance(alg, abx.Shuffle) else "realised"
    return fields, y0, abx.rough_path(ts, xs, alg, window=8, brackets=brackets)


def run(fields, y0, control, geometry, solver, **options):
    options = {"stepsize_controller": diffrax.StepTo(control.knots), **options}
    dt0 = options.pop("dt0", None)
    return eqx.filter_jit(diffrax.diffeqsolve)(
        abx.RoughTerm(fields, control, geometry),
        solver,
        control.knots[0],
        control.knots[-1],
        dt0,
        y0,
        **options,
    )


@pytest.mark.parametrize(
    "geometry,alg",
    [(abx.Euclidean(3), abx.GrossmanLarson(2, 2)), (abx.SO(3), abx.Ito(2, 2))],
    ids=["flat", "curved"],
)
def test_same_solution(geometry, alg):
    fields, y0, control = make(geometry, alg)
    want = abx.solve(fields, y0, control, geometry=geometry).ys
    sol = run(
        fields,
        y0,
        control,
        geometry,
        abx.LogODE(abx.CFEES25()),
        saveat=diffrax.SaveAt(ts=control.knots),
    )
    np.testing.assert_allclose(sol.ys, want, atol=1e-12)


def test_diffrax_solvers_in_flat_space():
    geometry, alg = abx.Euclidean(3), abx.Shuffle(2, 2)
    fields, y0, control = make(geometry, alg)
    want = abx.solve(
        fields, y0, control, solver=abx.Heun(), saveat=diffrax.SaveAt(t1=True)
    ).ys[0]
    for solver in (abx.LogODE(diffrax.Heun()), diffrax.Heun()):
        sol = run(fields, y0, control, geometry, solver)
        np.testing.assert_allclose(sol.ys[0], want, atol=1e-12)


def test_adaptive_clipped_at_knots():
    """Smaller tolerances bring the solution of each window's flow closer."""
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = make(geometry, alg)
    counts = []
    for tol in (1e-2, 1e-4):
        controller = diffrax.ClipStepSizeController(
            diffrax.PIDController(rtol=tol, atol=tol), step_ts=control.knots
        )
        sol = run(
            fields,
            y0,
            control,
            geometry,
            abx.LogODE(),
            dt0=0.05,
            stepsize_controller=controller,
            saveat=diffrax.SaveAt(ts=jnp.array([0.3, 0.77, 1.0])),
        )
        assert sol.result == diffrax.RESULTS.successful
        assert bool(jnp.all(jax.vmap(geometry.belongs)(sol.ys)))
        counts.append(int(sol.stats["num_accepted_steps"]))
    assert counts[0] >= 8 and counts[1] > counts[0]


def test_initial_step_and_vmap():
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = make(geometry, alg)
    _, _, other = make(geometry, alg, seed=2)
    batch = jtu.tree_map(lambda a, b: jnp.stack([a, b]), control, other)

    def one(control):
        controller = diffrax.ClipStepSizeController(
            diffrax.PIDController(rtol=1e-3, atol=1e-3), step_ts=control.knots
        )
        return diffrax.diffeqsolve(
            abx.RoughTerm(fields, control, geometry),
            abx.LogODE(),
            control.knots[0],
            control.knots[-1],
            None,
            y0,
            stepsize_controller=controller,
        ).ys[0]

    out = eqx.filter_jit(jax.vmap(one))(batch)
    # Steps shorter than a window see more of the path than its log-signature: they
    # come close to the equation along the sampled path itself.
    paths = jnp.stack([sampled(seed)[1] for seed in (1, 2)])
    want = flow_reference(fields, y0, paths, geometry)
    np.testing.assert_allclose(out, want, atol=0.01)


def test_crossing_a_knot():
    """NaN, and an error within `debug_checks`."""
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = make(geometry, alg)
    args = (fields, y0, control, geometry, abx.LogODE())
    options = {"dt0": 0.3, "stepsize_controller": diffrax.ConstantStepSize()}
    assert bool(jnp.all(jnp.isnan(run(*args, **options).ys)))
    with abx.debug_checks(), pytest.raises(Exception, match="crosses a knot"):
        run(*args, **options)


def test_the_term_calls_nothing_on_the_host():
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, _, control = make(geometry, alg)
    term = abx.RoughTerm(fields, control, geometry)
    assert (
        "callback"
        not in jax.jit(lambda s, t: term.contr(s, t)).lower(0.0, 0.1).as_text()
    )


def test_mismatch_is_refused():
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = make(geometry, alg)
    with pytest.raises(ValueError, match="would leave"):
        run(fields, y0, control, geometry, abx.LogODE(diffrax.Heun()))


def test_term_is_consistent():
    """vf, contr and prod agree with vf_prod."""
    geometry, alg = abx.SO(3), abx.MuntheKaasWright(2, 2)
    fields, y0, control = make(geometry, alg)
    term = abx.RoughTerm(fields, control, geometry)
    lam = term.contr(0.05, 0.1)
    np.testing.assert_allclose(
        term.prod(term.vf(0.05, y0, None), lam),
        term.vf_prod(0.05, y0, None, lam),
        atol=1e-14,
    )
