"""Real returns: the S&P 500 in windows, and references that need no training."""

import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.datasets import PathData, Splits


BURN_IN = 250  # days until a simulated variance has forgotten its start
BLOCK = 20  # days of a block of the bootstrap


def _of_arch(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            "these data come with the package arch: pip install 'arborax[data]'."
        ) from error


def read_returns() -> Float[np.ndarray, " days"]:
    """Daily log-returns of the S&P 500, 1999 to 2018 (data of the package `arch`)."""
    prices = _of_arch("arch.data.sp500").load()["Adj Close"]
    return np.diff(np.log(prices.to_numpy(np.float64)))


def read_windows(steps: int) -> Splits:
    """Log-prices of all windows of `steps` days, from zero. Training, validation and
    test windows are of 60, 10 and 30 per cent of the days, in this order, and share no
    day."""
    returns = read_returns()
    ends = (np.array([0, 0.6, 0.7, 1]) * len(returns)).astype(int)
    ts, parts = np.linspace(0, 1, steps + 1, dtype=np.float32), []
    for first, last in zip(ends[:-1], ends[1:]):
        rows = np.lib.stride_tricks.sliding_window_view(returns[first:last], steps)
        values = np.pad(np.cumsum(rows, axis=1), [(0, 0), (1, 0)])[..., None]
        parts.append(PathData(ts, values.astype(np.float32), None))
    return Splits(*parts)


def _from_zero(returns: Float[Array, "paths steps"]) -> Float[Array, "paths times 1"]:
    return jnp.pad(jnp.cumsum(returns, axis=1), [(0, 0), (1, 0)])[..., None]


class Bootstrap(eqx.Module):
    """Blocks of `BLOCK` consecutive training days, drawn independently."""

    returns: Float[np.ndarray, " days"]

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times 1"]:
        """Paths from zero."""
        steps, days = len(ts) - 1, len(self.returns)
        shape = (paths, -(-steps // BLOCK), 1)
        starts = jr.randint(key, shape, 0, days - BLOCK + 1)
        rows = (starts + jnp.arange(BLOCK)[None, None]).reshape(paths, -1)
        return _from_zero(jnp.asarray(self.returns)[rows[:, :steps]])


class Garch(eqx.Module):
    """GARCH(1,1) with Gaussian noise, fitted to the training days by `arch`; in per
    cent."""

    mean: float
    omega: float
    alpha: float
    beta: float

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times 1"]:
        """Paths from zero, after a burn-in from the stationary variance."""
        steps = len(ts) - 1
        normal = jr.normal(key, (BURN_IN + steps, paths), ts.dtype)

        def step(variance, z):
            shock = jnp.sqrt(variance) * z
            after = self.omega + self.alpha * shock**2 + self.beta * variance
            return after, self.mean + shock

        stationary = self.omega / (1 - self.alpha - self.beta)
        _, returns = jax.lax.scan(step, jnp.full((paths,), stationary), normal)
        return _from_zero(returns[BURN_IN:].T / 100)


def reference(name: str) -> Any:
    """The reference `"garch"` or `"bootstrap"` of the training days."""
    returns = read_returns()
    returns = returns[: int(0.6 * len(returns))]
    if name == "bootstrap":
        return Bootstrap(returns.astype(np.float32))
    found = _of_arch("arch").arch_model(100 * returns, p=1, q=1).fit(disp="off")
    # In the order mean, omega, alpha, beta.
    return Garch(*map(float, found.params.to_numpy()))
