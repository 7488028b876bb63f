"""Test-wide JAX settings: x64 on, no silent promotion of ranks or dtypes."""

import atexit
import importlib.metadata
import os
import shutil
import tempfile


_flags = [
    "--xla_force_host_platform_device_count=8",
    # Workers already fill the cores; threads of their own only get in the way.
    "--xla_cpu_multi_thread_eigen=false",
]
if importlib.metadata.version("jaxlib").startswith("0.10."):
    # Most of the time goes into compiling small programs that run once, so they are
    # compiled with little optimisation and by the emitters that work fastest. XLA
    # aborts on names it does not know, hence only where the names were tried. The
    # nightly run sets flags of its own and takes the compiler as users have it.
    _flags += [
        "--xla_backend_optimization_level=0",
        "--xla_cpu_use_fusion_emitters=false",
    ]
os.environ.setdefault("XLA_FLAGS", " ".join(_flags))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

import jax
import numpy as np
import pytest
from jaxtyping import install_import_hook


# The option `--jaxtyping-packages` takes one package only if the checker has arguments.
install_import_hook(
    "arborax_experiments",
    "beartype.beartype(conf=beartype.BeartypeConf("
    "strategy=beartype.BeartypeStrategy.On))",
)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# A program that was compiled before, in this file or an earlier one, is read from the
# disk. Each worker has a folder of its own, since files are not written at one stroke.
_programs = tempfile.mkdtemp(prefix="arborax-tests-")
atexit.register(shutil.rmtree, _programs, ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", _programs)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


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
