"""Local polynomials through noisy rotations."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Bool, Float

from arborax.geometry import SO


class SavitzkyGolayRotation(eqx.Module):
    r"""Least-squares polynomial of rotation vectors about the middle sample.

    With $R_c$ the sample number `n // 2`, rotation vectors $\varphi_k = \log(R_k
    R_c^\top)$ are fitted by a polynomial $\varphi(t)$ of the given order, axis by axis;
    $R(t) = \exp(\varphi(t)) R_c$ is a rotation at every time, also beyond the samples.
    Times may be irregular and samples may be missing; the middle sample is then the
    nearest one present. A body that turns by more than $\pi$ is followed: each
    vector is taken on the branch of the logarithm closest to the sum of the increments,
    as long as neighbours are less than $\pi$ apart.

    ??? cite "Reference"

        M. Jongeneel, A. Saccon, Geometric Savitzky-Golay filtering of noisy rotations
        on SO(3) with simultaneous angular velocity and acceleration estimation, IROS
        2022.
    """

    centre: Float[Array, "3 3"]
    origin: Float[Array, ""]
    span: Float[Array, ""]
    coefficients: Float[Array, "powers 3"]

    def __init__(
        self,
        ts: Float[Array, " samples"],
        rotations: Float[Array, "samples 3 3"],
        order: int = 3,
        weights: Float[Array, " samples"] | None = None,
        mask: Bool[Array, " samples"] | None = None,
    ):
        """**Arguments:**

        - `ts`: times of the samples.
        - `rotations`: the samples.
        - `order`: of the polynomial, less than the number of samples.
        - `weights`: positive weights of the samples; equal by default.
        - `mask`: which samples are present, more than `order`; all by default. The
            others are ignored.
        """
        count = rotations.shape[0]
        if not 0 <= order < count:
            raise ValueError(
                f"a polynomial of order {order} needs more than {order} samples, got "
                f"{count}."
            )
        chart = RotationChart(ts, rotations, mask)
        self.centre, self.origin, self.span = chart.centre, chart.origin, chart.span
        basis = powers(chart.place, order + 1)
        w = jnp.ones_like(chart.place) if weights is None else weights
        # Orthogonal decomposition: normal equations lose half of the digits.
        root = jnp.where(chart.mask, jnp.sqrt(w), 0)[:, None]
        q, inverse = orthonormal(root * basis)
        target = jnp.matmul(q.T, root * chart.vectors, precision=Precision.HIGHEST)
        self.coefficients = jnp.matmul(inverse, target, precision=Precision.HIGHEST)

    def rotation_vector(self, t: Float[Array, ""]) -> Float[Array, " 3"]:
        """The polynomial at `t`."""
        place = ((t - self.origin) / self.span).astype(self.coefficients.dtype)
        return powers(place[None], self.coefficients.shape[0])[0] @ self.coefficients

    def evaluate(self, t: Float[Array, ""]) -> Float[Array, "3 3"]:
        """The rotation at `t`."""
        eye = jnp.eye(3, dtype=self.centre.dtype)
        turn = SO(3).exp(eye, self.rotation_vector(t))
        return jnp.matmul(turn, self.centre, precision=Precision.HIGHEST)

    def derivative(self, t: Float[Array, ""]) -> Float[Array, "3 3"]:
        """Time derivative of the rotation."""
        return jax.jvp(self.evaluate, (t,), (jnp.ones_like(t),))[1]


class RotationChart(eqx.Module):
    r"""Rotation vectors of samples about the middle one, $\log(R_k R_c^\top)$.

    - `mask`: which samples are present; vectors of the others are zero.
    - `place`: times about that of the middle sample, in units of `span`.
    """

    centre: Float[Array, "3 3"]
    origin: Float[Array, ""]
    span: Float[Array, ""]
    mask: Bool[Array, " samples"]
    place: Float[Array, " samples"]
    vectors: Float[Array, "samples 3"]

    def __init__(
        self,
        ts: Float[Array, " samples"],
        rotations: Float[Array, "samples 3 3"],
        mask: Bool[Array, " samples"] | None = None,
    ):
        count = rotations.shape[0]
        index = jnp.arange(count)
        self.mask = jnp.ones((count,), bool) if mask is None else mask
        far = jnp.where(self.mask, jnp.abs(index - count // 2), count)
        middle = jnp.argmin(far)
        missing = ~self.mask[:, None, None]
        rotations = jnp.where(missing, rotations[middle][None], rotations)
        self.centre = rotations[middle]
        self.origin = ts[middle]
        self.span = ts[-1] - ts[0]
        self.place = ((ts - self.origin) / self.span).astype(rotations.dtype)
        relative = jnp.matmul(rotations, self.centre.T, precision=Precision.HIGHEST)
        eye = jnp.eye(3, dtype=rotations.dtype)
        vectors = jax.vmap(lambda r: SO(3).log(eye, r))(relative)
        self.vectors = _unwrapped(vectors, self._travelled(rotations, middle))

    def _travelled(self, rotations, middle) -> Float[Array, "samples 3"]:
        """Sums of increments from the middle sample, in its frame."""
        count = rotations.shape[0]
        index = jnp.arange(count)
        last = jax.lax.cummax(jnp.where(self.mask, index, 0))
        previous = rotations[jnp.concatenate([last[:1], last[:-1]])]
        turn = jnp.einsum("kij,klj->kil", rotations, previous)
        eye = jnp.eye(3, dtype=rotations.dtype)
        steps = jax.vmap(lambda r: SO(3).log(eye, r))(turn)
        first = jnp.argmax(self.mask)
        steps = jnp.where((self.mask & (index > first))[:, None], steps, 0)
        total = jnp.cumsum(steps, axis=0)
        return total - total[middle][None]


def _unwrapped(
    vectors: Float[Array, "samples 3"], travelled: Float[Array, "samples 3"]
) -> Float[Array, "samples 3"]:
    """Rotation vectors on the branch nearest to what was travelled."""
    square = jnp.sum(vectors**2, axis=1, keepdims=True)
    tiny = square < 1e-12
    angle = jnp.sqrt(jnp.where(tiny, 1, square))
    axis = vectors / angle
    along = jnp.sum(axis * travelled, axis=1, keepdims=True)
    turns = jnp.round((along - angle) / (2 * jnp.pi))
    return jnp.where(tiny, vectors, vectors + 2 * jnp.pi * turns * axis)


def orthonormal(
    columns: Float[Array, "samples powers"],
) -> tuple[Float[Array, "samples powers"], Float[Array, "powers powers"]]:
    """`q` and `u`, with `columns @ u = q` orthonormal and `u` upper triangular.

    Gram-Schmidt, each column twice, written out: under `vmap` a few columns run many
    times faster than calls of a library for each matrix.
    """
    count = columns.shape[1]
    eye = jnp.eye(count, dtype=columns.dtype)
    found, maps = [], []
    for k in range(count):
        vector, row = columns[:, k], eye[k]
        for _ in range(2):
            for other, used in zip(found, maps):
                part = jnp.sum(other * vector)
                vector, row = vector - part * other, row - part * used
        size = jax.lax.rsqrt(jnp.sum(vector**2))
        found.append(size * vector)
        maps.append(size * row)
    return jnp.stack(found, axis=1), jnp.stack(maps, axis=1)


def powers(x: Float[Array, " points"], count: int) -> Float[Array, "points powers"]:
    columns = [jnp.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return jnp.stack(columns, axis=1)
