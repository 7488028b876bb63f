"""Heads: from unconstrained outputs to points."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.geometry import clip_spectrum, project_rotation


def test_vech_order():
    a = jnp.asarray(np.arange(9.0).reshape(3, 3))
    np.testing.assert_array_equal(abx.vech(a), [0, 3, 4, 6, 7, 8])
    v = jnp.arange(6.0)
    s = abx.unvech(v)
    np.testing.assert_array_equal(abx.vech(s), v)
    np.testing.assert_array_equal(s, s.T)
    with pytest.raises(ValueError, match="got 5"):
        abx.unvech(jnp.arange(5.0))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=str)
def test_gram_schmidt(dtype):
    g = abx.SO(3)
    a = jr.normal(jr.PRNGKey(0), (50, 6), dtype)
    rotations = jax.vmap(abx.gram_schmidt_6d)(a)
    assert jax.vmap(lambda r: g.belongs(r, 1e-5))(rotations).all()
    first = a[:, :3] / jnp.linalg.norm(a[:, :3], axis=1, keepdims=True)
    np.testing.assert_allclose(rotations[:, :, 0], first, atol=1e-6)
    assert (jnp.sum(rotations[:, :, 1] * a[:, 3:], axis=1) > 0).all()
    # Finite, with finite derivatives, on degenerate input.
    for bad in (jnp.zeros(6, dtype), jnp.ones(6, dtype)):
        value, slope = jax.value_and_grad(lambda x: jnp.sum(abx.gram_schmidt_6d(x)))(
            bad
        )
        assert np.isfinite(value) and np.isfinite(slope).all()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_project_rotation(n, rng):
    a = jnp.asarray(rng.normal(size=(n, n)))
    for b in (a, a.at[0].multiply(-1)):
        r = project_rotation(b)
        assert abx.SO(n).belongs(r, 1e-13)
        # Optimality: no rotation close by is nearer.
        for key in jr.split(jr.PRNGKey(0), 5):
            u = 0.1 * jr.normal(key, (abx.SO(n).dim,), jnp.float64)
            other = abx.SO(n).exp(r, u)
            assert jnp.sum((b - r) ** 2) < jnp.sum((b - other) ** 2)
    np.testing.assert_allclose(project_rotation(r), r, atol=1e-14)


def test_project_rotation_derivatives(rng):
    # Equal singular values: the derivative of a plain SVD would be NaN.
    r = abx.SO(3).random_point(key=jr.PRNGKey(1), dtype=jnp.float64)
    a, b = jnp.asarray(rng.normal(size=(2, 3, 3)))

    @jax.jit
    def f(s):
        return jnp.sum(jnp.sin(project_rotation(2 * r + s * a)) * b)

    h = 1e-4
    zero = jnp.asarray(0.0)
    np.testing.assert_allclose(jax.grad(f)(zero), (f(h) - f(-h)) / (2 * h), rtol=1e-6)
    second = (f(h) - 2 * f(0.0) + f(-h)) / h**2
    np.testing.assert_allclose(jax.grad(jax.grad(f))(zero), second, rtol=1e-5)


def test_spd_from_vech():
    g = abx.SPD(3)
    v = 3 * jr.normal(jr.PRNGKey(0), (20, 6), jnp.float64)
    p = jax.vmap(abx.spd_from_vech)(v)
    assert jax.vmap(g.belongs)(p).all()
    logs = np.log(np.linalg.eigvalsh(p))
    # The small eigenvalues carry the rounding of the large ones.
    assert logs.max() < 8 + 1e-12 and logs.min() > -8 - 1e-6
    w, q = np.linalg.eigh(jax.vmap(abx.unvech)(v))
    want = q * np.exp(np.clip(w, -8, 8))[:, None, :] @ np.swapaxes(q, 1, 2)
    np.testing.assert_allclose(p, want, rtol=1e-9, atol=1e-9)


def _spd_test_function(v, c):
    return jnp.sum(jnp.sin(abx.spd_from_vech(v) / 1000) * c)


@jax.jit
def _spd_test_derivatives(v, c, w):
    def slope(x):
        return jnp.sum(jax.grad(_spd_test_function)(x, c) * w)

    h = 1e-5
    up, down = _spd_test_function(v + h * w, c), _spd_test_function(v - h * w, c)
    return slope(v), (up - down) / (2 * h), jax.grad(slope)(v)


@pytest.mark.parametrize(
    "v",
    [
        [0.0] * 6,
        [1.0, 0.0, 1.0, 0.0, 0.0, 2.0],
        [9.0, 0.0, 9.0, 0.0, 0.0, 1.0],
        [9.0, 0.3, 1.0, 0.2, -0.1, 1.0],
    ],
    ids=["zero", "repeated", "repeated-clipped", "clipped"],
)
def test_spd_from_vech_derivatives(v):
    w = jr.normal(jr.PRNGKey(2), (6,), jnp.float64)
    c = jr.normal(jr.PRNGKey(3), (3, 3), jnp.float64)
    slope, difference, second = _spd_test_derivatives(jnp.asarray(v), c, w)
    np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-9)
    assert np.isfinite(second).all()


def test_clip_spectrum():
    a = jnp.asarray([[2.0, 1.0], [1.0, -1.0]])
    w, q = np.linalg.eigh(a)
    got = clip_spectrum(a, 1e-6)
    np.testing.assert_allclose(got, q * np.maximum(w, 1e-6) @ q.T, atol=1e-14)
    np.testing.assert_array_equal(clip_spectrum(a, -5.0, 5.0), a)
