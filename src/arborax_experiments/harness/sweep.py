"""Search for configurations with Optuna, by the validation metric alone."""

import dataclasses
import os
import pathlib
from typing import Any

from ._registry import experiment as find_experiment


# What is searched where an experiment has no `SPACE` of its own, as far as its
# configuration has these fields.
SPACE: dict[str, Any] = {"learning_rate": (1e-3, 2e-2, "log"), "width": (16, 64)}


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
    experiment: str,
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
    """Searches a space of configurations; resumes what was stopped.

    A trial is one run; what is made small is the best validation metric of its last
    stage. Test scores are written with every run and never looked at here. The study is
    the file `study.log` beside the runs: call again with the same arguments to go on.
    A trial that was killed is taken up again from its checkpoints.

    **Arguments:**

    - `experiment`, `model`, `preset`, `setting`, `seed`: what is run.
    - `trials`: how many there shall be in the end, earlier ones included.
    - `space`: field to `(low, high)`, `(low, high, "log")` or a list of choices. By
        default `SPACE` of the experiment's package, or else learning rate and width.
    - `changes`: fields that are set otherwise in all trials.
    - `folder`: the study goes to `EXPERIMENT-sweep/SETTING-PRESET-MODEL` there.
    - `cache`, `progress`: as of runs.

    **Returns:**

    The Optuna study: `study.best_params`, `study.best_value`, `study.trials`.
    """
    optuna = import_optuna()
    package = find_experiment(experiment)
    fields = {field.name for field in dataclasses.fields(package.Config)}
    usual = {name: value for name, value in SPACE.items() if name in fields}
    space = space or getattr(package, "SPACE", usual)
    assert space is not None
    if unknown := sorted(set(space) - fields):
        raise ValueError(f"unknown fields {unknown}; a Config has {sorted(fields)}.")
    place = pathlib.Path(folder) / f"{experiment}-sweep"
    place = place / f"{setting}-{preset}-{model}"
    place.mkdir(parents=True, exist_ok=True)
    backend = optuna.storages.journal.JournalFileBackend(str(place / "study.log"))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name=experiment,
        sampler=optuna.samplers.TPESampler(seed=seed),
        load_if_exists=True,
    )
    states = optuna.trial.TrialState
    for trial in study.get_trials(states=(states.RUNNING,)):  # of a killed process
        study.tell(trial.number, state=states.FAIL)
        study.enqueue_trial(trial.params, skip_if_exists=False)
    done = len(study.get_trials(states=(states.COMPLETE,)))

    def objective(trial: Any) -> float:
        chosen = {name: _suggest(trial, name, values) for name, values in space.items()}
        result = package.run(
            experiment,
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
        metric = result["stages"][-1]["best_metric"]
        return float("nan") if metric is None else float(metric)

    if trials > done:
        study.optimize(objective, n_trials=trials - done)
    return study
