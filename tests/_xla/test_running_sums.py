"""Running sums against NumPy; derivatives are in `test_derivatives.py`."""

import jax.numpy as jnp
import numpy as np
import pytest

from arborax._xla import plain, running_sums


@pytest.mark.parametrize("steps", [1, 15, 16, 17, 256, 300])  # tiles, and tiles of them
def test_sums_before_and_after(steps, rng):
    x = rng.normal(size=(2, 3, steps))
    before = np.cumsum(x, axis=-1) - x
    after = x.sum(axis=-1, keepdims=True) - x - before
    for off in ((), ("running_sums",)):
        with plain(*off) if off else plain("pieces"):
            np.testing.assert_allclose(running_sums(jnp.asarray(x)), before, atol=1e-12)
            got = running_sums(jnp.asarray(x), reverse=True)
            np.testing.assert_allclose(got, after, atol=1e-12)
