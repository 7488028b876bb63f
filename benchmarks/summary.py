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


def _pysiglib(source: str, *parts: str) -> list[float]:
    """Ratios against pysiglib of the tasks that have one of these parts."""
    return [
        ratio
        for (task, rival), ratios in _groups()[source].items()
        for ratio in ratios
        if rival == "pysiglib" and any(part in task for part in parts)
    ]


def _paths() -> list[float]:
    """The fastest rival's time over ours at equal strong error, by equation."""
    found = []
    for cell in _load("sde")["cells"]:
        times = {k: v["cpu_s"] for k, v in cell["to_error"].items() if k != "strong"}
        ours = times.pop("ours")
        found.append(min(times.values()) / ours)
    return found


def _means() -> list[float]:
    """The same at equal weak error, where ours may have weak order 2."""
    found = []
    for cell in _load("sde")["cells"]:
        times = dict(cell["weak"]["cpu_s"])
        ours = min(times.pop("ours"), times.pop("weak 2"))
        found.append(min(times.values()) / ours)
    return found


def _linear() -> list[float]:
    """The time of a GRU over that of each kind of linear equation."""
    times = {name: row["seconds"] for name, row in _load("linear")["table"].items()}
    return [times["GRU"] / t for name, t in times.items() if "linear" in name]


def speed() -> str:
    """The few rows of the README."""
    names = ("GrossmanLarson", "MuntheKaasWright", "Ito")
    best = "best of Euler, Milstein, Diffrax"
    rows = []
    for mode, end in zip(MODES, ("", ", gradient")):
        ratios = _pysiglib("signatures", f"`Shuffle`, {mode}")
        rows.append((f"word signatures{end}", "pysiglib", ratios, "signatures"))
    for mode, end in zip(MODES, ("", ", gradient")):
        ratios = _pysiglib("signatures", *(f"`{name}`, {mode}" for name in names))
        rows.append((f"tree and Itô signatures{end}", "pysiglib", ratios, "signatures"))
    for what, end in zip(("value", "gradient"), ("", ", gradient")):
        ratios = _pysiglib("kernels", what)
        rows.append((f"signature kernels{end}", "pysiglib", ratios, "kernels"))
    rows += [
        ("SDE paths, same strong error", best, _paths(), "sde"),
        ("SDE means, same weak error", best, _means(), "sde"),
        ("training step, linear equation", "GRU", _linear(), "linear"),
    ]
    lines = [
        "| task | rival | median | worst | best | ARGS |",
        "|---|---|---|---|---|---|",
    ]
    for task, rival, ratios, source in rows:
        figures = map(short, (statistics.median(ratios), min(ratios), max(ratios)))
        lines.append("| " + " | ".join((task, rival, *figures, f"`{source}`")) + " |")
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


def first_minutes() -> str:
    """The sentence about the times of a newcomer."""
    found = _load("first_minutes")
    times = {name: f"{s:.0f} s" for name, s in found["first_s"].items()}
    install = sum(found["install_s"].values())
    cores = "one core" if found["cores"] == 1 else f"{found['cores']} cores"
    if found["load"] > 2:
        cores += f" of a busy machine (load {found['load']:.0f})"
    return (
        f"In a new environment, on {cores}, imports and compiling included: the "
        f"first signature after {times['signature']}, features of a DataFrame after "
        f"{times['own data']}, a generator that is trained, sampled and compared after "
        f"{times['generator']}. Installing took {install:.0f} s before that "
        f"(`{found['command']}`, {found['date']})."
    )


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
    ("docs/getting-started.md", "first-minutes", first_minutes),
]


def main():
    for file, name, make in PLACES:
        replace(ROOT / file, name, make())


if __name__ == "__main__":
    main()
