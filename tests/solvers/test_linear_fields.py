"""Linear fields: exact flows over windows, on vectors and on groups."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

import arborax as abx
from arborax.lifts import lift


RNG = np.random.default_rng(3)
ALGEBRAS = (
    abx.Shuffle(2, 2),
    abx.Ito(2, 3),
    abx.GrossmanLarson(2, 3),
    abx.MuntheKaasWright(2, 3),
)


def make_control(alg, window=4, steps=16, scale=1.0):
    xs = jnp.asarray(scale * np.cumsum(RNG.normal(size=(steps + 1, 2)), axis=0) / 4)
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    brackets = None if alg.calculus == "stratonovich" else "realised"
    return abx.rough_path(ts, xs, alg, window=window, brackets=brackets)


@pytest.mark.parametrize("alg", ALGEBRAS, ids=str)
@pytest.mark.parametrize("kind", ["dense", "block", "diagonal"])
def test_the_window_matrix_is_the_window_field(alg, kind):
    shape = {"dense": (2, 4, 4), "block": (2, 2, 2, 2), "diagonal": (2, 4)}[kind]
    a, b = jnp.asarray(RNG.normal(size=shape)), jnp.asarray(RNG.normal(size=(2, 4)))
    fields = abx.LinearFields(a, b)
    y = jnp.asarray(RNG.normal(size=4))
    lam = jnp.asarray(RNG.normal(size=alg.primitive_size))
    field = eqx.filter_jit(lift(fields, alg, abx.Euclidean(4)))
    flow, zero = lambda h: fields.prepare(alg).flow(y, lam, h), jnp.zeros(())
    slope = jax.jvp(flow, (zero,), (jnp.ones(()),))[1]
    np.testing.assert_allclose(slope, field(y, lam), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("alg", ALGEBRAS, ids=str)
def test_solve_is_exact_for_linear_fields(alg):
    a, b = jnp.asarray(RNG.normal(size=(2, 3, 3))), jnp.asarray(RNG.normal(size=(2, 3)))
    fields, control = abx.LinearFields(a, b), make_control(alg)
    y0 = jnp.asarray(RNG.normal(size=3))
    sol = abx.solve(fields, y0, control)
    # SciPy's exponential of the window matrix, which the window field knows.
    plain = lambda y: jnp.einsum("dij,j->di", a, y) + b  # noqa: E731
    window_field, origin = lift(plain, alg, abx.Euclidean(3)), jnp.zeros(3)
    field = jax.jit(lambda y, lam: window_field(y, lam))
    slopes = jax.jit(jax.jacfwd(field))
    y = np.append(np.asarray(y0), 1.0)
    for lam, want in zip(control.log_signatures, sol.ys[1:]):
        omega = np.zeros((4, 4))
        omega[:3, :3], omega[:3, 3] = slopes(origin, lam), field(origin, lam)
        y = scipy.linalg.expm(omega) @ y
        np.testing.assert_allclose(y[:3], want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "geometry, alg, side",
    [
        (abx.SO(3), abx.Ito(2, 2), "left"),
        (abx.SO(4), abx.Shuffle(2, 2), "right"),
        (abx.SE(3), abx.Ito(2, 2), "right"),
    ],
    ids=str,
)
def test_groups(geometry, alg, side):
    n = geometry.point_shape[0]
    a = RNG.normal(size=(2, n, n))
    a = a - a.swapaxes(1, 2)
    if isinstance(geometry, abx.SE):
        a[:, 3], a[:, :3, 3] = 0, RNG.normal(size=(2, 3))
    fields = abx.LinearFields(jnp.asarray(a), geometry=geometry, side=side)
    control = make_control(alg, scale=0.5)
    y0 = geometry.random_point(key=jr.key(0))
    sol = abx.solve(fields, y0, control, geometry=geometry)
    assert sol.result == abx.RESULTS.successful
    fine = abx.solve(
        fields, y0, control, geometry=geometry, solver=abx.CF4(), substeps=64
    )
    np.testing.assert_allclose(sol.ys, fine.ys, rtol=1e-6, atol=1e-6)


def test_gradients_and_the_reversible_adjoint():
    a, control = jnp.asarray(RNG.normal(size=(2, 3, 3))), make_control(abx.Ito(2, 2))
    y0 = jnp.asarray(RNG.normal(size=3))

    def end(a, adjoint=abx.CheckpointedAdjoint()):
        sol = abx.solve(
            abx.LinearFields(a),
            y0,
            control,
            saveat=diffrax.SaveAt(t1=True),
            adjoint=adjoint,
        )
        return jnp.sum(sol.ys**2)

    check_grads(jax.jit(end), (a,), order=2, modes=["rev"], rtol=1e-4)
    back = jax.grad(lambda a: end(a, abx.ReversibleAdjoint()))(a)
    np.testing.assert_allclose(back, jax.grad(end)(a), rtol=1e-9, atol=1e-10)


def test_bad_requests():
    with pytest.raises(ValueError, match=r"channels, n, n"):
        abx.LinearFields(jnp.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="offsets"):
        abx.LinearFields(jnp.ones((2, 3, 3)), jnp.ones((2, 4)))
    with pytest.raises(ValueError, match="matrix group"):
        abx.LinearFields(jnp.ones((2, 3, 3)), geometry=abx.Sphere(2))
    with pytest.raises(ValueError, match="leave a group"):
        abx.LinearFields(jnp.ones((2, 3, 3)), jnp.ones((2, 3)), geometry=abx.SO(3))
    fields, control = abx.LinearFields(jnp.ones((2, 3, 3))), make_control(ALGEBRAS[0])
    with pytest.raises(ValueError, match="matrix group"):
        abx.solve(fields, jnp.eye(3), control, geometry=abx.SO(3))
    with pytest.raises(ValueError, match="3 matrices for the 2 channels"):
        abx.solve(abx.LinearFields(jnp.ones((3, 2, 2))), jnp.ones(2), control)
    with pytest.raises(ValueError, match="vectors of 3 numbers .* a state with 4"):
        abx.solve(fields, jnp.ones(4), control)
    with pytest.raises(TypeError, match="LinearFields"):
        abx.solve(
            lambda y: jnp.stack([y, y]), jnp.ones(3), control, solver=abx.Magnus()
        )
