"""Times keep their own dtype, and gradients reach them."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


EPOCH = 1.7e9  # seconds; float32 would round to multiples of 128
STEPS = 16


def fields(t, y, origin):
    """Depends on time as measured from `origin`."""
    s = jnp.sin(6 * (t - origin)).astype(y.dtype)
    row = jnp.stack([jnp.cos(y[1]) + s, jnp.sin(y[0])])
    return jnp.stack([row, s * y])


def driver(origin, window=4):
    """A control with stamps in double and values in single precision."""
    ts = np.float64(origin) + np.arange(STEPS + 1) / STEPS
    dx = jr.normal(jr.PRNGKey(0), (STEPS, 2), jnp.float32) / 4
    xs = jnp.concatenate([jnp.zeros((1, 2), jnp.float32), jnp.cumsum(dx, axis=0)])
    return ts, xs, abx.rough_path(ts, xs, abx.Shuffle(2, 2), window=window)


Y0 = jnp.array([0.2, -0.1], jnp.float32)
INSIDE = np.array([0.1, 0.25, 0.59375, 0.97, 1.0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"adjoint": abx.ReversibleAdjoint()},
        {"interpolation": "geodesic"},
        {"interpolation": "linear"},
    ],
    ids=["log-ode", "reversible", "geodesic", "linear"],
)
def test_epoch_stamps(options):
    """The states and their gradients are those of the same times from zero."""

    @eqx.filter_jit
    def run(control, origin, ts):
        at_knots = abx.solve(fields, Y0, control, args=origin, **options)

        def loss(y0):
            solution = abx.solve(
                fields,
                y0,
                control,
                args=origin,
                saveat=diffrax.SaveAt(ts=ts),
                **options,
            )
            return jnp.sum(jnp.sin(solution.ys)), solution

        grad, between = jax.grad(loss, has_aux=True)(Y0)
        return at_knots, between, grad

    got, want = (
        run(driver(origin)[2], jnp.float64(origin), origin + INSIDE)
        for origin in (EPOCH, 0.0)
    )
    for a, b in zip(got[:2], want[:2]):
        assert a.ts.dtype == jnp.float64 and a.ys.dtype == jnp.float32
        assert a.result == abx.RESULTS.successful
        np.testing.assert_allclose(a.ts - EPOCH, b.ts, atol=1e-6)
        np.testing.assert_allclose(a.ys, b.ys, atol=3e-6)
    np.testing.assert_allclose(got[2], want[2], atol=1e-5)


def test_epoch_stamps_in_the_adaptive_solve():
    def run(origin):
        ts, xs, _ = driver(origin)
        control = abx.dyadic_control(ts, xs, abx.Shuffle(2, 2), levels=3)
        return abx.solve_adaptive(
            fields,
            Y0,
            control,
            geometry=abx.Euclidean(2),
            args=origin,
            atol=1e-2,
        )

    got, want = run(EPOCH), run(0.0)
    assert got.ts.dtype == jnp.float64 and got.ys.dtype == jnp.float32
    np.testing.assert_allclose(got.ts - EPOCH, want.ts, atol=1e-6)
    np.testing.assert_allclose(got.ys, want.ys, atol=3e-6)


def test_epoch_stamps_in_diffrax():
    """Diffrax itself computes in the wider of the two dtypes."""

    @eqx.filter_jit
    def run(control, origin, ts):
        return diffrax.diffeqsolve(
            abx.RoughTerm(fields, control, abx.Euclidean(2)),
            abx.LogODE(abx.CFEES25()),
            control.knots[0],
            control.knots[-1],
            None,
            Y0,
            origin,
            stepsize_controller=diffrax.StepTo(control.knots),
            saveat=diffrax.SaveAt(ts=ts),
        ).ys

    got, want = (
        run(driver(origin)[2], jnp.float64(origin), origin + INSIDE)
        for origin in (EPOCH, 0.0)
    )
    np.testing.assert_allclose(got, want, atol=3e-6)
    knots = driver(0.0)[2].knots
    solve = abx.solve(
        fields, Y0, driver(0.0)[2], args=0.0, saveat=diffrax.SaveAt(ts=knots)
    )
    np.testing.assert_allclose(want[-1], solve.ys[-1], atol=3e-6)


def test_gradients_reach_the_times():
    """Of knots and `ts`, for all adjoints, against finite differences."""
    _, xs, control = driver(0.0)
    y0 = Y0.astype(jnp.float64)
    control = eqx.tree_at(
        lambda c: (c.log_signatures, c.values),
        control,
        replace_fn=lambda x: x.astype(jnp.float64),
    )
    timed = lambda t, y, args: fields(t, y, 0.0)  # noqa: E731

    def loss(knots, ts, adjoint):
        moved = eqx.tree_at(lambda c: c.knots, control, knots)
        # Short steps of a scheme that nearly undoes them: reversible is then exact.
        options = {"adjoint": adjoint, "substeps": 4, "solver": abx.CFEES27()}
        sol = abx.solve(timed, y0, moved, **options)
        out = jnp.sum(jnp.sin(3 * sol.ys))
        for interpolation in ("geodesic", "log-ode"):
            sol = abx.solve(
                timed,
                y0,
                moved,
                saveat=diffrax.SaveAt(ts=ts),
                interpolation=interpolation,
                **options,
            )
            out = out + jnp.sum(jnp.cos(2 * sol.ys))
        return out

    # Off the samples, where derivatives are one-sided.
    args = (control.knots + 1e-3, jnp.array([0.13, 0.4, 0.7]))
    both = {
        adjoint: jax.jit(jax.grad(lambda k, t, a=adjoint: loss(k, t, a), (0, 1)))(*args)
        for adjoint in (abx.CheckpointedAdjoint(), abx.ReversibleAdjoint())
    }
    exact, reversible = both.values()
    assert all(float(jnp.abs(g).max()) > 1e-2 for g in exact)
    for a, b in zip(exact, reversible):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    value = jax.jit(lambda k, t: loss(k, t, abx.CheckpointedAdjoint()))
    for slot, direction in ((0, jnp.arange(5.0) % 3), (1, jnp.array([1.0, -1, 2]))):
        moves = [list(args), list(args)]
        for sign, move in zip((1, -1), moves):
            move[slot] = args[slot] + sign * 1e-6 * direction
        slope = (value(*moves[0]) - value(*moves[1])) / 2e-6
        np.testing.assert_allclose(
            jnp.sum(exact[slot] * direction), slope, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("interpolation", ["geodesic", "linear", "log-ode"])
def test_last_time_of_a_padded_path(interpolation):
    """Padding repeats the last knot: no length to divide by."""
    ts = jnp.linspace(0.0, 1.0, 9)
    xs = jnp.stack([jnp.sin(3 * ts), ts**2], axis=1)
    path = abx.SampledPath(ts, xs, lengths=jnp.array(5))
    control = abx.rough_path(None, path, abx.Shuffle(2, 2), window=2)
    assert control.knots[-1] == control.knots[-2] == 0.5

    @jax.jit
    def last(y0, ts):
        plain = lambda y: fields(jnp.zeros(()), y, 0.3)  # noqa: E731
        return abx.solve(
            plain,
            y0,
            control,
            saveat=diffrax.SaveAt(ts=ts),
            interpolation=interpolation,
        ).ys

    y0 = Y0.astype(jnp.float64)
    times = jnp.array([0.2, 0.5])
    want = abx.solve(lambda y: fields(jnp.zeros(()), y, 0.3), y0, control).ys[2]
    np.testing.assert_allclose(last(y0, times)[1], want, atol=1e-14)
    for argnum in (0, 1):
        grad = jax.grad(lambda *a: jnp.sum(last(*a) ** 2), argnum)(y0, times)
        assert bool(jnp.all(jnp.isfinite(grad)))
