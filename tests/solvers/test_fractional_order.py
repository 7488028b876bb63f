"""Convergence for fractional drivers, at the depth that their regularity needs.

The orders are stored. To measure them again (some minutes), in the folder `tests`:

    python -m solvers.test_fractional_order
"""

import json
import pathlib

import jax
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
    slope_and_error,
    window_log_signatures,
    with_ito_drift,
)


SIZES = (16, 32, 64, 128)
LINE = abx.Euclidean(1)
CASES = [
    (0.4, 2, False),
    (0.4, 3, False),
    (0.4, 2, True),
    (0.3, 3, False),
    (0.3, 4, False),
]
COMMAND = "cd tests; python -m solvers.test_fractional_order"
STORED = pathlib.Path(__file__).parents[2] / "results/orders/fractional.json"


def fields(y):
    return jnp.stack([jnp.sin(y) + 1.2, 0.8 * jnp.cos(2 * y)])


def measured(hurst, depth, brackets):
    """Root mean square errors by the number of windows, their slope and its standard
    error, for two fractional Brownian channels.

    With `brackets` their variance is the bracket, a branched rough path that is not
    geometric: its equation has a further drift, driven by `t^(2H)`.
    """
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
    squares = np.square(solution - exact[None])[..., 0]
    order, error = slope_and_error(SIZES, squares)
    given = {"hurst": hurst, "depth": depth, "brackets": brackets}
    gaps = dict(zip(map(str, SIZES), np.sqrt(squares.mean(axis=1)).tolist()))
    return given | {"order": order, "error": error, "by_windows": gaps}


@pytest.mark.slow
@pytest.mark.parametrize("hurst, depth, brackets", CASES)
def test_multi_indices_converge_as_trees_do(hurst, depth, brackets):
    """Mean square order `(depth + 1) H - 1/2` from depth `floor(1 / H)` on, within
    three standard errors; the bound path by path is half an order lower. (At depth 3
    the brackets above leave the mean of weight four, of order `2H`.)"""
    row = measured(hurst, depth, brackets)
    print(f"H={hurst}, depth {depth}, {brackets=}: {row['order']:.3f}")
    assert row["error"] < 0.15
    assert abs(row["order"] - ((depth + 1) * hurst - 0.5)) < 3 * row["error"]
    stored = json.loads(STORED.read_text())["rows"][
        CASES.index((hurst, depth, brackets))
    ]
    assert abs(row["order"] - stored["order"]) < 0.005


def main():
    jax.config.update("jax_enable_x64", True)  # the test suite has it on
    document = {"command": COMMAND, "rows": [measured(*case) for case in CASES]}
    STORED.parent.mkdir(exist_ok=True)
    STORED.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
