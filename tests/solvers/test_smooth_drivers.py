"""Smooth drivers and closed forms."""

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import arborax as abx

from .harness import Control, pad, slope, window_log_signatures


def smooth_path(d, steps):
    t = np.linspace(0.0, 1.0, steps + 1)
    columns = [np.sin(2 * t), np.cos(3 * t) - 1, np.sin(5 * t + 0.3)][:d]
    return jnp.asarray(np.stack(columns, axis=1))


def linear_fields(d, n=3, seed=0):
    matrices = np.random.default_rng(seed).normal(size=(d, n, n)) / np.sqrt(n)
    return lambda y: jnp.asarray(matrices, y.dtype) @ y, jnp.asarray(matrices)


def exact_linear(matrices, y0, xs):
    """The equation along a piecewise-linear path: a product of exponentials."""

    def body(y, dx):
        return jsl.expm(jnp.tensordot(dx, matrices, axes=1)) @ y, None

    return jax.jit(lambda: jax.lax.scan(body, y0, jnp.diff(xs, axis=0))[0])()


def solve_padded(fields, y0, lams, alg, geometry, solver, substeps):
    knots = jnp.linspace(0.0, 1.0, lams.shape[-2] + 1)

    def one(lam):
        return abx.solve(
            fields,
            y0,
            Control(alg, knots, lam),
            geometry=geometry,
            solver=solver,
            substeps=substeps,
            saveat=diffrax.SaveAt(t1=True),
            throw=False,
        ).ys[0]

    return jax.jit(jax.vmap(one))(lams)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("depth,order", [(1, 2), (2, 4), (3, 4), (4, 6)])
def test_slopes(d, depth, order):
    """Depths 1, 2, 3, 4 give 2, 4, 4, 6 in the window length, for d = 2 and d = 3.

    Coefficients of Lyndon words in place of those of Lyndon brackets lose it from d =
    3, depth 3 on.
    """
    sizes = (4, 8, 16)
    alg, geometry = abx.Shuffle(d, depth), abx.Euclidean(3)
    fields, matrices = linear_fields(d)
    xs, y0 = smooth_path(d, 512), jnp.array([1.0, -0.5, 0.3])
    reference = exact_linear(matrices, y0, xs)
    lams = window_log_signatures(xs[None], alg, sizes)
    lams = pad({n: lam[0] for n, lam in lams.items()})
    both = jnp.concatenate([lams, word_coefficients(lams, alg)])
    solver = abx.EuclideanRK(diffrax.Dopri8())
    out = solve_padded(fields, y0, both, alg, geometry, solver, 2)
    error = np.abs(np.asarray(out - reference[None])).max(axis=1)
    right, confused = np.split(error, 2)
    assert abs(slope(sizes, right) - order) < 0.4, right
    if d == 2 and depth < 4 or depth < 3:
        np.testing.assert_allclose(confused, right, rtol=1e-9)
    elif d == 3:
        assert confused[-1] > 2 * right[-1]
        assert slope(sizes, confused) < 4.5, confused


def word_coefficients(lams, alg):
    """Coefficients of the Lyndon words in the expanded logarithm: what is also called
    a log-signature elsewhere, and does not belong to bracket fields."""
    words = alg.from_primitive(lams)
    position = {key: k for k, key in enumerate(alg.basis)}
    return words[..., jnp.array([position[key] for key in alg.primitive_basis])]


def test_geometric_brownian_motion():
    """sigma = 0.8, fixed path: the exact Itô solution to 1e-6 with supplied brackets,
    the Stratonovich one without."""
    sigma, steps = 0.8, 256
    dx = jr.normal(jr.PRNGKey(0), (steps, 1), jnp.float64) / np.sqrt(steps)
    xs = jnp.concatenate([jnp.zeros((1, 1)), jnp.cumsum(dx, axis=0)])
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    brackets = jnp.full((steps, 1, 1), 1 / steps)
    y0 = jnp.array([1.0])
    fields = lambda y: sigma * y[None]  # noqa: E731
    stratonovich = jnp.exp(sigma * xs[-1])
    ito = stratonovich * jnp.exp(-(sigma**2) / 2)
    for algebra in (abx.Ito, abx.GrossmanLarson, abx.MuntheKaasWright):
        alg = algebra(1, 2)
        control = abx.rough_path(ts, xs, alg, window=16, brackets=brackets)
        assert control.calculus == "ito"
        sol = abx.solve(fields, y0, control, solver=abx.CF4(), substeps=8)
        np.testing.assert_allclose(sol.ys[-1], ito, atol=1e-6)
    plain = abx.rough_path(ts, xs, abx.GrossmanLarson(1, 2), window=16)
    assert plain.calculus == "stratonovich"
    sol = abx.solve(fields, y0, plain, solver=abx.CF4(), substeps=8)
    np.testing.assert_allclose(sol.ys[-1], stratonovich, atol=1e-6)


@pytest.mark.parametrize("depth", [2, 3])
def test_levy_area_system(depth):
    """dY3 = Y1 dX2 does not commute; its Itô solution is the left-point sum."""
    steps = 64
    xs = jnp.cumsum(jr.normal(jr.PRNGKey(0), (steps + 1, 2), jnp.float64), axis=0) / 8
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    y0 = jnp.concatenate([xs[0], jnp.zeros(1)])

    def fields(y):
        one, zero = jnp.ones_like(y[0]), jnp.zeros_like(y[0])
        return jnp.stack([jnp.stack([one, zero, zero]), jnp.stack([zero, one, y[0]])])

    want = jnp.sum(xs[:-1, 0] * jnp.diff(xs[:, 1]))
    for algebra in (abx.Ito, abx.GrossmanLarson, abx.MuntheKaasWright):
        control = abx.rough_path(
            ts, xs, algebra(2, depth), window=16, brackets="realised"
        )
        sol = abx.solve(fields, y0, control, solver=abx.Heun())
        np.testing.assert_allclose(sol.ys[-1, 2], want, atol=1e-12)


def test_constant_fields_on_a_group_are_solved_exactly():
    """Left-invariant fields and one channel: the group exponential."""
    geometry = abx.SO(3)
    y0 = geometry.random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    u = jnp.array([[0.4, -1.0, 2.0]])
    control = Control(
        abx.Shuffle(1, 2), jnp.linspace(0.0, 1.0, 5), jnp.full((4, 1), 0.25)
    )
    sol = abx.solve(lambda y: u, y0, control, geometry=geometry)
    np.testing.assert_allclose(sol.ys[-1], geometry.exp(y0, u[0]), atol=1e-13)


def test_magnus_on_the_group():
    """Left-invariant fields, two channels: each window is one exponential of the Lie
    polynomial, which converges to the product of exponentials like Magnus."""
    geometry, sizes = abx.SO(3), (4, 8, 16)
    rows = jnp.array([[0.4, -1.0, 0.3], [0.2, 0.7, -0.5]])
    xs = smooth_path(2, 512)

    def body(y, dx):
        return geometry.exp(y, dx @ rows), None

    y0 = jnp.eye(3)
    reference = jax.jit(lambda: jax.lax.scan(body, y0, jnp.diff(xs, axis=0))[0])()
    alg = abx.Shuffle(2, 3)
    lams = window_log_signatures(xs[None], alg, sizes)
    lams = pad({n: lam[0] for n, lam in lams.items()})
    out = solve_padded(lambda y: rows, y0, lams, alg, geometry, abx.CF4(), 1)
    error = np.abs(np.asarray(out - reference[None])).max(axis=(1, 2))
    assert abs(slope(sizes, error) - 4) < 0.4, error


def test_time_dependent_fields():
    """fields(t, y, args) with t from the knots: Y = exp(t^2 / 2) for the driver t."""
    control = Control(
        abx.Shuffle(1, 1), jnp.linspace(0.0, 1.0, 21), jnp.full((20, 1), 0.05)
    )
    sol = abx.solve(
        lambda t, y, args: t * y[None], jnp.array([1.0]), control, solver=abx.CF4()
    )
    np.testing.assert_allclose(sol.ys[-1], jnp.exp(jnp.array([0.5])), rtol=1e-8)
