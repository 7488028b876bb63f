"""Write the tables of experiments in the docs from the stored results.

`make tables` replaces the text between the markers `<!-- NAME: begin -->` and
`<!-- NAME: end -->`, and a test compares, so that no figure there is typed by hand.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arborax_experiments import collect, find_task, table
from arborax_experiments.harness import footing_table, provenance, RATE, Table
from arborax_experiments.recovery.tables import (
    COMMAND as PPG_COMMAND,
    PUBLISHED as PPG_DALIA,
)
from arborax_experiments.rotations.tables import (
    COMMAND as OXFORD_COMMAND,
    LABELS as ROTATION_LABELS,
    PUBLISHED as ROTATIONS,
)
from arborax_experiments.rough_bergomi import OBJECTIVES


ROOT = pathlib.Path(__file__).parents[1]
SPD_ROWS = ("head", RATE)  # changes that are rows of one table


def _plain(
    name: str, preset: str = "quick", but: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Results of our own setting, as the preset has it `but` for some fields."""
    return [
        result
        for result in collect(name, [ROOT / "results"])
        if (result["setting"], result["preset"]) == ("arborax", preset)
        and set(result.get("changes", {})) <= set(but)
    ]


def _markdown(
    header: list[str], lines: list[tuple[str, list[str]]], results: list[dict[str, Any]]
) -> str:
    """A table, and the commands that made it."""
    return f"{_rows(header, lines)}\n\n{_made(results)}"


def _rows(header: Iterable[str], lines: list[tuple[str, list[str]]]) -> str:
    header = list(header)
    out = [header, ["---"] * len(header), *([label, *cells] for label, cells in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in out)


def _made(results: list[dict[str, Any]]) -> str:
    """The commands that made some results, with dates and commits."""
    return f"```text\n{provenance(results)}\n```"


def _several(tables: Iterable[Table], results: list[dict[str, Any]]) -> str:
    """Tables of the same results, and the commands that made them."""
    parts = [_rows([t.title, *t.columns], t.lines) for t in tables]
    return "\n\n".join([*parts, _made(results)])


def printed(name: str) -> str:
    """What `arborax table NAME --folders results` prints."""
    text = table(find_task(name), collect(name, [ROOT / "results"]))
    return f"```text\n{text}\n```"


def _compared(name: str, results: list[dict[str, Any]]) -> list[Table]:
    """The task's tables of the rows that they compare."""
    task = find_task(name)
    return task.tables(task.compared(results))


def _tables(results: list[dict[str, Any]]) -> dict[str, Table]:
    """The tables of `rough-bergomi` by the first words of their titles."""
    names = {"KS x": "large", "pooled": "pooled", "the same": "fresh"}
    return {
        name: one
        for one in _compared("rough-bergomi", results)
        for start, name in names.items()
        if one.title.startswith(start)
    }


def rough_bergomi() -> str:
    """Our setting at preset quick, against fresh test sets."""
    results = _plain("rough-bergomi")
    found = _tables(results)
    pooled, fresh = found["pooled"], found["fresh"]
    floor, *models = fresh.lines
    gaussian = [row for row in pooled.lines if row[0] == "Gaussian reference"]
    first = results[0]["scores"]
    sets = f"KS x 100, mean of {first['fresh_sets']} x {first['test_paths']} paths"
    return _markdown([sets, *fresh.columns], [floor, *gaussian, *models], results)


def rough_bergomi_variants(changed: str) -> str:
    """B-NRDE of our setting at preset quick, beside runs in which one field of the
    configuration is another one. Floors are those of each group: they depend on $H$."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for result in collect("rough-bergomi", [ROOT / "results"]):
        kind = result["setting"], result["preset"], result["model"]
        if kind == ("arborax", "quick", "bnrde") and set(result["changes"]) <= {
            changed
        }:
            groups.setdefault(result["config"][changed], []).append(result)
    lines, columns = [], []
    for value, group in groups.items():
        fresh = _tables(group)["fresh"]
        floor, (label, cells) = fresh.lines
        if changed == "hurst" or not lines:
            name = f"{floor[0]}, H = {value}" if changed == "hurst" else floor[0]
            lines.append((name, floor[1]))
        seeds = label.rsplit(", ", 1)[1]
        p_values = ", ".join(f"{r['scores']['p_value']:.2g}" for r in group)
        name = f"`{changed}={value}`"
        if changed == "objective":
            name = f"{OBJECTIVES[value]} (`{value}`)"
        lines.append((f"{name}, {seeds}, p = {p_values}", cells))
        columns = fresh.columns
    made = [result for group in groups.values() for result in group]
    return _markdown(["KS x 100 on fresh test sets", *columns], lines, made)


def objectives_short() -> str:
    """Objectives of B-NRDE on prices, in units of the floor, at horizons and in the
    laws of functionals."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in _plain("rough-bergomi", but=("objective",)):
        if result["model"] == "bnrde":
            groups.setdefault(result["config"]["objective"], []).append(result)
    lines = []
    for name, group in groups.items():
        fresh = _tables(group)["fresh"]
        assert [c[:2] == "t=" for c in fresh.columns] == 4 * [True] + 4 * [False]
        (_, floor), (label, cells) = fresh.lines
        ratios = [a / b for a, b in zip(_means(cells), _means(floor))]
        kinds = [_range(ratios[:4]), _range(ratios[4:])]
        lines.append((OBJECTIVES[name], [*kinds, label.rsplit(", ", 1)[1]]))
    header = ["features", "levels at four times", "four laws of the path", "runs"]
    made = [result for group in groups.values() for result in group]
    return _markdown(header, lines, made)


def brackets_ranges() -> str:
    """Ranges over speeds of the means of three scores."""
    results = collect("brackets", [ROOT / "results"])
    volatility, law, between, *_ = find_task("brackets").tables(results)
    header = ["features", volatility.title, law.title, between.title]
    header = [text.split(", by")[0] for text in header]
    lines = [
        (
            label,
            [_range(_means(dict(t.lines)[label])) for t in (volatility, law, between)],
        )
        for label, _ in volatility.lines
    ]
    return _markdown(header, lines, results)


def rough_volatility(data: str = "simulated", hurst: float = 0.25) -> str:
    """Setting `volterra` at preset quick: scores of all fresh paths."""
    wanted = {"data": data, "hurst": hurst}
    results = [
        result
        for result in collect("rough-bergomi", [ROOT / "results"])
        if (result["setting"], result["preset"]) == ("volterra", "quick")
        and set(result["changes"]) <= {*wanted, RATE}
        and all(result["config"][k] == v for k, v in wanted.items())
    ]
    large = _tables(results)["large"]
    paths = results[0]["scores"]["large"]["paths"]
    lines = large.lines
    compared = find_task("rough-bergomi").compared(results)
    ours = [r["scores"]["large"] for r in compared if r["model"] == "bnrde"]
    if ours and data == "simulated":
        ratio = np.mean([one["ks"] for one in ours], axis=0) / ours[0]["floor"]
        cells = [f"{v:.2f}" for v in ratio]
        rest = [""] * (len(large.columns) - len(cells))
        lines = [*lines, ("B-NRDE / floor", [*cells, *rest])]
    return _markdown([f"KS x 100, {paths} paths", *large.columns], lines, results)


def footing() -> str:
    """What the rows of `rough-bergomi` were given, by setting, at preset quick."""
    task, parts = find_task("rough-bergomi"), []
    results = collect("rough-bergomi", [ROOT / "results"])
    for title, group in task.groups(results).items():
        if "quick" in title and "paper" not in title and "objective" not in title:
            one = footing_table(task, group)
            name = title.removeprefix("setting ").replace(", preset quick", "")
            parts.append(_rows([name, *one.columns], one.lines))
    return "\n\n".join(parts)


def power() -> str:
    """How often the permutation test of all paths rejects known laws."""
    file = ROOT / "results" / "power" / "rough-bergomi.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    lines = [
        (name, [f"{100 * share:.0f} %", f"{np.median(found['p_values'][name]):.3f}"])
        for name, share in found["rejected"].items()
    ]
    header = [f"{found['pairs']} tests of {found['paths']} paths"]
    header += ["rejected at 5 %", "median p"]
    text = _rows(header, lines)
    gaps = "; ".join(
        f"{name}: {100 * own:.2f} against {100 * floor:.2f}"
        for name, (own, floor) in found["bracket"].items()
    )
    gaps = f"Bracket column of the true law, KS x 100 beside its floor: {gaps}."
    return f"{text}\n\n{gaps}\n\n`{found['command']}`"


def spd() -> str:
    """Our setting at preset quick: floor, references and models at published times and
    the end."""
    results = _plain("spd", but=SPD_ROWS)
    pooled, *_ = _compared("spd", results)
    times = ("t=128", "t=256", "t=384", "t=512", "t=1024")
    chosen = [pooled.columns.index(t) for t in times]
    lines = [
        (label, [cells[k] for k in chosen])
        for label, cells in pooled.lines
        if "95 %" not in label and "these test paths" not in label
    ]
    count = results[0]["scores"]["test_paths"]
    return _markdown([f"W1 x 100, {count} paths", *times], lines, results)


def rotations() -> str:
    """Our setting at preset quick: forecast errors under noise, by source."""
    results = _plain("so-rotation", but=(RATE,))
    noisy, *_ = _compared("so-rotation", results)
    header = ["RGE in degrees under noise", *noisy.columns]
    return _markdown(header, noisy.lines, results)


def _means(cells: list[str]) -> list[float]:
    """The means of cells such as `1.95±0.14`."""
    return [float(cell.split("±")[0]) for cell in cells]


def _range(ratios: list[float], places: int = 2) -> str:
    return f"{min(ratios):.{places}f} to {max(ratios):.{places}f}"


def _seeds(results: list[dict[str, Any]]) -> str:
    return str(len({result["seed"] for result in results}))


def readme() -> str:
    """Our model beside the best alternative, with one idea per cell. Errors are divided
    by that of a reference that a reader knows. Losses have rows of their own."""
    true, rows = "true paths", []

    results = _plain("rough-bergomi")
    fresh = _tables(results)["fresh"]
    floor, ours, *others = [_means(cells) for _, cells in fresh.lines]
    named = [label for label, _ in fresh.lines]
    assert named[1].startswith("B-NRDE,"), named
    rivals = [x for x, label in zip(others, named[2:]) if "B-NRDE" not in label]
    best = [min(column) for column in zip(*rivals)]
    ours, other = (
        _range([a / b for a, b in zip(errors, floor)]) for errors in (ours, best)
    )
    rival = f"best of {len(rivals)} models"
    task = "law of prices under rough volatility"
    rows.append([task, true, ours, other, rival, _seeds(results), "rough-bergomi"])

    results = _plain("spd", but=SPD_ROWS)
    pooled, *_ = _compared("spd", results)
    lines = {label.split(", ")[0]: _means(cells) for label, cells in pooled.lines}
    chosen = [pooled.columns.index(f"t={t}") for t in (128, 256, 384, 512, 1024)]
    best, floor = lines["B-NRDE / best baseline"], lines["B-NRDE / floor"]
    ours = _range([floor[k] for k in chosen])
    other = _range([floor[k] / best[k] for k in chosen])
    models = {label.split(", ")[0] for label, _ in pooled.lines if "seed" in label}
    rival = f"best of {len(models - {'B-NRDE'})} models"
    task = "law of covariance matrices"
    rows.append([task, true, ours, other, rival, _seeds(results), "spd"])

    results = _plain("so-rotation", but=(RATE,))
    noisy, *_ = _compared("so-rotation", results)
    found = {label.split(",")[0]: cells for label, cells in noisy.lines}
    for task, column in (
        ("rotations, recordings we developed on", "recorded, % of 60 laws"),
        ("rotations, recordings set aside", "final recorded, % of 60 laws"),
    ):
        k = noisy.columns.index(column)
        ours, other = (
            f"{_means([found[label][k]])[0] / 100:.2f}"
            for label in ("B-NRDE on SO(3)", "no equation: the front alone")
        )
        bank, rival = "untrained filter bank", "trained filter bank"
        rows.append([task, bank, ours, other, rival, _seeds(results), "so-rotation"])

    results = collect("brackets", [ROOT / "results"])
    first, second, *_ = find_task("brackets").tables(results)
    names = ("branched, supplied", "control: geometric of (t, x, bracket)")
    floor = "floor: a second true sample"
    for task, scores, reference, name, places in (
        ("volatility between coarse samples", first, "geometric", "geometric loss", 2),
        ("law of its quadratic variation", second, floor, true, 0),
    ):
        lines = {label: _means(cells) for label, cells in scores.lines}
        ours, other = (
            _range([a / b for a, b in zip(lines[one], lines[reference])], places)
            for one in names
        )
        rival = "bracket as a channel"
        rows.append([task, name, ours, other, rival, _seeds(results), "brackets"])

    experiment = find_task("sequences")
    groups = experiment.groups(collect("sequences", [ROOT / "results"]))
    (group,) = (found for name, found in groups.items() if "official" in name)
    official, *_ = experiment.tables(group)
    mean = official.columns.index("mean of the first four")
    scores = {label: cells[mean].split()[0] for label, cells in official.lines}
    ours, other = (
        max(
            (float(score), label.rsplit(", ", 1)[1])
            for label, score in scores.items()
            if label.startswith(name) and score != "-"
        )
        for name in ("B-NRDE", "MiniRocket")
    )
    task, seeds = "classes of UEA series, accuracy", ours[1].split()[0]
    ours, other = (f"{score:.1f} %" for score, _ in (ours, other))
    rows.append([task, "–", ours, other, "MiniRocket", seeds, "sequences"])

    header = "task|relative to|B-NRDE|best other|the other|seeds|NAME".split("|")
    return _rows(header, [(task, [*cells, f"`{name}`"]) for task, *cells, name in rows])


def brackets() -> str:
    """Every score by rate, and gains over the geometric objective."""
    results = collect("brackets", [ROOT / "results"])
    return _several(find_task("brackets").tables(results)[:6], results)


def sequences() -> str:
    """Accuracies on the official split, on random ones and on folds of the training
    part, and CPU seconds."""
    task, parts = find_task("sequences"), []
    for title, group in task.groups(collect("sequences", [ROOT / "results"])).items():
        kind = title.split(", ")[-1]
        found = [
            dataclasses.replace(one, title=f"{one.title}, {kind}")
            for one in task.tables(group)[: 2 if kind == "official split" else 1]
        ]
        parts.append(_several(found, group))
    return "\n\n".join(parts)


def state_tracking() -> str:
    """Letters and paths told right."""
    results = collect("state-tracking", [ROOT / "results"])
    tables = find_task("state-tracking").tables(results)
    return _several((t for t in tables if t.title != "runs"), results)


def brackets_short() -> str:
    """The main score and its paired differences."""
    results = collect("brackets", [ROOT / "results"])
    first, _, _, _, gains, *_ = find_task("brackets").tables(results)
    return _several([first, gains], results)


def not_reproduced() -> str:
    """Published figures whose data are not available, with the commands that would
    reproduce them."""
    lines = []
    for model, (_, *angles) in ROTATIONS.items():
        cells = ", ".join(f"{angle:.2f}" for angle in angles)
        lines.append((f"Oxford Multimotion, {ROTATION_LABELS[model]}", f"RGE {cells}"))
    for label, value in PPG_DALIA.items():
        lines.append((f"PPG-DaLiA, {label.split(';')[0]}", f"MSE {value:g}"))
    header = ["not reproduced: data not available", "published"]
    rows = _rows(header, [(label, [printed]) for label, printed in lines])
    return f"{rows}\n\n```text\n{OXFORD_COMMAND}\n{PPG_COMMAND}\n```"


def orders() -> str:
    """Orders of convergence for fractional drivers, with their standard errors."""
    file = ROOT / "results" / "orders" / "fractional.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    rows = [["$H$", "depth $N$", "brackets", "measured", "$(N + 1) H - 1/2$"]]
    rows.append(["---"] * len(rows[0]))
    for row in found["rows"]:
        expected = (row["depth"] + 1) * row["hurst"] - 0.5
        kind = "of the variance" if row["brackets"] else "none"
        order = f"{row['order']:.2f} ± {row['error']:.2f}"
        rows.append(
            [str(row["hurst"]), str(row["depth"]), kind, order, f"{expected:g}"]
        )
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{text}\n\n`{found['command']}`"


def draw() -> None:
    """The figures of the experiments `brackets` and `state-tracking`."""
    for name in ("brackets", "state-tracking"):
        results = collect(name, [ROOT / "results"])
        ((_, figure),) = find_task(name).figures(results)
        figure.savefig(ROOT / "docs" / "_static" / f"{name}.png", dpi=120)


PLACES: list[tuple[str, str, Callable[[], str]]] = [
    ("README.md", "results", readme),
    ("docs/results.md", "rough-bergomi", rough_bergomi),
    ("docs/results.md", "spd", spd),
    ("docs/results.md", "rotations", rotations),
    ("docs/guides/rough-bergomi.md", "volterra", rough_volatility),
    ("docs/guides/rough-bergomi.md", "rough", lambda: rough_volatility(hurst=0.1)),
    ("docs/guides/rough-bergomi.md", "sp500", lambda: rough_volatility("sp500")),
    ("docs/guides/rough-bergomi.md", "power", power),
    ("docs/guides/rough-bergomi.md", "footing", footing),
    ("docs/results.md", "sequences", sequences),
    ("docs/guides/linear.md", "state-tracking", state_tracking),
    ("docs/results.md", "brackets", brackets_short),
    ("docs/results.md", "not-reproduced", not_reproduced),
    ("docs/open-questions.md", "orders", orders),
    (
        "docs/guides/rough-bergomi.md",
        "objectives",
        lambda: rough_bergomi_variants("objective"),
    ),
    ("docs/guides/rough-bergomi.md", "hurst", lambda: rough_bergomi_variants("hurst")),
    ("docs/guides/branched-objective.md", "brackets", brackets),
    ("docs/which-objective.md", "objectives", objectives_short),
    ("docs/which-objective.md", "brackets", brackets_ranges),
    ("docs/guides/rotations.md", "table", lambda: printed("so-rotation")),
    ("docs/guides/rotations.md", "poses", lambda: printed("poses")),
    ("docs/guides/spd.md", "table", lambda: printed("spd")),
]


def rendered(page: str, name: str, make: Callable[[], str]) -> tuple[str, str]:
    """The page as it is, and as it should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if begin not in text or end not in text:
        raise ValueError(f"{page} lacks the markers {begin} and {end}.")
    head, rest = text.split(begin, 1)
    return text, f"{head}{begin}\n{make()}\n{end}{rest.split(end, 1)[1]}"


def main() -> None:
    for place in PLACES:
        (ROOT / place[0]).write_text(rendered(*place)[1], encoding="utf-8")
    draw()


if __name__ == "__main__":
    main()
