"""Runs at preset `smoke`, their files, tables and reports; the command line."""

import dataclasses
import html
import json
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from browser import document, needs_browser
from jax.experimental.compilation_cache import compilation_cache

from arborax.cli import main
from arborax.datasets import RoughBergomi
from arborax_experiments import collect, demo, find_task, report, run, table
from arborax_experiments.harness import (
    parameter_count,
    PRESETS,
    read_preset,
    stored_config,
)
from arborax_experiments.rough_bergomi import Config, make_generator
from arborax_experiments.rough_bergomi.objectives import (
    make_objective,
    OBJECTIVES,
    thin,
)
from arborax_experiments.rough_bergomi.tables import REFERENCES


TASK = find_task("rough-bergomi")


def load_config(setting="arborax", preset="quick", **changes):
    return TASK.configure(setting, preset, **changes)


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory):
    """Runs of this file compile the same programs again and again, processes that are
    killed included: they share one folder of programs."""
    with pytest.MonkeyPatch.context() as patch:
        place = str(tmp_path_factory.mktemp("programs"))
        before = jax.config.jax_compilation_cache_dir
        patch.setenv("JAX_COMPILATION_CACHE_DIR", place)
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        jax.config.update("jax_compilation_cache_dir", place)
        compilation_cache.reset_cache()
        yield
        jax.config.update("jax_compilation_cache_dir", before)
        compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def result(folder):
    """One fine-tuned run, for all tests that look at one."""
    return run(
        TASK,
        model="bnrde-bk",
        preset="smoke",
        folder=folder,
        cache=folder / "cache",
        progress=False,
    )


def test_presets():
    for setting in ("arborax", "paper"):
        for preset in PRESETS:
            config = load_config(setting, preset)
            assert max(config.horizons) <= config.steps
            assert config.steps % config.window == 0
    quick = load_config(preset="quick", hurst=0.1)
    assert quick.hurst == 0.1 and quick.noise == 2
    assert quick.objective == "fourier-path"
    # At least 3,000 test paths.
    assert quick.paths // 10 >= 3000
    published = load_config(setting="paper", preset="paper")
    assert (published.batch, published.noise) == (1024, 1)
    assert published.objective == "signature"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(preset="huge"), "preset"),
        (dict(setting="x"), "setting"),
        (dict(model="x"), "model"),
        (dict(lerning_rate=1.0), "unknown fields"),
    ],
)
def test_bad_configurations_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_config(**arguments)


def test_presets_by_model(tmp_path):
    """Values of one model hold for that one; explicit changes win."""
    (tmp_path / "arborax.toml").write_text(
        "hidden = 4\n[smoke]\n[paper]\n[quick]\nbatch = 64\n"
        "[quick.models.gru]\nbatch = 16\niterations = 7\n"
    )

    def read(preset, **changes):
        found = read_preset(Config, tmp_path, "arborax", preset, changes)
        return found.batch, found.iterations, found.hidden

    usual = Config()
    assert read("quick", model="bnrde") == (64, usual.iterations, 4)
    assert read("quick", model="gru") == (16, 7, 4)
    assert read("quick", model="gru", batch=8) == (8, 7, 4)
    assert read("smoke", model="gru") == (usual.batch, usual.iterations, 4)


def test_parameter_counts():
    """As listed for the published models: d=2, state 32."""
    config = load_config(setting="paper", preset="paper")
    data = np.zeros((4, 513, 1), np.float32)
    expected = {
        "bnrde": 6465,
        "log-ncde": 6465,
        "nrde": 7521,
        "ncde": 6465,
        "ncde++": 6465,
        "gru": 5633,
        "xlstm": 17801,
        "stacked-xlstm": 70625,
    }
    for name, count in expected.items():
        other = dataclasses.replace(config, model=name)
        key = jax.random.PRNGKey(0)
        generator = eqx.filter_eval_shape(
            lambda k: make_generator(other, data, key=k), key
        )
        assert parameter_count(generator) == count, name
    assert set(TASK.models) - set(REFERENCES) == {*expected, "bnrde-bk"}


@pytest.mark.parametrize(
    "name, setting",
    [
        ("fourier", "arborax"),
        ("fourier-path", "arborax"),
        ("fourier-branched", "arborax"),
        ("signature-robust", "arborax"),
        ("signature", "paper"),
        ("branched", "paper"),
    ],
)
def test_objectives_prefer_the_truth(name, setting):
    """The objective of data against data is far below that of another law."""
    config = load_config(setting=setting, preset="smoke", batch=256)
    law = RoughBergomi(steps=64)
    train = law.sample(512, key=jax.random.PRNGKey(0))

    class Fixed:
        def __init__(self, values):
            self.values = jax.numpy.asarray(values)

        def sample(self, ts, paths, *, key):
            return self.values[:paths]

    assert name in OBJECTIVES
    objective, data = make_objective(name, config, train)
    batch = jax.tree.map(jax.numpy.asarray, data(jax.random.PRNGKey(1), 0))
    key = jax.random.PRNGKey(2)
    truth = law.sample(256, key=jax.random.PRNGKey(5)).values
    measure = jax.jit(lambda values: objective(Fixed(values), batch, key))
    same, other = float(measure(truth)), float(measure(2 * truth + 0.1))
    assert np.isfinite(same) and abs(same) < other / 4


def test_thinning_keeps_the_bracket():
    data = RoughBergomi(steps=64).sample(8, key=jax.random.PRNGKey(0))
    values, brackets = thin(data, 16)
    assert values.shape == (8, 5, 1) and brackets.shape == (8, 4, 1, 1)
    np.testing.assert_allclose(brackets.sum(1), data.brackets.sum(1), rtol=1e-5)


def test_result_is_complete_and_plain(result, folder):
    place = folder / "rough-bergomi" / "arborax-smoke-bnrde-bk-1"
    stored = json.loads((place / "result.json").read_text())
    assert stored["scores"] == result["scores"]
    assert [stage["steps"] for stage in stored["stages"]] == [4, 2]
    assert len(stored["scores"]["ks"]) == 8
    assert "runs" not in stored["command"]
    assert {p.name for p in place.iterdir()} >= {"model.abx", "paths.npz"}
    assert stored_config(Config, stored).noise == 2


def test_resuming_repeats_the_scores(result, folder):
    """A run that died after training, before its result was written."""
    file = pathlib.Path(result["folder"]) / "result.json"
    file.unlink()
    again = run(
        TASK,
        model="bnrde-bk",
        preset="smoke",
        folder=folder,
        cache=folder / "cache",
        progress=False,
        resume=True,
    )
    assert again["scores"] == result["scores"]
    assert file.exists()


def test_a_killed_run_resumes_to_the_same_scores(folder):
    """Killed in the middle of training, right after a checkpoint."""
    options: dict[str, Any] = dict(
        model="nrde",
        preset="smoke",
        cache=str(folder / "cache"),
        progress=False,
        changes={"validations": 4},
    )
    script = f"""
        import os, signal
        from arborax_experiments import find_task, run
        from arborax.training import _checkpoints
        usual = _checkpoints.FileCheckpoints.save
        def save(self, step, *rest):
            usual(self, step, *rest)
            if step == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        _checkpoints.FileCheckpoints.save = save
        import jax
        jax.config.update("jax_enable_x64", True)
        run(find_task("rough-bergomi"), folder={str(folder / "killed")!r},
            **{options!r})
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = run(TASK, folder=folder / "killed", resume=True, **options)
    whole = run(TASK, folder=folder / "whole", **options)
    assert resumed["scores"] == whole["scores"]
    assert resumed["stages"][0]["loss"] == whole["stages"][0]["loss"]
    assert len(resumed["stages"][0]["loss"]) == 4


def test_fine_tuning_begins_with_the_finished_run(folder, result):
    """The same stages, whether the first one is trained or found."""
    cache = folder / "cache"
    options: dict[str, Any] = dict(preset="smoke", cache=cache, progress=False)
    first = run(TASK, model="bnrde", folder=folder / "found", **options)
    both = run(TASK, model="bnrde-bk", folder=folder / "found", **options)
    assert not (pathlib.Path(both["folder"]) / "checkpoints").exists()
    assert both["cpu_seconds"] > first["cpu_seconds"]
    assert both["stages"][0]["loss"] == result["stages"][0]["loss"]
    assert both["scores"] == result["scores"]


@needs_browser
def test_report_in_a_browser(result, folder):
    """A headless browser shows every picture and table, and nothing overflows."""
    page = report(TASK, [result], folder / "shown.html")
    probe = """<script>addEventListener("load", () => {
        const all = [...document.images];
        document.body.dataset.found = JSON.stringify({
            images: all.length,
            drawn: all.filter(i => i.complete && i.naturalWidth > 100).length,
            tables: document.querySelectorAll("table").length,
            rows: document.querySelectorAll("tr").length,
            overflow: document.documentElement.scrollWidth > innerWidth,
            fetched: performance.getEntriesByType("resource")
                .filter(r => !r.name.startsWith("data:")).length,
        });
    });</script>"""
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", probe + "</body>"), encoding="utf-8")
    shown = document(page, folder / "browser")
    match = re.search(r'data-found="([^"]*)"', shown)
    assert match, shown[-2000:]
    found = json.loads(html.unescape(match[1]))
    assert found["images"] == found["drawn"] == 6
    assert found["tables"] == 6 and found["rows"] == 20
    assert not found["overflow"] and found["fetched"] == 0


def test_table_and_report(result, folder):
    results = collect("rough-bergomi", [folder, folder])
    assert len(results) == 1
    text = table(TASK, results)
    assert (
        "Gaussian reference" in text and "B-NRDE, tuned with brackets, 1 seed" in text
    )
    page = report(TASK, results, folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 6
    # Self-contained: nothing is fetched.
    assert not re.search(r'(src|href)="?(?!data:)[^"]*//', page)
    assert table(TASK, []).startswith("no results")
    with pytest.raises(ValueError, match="no results"):
        report(TASK, [], folder / "none.html")


def test_demo(result, folder, capsys, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda task, **options: result)
    demo.main(["--preset", "smoke", "--output", str(folder / "demo")])
    printed = capsys.readouterr().out
    for label in ("picture: ", "report:  "):
        (line,) = [line for line in printed.splitlines() if line.startswith(label)]
        assert pathlib.Path(line.removeprefix(label)).stat().st_size > 10_000
    assert "Gaussian reference" in printed and "floor" in printed


def test_command_line(result, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    main(["table", "rough-bergomi", "--folders", str(folder)])
    assert "setting arborax, preset smoke" in capsys.readouterr().out
    main(["report", "rough-bergomi", "--folders", str(folder)])
    assert (folder / "runs/rough-bergomi/report.html").exists()
    main(["models"])
    names = {"recovery", "ppg-dalia", "so-rotation", "rough-bergomi", "spd"}
    names |= {"brackets", "sequences", "state-tracking", "poses"}
    assert set(capsys.readouterr().out.splitlines()[-len(names) :]) == names
    main(["config", "rough-bergomi", "--preset", "paper"])
    assert "batch = 1024" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["run", "rough-bergomi", "--model", "bnrde", "nothing"])
    with pytest.raises(SystemExit, match="name its experiment"):
        main(["report", "--file", "page.html", "--folders", str(folder)])
    assert not pathlib.Path("page.html").exists()
    with pytest.raises(SystemExit, match="no experiment 'unknown'.*rough-bergomi"):
        main(["table", "unknown"])
    # What is missing and the command that fetches it, without a traceback.
    with pytest.raises(SystemExit, match="curl -LO https://archive"):
        main(["run", "recovery", "--setting", "paper", "--preset", "smoke"])
