"""States between knots after a solve, what is saved, and `args` of the fields."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


ALG, SPACE = abx.Ito(2, 2), abx.SO(3)
TS = jnp.linspace(0.0, 1.0, 13)
XS = jnp.stack([jnp.sin(5 * TS), jnp.cos(7 * TS) * TS], axis=1)
CONTROL = abx.rough_path(TS, XS, ALG, window=4, brackets="realised")
INSIDE = jnp.array([[0.0, 0.1, 0.3], [1 / 3, 0.77, 1.0]])


def fields(t, y, args):
    rows = jnp.stack([jnp.sin(y[0] + t), jnp.cos(y[1])])
    return args["rate"] * rows + args["shift"]


ARGS = {"rate": jnp.array(0.7), "shift": jnp.array([[0.1, 0.0, -0.2]])}


def run(args=ARGS, y0=None, control=CONTROL, **options):
    y0 = jnp.eye(3) if y0 is None else y0
    return abx.solve(fields, y0, control, geometry=SPACE, args=args, **options)


@pytest.mark.parametrize("kind", ["log-ode", "geodesic"])
def test_evaluate_is_what_saveat_gives(kind):
    want = run(saveat=diffrax.SaveAt(ts=INSIDE.ravel()), interpolation=kind).ys
    sol = run(interpolation=kind)
    got = sol.evaluate(INSIDE)
    assert got.shape == (2, 3, 3, 3)
    np.testing.assert_allclose(got.reshape(-1, 3, 3), want, atol=1e-13)
    np.testing.assert_allclose(sol.evaluate(0.77), want[4], atol=1e-13)
    np.testing.assert_allclose(sol.evaluate(sol.ts), sol.ys, atol=1e-12)


def test_evaluate_outside_a_compiled_solve():
    """Fields that close over traced arrays leave nothing traced behind."""

    @jax.jit
    def compiled(rate):
        closed = lambda y: rate * fields(0.0, y, ARGS)  # noqa: E731
        return abx.solve(closed, jnp.eye(3), CONTROL, geometry=SPACE)

    want = compiled(0.5).evaluate(INSIDE)
    eager = abx.solve(
        lambda y: 0.5 * fields(0.0, y, ARGS), jnp.eye(3), CONTROL, geometry=SPACE
    )
    np.testing.assert_allclose(want, eager.evaluate(INSIDE), atol=1e-13)
    inside = jax.jit(lambda sol, t: sol.evaluate(t))
    np.testing.assert_allclose(inside(compiled(0.5), INSIDE), want, atol=1e-13)
    np.testing.assert_allclose(inside(eager, INSIDE), want, atol=1e-13)


def test_evaluate_a_batch():
    rates = jnp.array([0.2, 0.9])
    batch = jax.jit(jax.vmap(lambda r: run({**ARGS, "rate": r})))(rates)
    with pytest.raises(ValueError, match="jax.vmap"):
        batch.evaluate(0.3)
    got = jax.vmap(lambda sol: sol.evaluate(0.3))(batch)
    for rate, state in zip(rates, got):
        want = run({**ARGS, "rate": rate}).evaluate(0.3)
        np.testing.assert_allclose(state, want, atol=1e-13)


def test_times_outside():
    sol = run()
    for t in (-0.1, jnp.nan, jnp.array([0.5, 1.1])):
        with pytest.raises(ValueError, match="within the knots"):
            sol.evaluate(t)
    states = jax.jit(lambda s, t: s.evaluate(t))(sol, jnp.array([0.5, 1.1]))
    assert bool(jnp.all(jnp.isfinite(states[0])) & jnp.all(jnp.isnan(states[1])))
    with pytest.raises(ValueError, match="dense=True"):
        run(saveat=diffrax.SaveAt(t1=True)).evaluate(0.5)
    dense = run(saveat=diffrax.SaveAt(t1=True, dense=True))
    assert dense.ys.shape == (1, 3, 3)
    np.testing.assert_allclose(dense.evaluate(0.4), sol.evaluate(0.4), atol=1e-14)


def test_what_is_saved():
    """As Diffrax has it: steps do not contain the start."""
    every = run()
    for options, rows in (
        (dict(t0=True, steps=True), [0, 1, 2, 3]),
        (dict(dense=True), [0, 1, 2, 3]),
        (dict(steps=True), [1, 2, 3]),
        (dict(steps=True, t1=True), [1, 2, 3]),
        (dict(steps=2), [2]),
        (dict(steps=2, t0=True, t1=True), [0, 2, 3]),
        (dict(t0=True), [0]),
        (dict(t0=True, ts=every.ts[1:2], t1=True), [0, 1, 3]),
    ):
        sol = run(saveat=diffrax.SaveAt(**options))
        np.testing.assert_allclose(sol.ts, every.ts[jnp.array(rows)])
        np.testing.assert_allclose(sol.ys, every.ys[jnp.array(rows)], atol=1e-12)


@pytest.mark.parametrize(
    "adjoint", [abx.CheckpointedAdjoint(), abx.ReversibleAdjoint()]
)
def test_gradients_reach_args(adjoint):
    """At the knots and between them, against finite differences."""

    @jax.jit
    def loss(args):
        # Short steps of a scheme that nearly undoes them.
        sol = run(args, adjoint=adjoint, substeps=8, solver=abx.CFEES27())
        return jnp.sum(sol.ys[-1] ** 3) + jnp.sum(jnp.sin(sol.evaluate(0.4)))

    grad = jax.grad(loss)(ARGS)
    eps = 1e-5
    for name, value in ARGS.items():
        step = eps * jnp.ones_like(value)
        up, down = (loss({**ARGS, name: value + s}) for s in (step, -step))
        slope = (up - down) / (2 * eps)
        np.testing.assert_allclose(jnp.sum(grad[name]), slope, rtol=1e-5)


def test_args_in_the_bridge_and_in_a_lift():
    got = diffrax.diffeqsolve(
        abx.RoughTerm(fields, CONTROL, SPACE),
        abx.LogODE(),
        0.0,
        1.0,
        None,
        jnp.eye(3),
        ARGS,
        stepsize_controller=diffrax.StepTo(CONTROL.knots),
    ).ys
    np.testing.assert_allclose(got[-1], run().ys[-1], atol=1e-12)
    lifted = abx.lift(fields, ALG, SPACE, args=ARGS)
    again = abx.solve(lifted, jnp.eye(3), CONTROL, geometry=SPACE)
    np.testing.assert_allclose(again.ys, run().ys, atol=1e-14)
    other = {**ARGS, "rate": jnp.array(0.1)}
    again = abx.solve(lifted, jnp.eye(3), CONTROL, geometry=SPACE, args=other)
    np.testing.assert_allclose(again.ys, run(other).ys, atol=1e-14)


def test_a_diffrax_solver_as_it_is():
    control = abx.rough_path(TS, XS, abx.Shuffle(2, 2), window=4)
    field = lambda y: jnp.stack([jnp.sin(y), jnp.cos(y)])  # noqa: E731
    y0 = jnp.array([0.1, 0.4])
    got = abx.solve(field, y0, control, solver=diffrax.Tsit5())
    want = abx.solve(field, y0, control, solver=abx.EuclideanRK(diffrax.Tsit5()))
    np.testing.assert_array_equal(got.ys, want.ys)
    dyadic = abx.dyadic_control(TS, XS, abx.Shuffle(2, 2))
    sol = abx.solve_adaptive(
        field, y0, dyadic, geometry=abx.Euclidean(2), solver=diffrax.Tsit5()
    )
    np.testing.assert_allclose(sol.evaluate(sol.ts), sol.ys, atol=1e-14)


class Rates(eqx.Module):
    rate: jax.Array

    def __call__(self, t, y, args):
        return self.rate * fields(t, y, args)


def test_modules_of_three_arguments():
    got = abx.solve(
        Rates(jnp.array(1.0)), jnp.eye(3), CONTROL, geometry=SPACE, args=ARGS
    )
    np.testing.assert_allclose(got.ys, run().ys, atol=1e-14)
