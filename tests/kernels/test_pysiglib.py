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


def test_geometric(stored):
    x, y = jnp.asarray(stored["x"]), jnp.asarray(stored["y"])
    plain = abx.signature_gram(x, y)
    np.testing.assert_allclose(plain, stored["goursat_0"], rtol=1e-12)
    refined = abx.signature_gram(x, y, refinement=(2, 1))
    np.testing.assert_allclose(refined, stored["goursat_2_1"], rtol=1e-12)
    series = abx.signature_gram(x, y, solver="series")
    np.testing.assert_allclose(series, stored["polynomial"], rtol=1e-11)


def test_rbf(stored):
    """pysiglib writes `exp(-|x - y|^2 / sigma)`."""
    x, y = jnp.asarray(stored["x"]), jnp.asarray(stored["y"])
    kernel = abx.RBFKernel(float(np.sqrt(0.7 / 2)))
    got = abx.signature_gram(x, y, refinement=1, static_kernel=kernel)
    np.testing.assert_allclose(got, stored["rbf"], rtol=1e-12)


def test_branched_on_refined_grids(stored):
    """Left-point sums on the refined grid, extrapolated, against pysiglib's limit."""

    def refine(paths, times):
        steps = paths.shape[1] - 1
        at = np.linspace(0, steps, steps * times + 1)
        old = np.arange(steps + 1)
        rows = [[np.interp(at, old, c) for c in p.T] for p in 0.5 * paths]
        return jnp.asarray(np.swapaxes(np.array(rows), 1, 2))

    coarse, fine = (
        abx.signature_gram(refine(stored["x"], k), refine(stored["y"], k), "branched")
        for k in (16, 32)
    )
    limit = stored["branched_5"] + (stored["branched_5"] - stored["branched_4"]) / 3
    assert np.max(np.abs(fine - limit)) < 1e-3
    np.testing.assert_allclose(2 * fine - coarse, limit, atol=2e-5)
