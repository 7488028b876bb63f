"""Learning rates over a run."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np


def learning_rate(
    schedule: Literal["cosine", "constant"], peak: float, iterations: int
) -> Any:
    """A number, or a cosine with a short rise, as Optax takes it."""
    if schedule == "constant":
        return peak
    rise = max(1, iterations // 20)

    def cosine(count: Any) -> Any:
        step = jnp.asarray(count, jnp.float32)
        start = (step + 1) / rise
        angle = jnp.clip((step - rise) / max(1, iterations - rise), 0.0, 1.0) * np.pi
        fall = 0.01 + 0.99 * (1 + jnp.cos(angle)) / 2
        return peak * jnp.minimum(start, fall)

    return jax.jit(cosine)
