"""Statistics of observed rotations that do not change when space or body turns."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from arborax.geometry import SO

from .extrapolators import Pieces
from .savitzky_golay import orthonormal, powers, RotationChart


STATISTICS = 16
_FLOOR = 1e-4  # radians; a smaller motion counts as none


def rotation_statistics(
    ts: Float[Array, " samples"],
    rotations: Float[Array, "samples 3 3"],
    mask: Bool[Array, " samples"] | None = None,
) -> Float[Array, " statistics"]:
    """How fast, how curved, how noisy: `STATISTICS` numbers of order one.

    Logarithms of the sizes of the orthogonal polynomial coefficients of orders 1 to 3,
    of the residual, of the last two increments and of second differences; ratios of
    these; cosines between the vectors; the correlation of neighbouring residuals; the
    age of the last observation and the share that is missing. Times count mean steps of
    `ts`, so that the unit of time does not matter.
    """
    chart = RotationChart(ts, rotations, mask)
    there = chart.mask
    count = jnp.sum(there).astype(rotations.dtype)
    root = there.astype(rotations.dtype)[:, None]
    q, _ = orthonormal(root * powers(chart.place, 4))
    c = q.T @ (root * chart.vectors)
    residual = root * chart.vectors - q @ c
    spread = jnp.maximum(3 * (count - 4), 3)
    noise = _root(jnp.sum(residual**2) / spread)
    neighbours = jnp.sum(residual[1:] * residual[:-1])
    echo = neighbours / (jnp.sum(residual**2) + _FLOOR**2)

    pieces = Pieces(ts, rotations, mask)
    samples = rotations.shape[0]
    steps = jax.vmap(SO(3).log)(pieces.rotations[:-1], pieces.rotations[1:])
    unit = (ts[-1] - ts[0]) / (samples - 1)
    gaps = jnp.diff(pieces.ts) / unit
    speeds = steps / gaps.astype(steps.dtype)[:, None]
    bends = jnp.diff(speeds, axis=0)
    real = (jnp.arange(samples - 2) < pieces.count - 2).astype(steps.dtype)
    rough = _root(jnp.sum(real[:, None] * bends**2) / (3 * jnp.maximum(count - 2, 1)))
    last, before = speeds[pieces.count - 2], speeds[pieces.count - 3]
    # Vectors of the chart live in space, increments in the body at the last sample.
    turned = pieces.last[1].T @ c.T
    sizes = jnp.stack(
        [_norm(c[1]), _norm(c[2]), _norm(c[3]), noise, _norm(last), rough]
    )
    logs = jnp.log(sizes + _FLOOR)
    ratios = jnp.stack([logs[0] - logs[3], logs[1] - logs[3], logs[2] - logs[3]])
    cosines = jnp.stack(
        [
            _cosine(c[1], c[2]),
            _cosine(c[1], c[3]),
            _cosine(c[2], c[3]),
            _cosine(last, before),
            _cosine(last, turned[:, 1]),
        ]
    )
    age = (ts[-1] - pieces.last[0]) / (ts[-1] - ts[0])
    rest = jnp.stack([echo, age.astype(echo.dtype)])
    return jnp.concatenate([(logs + 4) / 2, ratios / 3, cosines, 3 * rest])


def _root(x):
    return jnp.sqrt(jnp.maximum(x, 1e-20))


def _norm(v):
    return _root(jnp.sum(v**2))


def _cosine(a, b):
    return jnp.sum(a * b) / (_norm(a) * _norm(b) + _FLOOR**2)
