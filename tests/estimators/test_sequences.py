"""Trained estimators: results of the model itself, the contract of scikit-learn, and
what is refused."""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest


pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402

import arborax as abx  # noqa: E402
from arborax.estimators import (  # noqa: E402
    Forecaster,
    SequenceClassifier,
    SequenceRegressor,
)


# Two steps teach nothing, and the estimators say so.
pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")
SMALL = dict(hidden=4, width=4)
QUICK = dict(steps=3, batch_size=8, options=SMALL, random_state=0, average=None)


@pytest.fixture
def series(rng):
    """Series of unequal length whose class is the sign of their drift."""
    labels = np.arange(24) % 2
    drift = np.where(labels, 1.0, -1.0)
    lengths = rng.integers(5, 12, 24)
    return [
        np.cumsum(rng.normal(size=(n, 2)) + [s, 0], axis=0)
        for n, s in zip(lengths, drift)
    ], np.array(["down", "up"])[labels]


@pytest.mark.parametrize("model", ["bnrde", "linear-bnrde", "gru"])
def test_outputs_are_those_of_the_model(series, model):
    """One path at a time, without padding."""
    X, y = series
    quick = QUICK | (dict(options=dict(hidden=4)) if "linear" in model else {})
    fitted = SequenceClassifier(model, **quick).fit(X, y)
    logits = fitted._outputs(X)
    for k in (0, 5):
        xs = (X[k] - fitted.scaling_.mean) / fitted.scaling_.deviation
        ts = np.arange(len(xs)) / fitted.scaling_.span
        path = abx.add_time(abx.SampledPath(ts, xs))
        if model.endswith("bnrde"):
            expected = fitted.model_.at_knots(path)[-1]
        else:
            expected = fitted.model_(path)[-1]
        np.testing.assert_allclose(logits[k], expected, atol=1e-10)
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities, jax.nn.softmax(jnp.asarray(logits)))
    assert list(fitted.classes_) == ["down", "up"]
    assert (fitted.predict(X) == fitted.classes_[probabilities.argmax(1)]).all()


def test_learns_the_drift(series):
    X, y = series
    options = dict(hidden=8, width=8, alg="shuffle", log_depth=1, window=4)
    fitted = SequenceClassifier(
        options=options, steps=60, learning_rate=3e-2, random_state=0, patience=None
    )
    assert fitted.fit(X, y).score(X, y) > 0.9
    assert fitted.result_.history.validation[-1]["metric"] < np.log(2)
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("name", ["classifier", "regressor", "forecaster"])
def test_units_do_not_see_what_is_held_out(name, rng):
    """Other values in the held-out series change no unit and no weight."""
    X, y = np.cumsum(rng.normal(size=(20, 9, 2)), axis=1), rng.normal(size=20)
    y = (y > 0).astype(int) if name == "classifier" else y
    kinds = dict(classifier=SequenceClassifier, regressor=SequenceRegressor)
    kind = kinds.get(name, Forecaster)
    make = functools.partial(kind, model="gru", patience=None, **QUICK)
    fitted = make().fit(X, y)
    held = fitted.held_out_
    other, targets = X.copy(), y.copy()
    other[held] *= 100
    targets[held] *= 1 if name == "classifier" else 100
    again = make().fit(other, targets)
    np.testing.assert_array_equal(again.held_out_, held)
    for fit in (fitted, again):
        rows = np.delete(X, held, axis=0).reshape(-1, 2)
        np.testing.assert_allclose(fit.scaling_.mean, rows.mean(axis=0))
        np.testing.assert_allclose(fit.scaling_.deviation, rows.std(axis=0))
    loss, changed = (fit.result_.history.loss for fit in (fitted, again))
    np.testing.assert_array_equal(changed, loss)


@pytest.mark.filterwarnings("error")
def test_a_model_that_learned_nothing_is_told(rng):
    """Weights that hardly move are never better on the held-out part than those before
    training. Validations are ten steps apart, however few the series."""
    X, y = rng.normal(size=(12, 6, 1)), np.array([0, 1] * 6)
    options = dict(steps=200, patience=2, learning_rate=1e-30)
    model = SequenceClassifier("gru", **QUICK | options)
    with pytest.warns(ConvergenceWarning, match='model="linear-bnrde"'):
        model.fit(X, y)
    assert [r["step"] for r in model.result_.history.validation] == [0, 10, 20]


def test_class_weights(series):
    """A class that counts for nothing is never predicted."""
    X, y = series
    weight = {"up": 1.0, "down": 0.0}
    fitted = SequenceClassifier(
        "gru",
        class_weight=weight,
        steps=40,
        learning_rate=3e-2,
        options=SMALL,
        validation=None,
        random_state=0,
    ).fit(X, y)
    assert set(fitted.predict(X)) == {"up"}


def test_a_model_or_a_function_that_builds_one(series):
    X, y = series
    given = abx.models.GRU(3, 2, hidden=4, key=jax.random.key(0))
    frozen = SequenceClassifier(given, **QUICK | dict(learning_rate=0.0)).fit(X, y)
    np.testing.assert_array_equal(frozen.model_.readout.weight, given.readout.weight)
    built = SequenceClassifier(abx.models.GRU, **QUICK).fit(X, y)
    assert isinstance(built.model_, abx.models.GRU)
    scores = cross_val_score(SequenceClassifier("gru", **QUICK), X, y, cv=2)
    assert scores.shape == (2,)


def test_regression_in_units_of_the_target(series):
    X, _ = series
    y = np.array([[1e3 * x[-1, 0], 5.0 + x[-1, 1]] for x in X])
    options = dict(hidden=8, width=8, alg="shuffle", log_depth=1, window=4)
    fitted = SequenceRegressor(
        options=options, steps=150, learning_rate=2e-2, random_state=0
    )
    assert fitted.fit(X, y).score(X, y) > 0.8
    assert fitted.predict(X).shape == (24, 2)
    one = SequenceRegressor("gru", **QUICK).fit(X, y[:, 0])
    assert one.predict(X).shape == (24,)


@pytest.mark.parametrize(
    "geometry", [abx.SO(3), abx.SE(3), abx.SPD(2)], ids=["SO", "SE", "SPD"]
)
def test_targets_on_manifolds(series, geometry, rng):
    X, _ = series
    y = jax.vmap(geometry.point_from_vector)(
        jnp.asarray(0.1 * rng.normal(size=(24, geometry.vector_size)))
    )
    fitted = SequenceRegressor(geometry=geometry, **QUICK).fit(X, y)
    found = jnp.asarray(fitted.predict(X))
    assert bool(jnp.all(jax.vmap(geometry.belongs)(found)))
    gaps = jax.vmap(geometry.distance)(found, y)
    assert fitted.score(X, y) == pytest.approx(-float(jnp.sqrt(jnp.mean(gaps**2))))
    losses = fitted.result_.history.loss
    assert len(losses) == 3 and np.isfinite(losses).all()


BAD = {
    "one class": (dict(), lambda y: np.full(len(y), "up"), "only one class, .*'up'"),
    "too few labels": (dict(), lambda y: y[:-1], "one target for each of the 24"),
    "no labels": (dict(), lambda y: None, "requires y"),
    "model": (dict(model="lstm"), lambda y: y, "`model` must be one of"),
    "options": (dict(options=3), lambda y: y, "`options` must be a dictionary"),
    "kind of model": (dict(model=3), lambda y: y, "a function or a model"),
    "validation": (dict(validation=1.0), lambda y: y, "on both sides"),
    "steps": (dict(steps=0), lambda y: y, "`steps` must be at least 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_training(series, case):
    X, y = series
    options, labels, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        SequenceClassifier(**QUICK | options).fit(X, labels(y))
    assert len(str(caught.value)) < 300


def test_bad_targets_and_predictions(series):
    X, y = series
    fitted = SequenceClassifier("gru", **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="have 1 channels.*fitted with 2"):
        fitted.predict([x[:, :1] for x in X])
    with pytest.raises(ValueError, match="built for 5 channels"):
        model = abx.models.GRU(5, 2, key=jax.random.key(0))
        SequenceClassifier(model, **QUICK).fit(X, y)
    targets = np.arange(24.0)
    with pytest.raises(ValueError, match="in row 3"):
        targets[3] = np.nan
        SequenceRegressor("gru", **QUICK).fit(X, targets)
    with pytest.raises(ValueError, match="row 0 is not a point"):
        points = np.ones((24, 3, 3))
        SequenceRegressor("gru", geometry=abx.SO(3), **QUICK).fit(X, points)
    with pytest.raises(ValueError, match="must have shape"):
        SequenceRegressor("gru", geometry=abx.SO(3), **QUICK).fit(X, np.ones(24))


@pytest.mark.parametrize("kind", ["file", "pickle"])
def test_saved_and_loaded(series, tmp_path, kind):
    X, y = series
    fitted = SequenceClassifier(**QUICK).fit(X, y)
    if kind == "file":
        fitted.save(tmp_path / "m.abx")
        again = SequenceClassifier.load(tmp_path / "m.abx")
        with pytest.raises(ValueError, match="not a SequenceRegressor"):
            SequenceRegressor.load(tmp_path / "m.abx")
    else:
        again = pickle.loads(pickle.dumps(fitted))
        assert again.result_.history.loss == fitted.result_.history.loss
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.get_params() == fitted.get_params()


def test_saved_regressor_on_a_manifold(series, tmp_path):
    X, _ = series
    y = np.broadcast_to(np.eye(3), (24, 3, 3))
    fitted = SequenceRegressor("gru", geometry=abx.SO(3), **QUICK).fit(X, y)
    fitted.save(tmp_path / "m.abx")
    again = SequenceRegressor.load(tmp_path / "m.abx")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
