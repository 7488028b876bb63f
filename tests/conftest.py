"""Test-wide JAX settings: x64 on, no silent promotion of ranks or dtypes."""

import os


os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import numpy as np
import pytest


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def getkey():
    """A function that returns a fresh key at each call, the same sequence in each run."""
    state = {"key": jax.random.PRNGKey(5678)}

    def _getkey():
        state["key"], key = jax.random.split(state["key"])
        return key

    return _getkey


@pytest.fixture
def rng():
    return np.random.default_rng(5678)
