"""Static sparse matrices against dense ones."""

import jax
import jax.random as jr
import numpy as np
import pytest

from arborax._xla import apply_map, apply_rows, plain
from arborax.algebra import SparseMap


@pytest.mark.parametrize("width", [3, 40, 900])
def test_sparse_rows(width, getkey):
    """Rows of few and of very many entries, and the transpose of either."""
    rng = np.random.default_rng(width)
    count, columns = 30, 2000
    row = np.concatenate([np.zeros(width, int), rng.integers(0, count, 3 * count)])
    column = rng.integers(0, columns, row.size)
    sparse = SparseMap(row, column, rng.normal(size=row.size), (count, columns))
    x, y = jr.normal(getkey(), (columns, 2)), jr.normal(getkey(), (count, 2))
    dense = sparse.todense()
    value, pull = jax.vjp(lambda x: apply_rows(sparse, x), x)
    np.testing.assert_allclose(value, dense @ x, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(pull(y)[0], dense.T @ y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
@pytest.mark.parametrize("columns", [7, 2000])
def test_maps_along_the_last_axis(lead, columns, getkey):
    rng = np.random.default_rng(columns)
    row, column = rng.integers(0, 30, 90), rng.integers(0, columns, 90)
    sparse = SparseMap(row, column, rng.normal(size=90), (30, columns))
    x = jr.normal(getkey(), (*lead, columns))
    np.testing.assert_allclose(apply_map(sparse, x), x @ sparse.todense().T, rtol=1e-11)
    with plain("sparse"):
        np.testing.assert_allclose(apply_map(sparse, x), sparse(x), rtol=1e-11)
