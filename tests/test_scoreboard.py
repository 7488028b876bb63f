"""The adapter for the field's scoreboard, with a stand-in for its base class."""

import importlib.util
import pathlib
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks" / "scoreboard"


class Base:
    """What the suite gives to adapters, as far as they use it."""

    def __init__(self, config):
        self.config = config
        self.N, self.d, self.m = (config[name] for name in "Ndm")
        self.operation, self.batch_size = config["operation"], config["batch_size"]
        self.inputs, self.kept = 0, None

    def make_path_input(self):
        self.inputs += 1
        rng = np.random.default_rng(self.inputs)
        shape = (self.N, self.d) if self.batch_size == 1 else (self.batch_size,)
        shape = shape if self.batch_size == 1 else (*shape, self.N, self.d)
        return rng.normal(size=shape).astype(np.float32) / 4

    def cached_prepared_input(self, namespace, path, prepare):
        return prepare()

    def random_cotangent(self, shape):
        return np.random.default_rng(9).normal(size=shape).astype(np.float32)

    def manual_timing_loop(self, run):
        self.kept = run()
        return 1.0, 0, [1.0]

    def output_result(self, **row):
        return row


@pytest.fixture
def adapter(monkeypatch):
    common = types.ModuleType("common")
    common.BenchmarkAdapter = Base  # pyright: ignore
    monkeypatch.setitem(sys.modules, "common", common)
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = FOLDER / "run_arborax.py"
    spec = importlib.util.spec_from_file_location("run_arborax", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(operation, batch=3, **config):
        sizes = dict(N=6, d=2, m=2, batch_size=batch, operation=operation)
        made = module.ArboraxAdapter(sizes | config)
        return made, made._run_benchmark()

    return run


def operations():
    text = (FOLDER / "registry.yaml").read_text().split("operations:")[1]
    return text.replace("-", " ").split()


@pytest.mark.parametrize("operation", operations())
def test_every_operation_of_the_registry(adapter, operation):
    made, row = adapter(operation)
    assert row["library"] == "arborax" and row["path_type"] == "jax.Array"
    assert made.kept.dtype == np.float32 and np.all(np.isfinite(made.kept))
    if operation.endswith("backprop"):
        assert made.kept.shape == (3, 6, 2) and row["method"].startswith("vjp(")
    elif operation == "signaturekernel":
        assert made.kept.shape == (3, 3)


def test_values_are_those_of_the_library(adapter):
    made, _ = adapter("signature", batch=1)
    made.inputs = 0
    x = jnp.asarray(made.make_path_input())
    np.testing.assert_array_equal(made.kept, abx.signature(x, abx.Shuffle(2, 2)))
    made, row = adapter("branchedlogsignature_planar_backprop")
    made.inputs = 0
    x = jnp.asarray(made.make_path_input())
    alg = abx.MuntheKaasWright(2, 2)
    out, back = jax.vjp(lambda z: abx.log_signature(z, alg), x)
    expected = back(jnp.asarray(made.random_cotangent(out.shape)))[0]
    np.testing.assert_allclose(made.kept, expected, rtol=1e-5, atol=1e-6)
    assert row["method"] == "vjp(log_signature(MuntheKaasWright))"


def test_kernels_are_refined(adapter):
    """Each order halves the grid, so differences fall by four in the limit; polynomial
    kernels and unknown operations are not offered."""
    options = dict(dtype="float64")
    found = [
        adapter("signaturekernel", sig_kernel_dyadic_order=order, **options)[0].kept
        for order in range(4)
    ]
    assert found[0].dtype == np.float64
    gaps = [np.abs(a - b).max() for a, b in zip(found, found[1:])]
    assert all(a > 3 * b for a, b in zip(gaps, gaps[1:])), gaps
    assert adapter("signaturekernel", sig_kernel_method="polynomial")[1] is None
    assert adapter("sigdiff")[1] is None
