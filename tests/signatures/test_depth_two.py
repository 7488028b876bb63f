"""The closed form at depth two against sums over steps and the general code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


CASES = [
    (abx.Shuffle, None),
    (abx.GrossmanLarson, "realised"),
    (abx.MuntheKaasWright, "supplied"),
    (abx.Ito, "supplied"),
]


def draw(dim, times=9):
    rng = np.random.default_rng(dim)
    square = rng.normal(size=(2, times - 1, dim, dim))
    xs, direction = rng.normal(size=(2, 2, times, dim))
    supplied = square + square.swapaxes(-1, -2)
    return [jnp.asarray(x) for x in (xs, supplied, direction)]


def by_sums(xs, brackets):
    """Words of length two and letters of weight two, by the definitions."""
    step = jnp.diff(xs, axis=1)
    middle = (xs[:, 1:] + xs[:, :-1]) / 2 - xs[:, :1]
    square = jnp.einsum("bti,btj->bij", middle, step)
    out = [step.sum(1), square.reshape(len(xs), -1)]
    if brackets is not None:
        i, j = np.triu_indices(xs.shape[-1])
        products = jnp.einsum("bti,btj->btij", step, step)
        total = (products if isinstance(brackets, str) else brackets).sum(1)
        factor = jnp.asarray(np.where(i == j, -0.5, -1.0), xs.dtype)
        out.append(total[:, i, j] * factor[None])
    return jnp.concatenate(out, axis=1)


@pytest.mark.parametrize(
    "mode, dim, dtype",
    [
        (None, 1, np.float64),
        (None, 3, np.float32),
        (None, 4, np.float32),
        (None, 4, np.float64),
        ("realised", 3, np.float64),
        ("realised", 4, np.float64),
        ("supplied", 4, np.float32),
    ],
)
def test_all_derivatives(mode, dim, dtype):
    """Values, forward and reverse mode, and forward over reverse mode."""
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    xs, supplied, direction = (x.astype(dtype) for x in draw(dim))
    alg = (abx.Shuffle if mode is None else abx.Ito)(dim, 2)

    def everything(function):
        def value(x, a):
            return function(x, a if mode == "supplied" else mode)

        def pull(x, a):
            loss = lambda *args: jnp.sum(jnp.sin(value(*args)))  # noqa: E731
            return jax.grad(loss, argnums=(0, 1))(x, a)

        @jax.jit
        def run(x, a, v):
            forward = jax.jvp(lambda y: value(y, a), (x,), (v,))
            return forward, jax.jvp(lambda y: pull(y, a), (x,), (v,))

        return jax.tree.leaves(run(xs, supplied, direction))

    closed = everything(lambda x, b: abx.signature(x, alg, b))
    for got, expected in zip(closed, everything(by_sums), strict=True):
        assert got.dtype == dtype
        scale = max(1.0, float(jnp.abs(expected).max()))
        np.testing.assert_allclose(got, expected, tolerance, tolerance * scale)


@pytest.mark.parametrize("cls, mode", CASES)
def test_depth_three_begins_with_depth_two(cls, mode):
    xs, supplied, _ = draw(3)
    small, large = cls(3, 2), cls(3, 3)

    @jax.jit
    def run(xs, supplied):
        brackets = supplied if mode == "supplied" else mode
        return [
            (abx.signature(xs, alg, brackets), abx.log_signature(xs, alg, brackets))
            for alg in (small, large)
        ]

    for closed, general in zip(*run(xs, supplied), strict=True):
        general = general[..., : closed.shape[-1]]
        np.testing.assert_allclose(closed, general, 1e-12, 1e-12)


@pytest.mark.parametrize("dim", [2, 4])
def test_a_path_far_from_the_origin_keeps_its_area(dim):
    """Only differences enter, so single precision does not suffer from an offset."""
    xs = draw(dim, 65)[0].astype(np.float32) / 8 + np.float32(1000)
    alg = abx.Shuffle(dim, 2)
    exact = abx.log_signature(xs.astype(np.float64), alg)
    np.testing.assert_allclose(abx.log_signature(xs, alg), exact, 1e-5, 1e-5)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("cls", [abx.MuntheKaasWright, abx.Ito])
def test_supplied_squares_are_realised_brackets(cls, depth):
    """On a length to which a step of zero is appended."""
    xs = draw(2, 64)[0] / 8
    step = jnp.diff(xs, axis=1)
    squares = step[..., :, None] * step[..., None, :]
    alg = cls(2, depth)
    run = jax.jit(abx.signature, static_argnums=(1, 2))
    supplied = jax.jit(lambda x, a: abx.signature(x, alg, a))(xs, squares)
    np.testing.assert_allclose(supplied, run(xs, alg, "realised"), 1e-12, 1e-12)
