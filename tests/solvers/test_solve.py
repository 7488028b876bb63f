"""The solve itself: saved states, results, refusals."""

import contextlib

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .harness import bounded_fields, Control


@pytest.fixture(scope="module")
def case():
    geometry, steps = abx.SO(3), 64
    fields = bounded_fields(2, geometry)
    y0 = geometry.random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    dx = jr.normal(jr.PRNGKey(1), (steps, 2), jnp.float64) / np.sqrt(steps)
    xs = jnp.concatenate([jnp.zeros((1, 2)), jnp.cumsum(dx, axis=0)])
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    alg = abx.Ito(2, 2)
    control = abx.rough_path(ts, xs, alg, window=16, brackets="realised")
    return geometry, fields, y0, ts, xs, control


def test_states_at_knots(case):
    geometry, fields, y0, _, _, control = case
    sol = eqx.filter_jit(abx.solve)(fields, y0, control, geometry=geometry)
    assert sol.result == abx.RESULTS.successful
    assert sol.ys.shape == (5, 3, 3) and sol.ts.shape == (5,)
    np.testing.assert_allclose(sol.ys[0], y0)
    last = abx.solve(
        fields, y0, control, geometry=geometry, saveat=diffrax.SaveAt(t1=True)
    )
    np.testing.assert_allclose(last.ys[0], sol.ys[-1], atol=1e-14)
    assert sol.stats["num_windows"] == 4
    lifted = abx.lift(fields, control.alg, geometry)
    again = abx.solve(lifted, y0, control, geometry=geometry)
    np.testing.assert_allclose(again.ys, sol.ys, atol=1e-14)


def test_states_at_any_time(case):
    """A state inside a window is that of a control with a knot there."""
    geometry, fields, y0, ts, xs, control = case
    times = jnp.array([0.1, 0.25, 0.6, 1.0])
    options = {"geometry": geometry, "solver": abx.CF4()}
    sol = jax.jit(
        lambda: (
            abx.solve(
                fields, y0, control, saveat=diffrax.SaveAt(ts=times), **options
            ).ys
        )
    )()
    coarse = abx.solve(fields, y0, control, **options)
    np.testing.assert_allclose(sol[1], coarse.ys[1], atol=1e-14)
    np.testing.assert_allclose(sol[3], coarse.ys[-1], atol=1e-14)
    knots = jnp.array([0.0, 0.25, 0.5, 0.6, 1.0])
    cut = abx.rough_path(ts, xs, control.alg, knots=knots, brackets="realised")
    want = abx.solve(fields, y0, cut, **options).ys[3]
    np.testing.assert_allclose(sol[2], want, atol=1e-14)


def test_quadratic_variation_of_the_output(case):
    """Log-ODE output on a fine grid is rough; geodesics between knots are not."""
    geometry, fields, y0, ts, _, control = case

    def variation(interpolation):
        ys = jax.jit(
            lambda: (
                abx.solve(
                    fields,
                    y0,
                    control,
                    geometry=geometry,
                    saveat=diffrax.SaveAt(ts=ts),
                    interpolation=interpolation,
                ).ys
            )
        )()
        return float(jnp.sum(jnp.diff(ys, axis=0) ** 2)), ys

    rough, ys = variation("log-ode")
    smooth, zs = variation("geodesic")
    assert rough > 3 * smooth
    assert bool(jnp.all(jax.vmap(geometry.belongs)(ys)))
    assert bool(jnp.all(jax.vmap(geometry.belongs)(zs)))
    np.testing.assert_allclose(ys[::16], zs[::16], atol=1e-12)


def test_linear_interpolation_in_flat_space():
    fields = bounded_fields(1, abx.Euclidean(2))
    control = Control(
        abx.Shuffle(1, 1), jnp.array([0.0, 1.0, 3.0]), jnp.array([[0.5], [1.0]])
    )
    y0 = jnp.array([0.2, 0.1])
    knots = abx.solve(fields, y0, control).ys
    sol = abx.solve(
        fields,
        y0,
        control,
        saveat=diffrax.SaveAt(ts=jnp.array([2.0])),
        interpolation="linear",
    )
    np.testing.assert_allclose(sol.ys[0], (knots[1] + knots[2]) / 2, atol=1e-14)


def test_float32(case):
    geometry, fields, y0, ts, xs, _ = case
    single = lambda x: x.astype(jnp.float32)  # noqa: E731
    control = abx.rough_path(
        single(ts), single(xs), abx.MuntheKaasWright(2, 2), window=16
    )
    sol = abx.solve(fields, single(y0), control, geometry=geometry)
    assert sol.ys.dtype == jnp.float32
    assert sol.result == abx.RESULTS.successful


def test_zero_windows_do_nothing(case):
    """Padding has zero log-signature and leaves the state alone."""
    geometry, fields, y0, _, _, control = case
    zeros = jnp.zeros_like(control.log_signatures)
    padded = Control(control.alg, control.knots, zeros)
    sol = abx.solve(fields, y0, padded, geometry=geometry)
    np.testing.assert_allclose(sol.ys[-1], y0, atol=1e-15)


def test_failure_is_reported(case):
    geometry, fields, y0, _, _, control = case
    wild = lambda y: fields(y) / jnp.zeros_like(y[0, 0])  # noqa: E731
    sol = abx.solve(wild, y0, control, geometry=geometry, throw=False)
    assert sol.result == abx.RESULTS.nonfinite
    assert "NaN or infinite" in str(sol.result)
    with pytest.raises(ValueError, match="NaN or infinite"):
        abx.solve(wild, y0, control, geometry=geometry)
    sol = abx.solve(fields, 2 * y0, control, geometry=geometry, throw=False)
    assert sol.result == abx.RESULTS.off_manifold
    with pytest.raises(ValueError, match="not on the manifold"):
        abx.solve(fields, 2 * y0, control, geometry=geometry)
    with pytest.raises(ValueError, match="within the knots"):
        abx.solve(
            fields,
            y0,
            control,
            geometry=geometry,
            saveat=diffrax.SaveAt(ts=jnp.array([1.5])),
        )


@contextlib.contextmanager
def raises(error, text):
    """A short message; the dot matches new lines too."""
    with pytest.raises(error, match=f"(?s){text}") as caught:
        yield
    assert len(str(caught.value)) < 300


def test_refusals(case, as_users):
    geometry, fields, y0, ts, xs, control = case
    solve = lambda f=fields, y=y0, c=control, **o: abx.solve(  # noqa: E731
        f, y, c, **{"geometry": geometry, **o}
    )
    with pytest.raises(ValueError, match="would leave"):
        solve(solver=abx.Heun())
    with pytest.raises(ValueError, match="would leave"):
        solve(solver=abx.EuclideanRK(diffrax.Dopri5()))
    with raises(ValueError, r"RKMK\(diffrax.Dopri5"):
        solve(solver=diffrax.Dopri5())
    with raises(TypeError, "Runge-Kutta"):
        solve(solver=diffrax.Euler)
    with pytest.raises(ValueError, match="one row for each"):
        solve(f=lambda y: fields(y)[:1])
    with pytest.raises(ValueError, match="shape"):
        solve(y=y0[:2])
    with pytest.raises(TypeError, match="floating"):
        solve(y=jnp.eye(3, dtype=int))
    with pytest.raises(TypeError, match="rough_path"):
        solve(c=xs)
    with pytest.raises(ValueError, match="substeps"):
        solve(substeps=0)
    for adjoint in ("magic", diffrax.DirectAdjoint(), abx.ReversibleAdjoint):
        with raises(TypeError, r"CheckpointedAdjoint\(\)"):
            solve(adjoint=adjoint)
    with pytest.raises(ValueError, match="interpolation"):
        solve(interpolation="cubic")
    with pytest.raises(ValueError, match="leaves"):
        solve(interpolation="linear")
    with pytest.raises(ValueError, match="not both"):
        solve(saveat=diffrax.SaveAt(ts=jnp.array([0.5]), steps=True))
    for wrong in (
        dict(fn=lambda t, y, args: y, t1=True),
        dict(subs=[diffrax.SubSaveAt(t1=True)]),
    ):
        with raises(ValueError, "sol.ys"):
            solve(saveat=diffrax.SaveAt(**wrong))
    with raises(ValueError, "solver_state"):
        solve(saveat=diffrax.SaveAt(t1=True, solver_state=True))
    with raises(ValueError, "empty"):
        solve(saveat=diffrax.SaveAt())
    with raises(TypeError, "SaveAt"):
        solve(saveat="final")
    with raises(ValueError, "jax.vmap.*geometry"):
        abx.solve(fields, y0, control)
    with raises(ValueError, "jax.vmap"):
        solve(y=jnp.stack([y0, y0]))
    with raises(TypeError, "y0.*floating"):
        solve(y=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    with raises(TypeError, "y0.*array of numbers"):
        solve(y=["north", "south"])
    with raises(TypeError, "SO.3."):
        solve(geometry=abx.SO)
    with raises(TypeError, r"rough_path\(ts, xs, alg\)"):
        solve(c=(ts, xs))
    with raises(ValueError, "one row for each.*shape .2, 3., got .3,"):
        solve(f=lambda y: fields(y)[0])
    with raises(TypeError, "one array.*jnp.stack"):
        solve(f=lambda y: [fields(y)[0], fields(y)[1, :2]])
    with raises(TypeError, "real"):
        solve(f=lambda y: fields(y) * 1j)
    for wrong in (lambda t, y: fields(y), lambda t, y, args, more: fields(y)):
        with raises(TypeError, r"`fields\(y\)` or `fields\(t, y, args\)`"):
            solve(f=wrong)
    with raises(TypeError, "cannot see"):
        solve(args=1.0)
    with raises(TypeError, "same arguments"):
        solve(f=[lambda y: fields(y)[0], lambda t, y, args: fields(y)[1]])
    with raises(TypeError, "callable"):
        solve(f=[lambda y: fields(y)[0], 3])
    with raises(ValueError, r"\(times,\)"):
        solve(saveat=diffrax.SaveAt(ts=jnp.array([[0.5]])))
    lams = control.log_signatures
    with raises(ValueError, "in order"):
        solve(c=Control(control.alg, control.knots[::-1], lams))
    with raises(ValueError, "windows, 6.*got"):
        solve(c=Control(control.alg, control.knots, lams[:, :-1]))
    with raises(ValueError, "windows . 1"):
        solve(c=Control(control.alg, control.knots[:-1], lams))
    with raises(ValueError, "geodesic"):
        solve(
            c=Control(control.alg, control.knots, lams),
            saveat=diffrax.SaveAt(ts=jnp.array([0.5])),
        )
    flat = abx.rough_path(ts, xs, abx.GrossmanLarson(2, 2), window=16)
    with pytest.raises(ValueError, match="MuntheKaasWright"):
        solve(c=flat)
    batch = Control(control.alg, control.knots, control.log_signatures[None])
    with pytest.raises(ValueError, match="vmap"):
        solve(c=batch)


def test_lists_and_other_dtypes_are_understood(as_users):
    """Lists of numbers as states and rows; fields computed in another dtype."""
    control = Control(abx.Shuffle(1, 1), jnp.arange(3), jnp.array([[0.5], [1.0]]))
    rows = lambda y: [[y[1], -y[0]]]  # noqa: E731
    want = abx.solve(lambda y: jnp.stack([y[1], -y[0]])[None], jnp.ones(2), control)
    got = abx.solve(rows, [1.0, 1.0], control)
    np.testing.assert_allclose(got.ys, want.ys, atol=1e-15)
    assert got.ts.dtype == jnp.float64  # knots were integers
    wide = lambda t, y, args: (t * y.astype(jnp.float64))[None]  # noqa: E731
    sol = abx.solve(wide, jnp.ones(2, jnp.float32), control)
    assert sol.ys.dtype == jnp.float32
    whole = abx.solve(lambda y: jnp.ones((1, 2), int), jnp.ones(2), control)
    np.testing.assert_allclose(whole.ys[-1], 2.5)


def test_ito_needs_a_connection(case):
    """An Itô control on a geometry without a connection is an error at build time."""
    _, fields, y0, _, _, control = case

    class Bare(abx.AbstractGeometry):
        connection: None = eqx.field(static=True, default=None)
        dim = manifold_dim = 3
        point_shape = (3, 3)

        def frame(self, y, u): ...
        def coordinates(self, y, v): ...
        def generator(self, y, u): ...
        def act(self, xi, y): ...
        def fundamental(self, xi, y): ...
        def lie_bracket(self, xi, eta): ...
        def exp(self, y, u): ...
        def log(self, y, z): ...
        def distance(self, y, z): ...
        def christoffel(self, y, u, v): ...
        def bracket(self, y, u, v): ...
        def belongs(self, y, tol=None): ...
        def random_point(self, *, key, dtype=None): ...

    with pytest.raises(ValueError, match="no connection"):
        abx.solve(fields, y0, control, geometry=Bare())
    with pytest.raises(ValueError, match="no connection"):
        abx.RoughTerm(fields, control, Bare())
