"""Fuzz of `fit`, of `save` and `load`, and of metrics; see `tests/test_fuzz.py`.

Each input is a good call, of which up to two arguments are replaced.
"""

import pathlib
import tempfile

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_fuzz import (
    as_users_have_it as as_users_have_it,
    fuzz,
    keys,
    replaced,
    SPOIL,
    spoilt,
)

import arborax as abx
from arborax import training

from .helpers import mlp, objective, regression


SHORT, LONG = 6, 150
KEY = jax.random.key(0)
M = training.metrics
MODEL = mlp()
DATA = regression(6)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 5)), RNG.normal(size=(6, 5))
TURNS = np.tile(np.eye(3), (4, 1, 1))

numbers = st.sampled_from(
    [0.5, 1, 0.0, -1.0, 1e-30, np.nan, np.inf, "1", None, [1.0], 1j, True]
)
wholes = st.sampled_from([1, 2, 0, -1, 2.0, "2", None, True, np.int64(2), [1]])
flags = st.sampled_from([True, False, None, 1, "yes"])


def _fit(**options):
    options.setdefault("progress", False)
    result = training.fit(**options)
    if result.stop == "non-finite":  # said so, and kept the last good model
        assert result.message
    return jax.tree.leaves(result.model)


OBJECTIVES = [
    lambda model, batch, key: (objective(model, batch, key), {"a": 1.0}),
    lambda model, batch, key: objective(model, batch, key) * jnp.nan,
    lambda model, batch, key: jnp.ones(2),
    lambda model, batch, key: None,
    lambda model, batch, key: "loss",
    lambda model, batch, key: jnp.ones((), int),
    lambda model, batch, key: 1j * objective(model, batch, key),
    lambda model: 0.0,
    *(None, "mse", 3),
]
DATASETS = [
    (DATA[0][:0], DATA[1][:0]),
    (DATA[0], DATA[1][:3]),
    (DATA[0].astype(str), DATA[1]),
    ([1.0, 2.0], [3.0]),
    lambda key, step: DATA,
    lambda key: DATA,
    lambda key, step: None,
    *(None, {}, 3, "data"),
]
FIT = dict(
    model=st.sampled_from([None, 3, {}, type(MODEL), "model"]),
    data=st.sampled_from(DATASETS),
    objective=st.sampled_from(OBJECTIVES),
    key=keys,
    optimiser=st.sampled_from(["adamw", "muon", "typo", None, optax.sgd(0.1), 3]),
    learning_rate=numbers,
    weight_decay=numbers,
    clip=numbers,
    average=numbers,
    steps=wholes,
    epochs=wholes,
    batch_size=wholes,
    validation=st.sampled_from([DATA, DATASETS[0], DATASETS[1], None, 3, "data"]),
    metric=st.sampled_from(
        [lambda m, v, k: 1.0, lambda m, v, k: np.nan, lambda m, v, k: "a", None, 3]
        + [lambda m, v, k: (1.0, {"b": 2}), lambda m, v, k: np.ones(2), lambda: 0]
    ),
    mode=st.sampled_from(["min", "max", "typo", None]),
    validate_every=wholes,
    patience=wholes,
    trainable=st.sampled_from([True, False, None, 3, "all", lambda x: False]),
    checkpoint=st.sampled_from([3, True, [], None]),
    checkpoint_every=wholes,
    log_every=wholes,
    trackers=st.sampled_from([(), None, 3, [3], "log"]),
    hooks=st.sampled_from([(), None, 3, [3], [lambda event: True], lambda event: 0]),
    mesh=st.sampled_from([None, 3, "mesh", "all"]),
)


GRU = abx.models.GRU(2, 1, hidden=2, width=2, key=KEY)


def _saved(model, name):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / name if isinstance(name, str) else name
        abx.save(file, model)
        return jax.tree.leaves(eqx.filter(abx.load(file), eqx.is_array))


def _damaged(raw):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "m.abx"
        file.write_bytes(raw)
        return jax.tree.leaves(eqx.filter(abx.load(file), eqx.is_array))


@st.composite
def damaged(draw):
    """The bytes of a saved model with one fault."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "m.abx"
        abx.save(file, GRU)
        raw = bytearray(file.read_bytes())
    place = draw(st.integers(0, len(raw) - 1))
    how = draw(st.sampled_from(["flip", "cut", "add", "zero", "keep"]))
    if how == "flip":
        raw[place] ^= 1 << draw(st.integers(0, 7))
    elif how == "cut":
        del raw[place:]
    elif how == "add":
        raw += b"x"
    elif how == "zero":
        raw[place : place + 16] = bytes(len(raw[place : place + 16]))
    return bytes(raw)


def samples(good, other):
    """Two samples of which one is spoilt; NaN and infinity pass through statistics."""
    return dict(x=spoilt(st.just(good), CLEAN), y=spoilt(st.just(other), CLEAN))


CLEAN = {k: f for k, f in SPOIL.items() if k not in ("nan", "inf")}
paths = spoilt(st.just(X), CLEAN)

CASES = [
    (
        "fit",
        _fit,
        replaced(
            dict(model=MODEL, data=DATA, objective=objective, key=KEY, steps=2), FIT
        ),
    ),
    (
        "save and load",
        _saved,
        replaced(
            dict(model=GRU, name="m.abx"),
            dict(
                model=st.sampled_from(
                    [None, 3, "a", {"a": jnp.ones(2)}, lambda x: x, {1: (2.0, np.nan)}]
                    + [MODEL, object(), {1, 2}, GRU.__call__, np.array([None]), 1j]
                ),
                name=st.sampled_from([3, None, "no/such/folder/m.abx"]),
            ),
        ),
    ),
    ("damaged files", _damaged, st.fixed_dictionaries(dict(raw=damaged()))),
    ("ks", M.ks, replaced(dict(x=X, y=Y), samples(X, Y))),
    ("wasserstein1", M.wasserstein1, replaced(dict(x=X, y=Y), samples(X, Y))),
    (
        "paths",
        lambda paths, window, lag: (
            M.window_returns(paths, window),
            M.realised_variance(paths, window),
            M.running_maximum(paths),
            M.squared_return_autocorrelation(paths, window, lag),
        ),
        replaced(
            dict(paths=X, window=1, lag=1), dict(paths=paths, window=wholes, lag=wholes)
        ),
    ),
    (
        "self_floor",
        M.self_floor,
        replaced(
            dict(statistic=M.ks, samples=Y, repeats=2),
            dict(samples=spoilt(st.just(Y), CLEAN), size=wholes, repeats=wholes)
            | dict(seed=wholes, statistic=st.sampled_from([None, "ks"])),
        ),
    ),
    (
        "matrices",
        lambda a, b: (M.frobenius(a, b), M.rotation_error(a, b)),
        replaced(
            dict(a=TURNS, b=TURNS),
            dict(a=spoilt(st.just(TURNS), CLEAN), b=spoilt(st.just(TURNS), CLEAN)),
        ),
    ),
    (
        "first_nonfinite",
        training.first_nonfinite,
        replaced(dict(values=X), dict(values=spoilt(st.just(X), CLEAN), axis=wholes)),
    ),
]
names = pytest.mark.parametrize(
    "name, function, strategies", CASES, ids=[c[0] for c in CASES]
)


@pytest.mark.filterwarnings("ignore")
@names
def test_a_right_answer_or_a_clear_refusal(name, function, strategies):
    fuzz(name, function, strategies, SHORT)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@names
def test_many_inputs(name, function, strategies):
    fuzz(name, function, strategies, LONG)
