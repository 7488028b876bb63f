"""One run: data, training, fine-tuning, scores, files."""

import dataclasses
import datetime
import json
import os
import pathlib
import time
from typing import Any

import jax.random as jr
import numpy as np

from ...datasets import dataset, RoughBergomi, Splits
from ...training import fit, FitResult, metrics, save
from .._files import (
    machine,
    read_result,
    run_name,
    set_arguments,
    stage_record,
    write_json,
)
from .._schedule import learning_rate
from ._config import Config, load_config
from ._generator import generate, Generator, make_generator, parameter_count
from ._objectives import make_objective
from ._scores import known_summaries, score, summaries


FRESH_SETS = 4


def run(
    experiment: str = "rough-bergomi",
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
    """Trains one model, scores it on the test set and writes what came out.

    **Arguments:**

    - `experiment`: `"rough-bergomi"`.
    - `model`: a name of `MODELS`; `"bnrde-bk"` is fine-tuned with brackets.
    - `preset`, `setting`: see [`arborax.experiments.load_config`][].
    - `seed`: of weights, training noise and generated test paths. Data are the same.
    - `resume`: continue from the checkpoints of a run that was stopped; a finished run
        is read.
    - `folder`: where runs go, each to `experiment/setting-preset-model-seed` there.
    - `cache`: folder of the data cache.
    - `progress`: show a bar.
    - `changes`: other fields of the configuration.

    **Returns:**

    The content of `result.json`. Beside it are `model.abx`, `paths.npz` (generated and
    true test paths, thinned) and the checkpoints.
    """
    config = load_config(
        experiment, setting, preset, **{"model": model, **(changes or {})}
    )
    place = (
        pathlib.Path(folder)
        / experiment
        / run_name(setting, preset, model, seed, changes or {})
    )
    place.mkdir(parents=True, exist_ok=True)
    if resume and (place / "result.json").exists():
        return read_result(place)
    start = time.process_time()
    law = RoughBergomi(hurst=config.hurst, steps=config.steps)
    data = dataset(law, config.paths, seed=config.data_seed, folder=cache)
    splits = data.split()
    model_key, train_key, tune_key, test_key = jr.split(jr.PRNGKey(seed), 4)
    generator = make_generator(config, splits.train.values, model_key)
    options = dict(resume=resume, progress=progress)
    plain = run_name(setting, preset, "bnrde", seed, changes or {})
    shared = _earlier(place.with_name(plain), config)
    spent = read_result(shared)["cpu_seconds"] if shared else 0.0
    fitted = _train(
        generator,
        config,
        splits,
        (config.objective, config.learning_rate, config.iterations),
        train_key,
        (shared or place) / "checkpoints",
        {**options, "resume": True} if shared else options,
    )
    stages = [stage_record(config.objective, fitted)]
    if model == "bnrde-bk":
        fitted = _train(
            fitted.model,
            config,
            splits,
            (
                config.finetune_objective,
                config.finetune_learning_rate,
                config.finetune_iterations,
            ),
            tune_key,
            place / "checkpoints-bk",
            options,
        )
        stages.append(stage_record(config.finetune_objective, fitted))
    test = splits.test
    # The first paths are scored; all of them price options.
    count = max(len(test), config.price_paths)
    generated = generate(fitted.model, test_key, test.ts, count)
    fresh = dataset(
        law, FRESH_SETS * len(test), seed=config.data_seed + 1, folder=cache
    )
    result = {
        "experiment": experiment,
        "setting": setting,
        "preset": preset,
        "model": model,
        "seed": seed,
        "parameters": parameter_count(fitted.model),
        "scores": score(generated, test, splits.train, config, fresh=fresh, seed=seed),
        "stages": stages,
        "config": dataclasses.asdict(config),
        "command": f"arborax run {experiment} --model {model} --preset {preset} "
        f"--setting {setting} --seed {seed}" + set_arguments(changes or {}),
        "changes": changes or {},
        "cpu_seconds": round(time.process_time() - start + spent, 1),
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    stride = max(1, config.window // 2)
    np.savez_compressed(
        place / "paths.npz",
        ts=test.ts[::stride],
        generated=generated[: len(test), ::stride, 0],
        true=test.values[:, ::stride, 0],
    )
    save(place / "model.abx", fitted.model)
    write_json(place / "result.json", result)
    return {**result, "folder": str(place)}


def _earlier(place: pathlib.Path, config: Config) -> pathlib.Path | None:
    """The finished run at `place` if a fine-tuned model can begin with it.

    Its first stage would be repeated to the last bit: same weights, data and noise.
    """
    if config.model != "bnrde-bk" or not (place / "result.json").exists():
        return None
    stored = {**read_result(place)["config"], "model": config.model}
    wanted = json.loads(json.dumps(dataclasses.asdict(config)))
    return place if stored == wanted else None


def _train(
    generator: Generator,
    config: Config,
    splits: Splits,
    stage: tuple[str, float, int],
    key: Any,
    checkpoint: pathlib.Path,
    options: dict[str, Any],
) -> FitResult:
    name, peak, iterations = stage
    objective, data = make_objective(name, config, splits.train)
    held_out = known_summaries(splits.validation, config)
    marginals = len(config.horizons)
    count = min(len(held_out), config.validation_paths)

    def metric(model, validation, key):
        paths = generate(model, key, splits.validation.ts, count)
        if not np.isfinite(paths).all():
            return float("inf")
        values = np.asarray(metrics.ks(summaries(paths, config), held_out))
        if config.selection == "marginals":
            return float(np.median(values[:marginals]))
        return float(np.mean(values))

    return fit(
        generator,
        data,
        objective,
        key=key,
        optimiser=config.optimiser,
        learning_rate=learning_rate(config.schedule, peak, iterations),
        average=config.average or None,
        steps=iterations,
        metric=metric,
        validate_every=max(1, iterations // config.validations),
        checkpoint=checkpoint,
        **options,
    )
