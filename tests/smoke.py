"""One small use of each part, to see whether an installation works.

    python tests/smoke.py [extra ...]

Runs with the core packages alone. Uses each extra that it finds and says which; the
extras that are named must be there.
"""

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx


NEEDS = {
    "checkpoint": ("orbax",),
    "cli": ("pyarrow", "tyro"),
    "data": ("aeon", "arch", "geomstats", "skfolio"),
    "plots": ("matplotlib",),
    "sklearn": ("narwhals", "optax", "sklearn", "tqdm"),
    "sweep": ("optuna",),
    "train": ("optax", "tqdm"),
}


def core() -> None:
    """Signature, equation on SO(3) with its gradient, kernel with its gradient."""
    ts = jnp.linspace(0.0, 1.0, 41)
    path = abx.brownian(ts, dim=2, key=jr.PRNGKey(0))
    for algebra in (abx.Shuffle(2, 3), abx.MuntheKaasWright(2, 2)):
        whole = abx.signature(path, algebra)
        parts = [abx.signature(x, algebra) for x in (path[:21], path[20:])]
        np.testing.assert_allclose(whole, algebra.product(*parts), atol=1e-4)

    brackets = abx.brownian_brackets(ts, dim=2)
    control = abx.rough_path(ts, path, abx.Ito(2, 2), window=8, brackets=brackets)
    axes = jnp.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])

    @jax.jit
    def last(axes):
        def fields(y):
            return (1 + y[0, 0] ** 2) * axes

        options = dict(geometry=abx.SO(3), solver=abx.CFEES25())
        return abx.solve(fields, jnp.eye(3), control, **options).ys[-1]

    y = last(axes)
    np.testing.assert_allclose(y.T @ y, np.eye(3), atol=1e-5)
    gradient = jax.grad(lambda a: last(a)[0, 1])(axes)
    finite(gradient)

    batch = abx.brownian(ts[:9], dim=2, shape=(4,), key=jr.PRNGKey(1))
    value, gradient = jax.value_and_grad(lambda x: abx.mmd(x, batch[2:]))(batch[:2])
    finite((value, gradient))


def train() -> None:
    """A model learns in a few steps, is saved and read."""
    algebra = abx.Shuffle(2, 2)
    x = abx.brownian(jnp.linspace(0.0, 1.0, 9), dim=2, shape=(16,), key=jr.PRNGKey(2))
    y = x[:, -1, 0] * x[:, -1, 1]

    def objective(model, batch, key):
        paths, targets = batch
        features = jax.vmap(lambda p: abx.signature(p, algebra))(paths)
        return jnp.mean((jax.vmap(model)(features) - targets) ** 2)

    model = eqx.nn.MLP(algebra.size, "scalar", 8, 1, key=jr.PRNGKey(3))
    with tempfile.TemporaryDirectory() as folder:
        result = abx.fit(
            model,
            (x, y),
            objective,
            steps=20,
            learning_rate=1e-2,
            checkpoint=folder,
            checkpoint_every=10,
            progress=False,
            key=jr.PRNGKey(4),
        )
        assert result.history.loss[-1] < result.history.loss[0], result.history.loss
        abx.save(f"{folder}/model.abx", result.model)
        again = abx.load(f"{folder}/model.abx")
    np.testing.assert_array_equal(again.layers[0].weight, result.model.layers[0].weight)


def checkpoint() -> None:
    from arborax.training import OrbaxCheckpoints

    with tempfile.TemporaryDirectory() as folder:
        store = OrbaxCheckpoints(folder)
        store.save(3, {"x": np.arange(4.0)}, {"note": "a"})
        found = store.restore()
        store.close()
    assert found is not None and found[0] == 3 and found[2] == {"note": "a"}
    np.testing.assert_array_equal(found[1]["x"], np.arange(4.0))


def cli() -> None:
    command = "from arborax.cli import main; main(['--help'])"
    out = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True
    )
    assert out.returncode == 0 and "report" in out.stdout, out.stdout + out.stderr


def data() -> None:
    train, test = abx.datasets.read_aeon("JapaneseVowels")
    assert train.values.shape == (270, 29, 12) and test.values.shape == (370, 29, 12)
    (stocks,) = abx.datasets.stock_covariances()
    finite(stocks.values)
    for series in abx.datasets.emg_covariances():
        finite(series.values)


def plots() -> None:
    import matplotlib

    matplotlib.use("agg")
    axes = abx.plots.fan_chart(np.random.default_rng(0).normal(size=(20, 9, 2)))
    with tempfile.TemporaryDirectory() as folder:
        axes.figure.savefig(f"{folder}/figure.png")


def sklearn() -> None:
    """Features and a small classifier on series of unequal length."""
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(5 + k % 3, 2)) for k in range(12)]
    labels = np.arange(12) % 2
    finite(abx.estimators.SignatureFeatures().fit_transform(series))
    model = abx.estimators.SequenceClassifier("gru", steps=2, random_state=0)
    assert model.fit(series, labels).predict_proba(series).shape == (12, 2)


def sweep() -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=3)
    assert study.best_value <= 1


def finite(tree) -> None:
    for leaf in jax.tree.leaves(tree):
        assert np.isfinite(np.asarray(leaf)).all(), leaf


USES: dict[str, Callable[[], None]] = {
    "checkpoint": checkpoint,
    "cli": cli,
    "data": data,
    "plots": plots,
    "sklearn": sklearn,
    "sweep": sweep,
    "train": train,
}


def main(wanted: list[str]) -> None:
    if unknown := sorted(set(wanted) - set(NEEDS)):
        sys.exit(f"no extra {unknown[0]!r}; there are {sorted(NEEDS)}.")
    names = ("jax", "jaxlib", "equinox", "diffrax", "jaxtyping", "numpy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"Python {sys.version.split()[0]}, {versions}")
    core()
    print("core: works")
    for extra, modules in NEEDS.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        if not missing:
            USES[extra]()
            print(f"{extra}: works")
        elif extra in wanted:
            sys.exit(f"{extra}: lacks {', '.join(missing)}")
        else:
            print(f"{extra}: not installed ({', '.join(missing)})")


if __name__ == "__main__":
    main(sys.argv[1:])
