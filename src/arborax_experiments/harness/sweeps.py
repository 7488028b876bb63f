"""Search for configurations with Optuna, by the validation metric alone."""

import dataclasses
import os
import pathlib
from typing import Any

from .runs import run
from .task import AbstractTask


def import_optuna() -> Any:
    """Optuna, or an error that says how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "`arborax sweep` needs Optuna: pip install 'arborax[sweep]'."
        ) from error
    return optuna


def parse_range(text: str, default: Any) -> Any:
    """`1e-3:1e-2:log`, `16:64` or `a,b,c` as a range or a list of choices.

    **Arguments:**

    - `text`: as above.
    - `default`: a value of the field: numbers get its type.
    """
    kind = type(default)
    if kind is bool or kind not in (int, float, str):
        raise ValueError(f"a field with values like {default!r} cannot be searched.")
    parts = text.split(":")
    if len(parts) == 1:
        return [kind(value) for value in text.split(",")]
    if kind is str or len(parts) > 3 or parts[2:] not in ([], ["log"]):
        raise ValueError(
            f"a range is LOW:HIGH or LOW:HIGH:log and choices are A,B,C; got {text!r}."
        )
    return (kind(parts[0]), kind(parts[1]), *parts[2:])


def _suggest(trial: Any, name: str, space: Any) -> Any:
    if isinstance(space, list):
        return trial.suggest_categorical(name, space)
    low, high, *rest = space
    suggest = trial.suggest_int if isinstance(low, int) else trial.suggest_float
    return suggest(name, low, high, log=bool(rest))


def sweep(
    task: AbstractTask,
    *,
    model: str,
    preset: str = "quick",
    setting: str = "arborax",
    seed: int = 1,
    trials: int = 20,
    space: dict[str, Any] | None = None,
    changes: dict[str, Any] | None = None,
    folder: str | os.PathLike = "runs",
    cache: str | os.PathLike | None = None,
    progress: bool = True,
) -> Any:
    """Searches a space of configurations; continues a study that was stopped.

    A trial is one run, and its value the best validation metric of the last stage. Test
    scores are written with every run and never looked at here. The study is the file
    `study.log` beside the runs: call again with the same arguments to go on. A trial
    that was killed continues from its checkpoints.

    **Arguments:**

    - `task`, `model`, `preset`, `setting`, `seed`: of the runs.
    - `trials`: how many in total, earlier ones included.
    - `space`: a field to `(low, high)`, `(low, high, "log")` or a list of choices; by
        default `task.space`.
    - `changes`: fields with other values in all trials.
    - `folder`: the study goes to `EXPERIMENT-sweep/SETTING-PRESET-MODEL` there.
    - `cache`, `progress`: as in `run`.

    **Returns:**

    The Optuna study: `study.best_params`, `study.best_value`, `study.trials`.
    """
    optuna = import_optuna()
    fields = {field.name for field in dataclasses.fields(task.config)}
    searched = dict(space or task.space)
    if unknown := sorted(set(searched) - fields):
        raise ValueError(f"unknown fields {unknown}; a Config has {sorted(fields)}.")
    place = pathlib.Path(folder) / f"{task.name}-sweep"
    place = place / f"{setting}-{preset}-{model}"
    place.mkdir(parents=True, exist_ok=True)
    backend = optuna.storages.journal.JournalFileBackend(str(place / "study.log"))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name=task.name,
        sampler=optuna.samplers.TPESampler(seed=seed),
        load_if_exists=True,
    )
    states = optuna.trial.TrialState
    for trial in study.get_trials(states=(states.RUNNING,)):  # of a killed process
        study.tell(trial.number, state=states.FAIL)
        study.enqueue_trial(trial.params, skip_if_exists=False)
    done = len(study.get_trials(states=(states.COMPLETE,)))

    def objective(trial: Any) -> float:
        chosen = {name: _suggest(trial, name, v) for name, v in searched.items()}
        result = run(
            task,
            model=model,
            preset=preset,
            setting=setting,
            seed=seed,
            resume=True,
            folder=place,
            cache=cache,
            progress=progress,
            changes={**(changes or {}), **chosen},
        )
        trial.set_user_attr("folder", result["folder"])
        if not result["stages"]:
            raise ValueError(
                f"model {model!r} has no stage of training and so no validation metric "
                "to search by; choose its options inside the task."
            )
        metric = result["stages"][-1]["best_metric"]
        return float("nan") if metric is None else float(metric)

    if trials > done:
        study.optimize(objective, n_trials=trials - done)
    return study
