"""Smooth limits in closed form, and the order of the Goursat scheme."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import iv

import arborax as abx


def _line(times, end):
    return jnp.linspace(0, 1, times)[:, None] * jnp.asarray(end)[None]


def test_geometric_straight_lines_are_bessel():
    """`F_st = c F` on lines: `I_0(2 sqrt(c))`, exact for the series solver."""
    x, y = _line(5, [0.6, 0.8]), _line(4, [1.0, 0.5])
    expected = iv(0, 2 * np.sqrt(0.6 + 0.4))
    got = abx.signature_kernel(x, y, solver="series")
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_goursat_is_second_order():
    x, y = _line(3, [0.9, 1.2]), _line(3, [1.0, 0.5])
    exact = abx.signature_kernel(x, y, solver="series")
    errors = []
    for times in (17, 65):
        x, y = _line(times, [0.9, 1.2]), _line(times, [1.0, 0.5])
        errors.append(float(abs(abx.signature_kernel(x, y) - exact)))
    assert np.log2(errors[0] / errors[1]) / 2 > 1.9


@pytest.mark.parametrize("kind", ["branched", "planar"])
def test_tree_kernels_of_straight_lines(kind):
    """Non-planar: `(1 - c/2)^-2`; planar: `F_st = c F^2`. First order in the mesh."""
    c = 0.5
    limit = (1 - c / 2) ** -2 if kind == "branched" else _planar_series(c)
    values = []
    for times in (33, 65, 129):
        x, y = _line(times, [0.5]), _line(times, [1.0])
        values.append(float(abx.signature_kernel(x, y, kind)))
    errors = np.abs(np.array(values) - limit)
    slopes = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(slopes, 1, atol=0.1)
    extrapolated = 2 * values[2] - values[1]
    np.testing.assert_allclose(extrapolated, limit, rtol=1e-4)


def _planar_series(c, terms=40):
    """`F = sum f_n z^n`, `z = c s t`: `F_st = c F^2` gives `n^2 f_n = (F^2)_{n-1}`."""
    f = [1.0]
    for n in range(1, terms):
        f.append(sum(f[j] * f[n - 1 - j] for j in range(n)) / n**2)
    return sum(a * c**n for n, a in enumerate(f))


def test_blow_up_is_explained():
    x = _line(200, [2.5])
    with pytest.raises(ValueError, match="radius of convergence"):
        abx.signature_kernel(x, x, "branched").block_until_ready()
    for scale in ("auto", "bounded"):
        value = abx.signature_kernel(x, x, "branched", scale=scale)
        assert 1 < float(value) < 5


def test_median_scale_spreads_a_truncated_kernel(rng):
    """One very large path does not make all others look alike."""
    x = np.cumsum(rng.normal(size=(21, 30, 2)), axis=1)
    x[0] *= 100
    moved, steps = x - x[:, :1], np.diff(x, axis=1)
    squares = np.maximum((moved**2).sum(-1).max(1), (steps**2).sum((1, 2)))
    options = {"add_basepoint": False, "normalise": True}
    spread = {}
    for scale in ("auto", "median"):
        kernel = abx.SignatureKernel("geometric", 3, scale=scale, **options).fit(x)
        gram = np.asarray(kernel.gram(x))[1:, 1:]
        spread[scale] = np.std(gram[~np.eye(20, dtype=bool)])
        if scale == "median":
            expected = 2 / np.median(np.sqrt(squares))
            np.testing.assert_allclose(kernel.scale, expected, rtol=1e-6)
    assert spread["auto"] < 1e-3 and spread["median"] > 0.1


def test_bounded_scale_is_a_bound(rng):
    """With lengths at most one, `T <= 2 log 2` for any path."""
    x = jnp.asarray(np.cumsum(rng.standard_normal((6, 40, 3)), axis=1))
    gram = abx.signature_gram(x, None, "branched", scale="bounded")
    assert float(jnp.max(jnp.abs(gram))) <= 4


@pytest.mark.parametrize(
    "kind, static",
    [
        ("geometric", "rational-quadratic"),
        ("ito", "rbf"),
        ("branched", "linear"),
        ("branched", "rbf"),
        ("planar", "linear"),
    ],
)
def test_positive_semidefinite(kind, static, rng):
    x = jnp.asarray(np.cumsum(0.2 * rng.standard_normal((8, 9, 2)), axis=1))
    gram = np.asarray(abx.signature_gram(x, None, kind, 3, static_kernel=static))
    np.testing.assert_allclose(gram, gram.T, rtol=1e-10)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


@pytest.mark.parametrize("kind", ["branched", "planar"])
def test_positive_semidefinite_complete_with_brackets(kind, rng):
    x = jnp.asarray(np.cumsum(0.1 * rng.standard_normal((6, 5, 2)), axis=1))
    root = 0.1 * rng.standard_normal((6, 4, 2, 2))
    a = jnp.asarray(root @ np.swapaxes(root, -1, -2))
    gram = np.asarray(abx.signature_gram(x, None, kind, brackets_x=a))
    assert np.linalg.eigvalsh((gram + gram.T) / 2).min() > -1e-9
