"""One run, one table, one report and one sweep for every experiment."""

from .config import (
    PRESETS as PRESETS,
    read_preset as read_preset,
    stored_config as stored_config,
    TrainingConfig as TrainingConfig,
)
from .figures import (
    densities as densities,
    OURS as OURS,
    pyplot as pyplot,
    read_paths as read_paths,
    TRUE as TRUE,
)
from .registry import find_task as find_task, tasks as tasks
from .reports import report as report
from .results import collect as collect, write_json as write_json
from .runs import run as run
from .sweeps import parse_range as parse_range, sweep as sweep
from .tables import (
    by_model as by_model,
    by_setting as by_setting,
    commands as commands,
    footing_table as footing_table,
    Lines as Lines,
    mean_cells as mean_cells,
    percent_cells as percent_cells,
    provenance as provenance,
    published_cells as published_cells,
    RATE as RATE,
    Results as Results,
    run_table as run_table,
    Table as Table,
    table as table,
    with_seeds as with_seeds,
)
from .task import AbstractTask as AbstractTask, Score as Score, Stage as Stage
from .training import parameter_count as parameter_count, scheduled as scheduled
