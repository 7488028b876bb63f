"""Reservoir estimators: what they learn, lengths, seeds, bad input."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


pytest.importorskip("sklearn")
from sklearn.linear_model import Ridge, RidgeClassifier  # noqa: E402

from arborax.estimators import ReservoirClassifier, ReservoirRegressor  # noqa: E402


SMALL: dict[str, Any] = dict(hidden=32, levels=2, random_state=0)


def oscillations(count, seed):
    """Two frequencies, random phases: the class is in no single value."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    phase = rng.uniform(0, 2 * np.pi, count)
    angle = np.arange(40) * np.where(labels, 0.5, 0.9)[:, None] + phase[:, None]
    return np.stack([np.sin(angle), rng.normal(size=angle.shape)], axis=-1), labels


def test_classes_and_targets():
    x, y = oscillations(40, 0)
    new, truth = oscillations(40, 1)
    for alg in ("ito", "shuffle"):
        model = ReservoirClassifier(alg, **SMALL).fit(x, y)
        assert model.score(new, truth) > 0.9
    names = np.array(["slow", "fast"])
    again = ReservoirClassifier("shuffle", **SMALL).fit(x, names[y])
    assert (again.predict(new) == names[model.predict(new)]).all()
    power = np.stack([(x[..., 0] ** 2).mean(1), x[:, -1, 0]], axis=1)
    regressor = ReservoirRegressor(**SMALL).fit(x, power)
    assert regressor.predict(new).shape == (40, 2)


def test_padding_has_no_effect_and_seeds_have_one():
    x, y = oscillations(24, 0)
    model = ReservoirClassifier(**SMALL).fit(x, y)
    short = [one[:25] for one in x[:5]]
    mixed = model.features([*short, x[5]])[:5]
    np.testing.assert_allclose(mixed, model.features(short), atol=1e-5)
    other = ReservoirClassifier(**{**SMALL, "random_state": 1}).fit(x, y)
    assert np.abs(other.features(x) - model.features(x)).max() > 0.1
    same = ReservoirClassifier(**SMALL).fit(x, y)
    np.testing.assert_array_equal(same.features(x), model.features(x))


def test_quantiles_see_marks_observed_increments_and_shared_brackets(rng):
    """The levels are those of the states of the very paths that are fitted."""
    x, y = oscillations(24, 0)
    ts = np.linspace(0.0, 1.0, 40)
    mask = rng.random(x.shape) < 0.6
    mask[:, 0] = True
    brackets = np.broadcast_to(0.1 * np.eye(2), (39, 2, 2))
    for path in (
        abx.SampledPath(ts, x, mask, finite_variation=(1,)).filled(),
        abx.SampledPath(ts, x, brackets=brackets),
    ):
        model = ReservoirClassifier(**SMALL).fit(path, y)
        scaled = model.scaling_.apply(path)
        scaled = dataclasses.replace(scaled, ts=39 * scaled.ts, check=False)
        states = model.model_.core.predict(abx.add_time(scaled))
        states = np.asarray(states).reshape(-1, 32)
        share = np.mean(states[None] < model.levels_[:, None], axis=1)
        np.testing.assert_allclose(share, share[:, :1] + 0 * share, atol=2e-3)


@pytest.mark.parametrize("kind", [ReservoirClassifier, ReservoirRegressor])
def test_saved_and_loaded(kind, tmp_path):
    """All bits, and those of the readout of scikit-learn."""
    x, y = oscillations(24, 0)
    y = np.arange(24) % 3 if kind is ReservoirClassifier else y + 0.1 * x[:, 0, 0]
    fitted = kind(**SMALL).fit(x, y)
    fitted.save(tmp_path / "m.abx")
    again = kind.load(tmp_path / "m.abx")
    np.testing.assert_array_equal(again.predict(x), fitted.predict(x))
    np.testing.assert_array_equal(again.features(x), fitted.features(x))
    assert again.get_params() == fitted.get_params()
    plain = RidgeClassifier if kind is ReservoirClassifier else Ridge
    readout = plain(fitted.alpha_).fit(fitted.features(x), y)
    expected = readout.predict(fitted.features(x))
    np.testing.assert_allclose(again.predict(x), expected, rtol=1e-6)


def test_bad_requests():
    x, y = oscillations(8, 0)
    with pytest.raises(ValueError, match="only one class"):
        ReservoirClassifier(**SMALL).fit(x, 0 * y)
    with pytest.raises(ValueError, match="NaN or infinity"):
        ReservoirRegressor(**SMALL).fit(x, y / np.where(y, 1.0, np.nan))
    with pytest.raises(ValueError, match="channels"):
        ReservoirClassifier(**SMALL).fit(x, y).predict(x[..., :1])


def test_memory_of_a_reservoir():
    """Oscillators start at rest, forget within their memory, and never explode."""
    options: dict[str, Any] = dict(
        hidden=16, block=2, scale=0.4, memory=(1.0, 2.0), window=1
    )
    model = abx.models.Reservoir(abx.Shuffle(2, 2), 1, key=jr.key(0), **options)
    ts = jnp.arange(81.0)
    xs = jnp.where(ts[:, None] < 40, 30 * jnp.sin(ts)[:, None], 0.0)
    path = abx.add_time(abx.SampledPath(ts, xs))
    states = model.core(path)
    assert jnp.abs(states[39]).max() > 1.0
    assert jnp.abs(states[-1]).max() < 1e-4 * jnp.abs(states[39]).max()
    flat = model.core(abx.add_time(abx.SampledPath(ts, 0 * xs)))
    np.testing.assert_array_equal(flat, 0)
    for bad, match in [
        (dict(memory=(2.0, 1.0)), "decrease"),
        (dict(memory=(0.0, 1.0)), "memory"),
        (dict(activation=jnp.tanh), "linear equation"),
        (dict(block=1), "even size"),
    ]:
        with pytest.raises(ValueError, match=match):
            abx.models.Reservoir(
                abx.Shuffle(2, 2), 1, key=jr.key(0), **{**options, **bad}
            )
