"""What each compiler trick, and each second way to compute something, buys end to end.

    python benchmarks/bench_ablation.py [tricks ways] [--cells solve step] [--rounds 3]

`tricks`: each trick of `arborax._xla` is replaced by its plain form, alone, then all
together (environment variable `ARBORAX_PLAIN`). `ways`: each closed form or shortcut is
taken away, so that the general code does its work. One process per choice; they take
turns, so that all see the same machine. Times are CPU times, the least of all calls.
Where the program is the same without, nothing is timed. Writes `results/ablation.json`
and `results/ablation.md`.
"""

import argparse
import json
import os
import pathlib
from collections.abc import Callable
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
CELLS |= {
    k: cell for k, cell in COMPARED.items() if k.startswith(("step", "solve_sde"))
}


def _closed_form(depth: int) -> None:
    from arborax.lifts import _closed_forms

    _shared_coefficients()  # the recursion has none
    del _closed_forms.CLOSED_FORMS[depth]


def _shared_coefficients() -> None:
    from arborax.lifts import _coefficients

    _coefficients._same_brackets = lambda *_: False


def _signature_of_depth_two() -> None:
    import jax.numpy as jnp

    from arborax.signatures import _signature, _words

    def general(words, values, brackets, log):
        levels = _signature._word_levels(words, None, brackets, values)
        return jnp.concatenate(_words.level_log(words, levels) if log else levels).T

    _signature.two_levels = general


def _mlp() -> None:
    import arborax as abx

    del abx.models.VectorField.expand


def _spd() -> None:
    from arborax.geometry import _spd

    del _spd.SPD.christoffel_sum, _spd.SPD.turning
    _spd._SHORT_TABLE = 0


def _rotations() -> None:
    import jax.numpy as jnp

    from arborax.geometry import _rotation

    _rotation._rodrigues_factors = lambda t: jnp.stack(_rotation.stumpff(t[0])[1:3])


def _features() -> None:
    from arborax.kernels import _kernel

    _kernel.features_pay = lambda *_: False


# What takes a second way out of a process.
WAYS: dict[str, Callable[[], None]] = {
    "lift 2": lambda: _closed_form(2),
    "lift 3": lambda: _closed_form(3),
    "shared": _shared_coefficients,
    "signature 2": _signature_of_depth_two,
    "MLP": _mlp,
    "SPD": _spd,
    "rotations": _rotations,
    "features": _features,
}
if "WITHOUT" in os.environ:  # a process of this benchmark
    WAYS[os.environ["WITHOUT"]]()

GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "tricks": {off: {"ARBORAX_PLAIN": off} for off in (*TRICKS, "all")},
    "ways": {way: {"WITHOUT": way} for way in WAYS},
}


def measure(name: str, workers: dict[str, Worker], rounds: int) -> dict[str, Any]:
    """Run and compile times of one cell, by what is switched off."""
    programs = {off: worker.ask(name, 0) for off, worker in workers.items()}
    chosen = ["nothing"]
    chosen += [off for off in workers if programs[off] != programs["nothing"]]
    times: dict[str, Any] = {
        off: {"same": True} for off in workers if off not in chosen
    }
    for turn in range(rounds):
        for off in chosen:
            worker = workers[off]
            answer = worker.ask(name, 0.3)
            if "error" in answer:
                times[off] = answer
                continue
            best = times.setdefault(off, {"run": float("inf")})
            best["run"] = min(best["run"], answer["run"])
            if turn == 0:
                best["compile"] = answer["compile"]
    return times


def table(group: str, results: dict[str, dict]) -> str:
    """Markdown: milliseconds with everything on, then ratios."""
    every = group == "tricks"  # which has a column for all of them
    lines = [
        "| cell | ms | " + " | ".join(GROUPS[group]) + " | compile s |",
        "|---" * (len(GROUPS[group]) + 3) + "|",
    ]
    for name, times in results.items():
        on = times["nothing"]
        ratios = []
        for off in GROUPS[group]:
            found = times.get(off, {})
            if "run" in found:
                ratios.append(f"{found['run'] / on['run']:.2f}")
            else:  # newer than the row, or without effect
                ratios.append("" if "same" in found else found.get("error", "–")[:20])
        compiled = f"{on['compile']:.1f}"
        if every and "compile" in times.get("all", {}):
            compiled += f", all off {times['all']['compile']:.1f}"
        row = [name, f"{1e3 * on['run']:.3g}", *ratios, compiled]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help="what to leave")
    parser.add_argument("--cells", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    file = RESULTS / "ablation.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for group in options.groups:
        choices = {"nothing": {}} | GROUPS[group]
        workers = {
            off: Worker(ROOT, cells="bench_ablation", **variables)
            for off, variables in choices.items()
        }
        known = results.setdefault(group, {})
        for name in CELLS:
            if not any(part in name for part in options.cells):
                continue
            known[name] = measure(name, workers, options.rounds)
            print(table(group, {name: known[name]}).splitlines()[-1], flush=True)
            results[group] = {cell: known[cell] for cell in CELLS if cell in known}
            file.write_text(json.dumps(results, indent=1) + "\n")
            tables = [table(*item) for item in results.items()]
            (RESULTS / "ablation.md").write_text("\n".join(tables))
        for worker in workers.values():
            worker.close()


if __name__ == "__main__":
    main()
