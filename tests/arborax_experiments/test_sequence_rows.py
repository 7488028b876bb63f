"""Classification of series: trained and fitted rows, splits, tables."""

import dataclasses
import json

import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.cli._experiments import _changes
from arborax_experiments import collect, find_task, report, run, table
from arborax_experiments.sequences import make_classifier, Parts, read_parts
from arborax_experiments.sequences.data import chosen
from arborax_experiments.sequences.model import inputs, logits_of
from arborax_experiments.sequences.rows import in_own_units, series_for
from arborax_experiments.sequences.task import accuracy_table


pytest.importorskip("sklearn")
TASK = find_task("sequences")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes that differ in frequency."""
    place, rng = tmp_path_factory.mktemp("sequences"), np.random.default_rng(0)
    y = np.arange(24) % 2
    angles = np.arange(14)[None] * (1 + y)[:, None] / 3
    x = np.stack([np.sin(angles), np.cos(angles)], axis=2)
    x = x + 0.1 * rng.standard_normal(x.shape)
    np.savez(place / "Waves.npz", x=x, y=y, train=12)
    return place


def result_of(folder, model, **changes):
    return run(
        TASK,
        model=model,
        preset="smoke",
        folder=folder / "runs",
        progress=False,
        changes=dict(data="Waves", folder=str(folder), **changes),
    )


@pytest.mark.parametrize("model", ["joined-ito", "signature-stratonovich"])
def test_fitted_rows_tell_frequencies_apart(folder, model):
    result = result_of(folder, model)
    assert result["scores"]["accuracy"] > 0.9
    assert result["sizes"] == [12, 0, 12] and not result["stages"]
    assert set(result["sha256"]) == {"Waves.npz"}


@pytest.mark.parametrize("model", ["linear-ito", "gru"])
def test_trained_rows_learn(folder, model):
    result = result_of(folder, model, iterations=60, learning_rate=0.02, average=0.5)
    assert result["scores"]["accuracy"] > 0.9
    assert result["stages"][0]["loss"][-1] < 0.5 * result["stages"][0]["loss"][0]


def test_random_splits_have_a_validation_part(folder):
    config = TASK.configure("arborax", "smoke", data="Waves", folder=str(folder))
    sizes = []
    for split in (1, 2, 1):
        change = {"data": "Waves", "folder": str(folder), "split": split}
        parts = read_parts(TASK.configure("arborax", "smoke", **change))
        sizes.append(
            [len(p.labels) for p in (parts.train, parts.validation, parts.test)]
        )
        last = parts
    assert sizes == [[17, 3, 4]] * 3
    first = read_parts(TASK.configure("arborax", "smoke", **change))
    np.testing.assert_array_equal(first.test.values, last.test.values)
    assert read_parts(config).validation is None
    result = result_of(folder, "linear-stratonovich", split=1)
    assert [v["step"] for v in result["stages"][0]["validation"]] == [0, 3]


def test_what_rows_are_given(folder):
    config = TASK.configure("arborax", "smoke", data="Waves", folder=str(folder))
    train = chosen(read_parts(config).train, np.arange(3))
    short = dataclasses.replace(train, values=train.values[:, :8])
    assert series_for("minirocket", short).shape == (3, 2, 10)
    assert series_for("dtw", short).shape == (3, 2, 8)
    path = series_for("joined-ito", train)
    path = abx.SampledPath(path.ts, path.xs, lengths=np.full(3, 9, np.int32))
    xs = np.asarray(in_own_units(path).xs)[:, :9]
    np.testing.assert_allclose(xs.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(xs.std(axis=1), 1, atol=1e-5)


def test_padding_does_not_change_logits():
    """What comes after the end of a series has no weight."""
    rng, lengths = np.random.default_rng(0), np.array([5, 9, 12])
    values = rng.standard_normal((3, 12, 2))
    other = np.where((np.arange(12) < lengths[:, None])[..., None], values, 7.0)
    parts = [
        abx.datasets.LabelledSeries(x, lengths, np.arange(3), ("a", "b", "c"))
        for x in (values, other)
    ]
    data = Parts(parts[0], None, parts[1])
    for name in ("linear-ito", "gru"):
        config = TASK.configure("arborax", "smoke", model=name)
        model = make_classifier(config, 3, 3, 12, key=jr.PRNGKey(0))
        first, second = (inputs(model, data.path(part)) for part in parts)
        np.testing.assert_array_equal(first[1], second[1])
        np.testing.assert_allclose(first[1].sum(axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(
            logits_of(model, *first), logits_of(model, *second), atol=1e-5
        )


def test_tables_and_missing_folder(folder, tmp_path):
    first = result_of(folder, "reservoir-ito")
    other = {"seed": 2, "scores": {"accuracy": 1.0}}
    config = first["config"] | {"data": "Epilepsy"}
    accuracy, *_ = TASK.tables([first, first | other, first | {"config": config}])
    assert accuracy.columns == ["Epilepsy", "Waves"]
    ((label, (fewer, _)),) = accuracy.lines
    assert label.endswith("2 seeds") and fewer.endswith(" (1)")
    broken = first | {"stages": [{"stop": "non-finite"}]}
    assert accuracy_table(TASK, [first, broken]).lines[0][1][0].endswith("1 diverged")
    found = collect("sequences", [folder / "runs"])
    text = table(TASK, found)
    assert "official split" in text and "Waves" in text and "reservoir, Itô" in text
    assert report(TASK, found, tmp_path / "report.html").exists()
    stored = json.dumps({k: v for k, v in first.items() if k != "folder"})
    assert str(folder) not in stored
    with pytest.raises(FileNotFoundError, match="--set folder=FOLDER"):
        result_of(folder.parent, "gru")


def test_folds_leave_the_test_part_alone(folder):
    """Each series of the official training part is held once, none of the test part."""
    options = {"data": "Waves", "folder": str(folder)}
    whole = read_parts(TASK.configure("arborax", "smoke", **options)).train
    held = []
    for fold in range(1, 6):
        config = TASK.configure("arborax", "smoke", fold=fold, **options)
        parts = read_parts(config)
        assert parts.validation is None
        rows = [
            {float(x.sum()) for x in part.values} for part in (parts.train, parts.test)
        ]
        assert not rows[0] & rows[1]
        assert rows[0] | rows[1] == {float(x.sum()) for x in whole.values}
        held += sorted(rows[1])
    assert len(held) == len(set(held)) == len(whole.values)
    with pytest.raises(ValueError, match="`fold`"):
        read_parts(TASK.configure("arborax", "smoke", fold=6, **options))
    with pytest.raises(ValueError, match="`fold`"):
        read_parts(TASK.configure("arborax", "smoke", fold=1, split=1, **options))


def test_the_seed_as_the_number_of_a_split():
    assert _changes(TASK, ("split=seed", "data=Waves"), 4) == {
        "split": 4,
        "data": "Waves",
    }
    with pytest.raises(SystemExit, match="split=first"):
        _changes(TASK, ("split=first",), 4)
