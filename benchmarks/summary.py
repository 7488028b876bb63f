"""Write the comparison in the README from the stored results.

`python benchmarks/summary.py` replaces the text between the two markers, and
`make bench` ends with it, so that no figure in the README is typed by hand.
"""

import json
import statistics
from pathlib import Path


ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"


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


def main():
    readme = ROOT / "README.md"
    text = readme.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    readme.write_text(text[:start] + "\n" + render() + "\n" + text[end:])


if __name__ == "__main__":
    main()
