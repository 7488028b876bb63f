"""Implied volatilities of paths: what an option trader would compare."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from ._config import Config


STRIKES = np.linspace(0.8, 1.2, 9)
_erf = np.vectorize(math.erf)


def black_scholes(
    strikes: Float[np.ndarray, "..."], time: float, volatility: Any
) -> Float[np.ndarray, "..."]:
    """Price of a call on an asset of price 1, without interest."""
    spread = np.maximum(np.asarray(volatility) * math.sqrt(time), 1e-12)
    d = -np.log(strikes) / spread + spread / 2
    cdf = lambda z: (1 + _erf(z / math.sqrt(2))) / 2  # noqa: E731
    return cdf(d) - strikes * cdf(d - spread)


def implied_volatility(
    prices: Float[np.ndarray, " strikes"],
    strikes: Float[np.ndarray, " strikes"],
    time: float,
) -> Float[np.ndarray, " strikes"]:
    """By bisection; NaN where the price allows no volatility."""
    low, high = np.full_like(prices, 1e-4), np.full_like(prices, 5.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = black_scholes(strikes, time, middle) > prices
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    valid = (prices > np.maximum(1 - strikes, 0)) & (prices < 1)
    return np.where(valid, (low + high) / 2, np.nan)


def smile(
    log_prices: Float[np.ndarray, " paths"], time: float
) -> Float[np.ndarray, " strikes"]:
    """Implied volatilities at `STRIKES` of the price at one time.

    Prices are divided by their mean, so that the forward is 1 in every sample.
    """
    price = np.exp(np.asarray(log_prices, np.float64))
    price = price / price.mean()
    calls = np.maximum(price[:, None] - STRIKES[None], 0).mean(axis=0)
    return implied_volatility(calls, STRIKES, time)


def smile_errors(
    generated: Float[np.ndarray, "paths times 1"],
    true: Float[np.ndarray, "others times 1"],
    known: Float[np.ndarray, "more times 1"],
    config: Config,
) -> dict[str, Any]:
    """Largest error of the smile in volatility points, at the first and last horizon.

    Against the smile of all `known` paths. `floor` is the error of the test paths:
    what sampling alone does.
    """
    out: dict[str, Any] = {"strikes": STRIKES.tolist(), "horizons": []}
    for index in (config.horizons[0], config.horizons[-1]):
        time = index / config.steps
        best = smile(known[:, index, 0], time)
        ours, theirs = (smile(p[:, index, 0], time) for p in (generated, true))
        out["horizons"].append(
            {
                "time": time,
                "true": _plain(best),
                "generated": _plain(ours),
                "error": _largest(ours - best),
                "floor": _largest(theirs - best),
            }
        )
    return out


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in values]


def _largest(gaps: np.ndarray) -> float | None:
    return None if np.isnan(gaps).all() else float(100 * np.nanmax(np.abs(gaps)))
