"""The laboratory: published experiments with arborax, each in a package of its own.

`find_task("rough-bergomi")` is an experiment; `run`, `table`, `report` and `sweep` take
any of them, and so does the command `arborax`. Needs the extras `train`, `plots`
(reports), `cli` (the command) and `sweep`.
"""

from .harness import (
    collect as collect,
    find_task as find_task,
    parse_range as parse_range,
    report as report,
    run as run,
    sweep as sweep,
    table as table,
    tasks as tasks,
)
from .timing import timing_report as timing_report
