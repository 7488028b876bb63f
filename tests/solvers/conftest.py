"""Settings as users have them, for tests of what users see."""

import jax
import jaxtyping
import pytest


@pytest.fixture
def as_users():
    """Without the run-time type checks of the suite, and with JAX's own promotion."""
    jaxtyping.config.update("jaxtyping_disable", True)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
    jaxtyping.config.update("jaxtyping_disable", False)
