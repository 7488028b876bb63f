"""Exponentials and logarithms are exact to rounding, small or large increments."""

import functools as ft
import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.geometry import expm, logm, sqrtm
from arborax.geometry._trigonometric import angle_over_sine, asinh_over_sinh, stumpff


def reference_expm(a):
    """Taylor series with scaling and squaring in extended precision."""
    a = np.asarray(a, np.longdouble)
    norm = float(np.abs(a).sum(0).max())
    s = max(0, math.ceil(math.log2(max(norm, 1e-30)))) + 6
    term = total = np.eye(len(a), dtype=np.longdouble)
    for k in range(1, 22):
        term = term @ a / (np.longdouble(2) ** s * k)
        total = total + term
    for _ in range(s):
        total = total @ total
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_expm(n, dtype, rng):
    f = jax.jit(expm)
    for size in (0.0, 1e-8, 1e-3, 0.5, 1.0, 3.0, 6.0, 20.0):
        a = (rng.normal(size=(n, n)) * size / math.sqrt(n)).astype(dtype)
        want = reference_expm(a)
        got = np.asarray(f(a), np.longdouble)
        gap = float(np.abs(got - want).max() / np.abs(want).max())
        assert gap < 20 * max(1.0, size) * np.finfo(dtype).eps


def test_expm_refuses_huge_norms():
    assert np.isnan(expm(1e5 * jnp.asarray(np.diag([1.0, -1.0, 0.0])))).all()
    assert np.isnan(expm(1e5 * jnp.asarray(np.diag([1.0, -1.0, 0.0, 0.0])))).all()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_expm_derivatives(n, rng):
    a, b = jnp.asarray(rng.normal(size=(2, n, n)))
    _, da = jax.jvp(expm, (a,), (b,))
    block = np.block([[a, b], [np.zeros((n, n)), a]])
    want = reference_expm(block)[:n, n:].astype(float)
    np.testing.assert_allclose(da, want, rtol=1e-12, atol=1e-12)
    # At zero the second derivative in direction b is b @ b.
    zero = jnp.zeros((n, n))

    def first(x):
        return jax.jvp(expm, (x,), (b,))[1]

    np.testing.assert_allclose(jax.jvp(first, (zero,), (b,))[1], b @ b, atol=1e-13)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=str)
def test_large_rotations(dtype):
    g = abx.SO(3)
    eps = float(jnp.finfo(dtype).eps)
    axis = np.asarray([2.0, -1.0, 2.0]) / 3
    k = np.cross(axis, np.eye(3)).T
    for angle in (1e-9, 1e-4, 0.5, 1.0, 3.0, math.pi - 1e-6, 40.0):
        u = jnp.asarray(angle * axis, dtype)
        exact = float(np.linalg.norm(np.asarray(u, float)))
        want = np.eye(3) + math.sin(exact) * k + (1 - math.cos(exact)) * k @ k
        got = g.exp(jnp.eye(3, dtype=dtype), u)
        np.testing.assert_allclose(got, want, atol=8 * eps * max(1, angle))


def test_rotation_log_up_to_half_turn():
    g = abx.SO(3)
    eye = jnp.eye(3)
    axes = jr.normal(jr.PRNGKey(0), (6, 3), jnp.float64)
    axes = axes.at[0].set(jnp.asarray([1.0, 0.0, 0.0]))
    axes = axes / jnp.linalg.norm(axes, axis=1, keepdims=True)
    log = jax.jit(lambda u: g.log(eye, g.exp(eye, u)))
    jacobian = jax.jit(jax.jacrev(log))
    for angle in (0.0, 1e-10, 0.3, 2.0, 3.0, math.pi - 1e-3, math.pi - 1e-6):
        for axis in axes:
            u = angle * axis
            np.testing.assert_allclose(log(u), u, atol=1e-14 + 1e-14 * angle)
            # The composition is the identity, hence so is its derivative.
            np.testing.assert_allclose(jacobian(u), np.eye(3), atol=1e-8)


def test_spd_increment_minus_six():
    g = abx.SPD(3)
    eye = jnp.eye(3)
    u = jnp.asarray([-6.0, 0.0, -6.0, 0.0, 0.0, -6.0])
    np.testing.assert_allclose(g.exp(eye, u), math.exp(-6) * np.eye(3), rtol=1e-15)
    np.testing.assert_allclose(
        g.act(g.generator(eye, u), eye), math.exp(-6) * np.eye(3), rtol=1e-15
    )
    v = jnp.asarray([-6.0, 0.0, 6.0, 0.0, 0.0, 1.0])
    want = np.diag(np.exp([-6.0, 6.0, 1.0]))
    got = g.exp(eye, v)
    # Rounding relative to the largest eigenvalue.
    np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-15 * math.exp(6) * 10)
    np.testing.assert_allclose(g.log(eye, got), v, atol=1e-9)


def test_scalar_functions():
    t = np.asarray([-50.0, -3.0, -1.0, -0.3, -1e-6, 0.0, 1e-9, 0.5, 0.999, 1.001, 9.0])
    theta = np.sqrt(np.abs(t).astype(np.longdouble))
    got = jax.vmap(stumpff)(jnp.asarray(t))
    for k, values in enumerate(got):
        want = sum((-t.astype(np.longdouble)) ** j / math.factorial(k + 2 * j)
                   for j in range(40))  # fmt: skip
        np.testing.assert_allclose(values, want.astype(float), rtol=2e-14)
    angles = jax.vmap(angle_over_sine)(
        jnp.asarray(np.sin(0.1 * theta).astype(float)) ** 2,
        jnp.asarray(np.cos(0.1 * theta).astype(float)),
    )
    want = np.where(
        theta == 0, 1, 0.1 * theta / np.where(theta, np.sin(0.1 * theta), 1)
    )
    np.testing.assert_allclose(angles, want.astype(float), rtol=1e-14)
    s = np.sinh(0.2 * theta.astype(float))
    want = np.where(s == 0, 1, 0.2 * theta.astype(float) / np.where(s == 0, 1, s))
    got = jax.vmap(asinh_over_sinh)(jnp.asarray(s) ** 2)
    np.testing.assert_allclose(got, want, rtol=1e-14)


@ft.cache
def spectral_program(f):
    """One compiled program for all spectra: the values and derivatives of a scalar
    function of `f(p + s a + t b)` at zero."""

    def scalar(s, t, p, a, b):
        return jnp.sum(jnp.sin(f(p + s * a + t * b) + b))

    def derivatives(p, a, b):
        zero, one = jnp.asarray(0.0), jnp.asarray(1.0)

        def slope(s):
            return jax.grad(scalar, 1)(s, zero, p, a, b)

        forward = jax.jvp(slope, (zero,), (one,))[1]
        return slope(zero), jax.grad(slope)(zero), forward

    return jax.jit(scalar), jax.jit(derivatives)


@pytest.mark.parametrize("f", [sqrtm, logm], ids=["sqrtm", "logm"])
@pytest.mark.parametrize("spectrum", [[1, 1, 1], [2, 2, 0.5], [0.1, 1, 3]], ids=str)
def test_spectral_derivatives(f, spectrum, rng):
    """Value, first and second derivative, both modes, also at repeated eigenvalues."""
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    p = jnp.asarray(q @ np.diag(spectrum) @ q.T)
    a, b = rng.normal(size=(2, 3, 3))
    a, b = jnp.asarray(a + a.T), jnp.asarray(b + b.T)
    inverse = {sqrtm: lambda x: x @ x, logm: expm}[f]
    np.testing.assert_allclose(inverse(f(p)), p, atol=1e-13)

    scalar, derivatives = spectral_program(f)
    h = 1e-4

    def at(s, t):
        return scalar(s * h, t * h, p, a, b)

    first = (at(0.0, 1.0) - at(0.0, -1.0)) / (2 * h)
    mixed = at(1.0, 1.0) - at(1.0, -1.0) - at(-1.0, 1.0) + at(-1.0, -1.0)
    slope, reverse, forward = derivatives(p, a, b)
    np.testing.assert_allclose(slope, first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(reverse, mixed / (4 * h**2), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)
