"""Test-wide JAX settings: x64 on, no silent promotion of ranks or dtypes."""

import os


_flags = ["--xla_force_host_platform_device_count=8"]
if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers already fill the cores; threads of their own only get in the way.
    _flags.append("--xla_cpu_multi_thread_eigen=false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", " ".join(_flags))
os.environ.setdefault("MPLBACKEND", "agg")

import jax
import numpy as np
import pytest


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs of a finished file would fill the memory of a worker."""
    yield
    jax.clear_caches()


@pytest.fixture
def getkey():
    """A function returning a fresh key per call, the same sequence in each run."""
    state = {"key": jax.random.PRNGKey(5678)}

    def _getkey():
        state["key"], key = jax.random.split(state["key"])
        return key

    return _getkey


@pytest.fixture
def rng():
    return np.random.default_rng(5678)
