"""`arborax sweep` and `arborax bench`: selection, resuming, messages."""

import builtins
import dataclasses
import json
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

import arborax_experiments
from arborax.cli import _benchmarks, main
from arborax_experiments import parse_range, sweep
from arborax_experiments.harness import AbstractTask, sweeps, TrainingConfig


@dataclasses.dataclass(frozen=True)
class ToyConfig(TrainingConfig):
    deep: bool = False


class Toy(AbstractTask):
    """An experiment of which a sweep only reads the configuration."""

    name = "toy"
    config = ToyConfig
    models = {"bnrde": "B-NRDE"}
    data = model = stages = score = tables = None  # pyright: ignore


@pytest.fixture
def toy(monkeypatch):
    """An experiment that costs nothing."""

    def run(task, *, folder, changes, **options):
        # The test score is best where the validation metric is worst.
        metric = (changes["learning_rate"] - 0.3) ** 2 + changes.get("hidden", 0)
        with (pathlib.Path(folder) / "calls.txt").open("a") as file:
            file.write(json.dumps(changes) + "\n")
        return {
            "stages": [{"best_metric": 99.0}, {"best_metric": metric}],
            "scores": {"ks": [-metric]},
            "folder": str(folder),
        }

    monkeypatch.setattr(sweeps, "run", run)
    return Toy()


def test_ranges():
    assert parse_range("1e-3:1e-2:log", 0.1) == (1e-3, 1e-2, "log")
    assert parse_range("16:64", 4) == (16, 64)
    assert parse_range("a,b", "a") == ["a", "b"]
    assert parse_range("2,4,8", 1) == [2, 4, 8]
    for text, default in [("1:2:linear", 0.1), ("a:b", "a"), ("1:2", True), ("x", 1)]:
        with pytest.raises(ValueError):
            parse_range(text, default)


def test_sweep_minimises_validation_and_goes_on(toy, tmp_path):
    pytest.importorskip("optuna")
    space = {"learning_rate": (0.0, 1.0), "hidden": [1, 2]}
    study = sweep(toy, model="bnrde", trials=6, space=space, folder=tmp_path)
    assert len(study.trials) == 6
    again = sweep(toy, model="bnrde", trials=9, space=space, folder=tmp_path)
    assert len(again.trials) == 9
    values = [trial.value for trial in again.trials]
    assert again.best_value == min(values) and again.best_value > 0
    best = again.best_params
    expected = (best["learning_rate"] - 0.3) ** 2 + best["hidden"]
    assert again.best_value == pytest.approx(expected)
    # Enough trials: nothing more is run.
    same = sweep(toy, model="bnrde", trials=9, space=space, folder=tmp_path)
    assert len(same.trials) == 9
    with pytest.raises(ValueError, match="unknown fields"):
        sweep(toy, model="bnrde", space={"lr": (0, 1)}, folder=tmp_path)


def test_a_killed_trial_is_taken_up_again(toy, tmp_path):
    pytest.importorskip("optuna")
    script = f"""
        import dataclasses, os, signal, types
        from arborax_experiments.harness import AbstractTask, sweeps, TrainingConfig
        @dataclasses.dataclass
        class Config:
            learning_rate: float = 0.1
        calls = []
        def run(task, *, changes, **options):
            calls.append(changes)
            if len(calls) == 2:
                print(changes["learning_rate"], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            metric = changes["learning_rate"]
            return {{"stages": [{{"best_metric": metric}}], "folder": "x"}}
        sweeps.run = run
        task = types.SimpleNamespace(name="toy", config=Config)
        sweeps.sweep(task, model="bnrde", trials=4, folder={str(tmp_path)!r},
                     space={{"learning_rate": (0.0, 1.0)}})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    lost = float(done.stdout.split()[-1])
    space = {"learning_rate": (0.0, 1.0)}
    study = sweep(toy, model="bnrde", trials=4, space=space, folder=tmp_path)
    done = [t.params["learning_rate"] for t in study.trials if t.value is not None]
    assert len(done) == 4 and lost in done


def test_missing_optuna_names_the_command(toy, tmp_path, monkeypatch):
    usual = builtins.__import__

    def without(name, *rest):
        if name == "optuna":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'arborax\[sweep\]'"):
        sweep(toy, model="bnrde", folder=tmp_path)


def test_command_line_of_sweep(toy, tmp_path, monkeypatch, capsys):
    pytest.importorskip("optuna")
    monkeypatch.setattr(arborax_experiments, "find_task", lambda name: toy)
    common = ["sweep", "rough-bergomi", "--folder", str(tmp_path), "--trials", "3"]
    main([*common, "--space", "learning_rate=0.1:0.9", "hidden=1,2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    values = [float(line.split()[0]) for line in lines]
    assert values == sorted(values)
    for wrong in ("nothing=1:2", "deep=1,2", "learning_rate"):
        with pytest.raises(SystemExit, match="--space"):
            main([*common, "--space", wrong])


def test_bench_runs_the_checkout_or_says_what_to_do(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__main__.py").write_text(
        "import pathlib, sys\n"
        "pathlib.Path('ran.txt').write_text(' '.join(sys.argv[1:]))\n"
    )
    monkeypatch.setattr(_benchmarks, "benchmark_folder", lambda: folder)
    with pytest.raises(SystemExit) as stop:
        main(["bench", "kernels", "logode"])
    assert stop.value.code == 0
    assert (tmp_path / "ran.txt").read_text() == "kernels logode"
    monkeypatch.setattr(_benchmarks, "benchmark_folder", lambda: None)
    with pytest.raises(SystemExit, match="make bench"):
        main(["bench"])
