"""Runs at preset `smoke` on simulated and recorded orientations."""

import dataclasses
import itertools as it
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arborax.cli import main
from arborax_experiments import collect, find_task, report, run, table
from arborax_experiments.harness import parameter_count
from arborax_experiments.rotations import (
    EXTRAPOLATORS,
    make_model,
    RotationForecaster,
)
from arborax_experiments.rotations.data import error_scale, make_training, shared
from arborax_experiments.rotations.scores import errors
from arborax_experiments.rotations.tables import cross_tables, noisy_tables
from arborax_experiments.rotations.task import relative_error
from arborax_experiments.rotations.test_sets import make_test_sets


KEY = jax.random.PRNGKey(0)
TASK = find_task("so-rotation")


def load_config(setting="arborax", preset="quick", **changes):
    return TASK.configure(setting, preset, **changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two recordings: a steady turn, and the same with a gap."""
    place = tmp_path_factory.mktemp("so-rotation")
    data = place / "data"
    data.mkdir()
    ts = np.arange(600) / 100
    half = ts / 2
    axis = np.array([0.6, 0.0, 0.8])
    q = np.column_stack([np.sin(half)[:, None] * axis, np.cos(half)])
    rows = np.column_stack([ts, np.zeros((600, 3)), q])
    np.savetxt(data / "tum_turn.txt", rows)
    np.savez(
        data / "broad_turn.npz",
        opt_quat=np.where((np.arange(600) < 320)[:, None], q[:, [3, 0, 1, 2]], np.nan),
        sampling_rate=100.0,
        movement=np.ones(600, bool),
    )
    return place


@pytest.fixture(scope="module")
def result(folder):
    return run(
        TASK,
        model="gru",
        preset="smoke",
        folder=folder / "runs",
        cache=folder / "cache",
        progress=False,
        changes={"folder": str(folder / "data"), "extrapolator": "sg2"},
    )


def test_result(result, folder):
    names = list(result["scores"])
    assert names[:4] == [
        "free, noise 0",
        "free, noise 0, gaps",
        "free, noise 0.02",
        "free, noise 0.02, gaps",
    ]
    assert set(names[4:]) == {
        f"{name}_turn, {rate} Hz, noise 0"
        for name in ("tum", "broad")
        for rate in (10, 40)
    }
    scores = result["scores"]["free, noise 0"]
    assert scores["doubled"] == 2 * scores["all"]
    assert scores["forecast"] > scores["all"] / 2
    # References continue a steady turn exactly, whatever the file.
    for name in names[4:]:
        for reference in ("constant velocity", "Savitzky-Golay 2"):
            assert result["references"][reference][name]["forecast"] < 0.2
        assert result["references"]["hold"][name]["forecast"] > 5
    (place,) = (folder / "runs" / "so-rotation").iterdir()
    text = (place / "result.json").read_text()
    assert place.name == "arborax-smoke-gru-extrapolator=sg2-1"
    assert str(folder) not in text
    assert "folder=FOLDER" in json.loads(text)["command"]


def test_references_are_kept(result, folder):
    (file,) = (folder / "cache").iterdir()
    assert json.loads(file.read_text()) == result["references"]


def test_table_and_report(result, folder):
    found = collect("so-rotation", [folder / "runs"])
    text = table(TASK, found)
    for words in ("reference: hold", "GRU (sg2)", "2.461"):
        assert words in text
    assert "BROAD" in text and "TUM" in text
    # Recordings have no noise at this preset.
    (shown,) = noisy_tables(found)
    noisy = [result["scores"][f"free, noise 0.02{g}"] for g in ("", ", gaps")]
    mean = sum(scores["forecast"] for scores in noisy) / 2
    assert shown.columns == ["free"] and shown.lines[-1][1] == [f"{mean:.2f}"]
    page = report(TASK, found, folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert table(TASK, []).startswith("no results")


def test_table_of_models_by_front(result):
    """The front that a model has by itself stands beside the ones it was given."""
    own = {**result, "changes": {}}
    assert "model by extrapolator" not in table(TASK, [result])
    (cross,) = cross_tables([result, own], "free, noise 0.02")
    cell = f"{result['scores']['free, noise 0.02']['forecast']:.2f}"
    assert cross.columns == ["hermite", "sg2"]
    assert cross.lines == [("GRU", [cell, cell])]
    assert "free, noise 0.02\n" in table(TASK, [result, own])


def test_labels_say_what_was_changed(result):
    changes = {"bodies": False, "inertia": True, "width": 8}
    label = TASK.label({**result, "model": "bnrde", "changes": changes})
    assert label.endswith("no bodies, inertia learned, width=8")


def test_command_line(capsys):
    main(["models", "so-rotation"])
    assert capsys.readouterr().out.split() == list(TASK.models)
    main(["config", "so-rotation", "--preset", "paper", "--setting", "paper"])
    assert "kinematics = 'mixed'" in capsys.readouterr().out


def test_every_model_runs_with_its_front():
    """Shapes only: nothing is compiled."""
    config = load_config(preset="smoke")
    times = jnp.arange(21, dtype=jnp.float32)
    seen = (
        jnp.arange(12, dtype=jnp.float32),
        jnp.broadcast_to(jnp.eye(3, dtype=jnp.float32), (12, 3, 3)),
        times,
        jnp.ones(12, bool),
    )
    for name in set(TASK.models) - {
        "xlstm",
        "bnrde-4",
        "gru",
    }:  # as others, or run above
        model = make_model(dataclasses.replace(config, model=name), key=KEY)
        out = eqx.filter_eval_shape(model, *seen)
        assert out.shape == (21, 3, 3) and out.dtype == jnp.float32, name
        assert parameter_count(model) > 50
    # The published text has 8 points to forecast, its code 9.
    other = dataclasses.replace(config, model="bnrde", inertia=True, bodies=False)
    out = eqx.filter_eval_shape(
        make_model(other, key=KEY), *seen[:2], times[:20], seen[3]
    )
    assert out.shape == (20, 3, 3)
    fronts = [name for name in EXTRAPOLATORS if name not in ("sg1", "sg2", "sg3")]
    for front, name in zip(fronts, it.cycle(("gru", "sg-ncde", "mixture"))):
        other = dataclasses.replace(config, model=name, extrapolator=front)
        out = eqx.filter_eval_shape(make_model(other, key=KEY), *seen)
        assert out.shape == (21, 3, 3)


def test_data_and_objective():
    config = load_config(preset="smoke", train_noise=0.0, train_drop=0.0)
    task = make_training(config)
    assert [kind.step for kind in task.kinds] == [0.1, 0.1, 0.025]
    assert sum(kind.share for kind in task.kinds) == pytest.approx(1)
    assert task.validation.mask.all()
    first = task.batch(config, jax.random.PRNGKey(1), 3)
    again = task.batch(config, jax.random.PRNGKey(1), 3)
    other = task.batch(config, jax.random.PRNGKey(1), 4)
    np.testing.assert_array_equal(first[1], again[1])
    assert np.abs(first[1] - other[1]).max() > 0.1
    assert first[1].dtype == np.float32 and first[1].shape == (8, 12, 3, 3)
    # Times are in seconds: one of eight windows has 40 samples a second.
    np.testing.assert_allclose(first[3][:, 20], [2.0] * 7 + [0.5])
    # A perfect forecast costs nothing, holding about what the scale says or more.
    *_, truth, scale = first
    assert float(relative_error(truth, truth, scale, 12)) == 0
    held = truth.copy()
    held[:, 12:] = truth[:, 11:12]
    assert float(relative_error(held, truth, scale, 12)) > 0.5
    steady = np.stack([np.eye(3, dtype=np.float32)] * 21)[None]
    np.testing.assert_allclose(error_scale(steady, 12), 0, atol=1e-3)


def test_the_published_setting_has_no_seconds():
    """Free rotation alone, and times that count samples."""
    config = load_config(preset="smoke", setting="paper")
    task = make_training(config)
    (kind,) = task.kinds
    assert kind.share == 1
    ts, _, _, times, *_ = task.batch(config, jax.random.PRNGKey(1), 3)
    np.testing.assert_array_equal(times, np.tile(np.arange(21), (8, 1)))
    np.testing.assert_array_equal(ts, times[:, :12])
    model = make_model(dataclasses.replace(config, model="gru"), key=KEY)
    assert isinstance(model, RotationForecaster) and not model.seconds


def test_shares_of_a_batch():
    assert shared(128, [0.5, 0.25, 0.25]) == [64, 32, 32]
    assert shared(8, [0.65, 0.175, 0.175]) == [5, 2, 1]
    assert shared(512, [1.0]) == [512]


def test_errors():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    truth = np.broadcast_to(np.eye(3), (2, 21, 3, 3))
    predicted = truth.copy()
    predicted[:, 12:] = turn
    found = errors(predicted, truth, 12)
    assert found["forecast"] == pytest.approx(90)
    assert found["all"] == pytest.approx(90 * 9 / 21)
    assert found["frobenius"] == pytest.approx(2 * 9 / 21)
    predicted[0, 0, 0, 0] = np.nan
    assert errors(predicted, truth, 12)["all"] == float("inf")


def test_motions_and_bad_configurations(tmp_path):
    rng = np.random.default_rng(0)
    head = "@timeStamps false\n@classLabel true walk rest\n@data\n"
    lines = [
        ":".join([*(",".join(f"{v:.4f}" for v in rng.standard_normal(30)),) * 6, label])
        for label in ("walk", "rest")
    ]
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"BasicMotions_{part}.ts").write_text(head + "\n".join(lines))
    config = load_config(preset="smoke", motions=str(tmp_path), stride=5)
    names = [name for name in make_test_sets(config) if name.startswith("Basic")]
    assert names == [f"BasicMotions {c}, 10 Hz, noise 0" for c in ("walk", "rest")]
    with pytest.raises(FileNotFoundError, match="recordings"):
        changes = {"folder": str(tmp_path / "no")}
        run(TASK, preset="smoke", folder=tmp_path, changes=changes)
    with pytest.raises(ValueError, match="observed"):
        load_config(observed=21)
    with pytest.raises(ValueError, match="extrapolator"):
        make_model(load_config(extrapolator="x"), key=KEY)
    with pytest.raises(ValueError, match="model"):
        load_config(model="x")
