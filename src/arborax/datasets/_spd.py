"""A diffusion of covariance matrices: affine-invariant Ornstein-Uhlenbeck."""

import dataclasses
import math
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._inputs import as_choice, as_count, as_number, as_numbers
from .._values import shown
from ._law import AbstractLaw


N = 3
ROWS, COLUMNS = np.tril_indices(N)
PLACE = np.zeros((N, N), int)
PLACE[ROWS, COLUMNS] = PLACE[COLUMNS, ROWS] = np.arange(ROWS.size)

Matrix = list[list[Array]]  # entries are arrays over paths, which XLA fuses


@dataclasses.dataclass(frozen=True)
class SPDDiffusion(AbstractLaw):
    r"""Ornstein-Uhlenbeck on symmetric positive definite 3x3 matrices from the
    identity, $dX = \eta \log_X(M)\, dt + \sigma X^{1/2} dB\, X^{1/2}$, with $B$
    symmetric, unit variance on the diagonal and half off it.

    Geodesic Euler-Maruyama, $X_{k+1} = \mathrm{Exp}_{X_k}(V_k)$: never off the cone,
    and the limit is the Itô equation with respect to the Levi-Civita connection of the
    affine-invariant metric (`reading="manifold"`, the published data). Read as an
    ambient Itô equation the same line lacks the drift
    $\frac12 E[V X^{-1} V]/dt = \sigma^2 (n+1)/4\, X$; `reading="ambient"` takes it off,
    and stays on the cone too.

    The step is written with any factor $F F^\top = X$ in place of $X^{1/2}$: the law of
    $B$ is invariant under rotations, so the law of the path is the same.

    Values are lower triangles by rows, 00, 10, 11, 20, 21, 22, off-diagonals unscaled.
    Brackets are a function of the values, 36 numbers per step; they are not stored but
    computed when asked for, by `brackets`. Cost: 1,000 paths of 1,024 steps take about
    a second on one core.

    **Fields:**

    - `eta`, `sigma`: rate and noise.
    - `centre`: lower triangle of $M$.
    - `reading`: `"manifold"` or `"ambient"`.
    """

    has_brackets: ClassVar[bool] = False
    positive: ClassVar[tuple[str, ...]] = ("horizon", "sigma")
    channels: ClassVar[int] = N * (N + 1) // 2
    steps: int = 1024
    eta: float = 0.25
    sigma: float = 0.4
    centre: tuple[float, ...] = (0.1656, 0.02, 0.1552, -0.0048, 0.0408, 0.1592)
    reading: Literal["manifold", "ambient"] = "manifold"

    def check(self) -> None:
        AbstractLaw.check(self)
        as_choice("reading", self.reading, ("manifold", "ambient"))
        as_number("eta", self.eta, 0)
        centre = self.centre
        if not isinstance(centre, tuple) or len(centre) != self.channels:
            raise ValueError(
                f"`centre` is a lower triangle, a tuple of {self.channels} numbers, "
                f"got {shown(centre)}."
            )
        for value in centre:
            as_number("centre", value)
        if not np.linalg.eigvalsh(np.asarray(self.centre)[PLACE]).min() > 0:
            raise ValueError("`centre` must be positive definite.")

    def simulate(self, paths, *, key, dtype):
        dt = self.horizon / self.steps
        extra = 0.0
        if self.reading == "ambient":
            extra = -(self.sigma**2) * (N + 1) / 4 * dt
        one, zero = jnp.ones((paths,), dtype), jnp.zeros((paths,), dtype)
        centre = [[self.centre[k] * one for k in row] for row in PLACE]
        start = [[one if i == j else zero for j in range(N)] for i in range(N)]
        # Entries of the noise: unit variance on the diagonal, half off it.
        scale = self.sigma * np.where(ROWS == COLUMNS, 1.0, math.sqrt(0.5))

        def step(factor, key):
            inverse = _inverse(factor)
            noise = math.sqrt(dt) * jr.normal(key, (self.channels, paths), dtype)
            pull = _log(_product(_product(inverse, centre), _transposed(inverse)))
            move = [[zero] * N for _ in range(N)]
            for k, (i, j) in enumerate(zip(ROWS, COLUMNS)):
                value = self.eta * dt * pull[i][j] + float(scale[k]) * noise[k]
                move[i][j] = move[j][i] = (value + (extra if i == j else 0.0)) / 2
            factor = _product(factor, _exp(move))
            return factor, _triangle(factor)

        _, rest = jax.lax.scan(step, start, jr.split(key, self.steps))
        values = jnp.concatenate([_triangle(start)[None], rest])
        return jnp.moveaxis(values, 2, 0), None

    def brackets(
        self,
        values: Float[np.ndarray, "paths times 6"],
        *,
        coordinates: Literal["vech", "log"] = "vech",
        stride: int = 1,
    ) -> Float[np.ndarray, "paths steps 6 6"]:
        r"""Quadratic variation of each step, from the value at its start.

        **Arguments:**

        - `values`: paths of this law on its own grid.
        - `coordinates`: `"vech"`:
            $d\langle X_{ij}, X_{mn}\rangle = \frac{\sigma^2}{2} (X_{im} X_{jn} +
            X_{in} X_{jm}) dt$ between entries of lower triangles; `"log"`: the same for
            the lower triangle of $\log X$.
        - `stride`: sum over every `stride` steps; a last partial sum is left out.

        **Returns:**

        Array `(paths, (times - 1) // stride, 6, 6)`, equal for both readings.
        """
        as_choice("coordinates", coordinates, ("vech", "log"))
        values = np.asarray(as_numbers("values", values))
        if values.ndim != 3 or values.shape[2] != self.channels:
            raise ValueError(
                f"`values` must have shape (paths, times, {self.channels}), got "
                f"{values.shape}."
            )
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise ValueError("`values` must be finite floating numbers.")
        matrices = values[..., PLACE].reshape(-1, N, N)
        if coordinates == "log" and not np.all(np.linalg.eigvalsh(matrices) > 0):
            raise ValueError("`values` must be lower triangles of SPD matrices.")
        count = max(values.shape[1] - 1, 0) // as_count("stride", stride)
        kernel = self._vech_bracket if coordinates == "vech" else self._log_bracket
        out = np.empty((len(values), count, self.channels, self.channels), values.dtype)
        for first in range(0, len(values), 64):  # memory of the full grid
            part = values[first : first + 64, : count * stride]
            fine = kernel(part).reshape(len(part), count, stride, *out.shape[2:])
            out[first : first + 64] = fine.sum(axis=2)
        return out

    def _vech_bracket(self, values: np.ndarray) -> np.ndarray:
        def pick(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return values[..., PLACE[left[:, None], right[None, :]]]

        pairs = pick(ROWS, ROWS) * pick(COLUMNS, COLUMNS)
        pairs += pick(ROWS, COLUMNS) * pick(COLUMNS, ROWS)
        return (self.sigma**2 * self.horizon / self.steps / 2) * pairs

    def _log_bracket(self, values: np.ndarray) -> np.ndarray:
        w, u = np.linalg.eigh(values[..., PLACE])
        # The derivative of the logarithm is diagonal in the basis of eigenvectors;
        # there the noise has the size sqrt(w_i w_j).
        low, high = w[..., COLUMNS], w[..., ROWS]
        half = np.log(high / low) / 2
        near = np.abs(half) < 1e-4
        ratio = np.where(near, 1.0, half / np.sinh(np.where(near, 1.0, half)))
        ratio = ratio * np.where(ROWS == COLUMNS, 1.0, math.sqrt(2.0)) / 2
        a, b = u[..., ROWS][..., ROWS, :], u[..., COLUMNS][..., COLUMNS, :]
        c, d = u[..., COLUMNS][..., ROWS, :], u[..., ROWS][..., COLUMNS, :]
        images = (a * b + c * d) * ratio[..., None, :]
        scale = self.sigma**2 * self.horizon / self.steps
        return (scale * images) @ np.swapaxes(images, -1, -2)


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(r, c)) for c in columns] for r in a]  # pyright: ignore


def _transposed(a: Matrix) -> Matrix:
    return [list(row) for row in zip(*a)]


def _triangle(factor: Matrix) -> Float[Array, "6 paths"]:
    """Lower triangle of `F F^T`."""
    square = _product(factor, _transposed(factor))
    return jnp.stack([square[i][j] for i, j in zip(ROWS, COLUMNS)])


def _exp(a: Matrix) -> Matrix:
    """Exponential of a small matrix: a Taylor polynomial of a quarter, squared twice.

    Exact to single rounding up to norm 1, to 1e-13 at the norms of the default grid.
    """
    one = [[float(i == j) for j in range(N)] for i in range(N)]
    first = [[x / 4 for x in row] for row in a]
    second = _product(first, first)
    powers = [one, first, second, _product(second, first)]

    def combined(weights: list[float]) -> Matrix:
        terms = [(w, p) for w, p in zip(weights, powers) if w]
        indices = range(N)
        return [[sum(w * p[i][j] for w, p in terms) for j in indices] for i in indices]  # pyright: ignore

    high = _product(powers[3], combined([1 / 6, 1 / 24, 1 / 120, 1 / 720]))
    low = combined([1.0, 1.0, 0.5, 0.0])
    out = [[x + y for x, y in zip(*rows)] for rows in zip(low, high)]
    out = _product(out, out)
    return _product(out, out)


def _inverse(a: Matrix) -> Matrix:
    """Inverse of a 3x3 matrix by cofactors."""

    def cofactor(i: int, j: int) -> Array:
        p, q = (i + 1) % 3, (i + 2) % 3
        r, s = (j + 1) % 3, (j + 2) % 3
        return a[p][r] * a[q][s] - a[p][s] * a[q][r]

    minors = [[cofactor(i, j) for j in range(N)] for i in range(N)]
    scale = 1 / sum(x * y for x, y in zip(a[0], minors[0]))
    return [[minors[j][i] * scale for j in range(N)] for i in range(N)]


def _log(a: Matrix) -> Matrix:
    """Logarithm of a symmetric positive definite matrix, by Jacobi rotations."""
    one = jnp.ones_like(a[0][0])
    v: Matrix = [[one * float(i == j) for j in range(N)] for i in range(N)]

    def sweep(_, state):
        a, v = ([list(row) for row in matrix] for matrix in state)
        for p, q in [(0, 1), (0, 2), (1, 2)]:
            off = a[p][q]
            none = off == 0
            slope = (a[q][q] - a[p][p]) / jnp.where(none, 1, 2 * off)
            t = jnp.where(slope < 0, -one, one)
            t = t / (jnp.abs(slope) + jnp.sqrt(slope**2 + 1))
            t = jnp.where(none, 0, t)
            c = 1 / jnp.sqrt(t**2 + 1)
            s = t * c
            a[p][p], a[q][q] = a[p][p] - t * off, a[q][q] + t * off
            a[p][q] = a[q][p] = jnp.zeros_like(off)
            r = N - p - q
            a[r][p], a[r][q] = c * a[r][p] - s * a[r][q], s * a[r][p] + c * a[r][q]
            a[p][r], a[q][r] = a[r][p], a[r][q]
            for row in v:
                row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
        return a, v

    sweeps = 4 if one.dtype == jnp.float32 else 6
    a, v = jax.lax.fori_loop(0, sweeps, sweep, (a, v))
    logs = [jnp.log(a[k][k]) for k in range(N)]
    scaled = [[x * log for x, log in zip(row, logs)] for row in v]
    return _product(scaled, _transposed(v))
