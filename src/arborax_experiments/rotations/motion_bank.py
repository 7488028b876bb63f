"""Laws of motion: the forecast of each from observed rotations, and its evidence."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from .candidates import Bundle, Developed


class MotionBank(eqx.Module):
    r"""Posterior means under many laws of motion, each with its evidence.

    Gaussian laws: components of the angular velocity in the body frame are independent
    with covariance $a^2 k(t/\tau)\cos(\nu t)$, $k$ that of Matérn of smoothness 3/2.
    Torque-free laws: a rigid body with given moments of inertia about the axes of its
    frame, the velocity in the middle normal with variance $a^2$; its equation is
    linearised about a velocity fitted to the observations. Under all of them
    observations carry noise of standard deviation $\sigma$, and the common scale is
    integrated out. Logits are logarithms of the evidence: with them the
    weighted mean of the paths is the Bayesian forecast under this family. Nothing is
    trained.

    Slow Gaussian laws at a high ratio are polynomials that stiffen with noise, fast
    ones turn back to where they came from. Integrals over frequency are sums over
    `nodes` points, $\nu + \sqrt3 \tan(\theta)/\tau$ with weights $\cos^2\theta$ at
    equal steps of $\theta$. Cost: $O(n^3)$ per law for $n$ observations.

    **Fields:**

    - `shapes`: pairs $(\nu, \tau)$ in samples.
    - `ratios`: values of $a/\sigma$ in samples; each with each shape is one law.
    - `bodies`: moments of inertia, up to a factor; each with each ratio from 0.5 on is
        one law. Those with three different moments do not commute with rotations of
        the body.
    - `nodes`: see above.
    """

    shapes: tuple[tuple[float, float], ...] = eqx.field(
        static=True,
        default=(
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
    )
    ratios: tuple[float, ...] = eqx.field(
        static=True, default=(0.05, 0.2, 0.7, 2.5, 10.0, 100.0)
    )
    bodies: tuple[tuple[float, ...], ...] = eqx.field(
        static=True, default=tuple(itertools.permutations((1.0, 2.0, 3.0)))
    )
    nodes: int = eqx.field(static=True, default=8)

    @property
    def laws(self) -> np.ndarray:
        """Shape, ratio and body of each law, by number `(laws, 3)`; the shape after the
        last one is a constant velocity, body zero is none."""
        shapes, ratios = range(len(self.shapes)), range(len(self.ratios))
        gaussian = [(s, r, 0) for s in shapes for r in ratios]
        stiff = [r for r in ratios if self.ratios[r] >= 0.5]
        bodies = range(1, len(self.bodies) + 1)
        return np.array(gaussian + [(len(shapes), r, b) for b in bodies for r in stiff])

    @property
    def count(self) -> int:
        """Number of paths."""
        return len(self.laws) + 1

    @property
    def num_features(self) -> int:
        """Length of the features."""
        return len(self.shapes) + 1 + len(self.ratios) + 2

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
        coefficients give the law of the path at unit amplitude. The last shape is a
        constant velocity."""
        frequencies, weights = self.spectrum()
        f = jnp.asarray(frequencies, t.dtype)[:, None]
        w = jnp.asarray(np.sqrt(weights) / frequencies, t.dtype)[:, None]
        angle = t[None, :, None] * f
        terms = [w * jnp.sin(angle), w * 2 * jnp.sin(angle / 2) ** 2]
        waves = jnp.concatenate(terms, axis=2)
        line = jnp.pad(t[:, None], [(0, 0), (0, waves.shape[2] - 1)])
        return jnp.concatenate([waves, line[None]])

    def __call__(self, ts, rotations, times, mask=None) -> Bundle:
        seen = Developed(ts, rotations, mask)
        dtype = rotations.dtype
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
        # The value at the origin is observed with noise, like the others; its unknown
        # level has ten times the variance of the noise.
        level = 10 * there[:, None] * jnp.append(there, jnp.ones_like(future))[None]
        kernel = jnp.einsum("sif,sjf->sij", basis, every)[shape] * square + level[None]
        gram = kernel[:, :, :samples] + jnp.eye(samples, dtype=dtype)[None]
        solved, fit, logdet = jax.vmap(_solve)(gram, data[body])
        degrees = 3 * (jnp.sum(there) - 1)
        scale = (fit + 1e-10) / degrees
        logits = jax.nn.log_softmax(-1.5 * logdet - degrees / 2 * jnp.log(scale))
        # A sum of products runs faster here than many small matrix products.
        ahead = kernel[:, :, None, samples:] * solved[..., None]
        paths = jnp.swapaxes(jnp.sum(ahead, axis=1), 1, 2) + bend_future[body]
        still = jnp.broadcast_to(seen.last, (1, times.shape[0], 3))
        return Bundle(
            seen.anchor,
            seen.origin,
            jnp.concatenate([paths, still]),
            jnp.append(logits, -4),
            self._features(jnp.exp(logits), scale, paths[:, -1]),
        )

    def _bends(self, seen: Developed, there, past, future) -> tuple[Array, Array]:
        """How each body departs from a constant velocity before and after the origin,
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

    def _features(self, weights, scale, ends) -> Float[Array, " features"]:
        shape, ratio, _ = self.laws.T
        kinds = jnp.zeros((len(self.shapes) + 1,), weights.dtype).at[shape].add(weights)
        sizes = jnp.zeros((len(self.ratios),), weights.dtype).at[ratio].add(weights)
        shares = jnp.concatenate([kinds, sizes])
        spread = jnp.sum(
            weights * jnp.sum((ends - (weights @ ends)[None]) ** 2, axis=1)
        )
        levels = jnp.stack([weights @ scale, spread])
        return jnp.concatenate(
            [jnp.log(shares + 1e-3) / 3 + 1, jnp.log(levels + 1e-8) / 4 + 2]
        )


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
