"""What a training step of each model of `rough-bergomi` costs.

    python benchmarks/bench_models.py [--preset quick] [--steps 10] [--models bnrde ..]

Each model in a process of its own, without a compilation cache, at the sizes of the
preset: seconds to prepare (data from the cache, features of the training paths), to
compile the training step, for a step and for a validation, and the largest resident
memory. Wall times, so run it on a quiet machine; CPU seconds stand beside them, and the
load of the machine before each run. Time to the kept weights is what these figures
make of the kept step of the stored results. Writes `benchmarks/results/models.json`
and `.md`.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.random as jr

from arborax import fit
from arborax_experiments import collect, find_task
from arborax_experiments.harness import scheduled


ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TASK = find_task("rough-bergomi")


def stage(config, data, found, prepared, steps):
    """Times of a few steps of one stage of training."""
    marks = []
    fitted = fit(
        TASK.model(config, data, jr.PRNGKey(0)),
        found.data,
        found.objective,
        key=jr.PRNGKey(1),
        optimiser=config.optimiser,
        learning_rate=scheduled(config.schedule, found.learning_rate, found.steps),
        average=config.average or None,
        steps=steps,
        metric=found.metric,
        validate_every=steps,
        progress=False,
        hooks=[lambda event: marks.append((event.kind, time.process_time())) and None],
    )
    times = [mark for kind, mark in marks if kind == "step"]
    timings = fitted.timings
    return {
        "batch": config.batch,
        "steps": found.steps,
        "validations": config.validations,
        "prepare_s": prepared,
        "compile_s": timings.compile,
        "step_s": timings.step,
        "step_cpu_s": (times[-1] - times[0]) / (len(times) - 1),
        "validation_s": fitted.history.validation[-1]["seconds"] - timings.training,
    }


def measure(model, preset, steps):
    """One row: the sum over stages where there are two."""
    load = os.getloadavg()[0]
    config = TASK.configure("arborax", preset, model=model)
    data = TASK.data(config, None)
    stages = []
    start = time.perf_counter()
    for found in TASK.stages(config, data):
        prepared = time.perf_counter() - start
        stages.append(stage(config, data, found, prepared, steps))
        start = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"model": model, "stages": stages, "peak_mb": memory, "load": load}


def kept_steps(preset):
    """The kept step of each stage, mean over the stored seeds."""
    found = {}
    for result in collect("rough-bergomi", [ROOT / "results"]):
        kind = (result["setting"], result["preset"], result["changes"])
        if kind == ("arborax", preset, {}):
            steps = [stage["best_step"] for stage in result["stages"]]
            found.setdefault(result["model"], []).append(steps)
    return {
        model: [statistics.mean(column) for column in zip(*rows)]
        for model, rows in found.items()
    }


def time_to_kept(row, kept):
    """Seconds of steps and validations up to the kept weights, compilation apart."""
    total = 0.0
    for found, step in zip(row["stages"], kept):
        part = step / found["steps"]
        checks = part * found["validations"] * found["validation_s"]
        total += step * found["step_s"] + checks
    return total


def write(preset, rows, settings):
    kept = kept_steps(preset)
    for row in rows:
        if row["model"] in kept:
            row["kept_steps"] = kept[row["model"]]
            row["to_kept_s"] = time_to_kept(row, kept[row["model"]])
    file = RESULTS / "models.json"
    old = json.loads(file.read_text()) if file.exists() else {}
    document = {**old, preset: {"settings": settings, "rows": rows}}
    file.write_text(json.dumps(document, indent=1) + "\n")
    lines = ["# Training steps of the models of rough-bergomi", ""]
    for name, part in sorted(document.items(), reverse=True):
        lines += [
            f"Preset `{name}`; {part['settings']['machine']}, "
            f"`{part['settings']['command']}`. Seconds of wall time but for CPU; "
            "fine-tuning behind a plus. To kept: steps and validations up to the kept "
            "step of the stored results, without preparing and compiling.",
            "",
            "| model | batch | prepare s | compile s | step s | step CPU s | "
            "validation s | kept step | to kept s | peak MB | load before |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *map(format_row, part["rows"]),
            "",
        ]
    (RESULTS / "models.md").write_text("\n".join(lines[:-1]) + "\n")


def format_row(row):
    def joined(key, digits=2):
        return " + ".join(f"{found[key]:.{digits}f}" for found in row["stages"])

    kept, seconds = "", ""
    if "to_kept_s" in row:
        kept = " + ".join(f"{step:.0f}" for step in row["kept_steps"])
        seconds = f"{row['to_kept_s']:.0f}"
    cells = [
        row["model"],
        str(row["stages"][0]["batch"]),
        joined("prepare_s", 1),
        joined("compile_s", 1),
        joined("step_s"),
        joined("step_cpu_s"),
        joined("validation_s", 1),
        *(kept, seconds, f"{row['peak_mb']:.0f}", f"{row['load']:.1f}"),
    ]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="quick", choices=("quick", "paper"))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--models", nargs="*", default=list(TASK.models))
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(options.row, options.preset, options.steps)))
        return
    TASK.data(TASK.configure("arborax", options.preset), None)  # simulated once
    rows = []
    for model in options.models:
        command = [sys.executable, __file__, "--row", model]
        command += ["--preset", options.preset, "--steps", str(options.steps)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    machine = f"{os.cpu_count()} CPU cores, {platform.machine()}, jax {jax.__version__}"
    command = f"python benchmarks/bench_models.py --preset {options.preset}"
    write(options.preset, rows, {"machine": machine, "command": command})


if __name__ == "__main__":
    main()
