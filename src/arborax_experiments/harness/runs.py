"""One run of any experiment, from the configuration to the result."""

import os
import pathlib
import time
from typing import Any

import equinox as eqx
import jax.random as jr
import numpy as np

from arborax.training import register, save

from .results import RunFolder
from .task import AbstractTask
from .training import parameter_count, train


register("arborax_experiments")  # so that files may name the classes of experiments


def run(
    task: AbstractTask,
    *,
    model: str = "bnrde",
    preset: str = "quick",
    setting: str = "arborax",
    seed: int = 1,
    resume: bool = False,
    folder: str | os.PathLike = "runs",
    cache: str | os.PathLike | None = None,
    progress: bool = True,
    changes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Trains one model, scores it on the test data and writes the result.

    **Arguments:**

    - `task`: the experiment.
    - `model`: a name of `task.models`.
    - `preset`, `setting`: see [`arborax_experiments.harness.read_preset`][].
    - `seed`: of weights, batches and noise. Data are the same for all seeds.
    - `resume`: continue from the checkpoints of a run that was stopped; the result of a
        finished run is read.
    - `folder`: where runs go, each to `EXPERIMENT/SETTING-PRESET-MODEL-SEED` there.
    - `cache`: where data are kept; default the cache folder of the platform.
    - `progress`: show a bar.
    - `changes`: fields of the configuration with other values.

    **Returns:**

    The content of `result.json`, and the folder. Beside it are `model.abx` (of an
    Equinox module), the checkpoints and, for some tasks, `paths.npz`.
    """
    changes = changes or {}
    place = RunFolder(
        task.name, setting, preset, model, seed, changes, folder, task.private
    )
    config = task.configure(setting, preset, **{"model": model, **changes})
    if resume and (finished := place.result()):
        return finished
    place.path.mkdir(parents=True, exist_ok=True)
    start = time.process_time()
    with task.context(config):
        data = task.data(config, None if cache is None else pathlib.Path(cache))
        model_key, *stage_keys, score_key = jr.split(jr.PRNGKey(seed), 4)
        fitted, stages, spent = train(
            task.model(config, data, key=model_key),
            task.stages(config, data),
            config,
            place,
            (stage_keys[0], stage_keys[1]),
            resume=resume,
            progress=progress,
        )
        score = task.score(fitted, config, data, key=score_key, seed=seed)
        if isinstance(fitted.model, eqx.Module):
            save(place.path / "model.abx", fitted.model)
    if score.paths:
        arrays: dict[str, Any] = score.paths
        np.savez_compressed(place.path / "paths.npz", **arrays)
    content = {
        "parameters": parameter_count(task.trained(fitted.model)),
        **score.content,
        "stages": stages,
    }
    place.write(config, content, spent + time.process_time() - start)
    result = place.result()
    assert result is not None
    return result
