"""Exponentials of small blocks, against SciPy in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from arborax.lifts import Blocks


RNG = np.random.default_rng(0)
SIZE = 3
KINDS = {
    "random": RNG.normal(size=(SIZE, 4, 4)),
    "nilpotent": np.triu(RNG.normal(size=(SIZE, 4, 4)), 1),
    "large": np.array([40.0, 100.0, 300.0])[:, None, None]
    * (lambda a: (a - a.swapaxes(1, 2)) / 4)(RNG.normal(size=(SIZE, 4, 4))),
    "contracting": RNG.normal(size=(SIZE, 4, 4)) - 60 * np.eye(4),
    "repeated": 0.7 * np.eye(4) + np.diag(np.ones(3), 1) * np.ones((SIZE, 1, 1)),
    "zero": np.zeros((SIZE, 4, 4)),
    "mixed": np.array([1e-9, 1.0, 30.0])[:, None, None] * RNG.normal(size=(SIZE, 4, 4)),
}


def stored(matrices, offsets=None):
    """`(blocks, k, k)` and `(blocks, k)` as blocks store them."""
    parts = [matrices] if offsets is None else [matrices, offsets[..., None]]
    return jnp.asarray(np.moveaxis(np.concatenate(parts, axis=-1), 0, -1))


def reference(matrices, offsets=None):
    """`e^x - 1` by SciPy, of the square matrices with a last row of zeros."""
    k = matrices.shape[-1]
    if offsets is None:
        return stored(scipy.linalg.expm(matrices) - np.eye(k))
    full = np.zeros((len(matrices), k + 1, k + 1))
    full[:, :k, :k], full[:, :k, k] = matrices, offsets
    full = scipy.linalg.expm(full)[:, :k] - np.eye(k, k + 1)
    return stored(full[..., :k], full[..., k])


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_exponential(kind, affine, dtype):
    a = KINDS[kind]
    b = RNG.normal(size=a.shape[:2]) if affine else None
    blocks = Blocks(4, SIZE, affine)
    got = jax.jit(blocks.exponential)(stored(a, b).astype(dtype))
    assert got.dtype == dtype
    want = reference(a, b)
    # Relative to the norm; the condition of the exponential grows with the matrix, and
    # SciPy itself is off by some hundred units in the last place.
    norm = np.abs(a).sum((1, 2)) + 1
    scale = np.abs(np.asarray(want)).max((0, 1)) + np.minimum(1, np.abs(a).max((1, 2)))
    error = np.abs(np.asarray(got, np.float64) - want).max((0, 1))
    tolerance = 4 * jnp.finfo(dtype).eps + (dtype == jnp.float64) * 1e-14
    assert (error <= tolerance * norm * scale + 1e-15).all(), error / scale


@pytest.mark.parametrize(
    "kind, affine", [("random", True), ("repeated", False), ("zero", True)]
)
def test_exponential_derivatives(kind, affine):
    a = KINDS[kind]
    b = RNG.normal(size=a.shape[:2]) if affine else None
    blocks = Blocks(4, SIZE, affine)
    x = stored(a, b)
    check_grads(jax.jit(blocks.exponential), (x,), order=2, modes=["rev"], rtol=1e-4)


def test_exponential_of_large_matrices_has_the_right_gradient():
    """By the derivative of the exponential as a block of a larger one."""
    a, e = KINDS["large"], RNG.normal(size=(SIZE, 4, 4))
    double = np.block([[a, e], [np.zeros_like(a), a]])
    want = scipy.linalg.expm(double)[:, :4, 4:]
    blocks = Blocks(4, SIZE)
    value, got = jax.jvp(blocks.exponential, (stored(a),), (stored(e),))
    np.testing.assert_allclose(got, stored(want), atol=1e-9 * np.abs(want).max())
    g = RNG.normal(size=value.shape)
    (pulled,) = jax.vjp(blocks.exponential, stored(a))[1](jnp.asarray(g))
    np.testing.assert_allclose(np.sum(got * g), np.sum(pulled * stored(e)), rtol=1e-9)


@pytest.mark.parametrize("affine", [False, True])
def test_rotations_are_blocks_of_size_two(affine):
    rotation, dense = Blocks(2, 5, affine, rotation=True), Blocks(2, 5, affine)
    x, y = RNG.normal(size=(2, 3, 2, rotation.columns, 5))
    x, y = jnp.asarray(x), jnp.asarray(y)

    def full(z):
        matrix = rotation.matrix(z)
        return jnp.concatenate([matrix, z[..., 1:, :]], axis=-2)

    def check(a, b):
        np.testing.assert_allclose(full(a), b, rtol=1e-12, atol=1e-12)

    check(rotation.product(x, y), dense.product(full(x), full(y)))
    check(rotation.compose(x, y), dense.compose(full(x), full(y)))
    check(rotation.exponential(x), dense.exponential(full(x)))
    z = jnp.asarray(RNG.normal(size=(3, 2, 5)))
    np.testing.assert_allclose(
        rotation.act(x, z), dense.act(full(x), z), rtol=1e-12, atol=1e-12
    )
    check_grads(
        jax.jit(rotation.exponential), (x,), order=2, modes=["fwd", "rev"], rtol=1e-4
    )


def test_exponential_under_vmap_in_scan():
    blocks = Blocks(3, 2, affine=True)
    x = jnp.asarray(0.3 * RNG.normal(size=(4, 5, 3, 4, 2)))
    y = jnp.ones((3, 2))

    def run(x):
        def body(y, w):
            y = blocks.act(blocks.exponential(w), y)
            return y, y

        return jax.lax.scan(body, y, x)[1]

    got = jax.jit(jax.vmap(run))(x)
    want = np.stack([run(row) for row in x])
    np.testing.assert_allclose(got, want, rtol=1e-12)
    f = lambda x: jnp.sum(jax.vmap(run)(x)[:, -1] ** 2)  # noqa: E731
    check_grads(jax.jit(f), (x,), order=2, modes=["rev"], rtol=1e-4)
