"""Write the comparison and the lost cells in the docs from the results.

`python benchmarks/summary.py` replaces the text between the markers, and `make bench`
ends with it, so that no figure there is typed by hand.
"""

import json
import statistics
from pathlib import Path


ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


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
    for section in ("gram", "pairs", "branched"):
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


def render() -> str:
    """The table as Markdown: one row for each task and rival."""
    lines = [
        "| task | rival | cells | rival's time / ours: median | range | reproduce |",
        "|---|---|---|---|---|---|",
    ]
    for source, read in SOURCES.items():
        data = _load(source)
        if data is None:
            continue
        groups: dict[tuple[str, str], list[float]] = {}
        for task, rival, ratio in read(data):
            groups.setdefault((task, rival), []).append(ratio)
        for (task, rival), ratios in groups.items():
            middle = statistics.median(ratios)
            extent = f"{short(min(ratios))} to {short(max(ratios))}"
            command = f"`make bench ARGS={source}`"
            cells = (task, rival, len(ratios), short(middle), extent, command)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
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


def main():
    replace(ROOT / "docs" / "benchmarks.md", "comparison", render())
    replace(ROOT / "docs" / "benchmarks.md", "lost", lost())


if __name__ == "__main__":
    main()
