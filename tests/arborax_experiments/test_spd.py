"""The experiment `spd`: runs at preset `smoke`, scores, objectives, coordinates."""

import dataclasses
import json
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from arborax.datasets import SPDDiffusion
from arborax.geometry import SPD
from arborax_experiments import collect, find_task, report, run, table
from arborax_experiments.harness import parameter_count, PRESETS
from arborax_experiments.harness.tables import footing_table, search_table
from arborax_experiments.spd import make_generator
from arborax_experiments.spd.coordinates import (
    FLOOR,
    log_coordinates,
    matrices,
    triangles,
)
from arborax_experiments.spd.data import load, Parts
from arborax_experiments.spd.field import log_cholesky, LogCholeskyField
from arborax_experiments.spd.objectives import make_objective
from arborax_experiments.spd.references import reference
from arborax_experiments.spd.scores import (
    by_batch,
    cone,
    places,
    score,
    spectra,
    wasserstein,
)
from arborax_experiments.spd.tables import by_row, REFERENCES


LAW = SPDDiffusion(steps=64)
TASK = find_task("spd")


def load_config(setting="arborax", preset="quick", **changes):
    return TASK.configure(setting, preset, **changes)


@pytest.fixture(scope="module")
def values():
    return LAW.sample(1024, key=jax.random.PRNGKey(5)).values


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def result(folder):
    """One fine-tuned run for all tests that look at one, of a model that compiles
    fast."""

    def small(self, config, data, key):
        return make_generator(
            dataclasses.replace(config, model="gru"), data.train, key=key
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(TASK), "model", small)
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
            for data in ("simulated", "stocks", "emg"):
                config = load_config(setting, preset, data=data)
                points = config.steps // config.thin
                assert max(places(config)) <= points
                assert points % config.window == 0 and points % config.stride == 0
    quick = load_config()
    assert quick.noise == 6 and quick.start == "identity"
    assert quick.test_paths >= 3000 and quick.test_seed != quick.data_seed
    published = load_config(setting="paper", preset="paper")
    assert (published.noise, published.paths, published.batch) == (1, 1028, 16)
    assert published.window == 64 and published.basepoint
    assert load_config(data="stocks", window=8).window == 8


def test_parameter_counts():
    """As counted for the published models; window models with the fair driver."""
    data = np.zeros((4, 1025, 6), np.float32)
    config = load_config(setting="paper", preset="paper")
    counts = {}
    for name in set(TASK.models) - set(REFERENCES):
        other = dataclasses.replace(config, model=name)
        key = jax.random.PRNGKey(0)
        generator = eqx.filter_eval_shape(
            lambda k: make_generator(other, data, key=k), key
        )
        counts[name] = parameter_count(TASK.trained(generator))
        fair = dataclasses.replace(other, noise=6)
        whole = eqx.filter_eval_shape(lambda k: make_generator(fair, data, key=k), key)
        channels = 7 if name in ("bnrde", "bnrde-ito", "bnrde-bk", "log-ncde") else 2
        assert generator.model.channels == channels and whole.model.channels == 7
    assert counts["bnrde"] == counts["bnrde-ito"] == 6384
    shallow = dataclasses.replace(config, depth=2)
    generator = eqx.filter_eval_shape(
        lambda k: make_generator(shallow, data, key=k), key
    )
    assert parameter_count(TASK.trained(generator)) == 4272
    # The constant start is not trained.
    still = dataclasses.replace(shallow, start="identity")
    generator = eqx.filter_eval_shape(lambda k: make_generator(still, data, key=k), key)
    assert parameter_count(TASK.trained(generator)) == 4272 - (
        8 * 32 + 33 * 32 + 33 * 6
    )


@pytest.mark.parametrize("name", ["bnrde", "log-ncde"])
def test_generated_paths(name, values):
    """They start at the identity, and knots are those of the whole path."""
    config = load_config(preset="smoke", model=name, head="vech")
    data = values[:4].astype(np.float64)
    generator = make_generator(config, data, key=jax.random.PRNGKey(1))
    ts = jnp.linspace(0, 1, 65)
    key = jax.random.PRNGKey(2)
    both = eqx.filter_jit(lambda g: [g.sample(ts, 3, s, key=key) for s in (1, 16)])
    paths, knots = both(generator)
    assert paths.shape == (3, 65, 6)
    np.testing.assert_allclose(paths[:, 0], [[1, 0, 1, 0, 0, 1]] * 3, atol=1e-12)
    if name == "bnrde":
        assert spectra(np.asarray(paths)).min() > 0
    np.testing.assert_allclose(knots, paths[:, ::16], rtol=1e-9, atol=1e-12)


def test_test_paths_are_drawn_apart(folder):
    config = load_config(preset="smoke")
    parts = load(config, folder / "cache")
    other = load(dataclasses.replace(config, test_seed=7), folder / "cache")
    assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [
        240,
        96,
        128,
    ]
    np.testing.assert_array_equal(parts.train, other.train)
    ends = {tuple(path[-1]) for path in (*parts.train, *parts.validation)}
    for part in (parts.test, other.test):
        assert not ends & {tuple(path[-1]) for path in part}
    with pytest.raises(ValueError, match="test_seed"):
        load(dataclasses.replace(config, test_seed=config.data_seed), folder / "cache")


def test_logarithmic_coordinates_of_the_field(rng):
    """Against SciPy's factor; at the identity they are those of the logarithm."""
    raw = rng.standard_normal((3, 3))
    spd = raw @ raw.T + 0.1 * np.eye(3)
    factor = scipy.linalg.cholesky(spd, lower=True)
    unit = np.sqrt(2) * factor / np.diag(factor)
    np.fill_diagonal(unit, 2 * np.log(np.diag(factor)))
    found = log_cholesky(jnp.asarray(spd))
    np.testing.assert_allclose(found, unit[np.tril_indices(3)], rtol=1e-9)
    np.testing.assert_array_equal(log_cholesky(jnp.eye(3)), np.zeros(6))
    # The orthonormal basis of symmetric matrices is that of the geometry.
    move = jnp.asarray(rng.standard_normal(6))
    ahead = SPD(3).exp(jnp.eye(3), 1e-5 * move)
    np.testing.assert_allclose(log_cholesky(ahead) / 1e-5, move, atol=1e-4)


def test_field_in_logarithmic_coordinates(rng):
    field = LogCholeskyField(7, 6, 8, 2, key=jax.random.PRNGKey(3))
    point = SPD(3).random_point(key=jax.random.PRNGKey(4))
    # At first a Brownian motion of the frame.
    for y in (point, jnp.eye(3)):
        np.testing.assert_allclose(field(y), 0.5 * np.eye(7, 6, -1), atol=1e-12)
    leaves, rest = eqx.partition(field, eqx.is_array)
    leaves = jax.tree.map(lambda x: jnp.asarray(rng.standard_normal(x.shape)), leaves)
    field = eqx.combine(leaves, rest)
    assert np.abs(field(point) - field(jnp.eye(3))).max() > 0.1
    # The linear part alone: a pull, in the drift only.
    still = jax.tree.map(jnp.zeros_like, field.mlp)
    pull = eqx.tree_at(lambda f: f.mlp, field, still)
    inner = np.zeros((7, 6))
    inner[0] = np.asarray(pull.linear) @ np.asarray(log_cholesky(point))
    np.testing.assert_allclose(pull(point), np.tanh(inner), rtol=1e-12)
    # Larger fields, of which those of the noise fade away from the identity.
    options = dict(amplitude=4.0, reach=2.0, key=jax.random.PRNGKey(3))
    large = LogCholeskyField(7, 6, 8, 2, **options)
    np.testing.assert_allclose(large(jnp.eye(3)), 0.5 * np.eye(7, 6, -1), atol=1e-12)
    large = eqx.tree_at(lambda f: (f.linear, f.mlp), large, (field.linear, field.mlp))
    fade = 1 + (np.sum(np.square(log_cholesky(point))) / 4) ** 2
    expected = 4 * np.tanh(np.arctanh(field(point)) / 4)
    expected = expected / np.asarray([1, *6 * [fade]])[:, None]
    np.testing.assert_allclose(large(point), expected, rtol=1e-7)


def test_log_head_stays_on_the_cone(values):
    config = load_config(preset="smoke", model="gru", head="log")
    generator = make_generator(config, values[:4], key=jax.random.PRNGKey(1))
    last = generator.model.readout.weight
    wild = eqx.tree_at(lambda g: g.model.readout.weight, generator, 20 * last)
    ts = jnp.linspace(0, 1, 65, dtype=jnp.float32)
    paths = eqx.filter_jit(lambda g, k: g.sample(ts, 8, key=k))(
        wild, jax.random.PRNGKey(0)
    )
    assert cone(np.asarray(paths))["points_off"] == 0
    np.testing.assert_allclose(paths[:, 0], [[1, 0, 1, 0, 0, 1]] * 8, atol=1e-6)


def test_log_coordinates(rng):
    raw = rng.standard_normal((5, 3, 3))
    spd = raw @ np.swapaxes(raw, 1, 2) + 0.05 * np.eye(3)
    expected = [scipy.linalg.logm(x)[np.tril_indices(3)] for x in spd]
    given = triangles(jnp.asarray(spd))
    np.testing.assert_allclose(log_coordinates(given), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(matrices(np.asarray(given)), (spd + spd.mT) / 2)
    # Derivatives: at a general point, where eigenvalues repeat, and off the cone.
    for point in (given[0], jnp.asarray([2.0, 0, 2, 0, 0, 2]), given[1] - given[2]):
        move = jnp.asarray(rng.standard_normal(6))
        _, slope = jax.jvp(log_coordinates, (point,), (move,))
        steps = [log_coordinates(point + s * 1e-5 * move) for s in (1, -1)]
        gap = np.abs(slope - (steps[0] - steps[1]) / 2e-5).max()
        assert gap < 1e-4 * (1 + np.abs(slope).max())
    below = log_coordinates(jnp.asarray([-1.0, 0, 1, 0, 0, 1]))
    np.testing.assert_allclose(below[0], np.log(FLOOR) - (1 + FLOOR) / FLOOR)


@pytest.mark.parametrize(
    "name, setting, coordinates",
    [
        ("fourier", "arborax", "log"),
        ("signature", "paper", "vech"),
        ("branched", "paper", "vech"),
    ],
)
def test_objectives_prefer_the_truth(name, setting, coordinates, values):
    """The objective of data against data is far below that of the other reading of the
    same equation with more noise."""
    config = load_config(setting=setting, preset="smoke", batch=256)
    assert config.coordinates == coordinates
    parts = Parts(LAW.times(np.float32), values[:512], *[values[512:]] * 3, LAW)

    class Fixed(eqx.Module):
        paths: jax.Array

        def sample(self, ts, paths, stride, mirrored, *, key):
            return self.paths[:paths, ::stride]

    objective, data = make_objective(name, config, parts)
    objective = eqx.filter_jit(objective)
    batch = jax.tree.map(jnp.asarray, data(jax.random.PRNGKey(1), 0))
    key = jax.random.PRNGKey(2)
    same = float(objective(Fixed(jnp.asarray(values[512:768])), batch, key))
    wild = (
        SPDDiffusion(steps=64, sigma=0.6).sample(256, key=jax.random.PRNGKey(7)).values
    )
    other = float(objective(Fixed(jnp.asarray(wild)), batch, key))
    assert np.isfinite(same) and abs(same) < other / 4


def _quarters(values):
    return [spectra(p[:, [8, 16, 32, 64]]) for p in np.split(values, 4)]


def test_scores(values):
    config = load_config(preset="smoke")
    true, other, known = values[:256], values[256:512], values
    found = score(other, true, known, config)
    assert found["columns"] == ["t=8", "t=16", "t=32", "t=64"]
    upper = np.asarray(found["floor_upper"])
    assert (np.asarray(found["w1"]) < 2 * upper).all()
    assert (np.asarray(found["identity"]) > np.asarray(found["mean_path"])).all()
    assert (np.asarray(found["mean_path"]) > upper).all()
    assert found["cone"]["points_off"] == 0 and found["variation"] < 0.2
    here = [wasserstein(p, spectra(true[:, [8, 16, 32, 64]])) for p in _quarters(known)]
    np.testing.assert_allclose(found["floor_here"], np.mean(here, axis=0))
    json.dumps(found)
    # By hand: the mean over eigenvalues of the mean gap of sorted samples.
    a, b = (spectra(p[:, [64]]) for p in (true, other))
    gaps = np.abs(np.sort(a[:, 0], 0) - np.sort(b[:, 0], 0)).mean()
    np.testing.assert_allclose(wasserstein(a, b)[0], gaps, rtol=1e-9)
    np.testing.assert_allclose(found["w1"][-1], gaps, rtol=1e-9)
    means = [wasserstein(a[i : i + 16], b[i : i + 16]) for i in range(0, 256, 16)]
    np.testing.assert_allclose(by_batch(a, b), np.mean(means, axis=0))


def test_distance_from_the_cone(values):
    broken = values[:10].copy()
    broken[3, 7] = [1, 0, -0.25, 0, 0, 1]
    found = cone(broken)
    assert found["points_off"] == 1 / 650 and found["paths_off"] == 0.1
    np.testing.assert_allclose(found["least_eigenvalue"], -0.25)


def test_run_leaves_files_a_table_and_a_report(result, folder):
    place = folder / "spd" / "arborax-smoke-bnrde-bk-1"
    stored = json.loads((place / "result.json").read_text())
    assert stored["scores"] == result["scores"]
    assert [stage["steps"] for stage in stored["stages"]] == [3, 2]
    assert str(folder) not in json.dumps(stored)
    assert {p.name for p in place.iterdir()} >= {"model.abx", "paths.npz"}
    results = collect("spd", [folder])
    assert len(results) == 1
    text = table(TASK, results)
    assert (
        "reference: mean path" in text and "B-NRDE, tuned with brackets, 1 seed" in text
    )
    page = report(TASK, results, folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert not re.search(r'(src|href)="?(?!data:)[^"]*//', page)
    assert table(TASK, []).startswith("no results")
    with pytest.raises(ValueError, match="no results"):
        report(TASK, [], folder / "none.html")
    again = run(TASK, model="bnrde-bk", preset="smoke", folder=folder, resume=True)
    assert again["scores"] == result["scores"]


def test_validation_chooses_the_rate_and_test_scores_do_not():
    def tried(rate, metric, seed=1):
        return {
            "model": "gru",
            "setting": "arborax",
            "preset": "quick",
            "seed": seed,
            "parameters": 7,
            "config": {"head": "log", "learning_rate": rate, "batch": 2},
            "stages": [{"best_metric": metric, "steps": 5}],
            "scores": {"w1": [-metric]},  # would choose another rate
            "cpu_seconds": 100 * rate,
        }

    first = [tried(0.1, 3.0), tried(0.2, 2.0), tried(0.4, 4.0)]
    results = [*first, tried(0.2, 9.0, seed=2)]
    ((_, label, group),) = by_row(TASK.compared(results))
    assert label == "GRU, log head, 2 seeds"
    assert [r["config"]["learning_rate"] for r in group] == [0.2, 0.2]
    ((label, cells),) = footing_table(TASK, results).lines
    assert label == "GRU, log head, 2 seeds"
    assert cells == ["7", "10", "20", "0.2", "3"]
    ((label, cells),) = (line for t in search_table(TASK, results) for line in t.lines)
    assert (label, cells) == ("GRU, log head", ["3", "2", "4"])


def test_table_compares_with_the_best_baseline_at_each_time(result):
    def other(model, seed, factor):
        scores = {**result["scores"], "w1": [v * factor for v in (1, 1, 1, 2)]}
        return {**result, "model": model, "seed": seed, "scores": scores}

    floor = {"floor": [0.5] * 4}
    results = [other("bnrde", 1, 1.0), other("bnrde", 2, 3.0)]
    results += [other("gru", 1, 4.0), other("ncde", 1, 8.0)]
    results[3]["scores"]["w1"] = [8.0, 1.0, 8.0, 80.0]
    for one in results:
        one["scores"].update(floor)
    lines = {
        line.split("  ")[0]: line.split()[-4:]
        for line in table(TASK, results).split("\n")
    }
    assert lines["B-NRDE / floor"] == ["4.00", "4.00", "4.00", "8.00"]
    assert lines["B-NRDE / best baseline"] == ["0.50", "2.00", "0.50", "0.50"]
    assert " / " not in table(TASK, results[2:])


def test_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install skfolio"):
        run(TASK, preset="smoke", folder=tmp_path, changes={"data": "stocks"})


def test_references_of_real_data():
    rng = np.random.default_rng(0)
    # Logarithms that are pulled back by a tenth each day.
    logs = np.zeros((200, 65, 6))
    for t in range(64):
        logs[:, t + 1] = 0.9 * logs[:, t] + 0.1 * rng.standard_normal((200, 6))
    full = matrices(logs)
    w, u = np.linalg.eigh(full)
    paths = triangles(np.einsum("...ik,...k,...jk->...ij", u, np.exp(w), u))
    har, ewma = (reference(name, paths) for name in ("har", "ewma"))
    # The weights of day, week and month sum to the pull.
    np.testing.assert_allclose(har.weights[1:].sum(axis=0), -0.1, atol=0.03)
    ts = jnp.linspace(0, 1, 65, dtype=jnp.float32)
    for model in (har, ewma):
        found = np.asarray(model.sample(ts, 2048, key=jax.random.PRNGKey(0)))
        assert found.shape == (2048, 65, 6)
        np.testing.assert_allclose(
            matrices(found[:, 0]), np.tile(np.eye(3), (2048, 1, 1))
        )
        assert np.linalg.eigvalsh(matrices(found)).min() > 0
        if model is har:
            ours, true = np.log(spectra(found)), np.log(spectra(paths))
            np.testing.assert_allclose(ours[:, -1].std(0), true[:, -1].std(0), rtol=0.2)
        else:  # a martingale
            np.testing.assert_allclose(found[:, -1, 0].mean(), 1, atol=0.1)
    with pytest.raises(ValueError, match="reference for real data"):
        load_config(model="har")
