"""Features of paths: centred, standardised, and their distance without bias."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax.datasets import RoughBergomi
from arborax.training.objectives import PathFeatures, squared_distance


def test_features_prefer_the_truth():
    """Centred, standardised; the distance is without bias, and sees a bracket that the
    thinned path does not show."""
    law = RoughBergomi(steps=64)
    data, fresh = (
        law.sample(2048, key=jr.PRNGKey(0)),
        law.sample(1024, key=jr.PRNGKey(1)),
    )
    for kind in ("path", "branched"):
        given = data.brackets if kind == "branched" else None
        features = PathFeatures(
            data.values, given, kind=kind, features=16, cylinders=96, stride=8
        )
        known = None if given is None else jnp.asarray(given)
        values = features(jnp.asarray(data.values), known)
        np.testing.assert_allclose(values.mean(axis=0), 0, atol=2e-5)
        # Three groups, each of variance one but for features that hardly vary.
        assert 2.5 < float(values.var(axis=0).sum()) <= 3.05
        same = float(features.distance(jnp.asarray(fresh.values)))
        assert abs(same) < 6 * 3 / 1024
        # The same thinned path with smooth interpolation: no quadratic variation.
        grid = np.arange(65)
        smooth = np.stack([np.interp(grid, grid[::8], x[::8, 0]) for x in fresh.values])
        other = features.distance(jnp.asarray(smooth[..., None], np.float32))
        assert float(other) > 0.1


def test_features_of_several_channels(rng):
    """The distance sees the correlation of two channels, and has a gradient."""
    steps = rng.normal(size=(2, 1500, 32, 2)) / 32**0.5
    steps[..., 1] = 0.8 * steps[..., 0] + 0.6 * steps[..., 1]
    true, fresh = np.cumsum(np.pad(steps, [(0, 0), (0, 0), (1, 0), (0, 0)]), axis=2)
    apart = fresh * [1, -1]
    for kind in ("path", "branched"):
        features = PathFeatures(true, kind=kind, features=16, cylinders=96, stride=4)
        same, other = (features.distance(jnp.asarray(x)) for x in (fresh, apart))
        assert abs(float(same)) < 6 * 3 / 1500 < float(other)
    gradient = jax.grad(lambda x: features.distance(x))(jnp.asarray(fresh[:8]))
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0


def test_distance_is_unbiased(rng):
    """The mean over all pairs of different paths."""
    x = rng.normal(size=(6, 3))
    pairs = [x[i] @ x[j] for i in range(6) for j in range(6) if i != j]
    assert float(squared_distance(jnp.asarray(x))) == pytest.approx(np.mean(pairs))


def test_stride_divides_the_steps():
    with pytest.raises(ValueError, match="must divide the 5 steps"):
        PathFeatures(np.zeros((4, 6, 1)), stride=2)
