"""Running sums against cumulative sums."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax._xla import plain, running_sums


@pytest.mark.parametrize("steps", [1, 15, 300])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_value_and_gradient(steps, axis, reverse, getkey):
    """Of less than a tile, and of tiles of tiles."""
    shape = (2, steps, 3) if axis == 1 else (2, 3, steps)
    x, w = jr.normal(getkey(), shape), jr.normal(getkey(), shape)

    def loss(x):
        return jnp.sum(w * jnp.sin(running_sums(x, axis=axis, reverse=reverse)))

    got = jax.value_and_grad(loss)(x)
    with plain("running_sums"):
        want = jax.value_and_grad(loss)(x)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    first = np.moveaxis(running_sums(x, axis=axis, reverse=reverse), axis, 0)
    values = np.moveaxis(np.asarray(x), axis, 0)
    values = values[::-1] if reverse else values
    sums = np.cumsum(values, axis=0) - values
    np.testing.assert_allclose(first, sums[::-1] if reverse else sums, atol=1e-12)
