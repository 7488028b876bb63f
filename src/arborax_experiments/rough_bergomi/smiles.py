"""Implied volatilities of paths, as an option trader compares them."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from .config import Config


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
    log_prices: Float[np.ndarray, " paths"],
    time: float,
    strikes: Float[np.ndarray, " strikes"] = STRIKES,
) -> tuple[Float[np.ndarray, " strikes"], Float[np.ndarray, " strikes"]]:
    """Implied volatilities at `strikes` of the price at one time, and their Monte Carlo
    standard errors.

    Prices are divided by their mean, so that the forward is 1 in every sample and puts
    and calls have the same implied volatility. The option out of the money is priced:
    the other one has the larger error. NaN where no path pays.
    """
    price = np.exp(np.asarray(log_prices, np.float64))
    price = price / price.mean()
    put = strikes < 1
    side = np.where(put, -1.0, 1.0)
    pay = np.maximum(side * (price[:, None] - strikes[None]), 0)
    value = pay.mean(axis=0)
    calls = value + np.where(put, 1 - strikes, 0)
    found = np.where(value > 0, implied_volatility(calls, strikes, time), np.nan)
    spread = found * math.sqrt(time)
    d = -np.log(strikes) / spread + spread / 2
    vega = math.sqrt(time) * np.exp(-d * d / 2) / math.sqrt(2 * math.pi)
    return found, pay.std(axis=0) / math.sqrt(len(price)) / vega


def smile_errors(
    generated: Float[np.ndarray, "paths times 1"],
    true: Float[np.ndarray, "others times 1"],
    known: Float[np.ndarray, "more times 1"],
    config: Config,
) -> dict[str, Any]:
    """Largest error of the smile in volatility points, at the first and last horizon.

    Against the smile of all `known` paths. `floor` is the error of the test paths:
    what sampling alone does. `monte_carlo` is the standard error of the difference at
    the strike of the largest error, `missing` counts strikes at which no generated path
    pays, which have no implied volatility.
    """
    out: dict[str, Any] = {"strikes": STRIKES.tolist(), "horizons": []}
    for index in (config.horizons[0], config.horizons[-1]):
        time = index / config.steps
        best, best_error = smile(known[:, index, 0], time)
        ours, our_error = smile(generated[:, index, 0], time)
        theirs, _ = smile(true[:, index, 0], time)
        gaps = np.abs(ours - best)
        worst = None if np.isnan(gaps).all() else int(np.nanargmax(gaps))
        both = np.hypot(our_error, best_error)
        out["horizons"].append(
            {
                "time": time,
                "paths": len(generated),
                "true": _plain(best),
                "true_error": _plain(best_error),
                "generated": _plain(ours),
                "generated_error": _plain(our_error),
                "error": None if worst is None else float(100 * gaps[worst]),
                "monte_carlo": None if worst is None else float(100 * both[worst]),
                "strike": None if worst is None else float(STRIKES[worst]),
                "missing": int(np.isnan(ours).sum()),
                "floor": _largest(theirs - best),
            }
        )
    return out


def left_wing(
    generated: Float[np.ndarray, "paths times 1"],
    known: Float[np.ndarray, "more times 1"],
    config: Config,
) -> list[dict[str, Any]]:
    """Implied volatility at log-strike -0.3, far out on the left, in volatility points,
    at the first and last horizon: model, all `known` paths, and the Monte Carlo
    standard error of the difference. `None` where no path pays."""
    strikes, out = np.exp([-0.3]), []
    for index in (config.horizons[0], config.horizons[-1]):
        time = index / config.steps
        pairs = [smile(x[:, index, 0], time, strikes) for x in (generated, known)]
        (ours,), (truth,) = (_plain(100 * found) for found, _ in pairs)
        error = 100 * float(np.hypot(*(error[0] for _, error in pairs)))
        both = ours is not None and truth is not None
        out.append(
            {
                "time": time,
                "generated": ours,
                "true": truth,
                "monte_carlo": error if both else None,
            }
        )
    return out


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in values]


def _largest(gaps: np.ndarray) -> float | None:
    return None if np.isnan(gaps).all() else float(100 * np.nanmax(np.abs(gaps)))
