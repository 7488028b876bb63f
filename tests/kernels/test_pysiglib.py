"""Agreement with stored values of pysiglib (tests/fixtures/make_kernel_fixture.py)."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


@pytest.fixture(scope="module")
def stored():
    file = Path(__file__).parent / "data" / "pysiglib.json"
    values = json.loads(file.read_text())
    values.pop("version")
    return {name: np.array(value) for name, value in values.items()}


def _refined(paths, times):
    """Paths with `times` equal steps in place of each."""
    steps = paths.shape[1] - 1
    at = np.linspace(0, steps, steps * times + 1)
    rows = [[np.interp(at, np.arange(steps + 1), c) for c in p.T] for p in paths]
    return jnp.asarray(np.swapaxes(np.array(rows), 1, 2))


def _goursat(c):
    """The scheme on a grid of increments, cell by cell."""
    f = np.ones((c.shape[0] + 1, c.shape[1] + 1))
    for n, m in np.ndindex(c.shape):
        s = c[n, m] ** 2 / 12
        both = f[n + 1, m] + f[n, m + 1]
        f[n + 1, m + 1] = both * (1 + c[n, m] / 2 + s) - f[n, m] * (1 - s)
    return f[-1, -1]


def test_geometric(stored):
    x, y = jnp.asarray(stored["x"]), jnp.asarray(stored["y"])
    plain = abx.signature_gram(x, y)
    np.testing.assert_allclose(plain, stored["goursat_0"], rtol=1e-12)
    refined = abx.signature_gram(_refined(x, 4), _refined(y, 2))
    np.testing.assert_allclose(refined, stored["goursat_2_1"], rtol=1e-12)
    series = abx.signature_gram(x, y, solver="series")
    np.testing.assert_allclose(series, stored["polynomial"], rtol=1e-11)


def test_rbf(stored):
    """pysiglib writes `exp(-|x - y|^2 / sigma)`, and its value is on halved cells: the
    cells in between are checked with a loop that does both."""
    x, y = stored["x"], stored["y"]
    kernel = abx.RBFKernel(float(np.sqrt(0.7 / 2)))
    squares = np.sum((x[:, None, :, None] - y[None, :, None]) ** 2, axis=-1)
    cells = np.diff(np.diff(np.exp(-squares / 0.7), axis=-1), axis=-2)
    plain = [[_goursat(c) for c in row] for row in cells]
    halved = [[_goursat(np.kron(c, np.ones((2, 2)) / 4)) for c in row] for row in cells]
    np.testing.assert_allclose(halved, stored["rbf"], rtol=1e-12)
    got = abx.signature_gram(jnp.asarray(x), jnp.asarray(y), static_kernel=kernel)
    np.testing.assert_allclose(got, plain, rtol=1e-12)


def test_branched_on_refined_grids(stored):
    """Left-point sums on the refined grid, extrapolated, against pysiglib's limit."""

    x, y = 0.5 * stored["x"], 0.5 * stored["y"]
    coarse, fine = (
        abx.signature_gram(_refined(x, k), _refined(y, k), "branched") for k in (16, 32)
    )
    limit = stored["branched_5"] + (stored["branched_5"] - stored["branched_4"]) / 3
    assert np.max(np.abs(fine - limit)) < 1e-3
    np.testing.assert_allclose(2 * fine - coarse, limit, atol=2e-5)
