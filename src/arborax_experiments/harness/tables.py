"""Tables of results, as text and as HTML."""

import collections
import dataclasses
import html
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np


Results = list[dict[str, Any]]
Lines = list[tuple[str, list[str]]]
RATE = "learning_rate"


@dataclasses.dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and lines of a label and cells."""

    title: str
    columns: list[str]
    lines: Lines

    @property
    def text(self) -> str:
        """Columns aligned: labels left, numbers right; the title above."""
        cells = [["", *self.columns], *([label, *row] for label, row in self.lines)]
        widths = [max(map(len, column)) for column in zip(*cells)]

        def line(row):
            first = row[0].ljust(widths[0])
            rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            return "  ".join([first, *rest]).rstrip()

        rule = "-" * (sum(widths) + 2 * len(widths) - 2)
        title = [self.title] if self.title else []
        return "\n".join([*title, line(cells[0]), rule, *map(line, cells[1:])])

    @property
    def html(self) -> str:
        """Lines that are not measured models (floors, references, published) are
        grey."""
        head = "".join(f"<th>{html.escape(c)}</th>" for c in ["", *self.columns])
        title = self.title and f"<h3>{html.escape(self.title)}</h3>"
        out = [f"{title}<div class='scroll'><table><tr>{head}</tr>"]
        for label, row in self.lines:
            grey = any(word in label for word in ("floor", "reference", "published"))
            mark = " class='reference'" if grey else ""
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in [label, *row])
            out.append(f"<tr{mark}>{cells}</tr>")
        return "".join(out) + "</table></div>"


def table(task: Any, results: Results) -> str:
    """All results of a task as text."""
    if not results:
        return "no results yet; make one with `arborax run`."
    parts = []
    for title, group in task.groups(results).items():
        parts.append("\n".join([*filter(None, [title]), provenance(group)]))
        parts += [one.text for one in all_tables(task, group)]
    return "\n\n".join(parts)


def all_tables(task: Any, results: Results) -> list[Table]:
    """The tables of one group of results: the task's own, learning rates, footing."""
    own = task.tables(task.compared(results))
    return [*own, *search_table(task, results), footing_table(task, results)]


def provenance(results: Results) -> str:
    """The commands that make some results, one line for all runs that differ in model
    and seed only, and a line of dates and commits."""

    lines = [shlex.join(words) for words in commands(results)]
    days = sorted({r["date"][:10] for r in results})
    made = dict.fromkeys(r.get("commit") or "before commits were kept" for r in results)
    lines.append(f"{' to '.join(days[:: max(1, len(days) - 1)])}; {', '.join(made)}")
    return "\n".join(lines)


def commands(results: Results) -> Iterator[list[str]]:
    """The words of commands that together make some results, and no others."""
    groups: Any = collections.defaultdict(lambda: collections.defaultdict(set))
    for result in results:
        # Private folders are in the command, and not among the changes.
        changes = shlex.split(result["command"].partition(" --set ")[2])
        same = (result["experiment"], result["preset"], result["setting"], *changes)
        groups[same][result["model"]].add(result["seed"])
    for (experiment, preset, setting, *changes), models in groups.items():
        by_seeds: dict[tuple[int, ...], list[str]] = collections.defaultdict(list)
        for model, seeds in models.items():
            by_seeds[tuple(sorted(seeds))].append(model)
        for seeds, names in by_seeds.items():
            words = ["arborax", "run", experiment, "--model", *names]
            words += ["--preset", preset, "--setting", setting]
            words += ["--seed", *map(str, seeds)]
            yield [*words, *(["--set", *changes] if changes else [])]


def by_setting(
    results: Results, changes: bool = True, inner: tuple[str, ...] = ()
) -> dict[str, Results]:
    """Results grouped by setting and preset, and by changes of the configuration other
    than learning rates and the fields `inner`, which are rows of one group."""
    groups: dict[str, Results] = collections.defaultdict(list)
    for result in results:
        title = f"setting {result['setting']}, preset {result['preset']}"
        if changes:
            given = sorted(result.get("changes", {}).items())
            given = [item for item in given if item[0] not in (*inner, RATE)]
            title += "".join(f", {name} = {value}" for name, value in given)
        groups[title].append(result)
    return dict(groups)


def by_model(
    results: Results, labels: Mapping[str, str]
) -> Iterator[tuple[str, str, Results]]:
    """Name, label with the number of seeds, and results of each model, in the order of
    `labels`."""
    for name, label in labels.items():
        group = [result for result in results if result["model"] == name]
        if group:
            seeds = {result["seed"] for result in group}
            yield name, with_seeds(label, len(seeds)), group


def with_seeds(label: str, count: int) -> str:
    """A label and the number of seeds behind it."""
    return f"{label}, {count} seed{'s' if count > 1 else ''}"


def mean_cells(
    values: Iterable[Iterable[float]], scale: float = 1.0, digits: int = 2
) -> list[str]:
    """Values of one run, or their mean and standard deviation over several: a list for
    each run, a cell for each column."""
    table = scale * np.asarray([list(row) for row in values])
    if len(table) == 1:
        return [f"{v:.{digits}f}" for v in table[0]]
    pairs = zip(table.mean(axis=0), table.std(axis=0, ddof=1))
    return [f"{mean:.{digits}f}±{spread:.{digits}f}" for mean, spread in pairs]


def percent_cells(values: Iterable[Iterable[float]]) -> list[str]:
    """The same, a hundredfold."""
    return mean_cells(values, 100.0)


def published_cells(values: Iterable[tuple[float, float]]) -> list[str]:
    """Printed means and standard deviations."""
    return [f"{mean:.2f}±{deviation:.2f}" for mean, deviation in values]


def _training(cell: Callable[[list[dict[str, Any]]], str]) -> Callable[..., str]:
    """A cell that reads the stages, for models that have some."""
    return lambda result: cell(result["stages"]) if result["stages"] else "-"


RUN_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "seed": lambda r: str(r["seed"]),
    "parameters": lambda r: str(r["parameters"]),
    "batch": lambda r: str(r["config"]["batch"]),
    "kept step": _training(
        lambda stages: " + ".join(f"{s['best_step']}/{s['steps']}" for s in stages)
    ),
    "step s": _training(lambda stages: f"{stages[-1]['seconds']['step']:.3f}"),
    "compile s": _training(lambda stages: f"{stages[-1]['seconds']['compile']:.0f}"),
    "to kept s": _training(
        lambda stages: f"{sum(s['seconds']['to_best'] for s in stages):.0f}"
    ),
    "CPU s": lambda r: f"{r['cpu_seconds']:.0f}",
}


def _searches(task: Any, results: Results) -> dict[tuple[str, str], Results]:
    """Trained results that may differ in learning rate and seed only, by label and
    other changes."""
    groups: dict[tuple[str, str], Results] = collections.defaultdict(list)
    for result in filter(lambda r: r["stages"], results):
        changes = {k: v for k, v in result.get("changes", {}).items() if k != RATE}
        same = result["setting"], result["preset"], sorted(changes.items())
        groups[task.label(result), str(same)].append(result)
    return groups


def _metrics(group: Results) -> dict[float, float]:
    """The validation metric by learning rate, at the first seed."""
    first = min(result["seed"] for result in group)
    found = {
        r["config"][RATE]: r["stages"][-1]["best_metric"]
        for r in group
        if r["seed"] == first
    }
    return {rate: np.inf if v is None else v for rate, v in sorted(found.items())}


def best_rates(task: Any, results: Results) -> Results:
    """Results without those that only served to choose a learning rate: of each row
    those of the rate whose first seed has the lowest validation metric. Test scores
    play no part."""
    left: set[int] = set()
    for group in _searches(task, results).values():
        metrics = _metrics(group)
        best = min(metrics, key=metrics.__getitem__)
        if len(metrics) > 1:
            left |= {id(r) for r in group if r["config"][RATE] != best}
    return [result for result in results if id(result) not in left]


def search_table(task: Any, results: Results) -> Iterator[Table]:
    """The validation metric by learning rate of the rows for which several were
    tried."""
    groups = [(k[0], _metrics(group)) for k, group in _searches(task, results).items()]
    found = [(label, row) for label, row in groups if len(row) > 1]
    if found:
        rates = sorted({rate for _, row in found for rate in row})
        lines = [
            (label, [f"{row[rate]:.4g}" if rate in row else "-" for rate in rates])
            for label, row in found
        ]
        title = "learning rates: validation metric of the first seed; the least is kept"
        yield Table(title, [f"{rate:g}" for rate in rates], lines)


def footing_table(task: Any, results: Results) -> Table:
    """What each row was given: parameters, data seen in training (steps times batch),
    CPU seconds of a run, the learning rate, and how many rates were tried: those of
    stored runs, or what `task.rates_tried` says of earlier trials. Runs that only
    served to choose a rate count as tries."""
    columns = ["parameters", "data seen", "CPU s", "learning rate", "rates tried"]
    tried: dict[str, set[float]] = collections.defaultdict(set)
    for result in results:
        tried[task.label(result)].add(result["config"]["learning_rate"])
    rows: dict[str, Results] = collections.defaultdict(list)
    order = list(task.models)
    for result in sorted(task.compared(results), key=lambda r: order.index(r["model"])):
        rows[task.label(result)].append(result)
    lines: Lines = []
    for label, group in rows.items():
        first = group[0]
        seeds = len({r["seed"] for r in group})
        cells = [str(first.get("parameters") or "-"), "-"]
        cells.append(f"{np.mean([r['cpu_seconds'] for r in group]):.0f}")
        if first["stages"]:
            cells[1] = str(max(map(_data_seen, group)))
            cells.append(f"{first['config']['learning_rate']:g}")
            count = len(tried[label])
            earlier = task.rates_tried.get(first["model"], "1")
            cells.append(str(count) if count > 1 else earlier)
        else:
            cells += ["-", "-"]
        lines.append((with_seeds(label, seeds), cells))
    return Table(f"equal footing{task.footing}", columns, lines)


def _data_seen(result: dict[str, Any]) -> int:
    """Paths, windows or series that the steps of all stages were made with."""
    steps = sum(stage["steps"] for stage in result["stages"])
    return steps * result["config"]["batch"]


def run_table(
    task: Any,
    results: Results,
    own: Mapping[str, Callable[[dict[str, Any]], str]] | None = None,
) -> Table:
    """One line per run: size and cost, and columns of the task's own."""
    columns = {**RUN_COLUMNS, **(own or {})}
    lines = [
        (task.label(result), [cell(result) for cell in columns.values()])
        for result in results
    ]
    return Table("runs", list(columns), lines)
