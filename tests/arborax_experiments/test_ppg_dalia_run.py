"""The experiment on PPG-DaLiA from end to end, on a made subject of real length."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from arborax_experiments import collect, find_task, run, table
from arborax_experiments.recovery import loss_of, Series


SECONDS = 5400  # 15 % of it hold one window of 13 minutes


def write_subject(folder, rng):
    """A pulse whose rate wanders, seen by the four sensors of the wrist."""
    rate = 70 + 15 * np.sin(2 * np.pi * np.arange(SECONDS) / 900)
    phase = np.cumsum(np.repeat(rate, 64)) / 60 / 64
    noise = lambda rate, channels: rng.standard_normal((rate * SECONDS, channels))  # noqa: E731
    wrist = {
        "ACC": noise(32, 3),
        "BVP": np.sin(2 * np.pi * phase)[:, None] + 0.1 * noise(64, 1),
        "EDA": noise(4, 1),
        "TEMP": 30 + noise(4, 1),
    }
    place = folder / "PPG_FieldStudy" / "S1"
    place.mkdir(parents=True)
    content = {"signal": {"wrist": wrist}, "label": rate[::2][: SECONDS // 2 - 3]}
    (place / "S1.pkl").write_bytes(pickle.dumps(content))


def test_one_command_from_pickles_to_scores(tmp_path, rng):
    write_subject(tmp_path, rng)
    task = find_task("ppg-dalia")
    config = task.configure("arborax", "smoke")
    assert config == find_task("recovery").configure("paper", "smoke")
    result = run(
        task,
        preset="smoke",
        folder=tmp_path / "runs",
        progress=False,
        changes={"folder": str(tmp_path)},
    )
    # Single precision over 49,920 samples; at equal weights the models are one.
    assert result["identity"] < 1e-4
    assert len(result["loss"]) == 2 and np.isfinite(result["scores"]["loss"])
    assert "accuracy" not in result["scores"]
    found = collect("ppg-dalia", [tmp_path / "runs"])
    assert len(found) == 1 and "PPG-DaLiA" in table(task, found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_are_compared_at_the_times_of_the_rates(rng, dtype):
    outputs, rates = rng.standard_normal((3, 41, 1)), rng.standard_normal((3, 7))
    outputs, rates = outputs.astype(dtype), rates.astype(dtype)
    task = Series((outputs, rates), (outputs, rates), 1, False)
    found = loss_of(task, jnp.asarray(outputs), jnp.asarray(rates))
    places = np.linspace(0, 40, 7)
    shown = np.stack([np.interp(places, np.arange(41), row[:, 0]) for row in outputs])
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.mean((shown - rates) ** 2), rtol=1e-5)
