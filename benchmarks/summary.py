"""Write the comparison and the lost cells in README and docs from the results.

`python benchmarks/summary.py` replaces the text between the markers, and `make bench`
ends with it, so that no figure there is typed by hand.
"""

import json
import statistics
from pathlib import Path


ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MODES = ("forward", "gradient")


def short(ratio: float) -> str:
    """Two digits, and no exponent."""
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2g}"


def _load(name):
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def _signatures(data):
    for row in data["rows"]:
        if "refused" in row:
            continue
        task = f"signatures, `{row['algebra']}`, {row['mode']}"
        for rival, ratio in row["ratios"].items():
            if rival in ("pysiglib", "signax"):
                yield task, rival, ratio


def _kernels(data):
    for section in ("gram", "large", "pairs", "branched"):
        for row in data.get(section, []):
            if isinstance(row.get("ratio"), float):
                yield f"kernel, {section}, {row['what']}", "pysiglib", row["ratio"]


def _logode(data):
    for entry in data["ratios"]:
        for name, ratio in entry.items():
            rival, slash, what = name.partition(" / arborax, ")
            if slash:
                yield f"log-ODE, {what}", f"{rival}, same problem", ratio


SOURCES = {"signatures": _signatures, "kernels": _kernels, "logode": _logode}


def _groups() -> dict[str, dict[tuple[str, str], list[float]]]:
    """Ratios of each task and rival, by the benchmark that measured them."""
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    for source, read in SOURCES.items():
        data = _load(source)
        for task, rival, ratio in [] if data is None else read(data):
            group = found.setdefault(source, {})
            group.setdefault((task, rival), []).append(ratio)
    return found


def render() -> str:
    """The table as Markdown: one row for each task and rival."""
    lines = [
        "| task | rival | cells | rival's time / ours: median | range | reproduce |",
        "|---|---|---|---|---|---|",
    ]
    for source, groups in _groups().items():
        for (task, rival), ratios in groups.items():
            middle = statistics.median(ratios)
            extent = f"{short(min(ratios))} to {short(max(ratios))}"
            command = f"`make bench ARGS={source}`"
            cells = (task, rival, len(ratios), short(middle), extent, command)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def speed() -> str:
    """The few rows of the README: medians of tasks, and the worst and best cell."""
    names = ("GrossmanLarson", "MuntheKaasWright", "Ito")
    trees, slopes = ([f"`{n}`, {mode}" for n in names] for mode in MODES)
    rows = [
        ("signatures over words", "signatures", ("`Shuffle`, forward",)),
        ("their gradient", "signatures", ("`Shuffle`, gradient",)),
        ("branched and Itô signatures", "signatures", trees),
        ("their gradient", "signatures", slopes),
        ("signature kernels", "kernels", ("value",)),
        ("their gradient", "kernels", ("gradient",)),
    ]
    lines = [
        "| task | typical case | worst to best case | command |",
        "|---|---|---|---|",
    ]
    groups = _groups()
    for name, source, words in rows:
        chosen = [
            ratios
            for (task, rival), ratios in groups[source].items()
            if rival == "pysiglib" and any(word in task for word in words)
        ]
        middles = sorted({short(statistics.median(x)) for x in chosen}, key=float)
        middle = " to ".join(dict.fromkeys((middles[0], middles[-1])))
        ratios = [ratio for group in chosen for ratio in group]
        extent = f"{short(min(ratios))} to {short(max(ratios))}"
        lines.append(f"| {name} | {middle} | {extent} | `make bench ARGS={source}` |")
    return "\n".join(lines)


def lost() -> str:
    """Cells of the signature benchmark in which a rival is faster, as Markdown."""
    data = _load("signatures")
    lines = [
        "| batch, length, dim, depth | what | rival's time / ours |",
        "|---|---|---|",
    ]
    groups: dict[tuple, list[str]] = {}
    for row in data["rows"] if data else []:
        for rival, ratio in row["ratios"].items():
            if ratio < 1:
                cell = ", ".join(map(str, row["cell"]))
                what = f"`{row['algebra']}`, {row['quantity']}, {row['mode']}"
                found = f"{rival} {ratio:.2f} ({row['dtype']})"
                groups.setdefault((cell, what), []).append(found)
    for (cell, what), found in groups.items():
        lines.append(f"| {cell} | {what} | {', '.join(found)} |")
    return "\n".join(lines)


def replace(file: Path, name: str, text: str):
    """Put `text` between the two markers of that name."""
    old = file.read_text()
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    start = old.index(begin) + len(begin)
    file.write_text(old[:start] + "\n" + text + "\n" + old[old.index(end) :])


PLACES = [
    ("README.md", "speed", speed),
    ("docs/benchmarks.md", "comparison", render),
    ("docs/benchmarks.md", "lost", lost),
]


def main():
    for file, name, make in PLACES:
        replace(ROOT / file, name, make())


if __name__ == "__main__":
    main()
