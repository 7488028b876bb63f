"""The two models are one: at equal weights, and along training."""

import json

import numpy as np
import pytest

from arborax_experiments import collect, find_task, report, run, table


TASK = find_task("recovery")


def write_series(folder, name, channels, classes):
    """Noisy oscillations, one frequency for each class, in the `.ts` format."""
    rng = np.random.default_rng(0)
    head = [f"@problemName {name}", "@timeStamps false"]
    head += [f"@classLabel true {' '.join(classes)}", "@data"]
    for part in ("TRAIN", "TEST"):
        lines = []
        for k in range(12):
            label = k % len(classes)
            times = np.arange(13 + k % 3) * (1 + label)
            values = np.sin(times[:, None] / 3 + np.arange(channels))
            values = values + 0.1 * rng.standard_normal(values.shape)
            cells = [",".join(f"{v:.5f}" for v in channel) for channel in values.T]
            lines.append(":".join([*cells, classes[label]]))
        (folder / f"{name}_{part}.ts").write_text("\n".join(head + lines) + "\n")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recovery")
    write_series(folder, "JapaneseVowels", 3, ("1", "2"))
    options = dict(preset="smoke", folder=folder / "runs", progress=False)
    changes = {"folder": str(folder)}
    runs = [
        run(TASK, model=name, changes=changes, **options)
        for name in ("bnrde", "log-ncde")
    ]
    return folder, runs


def test_equal_weights_and_equal_curves(results):
    _, (first, second) = results
    assert first["identity"] < 1e-6 and second["identity"] < 1e-6
    assert len(first["loss"]) == 4
    np.testing.assert_allclose(first["loss"], second["loss"], rtol=1e-9)
    # It was trained: later steps see other batches and other weights.
    assert len(set(first["loss"])) == 4
    assert first["scores"]["loss"] == pytest.approx(second["scores"]["loss"], rel=1e-9)


def test_files_table_and_report(results):
    folder, (first, _) = results
    stored = folder / "runs" / "recovery" / "arborax-smoke-bnrde-1" / "result.json"
    text = stored.read_text()
    assert str(folder) not in text and json.loads(text)["identity"] < 1e-6
    found = collect("recovery", [folder / "runs"])
    assert len(found) == 2
    text = table(TASK, found)
    assert "largest relative difference" in text and "0.134" in text
    assert table(TASK, []).startswith("no results")
    page = report(TASK, found, folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 1


def test_configurations(tmp_path):
    assert TASK.configure("paper", "paper").data == "PPG-DaLiA"
    with pytest.raises(FileNotFoundError, match="folder=.*curl -LO"):
        run(TASK, setting="paper", preset="smoke", progress=False, folder=tmp_path)
    with pytest.raises(ValueError, match="setting.*arborax.*paper"):
        TASK.configure("other", "smoke")
