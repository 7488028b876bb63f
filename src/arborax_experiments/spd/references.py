"""References for real covariances without training: EWMA and HAR."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arborax.geometry import cholesky, spd_from_vech

from .coordinates import matrices, size_of, triangles


DECAY = 0.94  # of a day, as RiskMetrics has it
DAYS = (1, 5, 22)  # a day, a week, a month


class Ewma(eqx.Module):
    r"""$\Sigma_{t+1} = \lambda \Sigma_t + (1 - \lambda) r_t r_t^\top$ with Gaussian
    returns $r_t$ of covariance $\Sigma_t$, from the identity; nothing is fitted."""

    size: int = eqx.field(static=True)

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times k"]:
        """Lower triangles, one step per day."""
        shape = (len(ts) - 1, paths, self.size)
        normal = jr.normal(key, shape, ts.dtype)

        def step(sigma, z):
            r = jnp.einsum("pij,pj->pi", jax.vmap(cholesky)(sigma), z)
            sigma = DECAY * sigma + (1 - DECAY) * r[:, :, None] * r[:, None, :]
            return sigma, sigma

        start = jnp.tile(jnp.eye(self.size, dtype=ts.dtype), (paths, 1, 1))
        _, later = jax.lax.scan(step, start, normal)
        whole = jnp.concatenate([start[None], later])
        return triangles(jnp.moveaxis(whole, 0, 1))


class Har(eqx.Module):
    """Each coordinate of the logarithm moves by a linear function of its means over the
    last day, week and month, plus a day's residuals of training windows, drawn with all
    coordinates together. Days before the window count as its first one."""

    weights: Float[np.ndarray, "4 k"]
    residuals: Float[np.ndarray, "days k"]

    def __init__(self, train: Float[np.ndarray, "paths times k"]):
        """Least squares on the steps of the training windows, by coordinate."""
        w, u = np.linalg.eigh(matrices(train.astype(np.float64)))
        logs = triangles(np.einsum("...ik,...k,...jk->...ij", u, np.log(w), u))
        moves, means = np.diff(logs, axis=1), _means(logs)[:, :, :-1]
        weights, residuals = [], []
        for k in range(logs.shape[-1]):
            rows = np.column_stack(
                [np.ones(moves[..., k].size), *(m[..., k].ravel() for m in means)]
            )
            target = moves[..., k].ravel()
            found = np.linalg.lstsq(rows, target, rcond=None)[0]
            weights.append(found)
            residuals.append(target - rows @ found)
        self.weights = np.stack(weights, axis=1).astype(np.float32)
        self.residuals = np.stack(residuals, axis=1).astype(np.float32)

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times k"]:
        """Lower triangles, one step per day."""
        steps, (days, k) = len(ts) - 1, self.residuals.shape
        drawn: Int[Array, "steps paths"] = jr.randint(key, (steps, paths), 0, days)

        def step(past, rows):
            means = [past[:, -n:].mean(axis=1) for n in DAYS]
            trend = sum(w[None] * m for w, m in zip(self.weights[1:], means))
            moved = past[:, -1] + self.weights[None, 0] + trend
            new = moved + jnp.asarray(self.residuals)[rows]
            return jnp.concatenate([past[:, 1:], new[:, None]], axis=1), new

        start = jnp.zeros((paths, DAYS[-1], k), ts.dtype)
        _, later = jax.lax.scan(step, start, drawn)
        logs = jnp.concatenate([start[:, :1], jnp.moveaxis(later, 0, 1)], axis=1)
        return triangles(jax.vmap(jax.vmap(spd_from_vech))(logs))


def _means(logs: np.ndarray) -> np.ndarray:
    """Means over the last `DAYS`, by day; the first day repeated before the start."""
    longest = DAYS[-1]
    padded = np.concatenate([np.repeat(logs[:, :1], longest, axis=1), logs], axis=1)
    sums = np.cumsum(padded, axis=1)
    last = longest + np.arange(logs.shape[1])
    return np.stack([(sums[:, last] - sums[:, last - n]) / n for n in DAYS])


def reference(name: str, train: Float[np.ndarray, "paths times k"]) -> Ewma | Har:
    """The reference `"ewma"` or `"har"` of training windows."""
    return Ewma(size_of(train.shape[-1])) if name == "ewma" else Har(train)
