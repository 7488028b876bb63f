"""The protocol of an experiment, for runs, tables and reports."""

import abc
import contextlib
import dataclasses
import inspect
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from arborax.training import FitResult

from .config import read_preset, TrainingConfig
from .tables import best_rates, by_setting, Results, Table


@dataclasses.dataclass(frozen=True)
class Stage:
    """One call of [`arborax.fit`][]. Optimiser, schedule, average of weights and number
    of validations are those of the configuration.

    **Fields:**

    - `name`: of the objective, for the record.
    - `objective`, `data`, `metric`: as `fit` takes them.
    - `steps`, `learning_rate`: length, and the peak of the schedule.
    - `batch_size`: for data in memory.
    - `folder`: of the checkpoints, inside the folder of the run.
    - `same_as`: another model of the task whose only stage this one repeats to the last
        bit: a finished run of it with the same configuration and seed is read.
    - `unread`: fields of the configuration that do not matter to this stage.
    - `keep`: from the result of `fit` to the result with the weights that are kept.
    - `facts`: added to the record.
    - `loss_every`: the record holds the loss of every `loss_every`-th step.
    """

    name: str
    objective: Callable[..., Any]
    data: Any
    metric: Callable[..., Any] | None
    steps: int
    learning_rate: float
    batch_size: int | None = None
    folder: str = "checkpoints"
    same_as: str | None = None
    unread: tuple[str, ...] = ()
    keep: Callable[[FitResult], FitResult] = lambda fitted: fitted
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    loss_every: int = 1


@dataclasses.dataclass(frozen=True)
class Score:
    """The result of a trained model on the test data.

    **Fields:**

    - `content`: plain numbers, merged into `result.json`; `"scores"` is among them.
    - `paths`: arrays for figures, written to `paths.npz`; none by default.
    """

    content: dict[str, Any]
    paths: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


class AbstractTask(abc.ABC):
    """One experiment. A package of `arborax_experiments` lists its tasks as `TASKS`;
    the command line finds them there.

    A run calls `configure`, `data`, `model`, then `fit` for each of `stages`, and
    `score`. Tables and reports call `groups`, and for each group `tables`, `figures`
    and `run_figures`. Presets are the files `SETTING.toml` beside the class, see
    [`arborax_experiments.harness.read_preset`][].

    **Class variables:**

    - `name`: on the command line, and of the folder of results.
    - `config`: a frozen dataclass, a subclass of `TrainingConfig`.
    - `models`: names of the models, with the labels of tables, in their order.
    - `introduction`: a paragraph in HTML for the report.
    - `private`: fields of the configuration that name folders of the user; they are
        written to no file.
    - `rates_tried`: by model, how many learning rates were tried, where not one.
    - `footing`: what else to know of the table on equal footing, for its title.
    - `space`: what a sweep searches by default: a field to `(low, high)`, `(low, high,
        "log")` or a list of choices.
    """

    name: ClassVar[str]
    config: ClassVar[type[TrainingConfig]]
    models: ClassVar[Mapping[str, str]]
    introduction: ClassVar[str] = ""
    private: ClassVar[tuple[str, ...]] = ()
    rates_tried: ClassVar[Mapping[str, str]] = {}
    footing: ClassVar[str] = ""
    space: ClassVar[Mapping[str, Any]] = {
        "learning_rate": (1e-3, 2e-2, "log"),
        "width": (16, 64),
    }

    def configure(self, setting: str, preset: str, **changes: Any) -> Any:
        """The configuration of a setting and a preset, with some fields changed."""
        folder = pathlib.Path(inspect.getfile(type(self))).parent
        changes = {**self.implied(preset, changes), **changes}
        config = read_preset(self.config, folder, setting, preset, changes)
        if config.model not in self.models:
            raise ValueError(
                f"`model` must be one of {list(self.models)}, got {config.model!r}."
            )
        self.check(config)
        return config

    def implied(self, preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Fields that follow from other changes, such as the sizes of real data;
        `changes` override them."""
        return {}

    def check(self, config: Any) -> None:
        """Refuse fields that do not go together."""

    def context(self, config: Any) -> contextlib.AbstractContextManager:
        """The context of a run, for instance `jax.enable_x64(True)`."""
        return contextlib.nullcontext()

    @abc.abstractmethod
    def data(self, config: Any, cache: pathlib.Path | None) -> Any:
        """All data of a run; the other methods get it as `data`. Raises
        `FileNotFoundError` or `ImportError` with a way out where data are missing.

        **Arguments:**

        - `config`: of the run.
        - `cache`: folder for what was simulated once; `None`: that of the platform.
        """

    @abc.abstractmethod
    def model(self, config: Any, data: Any, *, key: PRNGKeyArray) -> Any:
        """The model `config.model` with its first weights. A model that is not trained
        by gradients (a ridge regression, nearest neighbours, a reference) is fitted
        here, on the training part of the data, and need not be an Equinox module."""

    @abc.abstractmethod
    def stages(self, config: Any, data: Any) -> Iterable[Stage]:
        """The stages of training, each one asked for when the one before is done. A
        later stage begins with the weights of the earlier one. None for a model that
        `model` has fitted."""

    @abc.abstractmethod
    def score(
        self, fitted: FitResult, config: Any, data: Any, *, key: PRNGKeyArray, seed: int
    ) -> Score:
        """Scores of the trained model `fitted.model` on the test data.

        **Arguments:**

        - `fitted`: the result of the last stage; without stages, zero steps and the
            model as `model` made it.
        - `config`, `data`: as above.
        - `key`: for noise of the model.
        - `seed`: of the run.
        """

    def trained(self, model: Any) -> Any:
        """The part of a model whose parameters are counted."""
        return model

    def groups(self, results: Results) -> dict[str, Results]:
        """Results that may be compared, under a title."""
        return by_setting(results)

    def compared(self, results: Results) -> Results:
        """The results of one group that are rows of its tables: all but those that only
        served to choose a learning rate."""
        return best_rates(self, results)

    @abc.abstractmethod
    def tables(self, results: Results) -> list[Table]:
        """The tables of some of the results that `compared` returns."""

    def figures(self, results: Results) -> Iterable[tuple[str, Any]]:
        """Titles and Matplotlib figures of the same, beside the training curves."""
        return ()

    def run_figures(self, result: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        """Titles and Matplotlib figures of one run."""
        return ()

    def label(self, result: dict[str, Any]) -> str:
        """The name of a result in tables."""
        return self.models[result["model"]]
