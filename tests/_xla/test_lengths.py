"""Lengths that multiply fast, and finite rows."""

import jax.numpy as jnp
import numpy as np
import pytest

from arborax._xla import all_finite, even, plain


@pytest.mark.parametrize(
    "points,after",
    [(256, 257), (257, 257), (101, 113), (241, 241), (50, 50), (2, 2), (1, 1)],
)
def test_steps_come_in_sixteens(points, after):
    """Unless they would be more than an eighth of all."""
    x = jnp.arange(2.0 * points).reshape(2, points)
    out = even(x)
    assert out.shape == (2, after)
    np.testing.assert_array_equal(out[:, :points], x)
    np.testing.assert_array_equal(jnp.diff(out[:, points - 1 :]), 0)
    with plain("even"):
        assert even(x) is x


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_finite_rows(dtype):
    """The largest numbers there are do not count as infinite."""
    top = jnp.finfo(dtype).max
    rows = [[top] * 4, [-top, 0, 1, top], [0, jnp.nan, 0, 0], [jnp.inf, -jnp.inf, 0, 0]]
    x = jnp.asarray(rows, dtype)
    for off in ("pieces", "finite"):
        with plain(off):
            assert all_finite(x).tolist() == [True, True, False, False]
