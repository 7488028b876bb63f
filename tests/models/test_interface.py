"""What every model promises: shapes, causality, streams, transformations, dtypes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .cases import CAUSAL, driver, rotation_path


M = abx.models
causal = pytest.mark.parametrize("name", CAUSAL)


@eqx.filter_jit
def _call(model, path):
    return model(path)


@eqx.filter_jit
def _stream(model, path):
    state, first = model.start(path.ts[0], path.xs[0])

    def body(state, row):
        t, x, *bracket = row
        return model.update(state, t, x, *bracket)

    rows = (path.ts[1:], path.xs[1:])
    if path.brackets is not None:
        rows = (*rows, path.brackets)
    _, rest = jax.lax.scan(body, state, rows)
    return jnp.concatenate([first[None], rest])


@causal
def test_stream_and_causality(name):
    model = CAUSAL[name]()
    path = driver(model)
    out = _call(model, path)
    assert out.shape[0] == path.num_times
    np.testing.assert_allclose(_stream(model, path), out, rtol=1e-9, atol=1e-12)
    for cut in (1, 5, 8):
        noise = jr.normal(jr.PRNGKey(cut), path.xs[cut:].shape)
        xs = path.xs.at[cut:].add(noise)
        other = _call(model, abx.SampledPath(path.ts, xs, brackets=path.brackets))
        np.testing.assert_allclose(other[:cut], out[:cut], rtol=1e-12, atol=1e-13)
        assert jnp.max(jnp.abs(other[-1] - out[-1])) > 1e-6


@causal
def test_streams_in_single_precision(name):
    model = CAUSAL[name](dtype=jnp.float32)
    path = driver(model, dtype=jnp.float32)
    out = _call(model, path)
    stream = _stream(model, path)
    assert stream.dtype == out.dtype == jnp.float32
    np.testing.assert_allclose(stream, out, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    "name", ["bnrde", "bnrde-so", "linear-bnrde", "nrde", "ncdepp", "gru", "xlstm"]
)
def test_batches_gradients_and_single_precision(name):
    model = CAUSAL[name](dtype=jnp.float32)
    ts = jnp.linspace(0, 1, 6, dtype=jnp.float32)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def loss(model):
        out = model.sample(ts, (2, 1), key=jr.PRNGKey(3))
        return jnp.mean(out**2), out

    (_, out), grads = loss(model)
    assert out.dtype == jnp.float32 and out.shape[:3] == (2, 1, 6)
    leaves = jax.tree.leaves(grads)
    assert all(leaf.dtype == jnp.float32 for leaf in leaves)
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in leaves)
    assert sum(jnp.sum(jnp.abs(leaf)) for leaf in leaves) > 0


@pytest.mark.parametrize("name", ["bnrde", "linear-bnrde-stacked", "gru"])
def test_predict_agrees_with_single_paths(name):
    model = CAUSAL[name]()
    ito = model.calculus == "ito"
    ts = jnp.linspace(0.0, 1.0, 7)
    paths = M.brownian_driver(ts, 1, (3,), brackets=ito, key=jr.PRNGKey(0))
    out = eqx.filter_jit(model.predict)(paths)
    for k in range(3):
        one = abx.SampledPath(ts, paths.xs[k], brackets=paths.brackets)
        np.testing.assert_allclose(out[k], _call(model, one), rtol=1e-9, atol=1e-12)
    mapped = eqx.filter_jit(lambda m, p: jax.vmap(m)(p))(model, paths.broadcast())
    np.testing.assert_allclose(out, mapped, rtol=1e-9, atol=1e-12)


def test_padding_and_masks_are_exact():
    model = CAUSAL["log-ncde"]()
    path = driver(model, 8)
    xs = jnp.concatenate([path.xs, jnp.full((3, 2), jnp.nan)])
    ts = jnp.concatenate([path.ts, path.ts[-1] + jnp.arange(1.0, 4.0)])
    padded = abx.SampledPath(ts, xs, lengths=jnp.asarray(8))
    np.testing.assert_allclose(
        _call(model, padded)[:8], _call(model, path), rtol=1e-10, atol=1e-12
    )


def test_forecast_is_the_end_of_the_whole():
    model = CAUSAL["gru"]()
    path = driver(model)
    parts = path.slice(0, 6), path.slice(6, 10)
    np.testing.assert_allclose(model.forecast(*parts), _call(model, path)[6:])


def test_models_of_rotations():
    path, rotations = rotation_path()
    model = M.MNODE(key=jr.PRNGKey(0), width=5)
    out = _call(model, path)
    assert out.shape == (21, 3, 3)
    assert jnp.all(jax.vmap(abx.SO(3).belongs)(out))
    np.testing.assert_allclose(out[0], rotations[0])
    # The driver is not used beyond its first sample.
    other = _call(model, abx.SampledPath(path.ts, path.xs.at[12:, 1:].set(0)))
    np.testing.assert_allclose(other, out, rtol=1e-12, atol=1e-13)


def test_an_ncde_along_a_control_given_by_its_velocity():
    """With the increments as velocity it is the NCDE; a curved control differs."""
    model = CAUSAL["ncde"]()
    path = driver(model)
    steps = jnp.diff(path.xs, axis=0)

    @eqx.filter_jit
    def along(model, bend):
        return model.along(path.xs[0], steps, lambda s, dx: dx * (1 + bend * (s - 0.5)))

    expected = _call(model, path)
    np.testing.assert_allclose(along(model, 0.0), expected, rtol=1e-10, atol=1e-12)
    assert np.abs(along(model, 1.0) - expected).max() > 1e-5


class Running(M.AbstractModel):
    """The smallest model: it defines `__call__` and nothing else."""

    weight: jax.Array

    def __call__(self, path):
        return jnp.cumsum(self.check(path).xs @ self.weight, axis=0)


def test_a_model_needs_no_more_than_a_call():
    model = Running(jnp.ones((2, 1)))
    ts, xs = jnp.linspace(0.0, 1.0, 4), jnp.arange(24.0).reshape(3, 4, 2)
    paths = abx.SampledPath(ts, xs)
    expected = np.cumsum(xs.sum(-1, keepdims=True), axis=1)
    np.testing.assert_allclose(model.predict(paths), expected)
    assert model.channels is None and model.calculus is None


def test_refusals():
    model = CAUSAL["gru"]()
    ts = jnp.linspace(0.0, 1.0, 4)
    with pytest.raises(ValueError, match="add_time"):
        model(abx.SampledPath(ts, jnp.zeros((4, 1))))
    with pytest.raises(ValueError, match="predict"):
        model(abx.SampledPath(ts, jnp.zeros((2, 4, 2))))
    with pytest.raises(TypeError, match="SampledPath"):
        model(jnp.zeros((4, 2)))


def test_save_and_load(tmp_path):
    model = CAUSAL["bnrde"]()
    abx.save(tmp_path / "model.abx", model)
    assert eqx.tree_equal(abx.load(tmp_path / "model.abx"), model)
