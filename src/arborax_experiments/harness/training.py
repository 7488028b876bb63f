"""Training of generators in one stage, or in two: `bnrde-bk` is fine-tuned."""

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

from ..training import fit, FitResult
from ._files import read_result, stage_record
from ._record import RunRecord
from ._schedule import learning_rate


def train_in_stages(
    generator: Any,
    config: Any,
    record: RunRecord,
    prepare: Callable[[str], tuple[Any, Any, Any]],
    keys: tuple[Any, Any],
    *,
    resume: bool,
    progress: bool,
    keep: Callable[[FitResult], FitResult] = lambda fitted: fitted,
) -> tuple[FitResult, list[dict[str, Any]], float]:
    """Trains a generator, and fine-tunes it if the model is `bnrde-bk`.

    The first stage of `bnrde-bk` is that of `bnrde`: where a finished run of that model
    with the same configuration and seed lies beside this one, its checkpoint is read.

    **Arguments:**

    - `generator`: with its first weights.
    - `config`: a configuration with the fields `objective`, `learning_rate`,
        `iterations`, those three after `finetune_`, `optimiser`, `schedule`, `average`
        and `validations`.
    - `record`: of this run.
    - `prepare`: from the name of an objective to `(objective, data, metric)` of `fit`.
    - `keys`: of the two stages.
    - `resume`, `progress`: as `fit`.
    - `keep`: the result of a stage with the weights that are kept; by default those of
        the best validation.

    **Returns:**

    The result of the last stage, the records of all stages, and the CPU seconds of the
    run whose first stage was read.
    """
    earlier = _first_stage(record.place_of("bnrde"), config)
    spent = read_result(earlier)["cpu_seconds"] if earlier else 0.0
    names = [("", "checkpoints")]
    if config.model == "bnrde-bk":
        names.append(("finetune_", "checkpoints-bk"))
    stages = []
    fitted = None
    for (prefix, folder), key in zip(names, keys):
        name, peak, iterations = (
            getattr(config, prefix + field)
            for field in ("objective", "learning_rate", "iterations")
        )
        objective, data, metric = prepare(name)
        read = earlier is not None and not prefix
        result = fit(
            fitted.model if fitted else generator,
            data,
            objective,
            key=key,
            optimiser=config.optimiser,
            learning_rate=learning_rate(config.schedule, peak, iterations),
            average=config.average or None,
            steps=iterations,
            metric=metric,
            validate_every=max(1, iterations // config.validations),
            checkpoint=(earlier if read else record.place) / folder,
            resume=resume or read,
            progress=progress,
        )
        fitted = keep(result)
        stages.append(stage_record(name, fitted))
    assert fitted is not None
    return fitted, stages, spent


def _first_stage(place: pathlib.Path, config: Any) -> pathlib.Path | None:
    """The folder of a finished run of `bnrde`, if it is the first stage of this one:
    it would be repeated to the last bit."""
    if config.model != "bnrde-bk" or not (place / "result.json").exists():
        return None
    wanted = json.loads(json.dumps({**dataclasses.asdict(config), "model": "bnrde"}))
    stored = read_result(place)["config"]
    same = all(
        wanted[name] == stored.get(name)
        for name in wanted
        if not name.startswith("finetune")
    )
    return place if same and (place / "checkpoints").exists() else None
