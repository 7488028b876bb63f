"""Local polynomials through noisy rotations."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float

from ..geometry import SO


class SavitzkyGolayRotation(eqx.Module):
    r"""Least-squares polynomial of rotation vectors about the middle sample.

    With $R_c$ the sample number `n // 2`, rotation vectors $\varphi_k = \log(R_k
    R_c^\top)$ are fitted by a polynomial $\varphi(t)$ of the given order, axis by axis;
    $R(t) = \exp(\varphi(t)) R_c$ is a rotation at every time, also beyond the samples.
    All samples must lie within an angle below $\pi$ of the middle one.

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
    ):
        """**Arguments:**

        - `ts`: times of the samples.
        - `rotations`: the samples.
        - `order`: of the polynomial, less than the number of samples.
        - `weights`: positive weights of the samples; equal by default.
        """
        count = rotations.shape[0]
        if not 0 <= order < count:
            raise ValueError(
                f"a polynomial of order {order} needs more than {order} samples, got "
                f"{count}."
            )
        middle = count // 2
        self.centre = rotations[middle]
        self.origin = ts[middle]
        self.span = ts[-1] - ts[0]
        eye = jnp.eye(3, dtype=rotations.dtype)
        relative = jnp.matmul(rotations, self.centre.T, precision=Precision.HIGHEST)
        phi = jax.vmap(lambda r: SO(3).log(eye, r))(relative)
        place = ((ts - self.origin) / self.span).astype(phi.dtype)
        basis = _powers(place, order + 1)
        w = jnp.ones_like(place) if weights is None else weights
        # Orthogonal decomposition: normal equations lose half of the digits.
        root = jnp.sqrt(w)[:, None]
        q, r = jnp.linalg.qr(root * basis)
        target = jnp.matmul(q.T, root * phi, precision=Precision.HIGHEST)
        self.coefficients = jax.scipy.linalg.solve_triangular(r, target)

    def rotation_vector(self, t: Float[Array, ""]) -> Float[Array, " 3"]:
        """The polynomial at `t`."""
        place = ((t - self.origin) / self.span).astype(self.coefficients.dtype)
        return _powers(place[None], self.coefficients.shape[0])[0] @ self.coefficients

    def evaluate(self, t: Float[Array, ""]) -> Float[Array, "3 3"]:
        """The rotation at `t`."""
        eye = jnp.eye(3, dtype=self.centre.dtype)
        turn = SO(3).exp(eye, self.rotation_vector(t))
        return jnp.matmul(turn, self.centre, precision=Precision.HIGHEST)

    def derivative(self, t: Float[Array, ""]) -> Float[Array, "3 3"]:
        """Time derivative of the rotation."""
        return jax.jvp(self.evaluate, (t,), (jnp.ones_like(t),))[1]


def _powers(x: Float[Array, " points"], count: int) -> Float[Array, "points powers"]:
    columns = [jnp.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return jnp.stack(columns, axis=1)
