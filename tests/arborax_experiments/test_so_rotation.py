"""Runs at preset `smoke` on simulated and recorded orientations."""

import dataclasses
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
    broad_motion,
    FRONTS,
    make_model,
    RotationForecaster,
)
from arborax_experiments.rotations.data import make_training
from arborax_experiments.rotations.motions import KINDS
from arborax_experiments.rotations.scores import errors
from arborax_experiments.rotations.tables import (
    COMMAND,
    cross_tables,
    noisy_table,
    PUBLISHED,
    PUBLISHED_COLUMNS,
    RATIOS,
)
from arborax_experiments.rotations.task import angle_error
from arborax_experiments.rotations.test_sets import FROZEN, make_test_sets


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
        changes={"folder": str(folder / "data"), "front": "sg"},
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
    assert scores["forecast"] > scores["all"] / 2
    # References continue a steady turn exactly, whatever the file.
    for name in names[4:]:
        for reference in ("constant velocity", "Savitzky-Golay 2"):
            assert result["references"][reference][name]["forecast"] < 0.2
        assert result["references"]["hold"][name]["forecast"] > 5
    (place,) = (folder / "runs" / "so-rotation").iterdir()
    text = (place / "result.json").read_text()
    assert place.name == "arborax-smoke-gru-front=sg-1"
    assert str(folder) not in text
    assert "folder=FOLDER" in json.loads(text)["command"]


def _oxford(place):
    """Files of the form of the Oxford Multimotion data: two boxes, 100 Hz, 1.5 s."""
    place.mkdir()
    for number, kind in enumerate(PUBLISHED_COLUMNS[1:], 1):
        lines = ["time_sec,time_nsec,object,x,y,z,qx,qy,qz,qw"]
        for k in range(150):
            half = number * k / 200
            turn = f"0,0,{np.sin(half)},{np.cos(half)}"
            for box in ("box1", "box2"):
                lines.append(f"{k // 100},{k % 100}0000000,{box},0,0,0,{turn}")
        file = place / f"swinging_4_{kind}_vicon.csv"
        file.write_text("\n".join(lines))
    return place


def test_the_published_table_can_be_made(tmp_path, monkeypatch):
    """The command that tables print, at the smallest preset, for one row of them."""
    monkeypatch.chdir(tmp_path)
    words = [word for word in COMMAND.split() if word not in PUBLISHED]
    assert len(words) == len(COMMAND.split()) - len(PUBLISHED)
    words.insert(words.index("--model") + 1, "gru")
    words[words.index("paper")] = "smoke"
    words[-1] = f"folder={_oxford(tmp_path / 'oxford')}"
    main([*words[1:], "--cache", "cache"])
    results = collect("so-rotation", ["runs"])
    assert [r["seed"] for r in results] == [1, 2, 3]
    shown, _ = TASK.tables(results)
    lines = dict(shown.lines)
    assert lines["GRU, published"] == ["0.271", "20.25", "20.39", "21.13"]
    assert shown.columns == PUBLISHED_COLUMNS
    for column, cell in zip(PUBLISHED_COLUMNS, lines["GRU, 3 seeds"]):
        ours = [
            2 * scores["frobenius" if column == "Frobenius" else "all"]
            for result in results
            for name, scores in result["scores"].items()
            if name == "free, noise 0"
            and column == "Frobenius"
            or f"_{column}_" in name
            and name.endswith("box1, 40 Hz, noise 0")
        ]
        # Both boxes turn alike.
        assert len(ours) == 3 and np.mean(ours) > 0
        digits = 3 if column == "Frobenius" else 2
        assert cell.split("±")[0] == f"{np.mean(ours):.{digits}f}"


def test_references_are_kept(result, folder):
    (file,) = (folder / "cache").iterdir()
    assert json.loads(file.read_text()) == result["references"]


def test_table_and_report(result, folder):
    found = collect("so-rotation", [folder / "runs"])
    text = table(TASK, found)
    for words in ("reference: filter bank, 84 laws", "GRU (sg)", "equal footing"):
        assert words in text
    assert "BROAD" in text and "TUM" in text
    # Recordings have no noise at this preset.
    shown = noisy_table(found)
    noisy = [result["scores"][f"free, noise 0.02{g}"] for g in ("", ", gaps")]
    mean = sum(scores["forecast"] for scores in noisy) / 2
    assert shown.columns == ["free"] and shown.lines[-1][1] == [f"{mean:.2f}"]
    page = report(TASK, found, folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert table(TASK, []).startswith("no results")


def test_table_of_models_by_front(result):
    """The usual front stands beside the ones that were asked for."""
    own = {**result, "changes": {}, "config": {**result["config"], "front": "bank"}}
    assert not list(cross_tables([result]))
    (cross,) = cross_tables([result, own])
    scores = [
        result["scores"][f"free, noise 0.02{g}"]["forecast"] for g in ("", ", gaps")
    ]
    cell = f"{sum(scores) / 2:.2f}"
    assert cross.columns == ["hold", "sg", "mlp", "bank"]
    assert cross.lines == [("GRU", ["-", cell, "-", cell])]


def test_ratio_to_the_untrained_bank(result):
    """Recorded sources weigh the same, whatever their number of columns."""
    names = ("broad_x, 10 Hz", "broad_y, 10 Hz", "tum_x, 10 Hz", "final tum_y, 10 Hz")
    bank = {f"{name}, noise 0.02": {"forecast": 2.0} for name in names}
    better = {name: {"forecast": 1.6} for name in bank}
    ours = {k: {"forecast": 1.0 if "broad" in k else 2.0} for k in bank}
    made = {
        **result,
        "changes": {},
        "scores": ours,
        "references": {"filter bank, 84 laws": bank, "filter bank, 60 laws": better},
    }
    shown, (few, all_laws) = noisy_table([made]), RATIOS.values()
    final = ["final TUM", f"final {few}", f"final {all_laws}"]
    assert shown.columns == ["BROAD", "TUM", few, all_laws, *final]
    cells = ["1.00", "2.00", "93.75", "75.00", "2.00", "125.00", "100.00"]
    assert dict(shown.lines)["GRU, 1 seed"] == cells


def test_labels_say_what_was_changed(result):
    changes = {"front": "sg", "width": 8}
    label = TASK.label({**result, "model": "bnrde", "changes": changes})
    assert label == "B-NRDE on SO(3) (sg), width=8"


def test_the_final_test_is_apart(folder):
    """Frozen recordings are scored with `final` only, the others never there."""
    place = folder / "frozen"
    place.mkdir()
    source = (folder / "data" / "tum_turn.txt").read_text()
    for name in ("tum_turn", FROZEN[1]):
        (place / f"{name}.txt").write_text(source)

    def names(**changes):
        sets = make_test_sets(load_config(preset="smoke", rates=(10.0,), **changes))
        return [name for name in sets if "tum" in name]

    assert names(folder=str(place)) == ["tum_turn, 10 Hz, noise 0"]
    assert names(final=str(place)) == [f"final {FROZEN[1]}, 10 Hz, noise 0"]


def test_command_line(capsys):
    main(["models", "so-rotation"])
    assert capsys.readouterr().out.split() == list(TASK.models)
    main(["config", "so-rotation", "--preset", "paper", "--setting", "paper"])
    assert "kinematics = 'mixed'" in capsys.readouterr().out


def test_every_model_runs_with_its_fronts():
    """Shapes only: nothing is compiled."""
    config = load_config(preset="smoke")
    times = jnp.arange(21, dtype=jnp.float32)
    seen = (
        jnp.arange(12, dtype=jnp.float32),
        jnp.broadcast_to(jnp.eye(3, dtype=jnp.float32), (12, 3, 3)),
        times,
        jnp.ones(12, bool),
    )
    cases = [dict(model=n) for n in TASK.models if n not in ("xlstm", "gru")]
    cases += [dict(model="front", front=front) for front in FRONTS]
    cases += [dict(model="bnrde", hidden=0), dict(model="bnrde", correct=False)]
    for changes in cases:
        model = make_model(dataclasses.replace(config, **changes), key=KEY)
        out = eqx.filter_eval_shape(model, *seen)
        assert out.shape == (21, 3, 3) and out.dtype == jnp.float32, changes
        fixed = changes.get("front") in ("hold", "sg3", "hermite")
        assert (parameter_count(model) > 0) != fixed
    # The published text has 8 points to forecast, its code 9.
    out = eqx.filter_eval_shape(
        make_model(config, key=KEY), *seen[:2], times[:20], seen[3]
    )
    assert out.shape == (20, 3, 3)


def test_data_and_objective():
    config = load_config(preset="smoke", train_noise=0.0, train_drop=0.0)
    task = make_training(config)
    assert task.validation.mask.all()
    first = task.batch(config, jax.random.PRNGKey(1), 3)
    again = task.batch(config, jax.random.PRNGKey(1), 3)
    other = task.batch(config, jax.random.PRNGKey(1), 4)
    np.testing.assert_array_equal(first[1], again[1])
    assert np.abs(first[1] - other[1]).max() > 0.1
    assert first[1].dtype == np.float32 and first[1].shape == (8, 12, 3, 3)
    # Times are in seconds: half of the windows have 40 samples a second.
    np.testing.assert_allclose(np.unique(task.steps), [0.025, 0.1])
    assert np.mean(task.steps < 0.05) == 0.5
    assert set(np.round(first[3][:, 20], 6)) <= {2.0, 0.5}
    # A perfect forecast costs nothing; only forecast points count.
    truth = first[-1]
    assert float(angle_error(truth, truth, 12)) < 0.1
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    later = truth.copy()
    later[:, 12:] = later[:, 12:] @ turn
    later[:, :12] = later[:, :12] @ turn.T
    assert float(angle_error(later, truth, 12)) == pytest.approx(90, abs=0.1)


def test_the_broad_law():
    """Rotations of every kind; a hand comes back to where it was, a body does not."""
    assert sum(KINDS.values()) == pytest.approx(1)
    motions = broad_motion(200, 42, 10.0, seed=[1, 2])
    assert motions.shape == (200, 42, 3, 3)
    defect = np.swapaxes(motions, -1, -2) @ motions - np.eye(3)
    assert np.abs(defect).max() < 1e-9
    np.testing.assert_array_equal(motions, broad_motion(200, 42, 10.0, seed=[1, 2]))
    away = np.degrees(
        2
        * np.arcsin(
            np.linalg.norm(motions - motions[:, :1], axis=(-1, -2)) / np.sqrt(8)
        ).clip(0, np.pi)
    )
    hands, free = away[:140], away[140:160]
    assert np.median(hands[:, 20:]) < 1.5 * np.median(hands[:, 10:20])
    assert np.median(free[:, 20:]) > 1.5 * np.median(free[:, 10:20])


def test_the_published_setting_has_no_seconds():
    """Free rotation alone, and times that count samples."""
    config = load_config(preset="smoke", setting="paper")
    task = make_training(config)
    ts, _, _, times, *_ = task.batch(config, jax.random.PRNGKey(1), 3)
    np.testing.assert_array_equal(times, np.tile(np.arange(21), (8, 1)))
    np.testing.assert_array_equal(ts, times[:, :12])
    model = make_model(dataclasses.replace(config, model="gru"), key=KEY)
    assert isinstance(model, RotationForecaster) and not model.seconds


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
    with pytest.raises(ValueError, match="front"):
        make_model(load_config(front="x"), key=KEY)
    with pytest.raises(ValueError, match="model"):
        load_config(model="x")
