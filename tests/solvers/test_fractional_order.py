"""Convergence for fractional drivers, at the depth that their regularity needs."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.algebra import primitive_conversion

from .harness import (
    flow_reference,
    log_ode,
    pad,
    slope,
    window_log_signatures,
    with_ito_drift,
)


SIZES = (16, 32, 64, 128)
LINE = abx.Euclidean(1)


def fields(y):
    return jnp.stack([jnp.sin(y) + 1.2, 0.8 * jnp.cos(2 * y)])


def slope_and_error(square_errors, seed=0):
    """The slope of root mean square errors `(sizes, paths)`, and its standard error by
    bootstrap over the paths."""
    rng = np.random.default_rng(seed)
    count = square_errors.shape[1]
    fit = lambda rows: slope(SIZES, np.sqrt(rows.mean(axis=1)))  # noqa: E731
    draws = [fit(square_errors[:, rng.integers(count, size=count)]) for _ in range(400)]
    return fit(square_errors), np.std(draws)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hurst, depth, brackets",
    [
        (0.4, 2, False),
        (0.4, 3, False),
        (0.4, 2, True),
        (0.3, 3, False),
        (0.3, 4, False),
    ],
)
def test_multi_indices_converge_as_trees_do(hurst, depth, brackets):
    """Mean square order `(depth + 1) H - 1/2` for two fractional Brownian channels from
    depth `floor(1 / H)` on, within three standard errors; the bound path by path is
    half an order lower. Also with the variance as bracket, a branched rough path that
    is not geometric: its equation has a further drift, driven by `t^(2H)`. (At depth 3
    such brackets leave the mean of weight four, of order `2H`.)"""
    steps = 2048
    xs = 0.5 * abx.fractional_brownian(steps, hurst, key=jr.key(0), dim=2, shape=256)
    y0, equation, driver, moves = jnp.array([0.3]), fields, xs, None
    if brackets:
        clock = 0.25 * jnp.linspace(0.0, 1.0, steps + 1) ** (2 * hurst)
        moves = jnp.diff(clock).reshape(max(SIZES), -1, 1, 1) * jnp.eye(2)[None, None]
        equation = with_ito_drift(fields, LINE)
        clock = jnp.broadcast_to(clock[None, :, None], (*xs.shape[:2], 1))
        driver = jnp.concatenate([xs, clock], axis=2)
    exact = flow_reference(equation, y0, driver, LINE)
    trees, alg = abx.GrossmanLarson(2, depth), abx.MultiIndex(2, depth)
    full = pad(window_log_signatures(xs, trees, SIZES, moves))
    short = primitive_conversion(trees, alg)(full)
    solution = log_ode(fields, y0, short, alg, LINE, substeps=4)
    if depth <= 3:
        by_trees = log_ode(fields, y0, full, trees, LINE, substeps=4)
        np.testing.assert_allclose(solution, by_trees, rtol=1e-9)
    order, error = slope_and_error(np.square(solution - exact[None])[..., 0])
    expected = (depth + 1) * hurst - 0.5
    print(f"H={hurst}, depth {depth}, {brackets=}: {order:.3f} +- {error:.3f}")
    assert error < 0.15
    assert abs(order - expected) < 3 * error
