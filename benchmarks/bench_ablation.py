"""What each compiler trick of `arborax._xla` buys, end to end.

    python benchmarks/bench_ablation.py [--cells solve step] [--rounds 3]

Each trick is replaced by its plain form, alone, and then all together (environment
variable `ARBORAX_PLAIN`). One process per choice; they take turns, so that all see the
same machine. Times are CPU times, the least of all calls. Writes
`results/ablation.json` and `results/ablation.md`.
"""

import argparse
import json
import pathlib
from typing import Any

from compare import (
    CELLS as COMPARED,
    features_cell,
    gram_cell,
    signature_cell,
    solve_cell,
    Worker,
)

from arborax._xla import TRICKS


ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SOLVES = {
    "R^32": ("Euclidean", 32, [("Shuffle", 2), ("GrossmanLarson", 2)]),
    "SO(3)": ("SO", 3, [("Shuffle", 10)]),
    "SPD(3)": ("SPD", 3, [("MuntheKaasWright", 7), ("Ito", 7)]),
}
SIGNATURES = [
    ("Shuffle", 4, 3, 128, 256),
    ("Shuffle", 4, 5, 128, 256),
    ("MuntheKaasWright", 4, 3, 128, 256),
    ("Ito", 3, 2, 32, 2048),
]
CELLS = {
    f"solve {place} {algebra}({dim},{depth})": solve_cell(
        geometry, size, algebra, dim, depth
    )
    for depth in (2, 3)
    for place, (geometry, size, algebras) in SOLVES.items()
    for algebra, dim in algebras
}
CELLS |= {
    f"signature {algebra}({dim},{depth})" + " gradient" * gradient: signature_cell(
        algebra, dim, depth, batch, times, bool(gradient)
    )
    for algebra, dim, depth, batch, times in SIGNATURES
    for gradient in (0, 1)
}
CELLS |= {"gram": gram_cell(), "gram branched": gram_cell(kind="branched", depth=4)}
CELLS["gram rbf"] = gram_cell(static_kernel="rbf")
CELLS["random features"] = features_cell()
CELLS |= {name: cell for name, cell in COMPARED.items() if name.startswith("step")}


def measure(name: str, workers: dict[str, Worker], rounds: int) -> dict[str, Any]:
    """Run and compile times of one cell, by what is switched off."""
    times: dict[str, Any] = {}
    for turn in range(rounds):
        for off, worker in workers.items():
            answer = worker.ask(name, 0.3)
            if "error" in answer:
                times[off] = answer
                continue
            best = times.setdefault(off, {"run": float("inf")})
            best["run"] = min(best["run"], answer["run"])
            if turn == 0:
                best["compile"] = answer["compile"]
    return times


def table(results: dict[str, dict]) -> str:
    """Markdown: milliseconds with everything on, then ratios."""
    columns = [*TRICKS, "all"]
    lines = [
        "| cell | ms | " + " | ".join(columns) + " | compile s | all off |",
        "|---" * (len(columns) + 4) + "|",
    ]
    for name, times in results.items():
        on = times["nothing"]
        ratios = []
        for off in columns:
            found = times.get(off)
            if found is None:  # a trick that is newer than the row
                ratios.append("")
            else:
                fine = "run" in found
                ratios.append(f"{found['run'] / on['run']:.2f}" if fine else "fails")
        plain = times["all"].get("compile", float("nan"))
        row = [name, f"{1e3 * on['run']:.3g}", *ratios]
        lines.append(
            "| " + " | ".join([*row, f"{on['compile']:.1f}", f"{plain:.1f}"]) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    file = RESULTS / "ablation.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    workers = {
        off: Worker(
            ROOT, cells="bench_ablation", ARBORAX_PLAIN=off.replace("nothing", "")
        )
        for off in ("nothing", *TRICKS, "all")
    }
    for name in CELLS:
        if not any(part in name for part in options.cells):
            continue
        results[name] = measure(name, workers, options.rounds)
        print(table({name: results[name]}).splitlines()[-1], flush=True)
        ordered = {name: results[name] for name in CELLS if name in results}
        file.write_text(json.dumps(ordered, indent=1) + "\n")
        (RESULTS / "ablation.md").write_text(table(ordered))
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    main()
