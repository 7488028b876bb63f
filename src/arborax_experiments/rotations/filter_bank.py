"""Forecasts under many laws of motion, weighted by their evidence."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from arborax.geometry import SO

from .extrapolators import AbstractExtrapolator
from .learned_extrapolators import log_step


BODIES = tuple(itertools.permutations((1.0, 2.0, 3.0)))
REACH = 4  # numbers in the table of reaches


class FilterBank(AbstractExtrapolator):
    r"""The mean of Gaussian forecasts, each weighted by the evidence of its law.

    Observations are developed into $\mathbb{R}^3$: sums of increments in the body
    frame, about the middle one. Each law gives the posterior mean of that path at all
    times; the forecast is the development of the weighted mean.

    Gaussian laws: components of the angular velocity are independent with covariance
    $a^2 k(t/\tau)\cos(\nu t)$, $k$ that of Matérn of smoothness 3/2. Torque-free laws:
    a rigid body with given moments of inertia about the axes of its frame, its equation
    linearised about a velocity fitted to the observations. Under all of them the
    observations have noise of standard deviation $\sigma$; the common scale is
    integrated out. A last law stays at the last observation.

    Untrained (`learned=False`) the weights are Bayesian, with equal prior weights, and
    no number is trained. Trained are a prior weight of each law, the power of the
    evidence (below one if observations say less than the noise model claims), and how
    much of the forecast displacement is used, as a function of the horizon. With
    `seconds` each of them is linear in the logarithm of the mean step.

    Slow Gaussian laws at a high ratio are polynomials that stiffen with noise, fast
    ones turn back. Integrals over frequency are sums over `nodes` points, $\nu + \sqrt3
    \tan(\theta)/\tau$ with weights $\cos^2\theta$ at equal steps of $\theta$. Cost:
    $O(n^3)$ per law for $n$ observations.

    **Fields:**

    - `prior`, `trust`, `reach`: the trained numbers, or `None`.
    - `shapes`: pairs $(\nu, \tau)$ in samples.
    - `ratios`: values of $a/\sigma$ in samples; each with each shape is one law.
    - `bodies`: moments of inertia, up to a factor; each with each ratio from 0.5 on is
        one law.
    - `nodes`: see above.
    """

    prior: Float[Array, "terms laws"] | None
    trust: Float[Array, " terms"] | None
    reach: Float[Array, "terms knots"] | None
    shapes: tuple[tuple[float, float], ...] = eqx.field(static=True)
    ratios: tuple[float, ...] = eqx.field(static=True)
    bodies: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    nodes: int = eqx.field(static=True)

    def __init__(
        self,
        *,
        learned: bool = False,
        seconds: bool = False,
        shapes: tuple[tuple[float, float], ...] = (
            (0.0, 1.0),
            (0.0, 3.0),
            (0.0, 8.0),
            (0.0, 25.0),
            (0.0, 120.0),
            (0.12, 10.0),
            (0.3, 6.0),
            (0.3, 25.0),
            (0.8, 4.0),
            (0.8, 20.0),
        ),
        ratios: tuple[float, ...] = (0.05, 0.2, 0.7, 2.5, 10.0, 100.0),
        bodies: tuple[tuple[float, ...], ...] = (),
        nodes: int = 8,
        dtype: Any = None,
    ):
        """**Arguments:**

        - `learned`: whether there are numbers to train.
        - `seconds`: times are in seconds, and that matters to these numbers.
        - `dtype`: of these numbers.
        - All others: see the fields. The defaults are 60 Gaussian laws.
        """
        self.shapes, self.ratios, self.bodies = shapes, ratios, bodies
        self.nodes = nodes
        self.prior = self.trust = self.reach = None
        if learned:
            start = jnp.array([1.0, 0.0][: 1 + seconds], dtype)
            self.prior = jnp.zeros((1 + seconds, len(self.laws) + 1), start.dtype)
            self.trust = start
            self.reach = jnp.tile(start[:, None], (1, REACH))

    @property
    def laws(self) -> np.ndarray:
        """Shape, ratio and body of each law, by number `(laws, 3)`; the shape after the
        last one is a constant velocity, body zero is none."""
        shapes, ratios = range(len(self.shapes)), range(len(self.ratios))
        gaussian = [(s, r, 0) for s in shapes for r in ratios]
        stiff = [r for r in ratios if self.ratios[r] >= 0.5]
        bodies = range(1, len(self.bodies) + 1)
        return np.array(gaussian + [(len(shapes), r, b) for b in bodies for r in stiff])

    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Frequencies `(shapes, nodes)` and weights of sum one."""
        place = (np.arange(self.nodes) + 0.5) / self.nodes
        frequencies, weights = [], []
        for carrier, memory in self.shapes:
            # Without a carrier the spectrum is even, and half of it is enough.
            theta = np.pi / 2 * place if carrier == 0 else np.pi * (place - 0.5)
            found = np.abs(carrier + np.sqrt(3) * np.tan(theta) / memory)
            frequencies.append(np.clip(found, 1e-3, np.pi))
            weights.append(np.cos(theta) ** 2 / np.sum(np.cos(theta) ** 2))
        return np.stack(frequencies), np.stack(weights)

    def basis(self, t: Float[Array, " times"]) -> Float[Array, "shapes times terms"]:
        """Integrals from zero of cosines and sines, scaled: independent standard normal
        coefficients give the law of the path at unit amplitude. Last a constant
        velocity."""
        frequencies, weights = self.spectrum()
        f = jnp.asarray(frequencies, t.dtype)[:, None]
        w = jnp.asarray(np.sqrt(weights) / frequencies, t.dtype)[:, None]
        angle = t[None, :, None] * f
        terms = [w * jnp.sin(angle), w * 2 * jnp.sin(angle / 2) ** 2]
        waves = jnp.concatenate(terms, axis=2)
        line = jnp.pad(t[:, None], [(0, 0), (0, waves.shape[2] - 1)])
        return jnp.concatenate([waves, line[None]])

    def candidates(
        self, seen: Any, ts: Array, times: Array
    ) -> tuple[Float[Array, "laws times 3"], Float[Array, " laws"]]:
        """The path of each law, and the logarithm of its evidence; last the path that
        stays."""
        dtype = seen.values.dtype
        there = seen.mask.astype(dtype)
        samples = ts.shape[0]
        unit = (ts[-1] - ts[0]) / (samples - 1)
        past = ((ts - seen.origin) / unit).astype(dtype)
        future = ((times - seen.origin) / unit).astype(dtype)
        shape, ratio, body = self.laws.T
        bend_past, bend_future = self._bends(seen, there, past, future)
        data = seen.values[None] - there[None, :, None] * bend_past
        basis = self.basis(past) * there[None, :, None]
        every = jnp.concatenate([basis, self.basis(future)], axis=1)
        square = jnp.asarray(np.square(self.ratios), dtype)[ratio][:, None, None]
        # The value at the origin is observed like the others: noise, and ten times its
        # variance for what is not known.
        level = 10 * there[:, None] * jnp.append(there, jnp.ones_like(future))[None]
        kernel = jnp.einsum("sif,sjf->sij", basis, every)[shape] * square + level[None]
        gram = kernel[:, :, :samples] + jnp.eye(samples, dtype=dtype)[None]
        solved, fit, logdet = jax.vmap(_solve)(gram, data[body])
        degrees = 3 * (jnp.sum(there) - 1)
        logits = -1.5 * logdet - degrees / 2 * jnp.log((fit + 1e-10) / degrees)
        # A sum of products runs faster here than many small matrix products.
        ahead = kernel[:, :, None, samples:] * solved[..., None]
        paths = jnp.swapaxes(jnp.sum(ahead, axis=1), 1, 2) + bend_future[body]
        still = jnp.broadcast_to(seen.last, (1, times.shape[0], 3))
        evidence = jnp.append(jax.nn.log_softmax(logits), -4)
        return jnp.concatenate([paths, still]), evidence

    def __call__(self, ts, rotations, times, mask=None):
        seen = Developed(ts, rotations, mask)
        return seen.development(self.path(seen, ts, times), times)

    def path(self, seen: Any, ts: Array, times: Array) -> Float[Array, "times 3"]:
        """The forecast of a path in three dimensions, all that is not about rotations:
        `seen` has `mask`, `origin`, `values` and `last` as `Developed` has."""
        paths, evidence = self.candidates(seen, ts, times)
        if self.prior is None or self.trust is None or self.reach is None:
            return jnp.tensordot(jax.nn.softmax(evidence), paths, 1)
        dtype = paths.dtype
        terms = jnp.stack([jnp.ones((), dtype), log_step(ts, dtype)])
        terms = terms[: self.trust.shape[0]]
        evidence = (terms @ self.trust) * evidence + terms @ self.prior
        path = jnp.tensordot(jax.nn.softmax(evidence), paths, 1)
        horizon = jnp.clip((times - ts[-1]) / (ts[-1] - ts[0]), 0, 1).astype(dtype)
        knots = jnp.linspace(0, 1, REACH, dtype=dtype)
        part = jnp.interp(horizon, knots, terms @ self.reach)
        part = jnp.where(horizon > 0, part, 1)[:, None]
        return seen.last[None] + part * (path - seen.last[None])

    def _bends(self, seen: Any, there, past, future) -> tuple[Array, Array]:
        """How each body leaves the line of its velocity at the origin, before and after
        `(1 + bodies, times, 3)`; the velocity is fitted to the observations."""
        none = [jnp.zeros((1, len(t), 3), past.dtype) for t in (past, future)]
        if not self.bodies:
            return none[0], none[1]
        a, b, c = np.asarray(self.bodies).T
        torques = np.stack([(b - c) / a, (c - a) / b, (a - b) / c], axis=1)
        centred = there * (past - jnp.sum(there * past) / jnp.sum(there))
        weights = centred / jnp.sum(centred**2)

        def bends(torque):
            velocity = weights @ seen.values
            for _ in range(2):
                bend = _torque_free(torque, velocity, past)
                velocity = weights @ (seen.values - bend)
            return tuple(_torque_free(torque, velocity, t) for t in (past, future))

        found = jax.vmap(bends)(jnp.asarray(torques, past.dtype))
        before, after = (jnp.concatenate(pair) for pair in zip(none, found))
        return before, after


class Developed(eqx.Module):
    r"""Observations as a path in $\mathbb{R}^3$: sums of their increments in the body
    frame, about the middle one.

    - `anchor`, `origin`: the middle observation, and its time.
    - `values`: `(samples, 3)`, zero where nothing was observed.
    """

    anchor: Float[Array, "3 3"]
    origin: Float[Array, ""]
    mask: Bool[Array, " samples"]
    values: Float[Array, "samples 3"]

    def __init__(self, ts, rotations, mask):
        count = rotations.shape[0]
        if count < 2:
            raise ValueError(f"an extrapolator needs two observations, got {count}.")
        index = jnp.arange(count)
        self.mask = jnp.ones((count,), bool) if mask is None else mask
        middle = jnp.argmin(jnp.where(self.mask, jnp.abs(index - count // 2), count))
        self.anchor, self.origin = rotations[middle], ts[middle]
        present = self.mask[:, None, None]
        rotations = jnp.where(present, rotations, self.anchor[None])
        last = jax.lax.cummax(jnp.where(self.mask, index, 0))
        before = rotations[jnp.concatenate([last[:1], last[:-1]])]
        steps = jax.vmap(SO(3).log)(before, rotations)
        moving = self.mask & (index > jnp.argmax(self.mask))
        total = jnp.cumsum(jnp.where(moving[:, None], steps, 0), axis=0)
        self.values = jnp.where(self.mask[:, None], total - total[middle][None], 0)

    @property
    def last(self) -> Float[Array, " 3"]:
        """The value at the last observation."""
        index = jnp.arange(self.mask.shape[0])
        return self.values[jnp.max(jnp.where(self.mask, index, 0))]

    def development(
        self, path: Float[Array, "times 3"], times: Float[Array, " times"]
    ) -> Float[Array, "times 3 3"]:
        r"""The rotations $dR = R\,\hat{dx}$, step by step from the time next to the
        origin, where $x = 0$ stands for the anchor."""
        eye = jnp.eye(3, dtype=path.dtype)
        turns = jax.vmap(lambda u: SO(3).exp(eye, u))(jnp.diff(path, axis=0))
        found = [eye]
        for k in range(path.shape[0] - 1):
            found.append(found[-1] @ turns[k])
        rotations = jnp.stack(found)
        near = jnp.argmin(jnp.abs(times - self.origin))
        start = SO(3).exp(self.anchor, path[near]) @ rotations[near].T
        return jnp.matmul(start[None], rotations)


def _solve(matrix: Float[Array, "n n"], right: Float[Array, "n 3"]) -> Any:
    r"""$C^{-1} y$, $\mathrm{tr}(y^\top C^{-1} y)$ and $\log\det C$ of a symmetric
    positive matrix."""
    factor = jnp.linalg.cholesky(matrix)
    half = solve_triangular(factor, right, lower=True)
    whole = solve_triangular(factor, half, lower=True, trans=1)
    return whole, jnp.sum(half**2), 2 * jnp.sum(jnp.log(jnp.diag(factor)))


def _torque_free(
    torque: Float[Array, " 3"],
    velocity: Float[Array, " 3"],
    t: Float[Array, " times"],
) -> Float[Array, "times 3"]:
    r"""The integral of $\omega - \omega_0$ along Euler's equations $\dot\omega_i =
    c_i \omega_j \omega_k$, by a Taylor series of order four.

    The series is good while the body turns by less than about two radians; a velocity
    above 0.15 per sample is taken to be that.
    """
    size = jnp.sqrt(jnp.sum(velocity**2) + 1e-20)
    w = velocity * jnp.minimum(1, 0.15 / size)

    def product(a, b):
        after, later = jnp.roll(a, -1) * jnp.roll(b, -2), jnp.roll(b, -1)
        return torque * (after + later * jnp.roll(a, -2)) / 2

    first = product(w, w)
    second = 2 * product(w, first)
    third = 2 * product(first, first) + 2 * product(w, second)
    first, second, third, s = first[None], second[None], third[None], t[:, None]
    return s**2 * (first / 2 + s * (second / 6 + s * third / 24))
