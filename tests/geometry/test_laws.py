"""Laws that hold for every geometry and connection.

Most laws run op by op: geometries share shapes, so that this compiles far less than
one `jit` for each law and geometry.
"""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import arborax as abx

from .cases import (
    ACTIONS,
    ambient_connection,
    error,
    GEOMETRIES,
    has_log,
    name,
    scale,
    subtract,
)


@ft.cache
def sample(g, dtype=jnp.float64):
    """A point and three coordinate vectors."""

    @jax.jit
    def draw(key):
        ky, ku = jr.split(key)
        return g.random_point(key=ky, dtype=dtype), *(
            0.5 * jr.normal(ku, (3, g.dim), dtype)
        )

    return draw(jr.PRNGKey(0))


def check_frame_and_action(g, dtype, tol):
    y, u, v, _ = sample(g, dtype)

    def laws(y, u, v):
        tangent = g.frame(y, u)
        z = g.exp(y, v) if has_log(g) else y
        # A general element of the algebra, as a commutator-free scheme forms it.
        xi = jtu.tree_map(jnp.add, g.generator(y, u), g.generator(z, v))
        one = jnp.ones((), dtype)
        moved, flow = jax.jvp(lambda t: g.act(scale(t, xi), y), (0.7 * one,), (one,))
        _, start = jax.jvp(lambda t: g.act(scale(t, xi), y), (0 * one,), (one,))
        return {
            "coordinates": (g.frame(y, g.coordinates(y, tangent)), tangent),
            "generator": (g.fundamental(g.generator(y, u), y), tangent),
            "derivative": (start, g.fundamental(xi, y)),
            "flow": (flow, g.fundamental(xi, moved)),
            "homomorphism": (
                g.act(scale(0.3 * one, xi), moved),
                g.act(xi, y),
            ),
            "identity": (g.act(scale(0 * one, xi), y), y),
            "moved": moved,
        }

    values = laws(y, u, v)
    moved = values.pop("moved")
    assert g.belongs(moved, 10 * tol)
    assert jtu.tree_map(jnp.shape, moved) == g.point_shape
    assert {x.dtype for x in jtu.tree_leaves((values, moved))} == {jnp.dtype(dtype)}
    for law, (left, right) in values.items():
        assert error(left, right) < tol, law


@pytest.mark.parametrize("g", GEOMETRIES, ids=name)
class TestLaws:
    def test_static(self, g):
        assert jtu.tree_leaves(g) == []
        assert isinstance(hash(g), int) and g == g
        assert g.manifold_dim <= g.dim

    def test_frame_and_action(self, g):
        check_frame_and_action(g, jnp.float64, 2e-13)

    def test_connection(self, g):
        y, u, v, w = sample(g)

        def laws(y, u, v, w):
            eu, ev = g.frame(y, u), g.frame(y, v)
            dv = jax.jvp(lambda x: g.frame(x, v), (y,), (eu,))[1]
            du = jax.jvp(lambda x: g.frame(x, u), (y,), (ev,))[1]
            bracket = g.bracket(y, u, v)
            gamma = g.christoffel(y, u, v)
            out = {"jacobi": (g.frame(y, bracket), subtract(dv, du))}
            both = u[:, None] * v[None] + 2 * v[:, None] * w[None]
            total = gamma + 2 * g.christoffel(y, v, w)
            out["sum"] = (g.christoffel_sum(y, both), total)
            if g.connection == "frame":
                out["flat"] = (gamma, jnp.zeros_like(gamma))
                return out
            if g.connection == "levi-civita":
                ambient = ambient_connection(g, y, ev, dv, eu)
                out["ambient"] = (g.frame(y, gamma), ambient)
                torsion = gamma - g.christoffel(y, v, u) - bracket
                zero = jtu.tree_map(jnp.zeros_like, eu)
                out["torsion"] = (g.frame(y, torsion), zero)
            if g.dim == g.manifold_dim:
                metric = jnp.sum(gamma * w) + jnp.sum(v * g.christoffel(y, u, w))
                out["metric"] = (metric, jnp.zeros_like(metric))

            # Leibniz: a field with non-constant coordinates.
            def field(x):
                total = sum(jnp.sum(jnp.sin(a)) for a in jtu.tree_leaves(x))
                return total * v

            total, slope = jax.jvp(lambda x: field(x), (y,), (eu,))
            left = g.covariant_derivative(field, y, u)
            out["leibniz"] = (left, slope + g.christoffel(y, u, total))
            return out

        for law, (left, right) in laws(y, u, v, w).items():
            assert error(left, right) < 1e-12, law

    def test_geodesic(self, g):
        if g == abx.SPD(3, "root", connection="frame"):
            pytest.skip("no closed form")
        y, u, *_ = sample(g)

        def curve(t):
            return g.exp(y, t * u)

        def velocity(t):
            point, speed = jax.jvp(curve, (t,), (jnp.ones_like(t),))
            return g.coordinates(point, speed)

        def residual(t):
            c, dc = jax.jvp(velocity, (t,), (jnp.ones_like(t),))
            point = curve(t)
            return point, g.frame(point, dc + g.christoffel(point, c, c))

        point, acceleration = residual(jnp.asarray(0.7))
        zero = jtu.tree_map(jnp.zeros_like, acceleration)
        assert g.belongs(point, 1e-12)
        assert error(acceleration, zero) < 1e-12
        _, start = jax.jvp(curve, (jnp.asarray(0.0),), (jnp.asarray(1.0),))
        assert error(start, g.frame(y, u)) < 1e-13

    def test_lie_bracket(self, g):
        """dexp with the bracket of the geometry is the derivative of the action."""
        y, u, v, w = sample(g)

        def both(y, u, v, w):
            z = g.act(g.generator(y, w), y)
            theta, eta = g.generator(y, u), g.generator(z, v)
            one = jnp.asarray(1.0)
            moved, left = jax.jvp(
                lambda t: g.act(jtu.tree_map(lambda a, b: a + t * b, theta, eta), y),
                (0 * one,),
                (one,),
            )

            total = term = eta
            for k in range(30):
                term = scale(1 / (k + 2.0), g.lie_bracket(theta, term))
                total = jtu.tree_map(jnp.add, total, term)
            return left, g.fundamental(total, moved)

        left, right = both(y, u, v, w)
        assert error(left, right) < 1e-11

    def test_log_and_distance(self, g):
        y, u, v, w = sample(g)

        def values(y, u, v, w):
            z = g.act(g.generator(y, u), y)
            xi = g.generator(z, w)
            return {
                "pair": (g.distance(y, z), g.distance(z, y)),
                "self": g.distance(y, y),
                "moved": g.distance(g.act(xi, y), g.act(xi, z)),
                "slope": jax.grad(lambda b: g.distance(y, b))(y),
            }

        out = values(y, u, v, w)
        assert abs(out["pair"][0] - out["pair"][1]) < 1e-13
        assert out["self"] < 1e-7 and out["pair"][0] > 0.1
        assert all(np.isfinite(x).all() for x in jtu.tree_leaves(out["slope"]))
        if not isinstance(g, abx.SE):  # only left translations are isometries there
            assert abs(out["moved"] - out["pair"][0]) < 1e-12
        if not has_log(g):
            with pytest.raises(NotImplementedError, match="levi-civita"):
                g.log(y, y)
            return

        def logs(y, u):
            z = g.exp(y, u)
            back = g.log(y, z)
            return g.frame(y, back), g.frame(y, u), jnp.sum(back**2), g.distance(y, z)

        left, right, square, distance = logs(y, u)
        assert error(left, right) < 1e-12
        if g.connection == "levi-civita" or isinstance(g, abx.SO):
            assert abs(jnp.sqrt(square) - distance) < 1e-13

    def test_check_point(self, g):
        y, *_ = sample(g)
        assert error(g.check_point(y), y) == 0
        with pytest.raises(ValueError, match="has shape"):
            g.check_point(jtu.tree_map(lambda x: x[None], y))
        broken = jtu.tree_map(lambda x: jnp.full_like(x, jnp.nan), y)
        assert not g.belongs(broken)
        with pytest.raises(Exception, match="not on"):
            jax.block_until_ready(g.check_point(broken))


@pytest.mark.parametrize("g", ACTIONS, ids=name)
class TestTransformations:
    def test_single_precision(self, g):
        check_frame_and_action(g, jnp.float32, 2e-5)

    def test_derivatives(self, g):
        """Gradient against a finite difference, second derivative (reverse over
        reverse, at zero) against a finite difference of gradients."""
        if g in (abx.SO(4), abx.Sphere(2)) or isinstance(g, abx.Product):
            pytest.skip("made of functions that other geometries cover")
        y, u, v, w = sample(g)

        def f(a):
            z = g.act(g.generator(y, a), y)
            return sum(jnp.sum(jnp.sin(leaf)) for leaf in jtu.tree_leaves(z))

        gradient = jax.jit(jax.grad(f))
        h = 1e-5
        slope = jnp.sum(gradient(u) * w)
        difference = (f(u + h * w) - f(u - h * w)) / (2 * h)
        assert abs(slope - difference) < 1e-7 * (1 + abs(slope))

        zero = jnp.zeros_like(u)
        reverse = jax.grad(lambda a: jnp.sum(jax.grad(f)(a) * w))(zero)
        difference = (gradient(h * w) - gradient(-h * w)) / (2 * h)
        np.testing.assert_allclose(reverse, difference, rtol=1e-6, atol=1e-6)

    def test_vmap(self, g):
        keys = jr.split(jr.PRNGKey(3), 3)
        ys = jax.vmap(lambda k: g.random_point(key=k, dtype=jnp.float64))(keys)
        us = jr.normal(jr.PRNGKey(4), (3, g.dim), jnp.float64)

        def step(y, u):
            return g.act(g.generator(y, u), y), g.belongs(y), g.distance(y, y)

        batched, inside, _ = jax.jit(jax.vmap(step))(ys, us)
        assert inside.all()
        y1, u1 = jtu.tree_map(lambda x: x[1], ys), us[1]
        single, *_ = step(y1, u1)
        assert error(jtu.tree_map(lambda x: x[1], batched), single) < 1e-13
