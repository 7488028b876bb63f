"""Every model of every experiment takes training steps, compiled as users compile.

The other tests compile with little optimisation, in double precision and without
promotion. Here a child process has JAX as users have it. It calls what `arborax run`
calls, at tiny sizes, and takes two steps of [`arborax.fit`][] where the experiment
would train: loss and gradient must be finite, and every array of weights must move.
Models and options come from the experiments' own lists and configurations, so that a
new one cannot be forgotten. Examples and documents run in the same way.
"""

import dataclasses
import json
import os
import pathlib
import pickle
import re
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
import typing

import pytest


ROOT = pathlib.Path(__file__).parents[1]
EXPERIMENTS = (
    "rough-bergomi",
    "so-rotation",
    "spd",
    "brackets",
    "recovery",
    "sequences",
    "state-tracking",
    "poses",
    "ppg-dalia",
)
SETTINGS = ("arborax", "paper")
UNPUBLISHED = ("brackets", "sequences", "state-tracking", "poses")  # no `paper`
MARK = "case "  # before lines of the child that are meant for the test

_PATHS = dict(
    paths=80, steps=16, horizons=(8, 16), batch=8, features=4, stride=4, window=4
)
_MODEL = dict(hidden=4, width=8, depth=1)
TINY: dict[str, dict[str, typing.Any]] = {
    "rough-bergomi": dict(target_paths=64, cylinders=8, block=4, **_PATHS, **_MODEL),
    "spd": dict(target_paths=32, test_paths=8, early=(4,), **_PATHS, **_MODEL),
    "so-rotation": dict(trajectories=16, stride=40, test_windows=4, batch=4, **_MODEL),
    "brackets": dict(paths=80, test_paths=16, features=42, batch=8),
    "poses": dict(motions=8, windows=4, batch=4, **_MODEL),
    "recovery": dict(batch=4, **_MODEL),
    "ppg-dalia": dict(batch=2, **_MODEL),
    "sequences": dict(batch=4, features=3, **_MODEL),
    "state-tracking": dict(batch=4, lengths=(3,), hidden=4),
}

# What the default run leaves to the slow one beside models that an earlier experiment
# has: programs that differ by a size, or that are a stage of another model.
LEFT_OUT = {
    "rough-bergomi": ("bnrde",),
    "spd": ("bnrde",),
    "sequences": lambda name: name != "linear-ito",
    "state-tracking": lambda name: name != "block",
}
# Rows for real data that have no weights.
REFERENCES = ("bootstrap", "garch", "ewma", "har")
# Options of the default run; all others are slow.
QUICK_OPTIONS: dict[str, dict[str, dict]] = {}

# Options that mean nothing to the default model are tried with another one.
MODEL_OF_OPTION = {"head": "gru", "driver": "gru", "relative": "gru"}

# Weights that have no gradient by construction: patterns of "experiment/model/weights".
UNTRAINED = (
    # The first input is zero: a basepoint, or a driver that begins at zero.
    r"(rough-bergomi|spd)/.*\.initial\.layers\[0\]\.weight",
    r"(so-rotation|poses)/bnrde.*/.*\.initial\.layers\[0\]\.weight",
    r"(sequences|state-tracking)/.*\.initial(\.layers\[0\])?\.weight",
    # The cone's generator begins at the identity.
    r"spd/bnrde.*/\.model\.initial\..*",
    # A constant cancels: paths are shifted to begin where the data begin.
    r"(rough-bergomi|spd)/.*\.readout\.bias",
    r"so-rotation/.*/\.front\.decoder\.layers\[2\]\.bias",
)


def users_environment():
    """The present environment without what the suite sets for itself."""
    own = ("XLA_FLAGS", "OMP_NUM_THREADS")
    kept = {k: v for k, v in os.environ.items() if k not in own}
    return {k: v for k, v in kept.items() if not k.startswith("JAX_")}


def run_child(*arguments):
    """Runs this file as a script; the names of its cases, after checking that no case
    failed."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=users_environment(),
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    cases = {}
    for line in lines:
        name, cases[name], seconds = json.loads(line.removeprefix(MARK))
        print(f"{name}: {seconds} s{', failed' if cases[name] else ''}")
    failures = [f"{name}:\n{problem}" for name, problem in cases.items() if problem]
    assert done.returncode == 0, done.stderr
    assert not failures, "\n\n".join(failures)
    return set(cases)


@pytest.mark.parametrize("experiment", EXPERIMENTS[:-1])
def test_models_step(experiment):
    """The models of one experiment. Of those that an experiment further up in the list
    has as well, only the B-NRDEs, whose state and fields differ from one to another."""
    assert run_child("quick", experiment, "arborax")


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_all_models_step_in_all_settings(experiment, setting):
    from arborax_experiments import find_task

    if experiment in UNPUBLISHED and setting == "paper":
        pytest.skip("was not published")
    cases = run_child("models", experiment, setting)
    models = set(find_task(experiment).models).difference(REFERENCES)
    assert cases == {f"{experiment}/{name}" for name in models}


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_all_options_step(experiment):
    """Each value of each option, with the default model where it uses the option."""
    assert run_child("options", experiment, "arborax")


def test_list_of_experiments_is_complete():
    from arborax_experiments import tasks

    assert set(EXPERIMENTS) == set(tasks()) == set(TINY)


@pytest.mark.slow
def test_examples_and_documents_as_users_compile():
    cases = run_child("documents")
    assert {f"examples/{p.name}" for p in (ROOT / "examples").glob("*.py")} <= cases
    assert "README.md" in cases


# What follows runs in the child process.


class Stepped(Exception):
    """Ends a run whose training was seen."""


class Steps:
    """Stands in for `arborax.fit`: takes two steps, however many are asked for."""

    def __init__(self, fit):
        self.fit = fit
        self.stages = 1
        self.seen = []

    def __call__(self, model, data, objective, *, metric=None, **options):
        kept = ("key", "optimiser", "learning_rate", "average", "batch_size")
        options = {name: options[name] for name in kept if name in options}
        if metric is not None:
            # Experiments read the last validation; its cost is not wanted here.
            options.update(metric=lambda *_: 0.0, validate_every=2)
        result = self.fit(model, data, objective, steps=2, progress=False, **options)
        self.seen.append((model, result))
        if len(self.seen) == self.stages:
            raise Stepped
        return result


def options_of(task, base):
    """Every value of every option that is not the one of `base`."""
    module = type(task).__module__
    places = [sys.modules[name] for name in (module, module.rpartition(".")[0])]
    hints = typing.get_type_hints(task.config)
    for field in dataclasses.fields(task.config):
        kind, name = hints[field.name], field.name
        values: list[typing.Any] = [True, False] if kind is bool else []
        for part in (kind, *typing.get_args(kind)):
            if typing.get_origin(part) is typing.Literal:
                values += typing.get_args(part)
        if name != "model":
            # Names that are kept in a list of the package, e.g. `OBJECTIVES`.
            lists = [getattr(place, f"{name.upper()}S", ()) for place in places]
            values += [value for known in lists for value in known]
        for value in dict.fromkeys(values):
            if value != getattr(base, name):
                model = MODEL_OF_OPTION.get(name, base.model)
                yield f"{name}={value}", {name: value, "model": model}


def cases_of(part, experiment, task, base):
    """Names of cases and changes of the configuration."""
    from arborax_experiments import find_task

    if part == "options":
        return dict(options_of(task, base))
    models = {n: dict(model=n) for n in task.models if n not in REFERENCES}
    if part == "models":
        return models
    earlier = EXPERIMENTS[: EXPERIMENTS.index(experiment)]
    had = {name for other in earlier for name in find_task(other).models}
    had = {name for name in had if "bnrde" not in name}
    left_out = LEFT_OUT.get(experiment, ())
    had.update(filter(left_out, models) if callable(left_out) else left_out)
    quick = {name: models[name] for name in models if name not in had}
    return {**quick, **QUICK_OPTIONS.get(experiment, {})}


def moves(before, after):
    """How far each array of weights went."""
    import equinox as eqx
    import jax
    import numpy as np

    before, after = (eqx.filter(m, eqx.is_inexact_array) for m in (before, after))
    moved = jax.tree.map(lambda a, b: np.abs(np.subtract(a, b)).max(), before, after)
    found = jax.tree_util.tree_leaves_with_path(moved)
    return {jax.tree_util.keystr(path): float(value) for path, value in found}


def changes_in_a_file(model):
    """Whether the model that a file gives back is another one."""
    import jax

    import arborax

    # Some experiments run in double precision, and the run is over.
    with tempfile.TemporaryDirectory() as folder, jax.enable_x64(True):
        files = [f"{folder}/{k}.abx" for k in range(2)]
        arborax.save(files[0], model)
        arborax.save(files[1], arborax.load(files[0]))
        first, second = (pathlib.Path(file).read_bytes() for file in files)
    return first != second


def problems_of(name, model, result):
    """What is wrong with a training of two steps."""
    if changes_in_a_file(result.last):
        yield "`load` gives another model than was saved"
    if result.stop != "steps":
        yield f"{result.stop}: {result.message}"
        return
    first, second = result.history.loss
    if first == second:
        yield f"the loss stays at {first}"
    found = moves(model, result.last)
    # A step of AdamW or Muon is of the size of the learning rate wherever there is a
    # gradient; weight decay alone is a million times smaller.
    least = 1e-3 * max(found.values())
    for leaf, move in found.items():
        known = any(re.fullmatch(p, f"{name}/{leaf}") for p in UNTRAINED)
        if not known and not move > least:
            yield f"no gradient: {leaf}"


def write_data(folder):
    """The files that `recovery`, `sequences` and `ppg-dalia` read, small."""
    import numpy as np

    rng = np.random.default_rng(0)
    for name, channels in (("JapaneseVowels", 3), ("BasicMotions", 2)):
        head = [f"@problemName {name}", "@timeStamps false"]
        head += ["@classLabel true 1 2", "@data"]
        for part in ("TRAIN", "TEST"):
            lines = []
            for k in range(8):
                values = rng.standard_normal((channels, 9)) + k % 2
                cells = [",".join(f"{v:.5f}" for v in row) for row in values]
                lines.append(":".join([*cells, str(1 + k % 2)]))
            text = "\n".join([*head, *lines]) + "\n"
            (folder / f"{name}_{part}.ts").write_text(text)
    # 15 % of a subject must hold one window of 13 minutes.
    seconds = 5400
    rates = {"ACC": (32, 3), "BVP": (64, 1), "EDA": (4, 1), "TEMP": (4, 1)}
    wrist = {
        name: rng.standard_normal((rate * seconds, channels))
        for name, (rate, channels) in rates.items()
    }
    pulse = 70 + 15 * np.sin(np.arange(seconds // 2 - 3) / 70)
    place = folder / "PPG_FieldStudy" / "S1"
    place.mkdir(parents=True)
    content = {"signal": {"wrist": wrist}, "label": pulse}
    (place / "S1.pkl").write_bytes(pickle.dumps(content))


def report(name, check):
    """Runs one case and prints its name, what went wrong, and CPU seconds."""
    start = time.process_time()
    try:
        problem = "\n".join(check())
    except Exception:
        problem = traceback.format_exc()
    seconds = round(time.process_time() - start, 1)
    print(MARK + json.dumps([name, problem, seconds]), flush=True)


def trains(experiment, model):
    """Whether a model is trained by gradients."""
    from arborax_experiments.sequences.task import TRAINED

    return experiment != "sequences" or model in TRAINED


def step_experiment(part, experiment, setting, folder):
    """All cases of one experiment."""
    import arborax
    from arborax import training

    # In place before the experiments import it.
    steps = Steps(training.fit)
    setattr(arborax, "fit", steps)
    setattr(training, "fit", steps)
    from arborax_experiments import find_task, run

    task = find_task(experiment)
    common = dict(TINY[experiment])
    if experiment in ("recovery", "sequences", "ppg-dalia"):
        write_data(folder)
        common["folder"] = str(folder)
    base = task.configure(setting, "smoke", **common)

    def check(model, changes, place):
        steps.seen.clear()
        # What is fine-tuned is trained twice.
        steps.stages = 2 if model.endswith("-bk") else int(trains(experiment, model))
        try:
            run(
                task,
                model=model,
                preset="smoke",
                setting=setting,
                folder=place,
                cache=folder,
                progress=False,
                changes={**common, **changes},
            )
        except Stepped:
            pass
        except ImportError as error:  # data of a package that is not installed
            print(error, file=sys.stderr)
            return
        if len(steps.seen) != steps.stages:
            yield f"trained {len(steps.seen)} times, expected {steps.stages}"
        for before, result in steps.seen:
            yield from problems_of(f"{experiment}/{model}", before, result)

    for name, changes in cases_of(part, experiment, task, base).items():
        changes = dict(changes)
        model = changes.pop("model", base.model)
        with tempfile.TemporaryDirectory() as place:
            report(f"{experiment}/{name}", lambda: check(model, changes, place))


def run_documents(folder):
    """The examples, then the Python blocks of README and documents, page by page."""
    os.environ["MPLBACKEND"] = "agg"
    os.chdir(folder)
    for script in sorted((ROOT / "examples").glob("*.py")):

        def execute(script=script):
            runpy.run_path(str(script), run_name="__main__")
            return ()

        report(f"examples/{script.name}", execute)
    block = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = block.findall(page.read_text())
        if not blocks or {"generated", "_build"} & set(page.parts):
            continue

        def execute(page=page, blocks=blocks):
            exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "page"})
            return ()

        report(str(page.relative_to(ROOT)), execute)


def main(part, *arguments):
    import jax

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # The first stage of a fine-tuned model is compiled once.
        jax.config.update("jax_compilation_cache_dir", str(folder / "programs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1)
        if part == "documents":
            run_documents(folder)
        else:
            step_experiment(part, *arguments, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
