"""Reservoirs: random equations with a readout of least squares."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


M = abx.models


def data(paths=300, steps=32):
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    return M.brownian_driver(ts, 2, (paths,), brackets=True, key=jr.key(2))


@pytest.mark.parametrize("activation", [None, jnp.tanh])
def test_a_reservoir_learns_iterated_integrals(activation):
    """The Lévy area and the Itô integral of a channel against itself, which are linear
    in the signature."""
    paths = data()
    x = np.asarray(paths.xs[..., 1:])
    steps = np.diff(x, axis=1)
    ito = np.sum(x[:, :-1, 0] * steps[..., 0], axis=1)
    area = np.sum(x[:, :-1, 0] * steps[..., 1] - x[:, :-1, 1] * steps[..., 0], axis=1)
    z = np.stack([ito, area], axis=1)
    model = M.Reservoir(
        abx.Ito(3, 2), 2, hidden=64, activation=activation, window=8, key=jr.key(0)
    )
    train, test = (
        jax.tree.map(lambda v: v[part], paths.broadcast())
        for part in (slice(200), slice(200, None))
    )
    fitted = model.fit(train, z[:200], ridge=1e-6)
    error = np.asarray(fitted.predict(test))[:, -1] - z[200:]
    share = np.mean(error**2, axis=0) / np.var(z[200:], axis=0)
    assert np.all(share < 0.1), share
    # Everything but the readout is as it was.
    np.testing.assert_array_equal(
        jax.tree.leaves(fitted.core)[0], jax.tree.leaves(model.core)[0]
    )


def test_least_squares():
    """The normal equations hold: residuals are orthogonal to features, up to the
    penalty."""
    from arborax.models._reservoir import _ridge

    rng = np.random.default_rng(0)
    phi, z = rng.normal(size=(50, 4)) * [1, 5, 0.1, 1] + 3, rng.normal(size=(50, 2))
    weight, bias = _ridge(phi, z, 1e-12)
    want = np.linalg.lstsq(np.c_[phi, np.ones(50)], z, rcond=None)[0].T
    np.testing.assert_allclose(np.c_[weight, bias], want, atol=1e-8)
    assert np.abs(_ridge(phi, z, 10.0)[0]).max() < np.abs(weight).max()


def test_targets_at_all_samples_and_bad_requests():
    paths = data(20, 8)
    model = M.Reservoir(abx.Ito(3, 2), 1, hidden=8, window=4, key=jr.key(0))
    z = jnp.cumsum(paths.xs[..., 1:2], axis=1)
    fitted = model.fit(paths, z, batch=7)
    assert fitted.predict(paths).shape == z.shape
    # What stands after the end of a path counts for nothing.
    lengths = np.arange(20) % 5 + 4
    short = abx.SampledPath(paths.ts, paths.xs, None, lengths, paths.brackets)
    over = np.arange(9) >= lengths[:, None]
    junk = np.where(over[..., None], np.nan, z)
    for a, b in zip(
        jax.tree.leaves(model.fit(short, z).readout),
        jax.tree.leaves(model.fit(short, junk).readout),
    ):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="targets"):
        model.fit(paths, z[:, :3])
    with pytest.raises(ValueError, match="ridge"):
        model.fit(paths, z, ridge=0.0)
    wild = M.Reservoir(abx.Ito(3, 2), 1, hidden=8, scale=1e6, window=4, key=jr.key(0))
    with pytest.raises(ValueError, match="finite"):
        wild.fit(paths, z)


@pytest.mark.parametrize("structure", ["dense", "diagonal", "low-rank"])
def test_no_random_key_is_used_twice(structure):
    with jax.debug_key_reuse(True):
        options: dict = dict(hidden=4, brackets="realised")
        alg, key, other = abx.Ito(2, 2), jr.key(0), jr.key(1)
        M.LinearBNRDE(alg, 1, structure=structure, key=key, **options)
        M.Reservoir(alg, 1, memory=(0.1, 1.0), key=other, **options)
