"""Linear driving fields, whose window flows are known exactly."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float

from .._inputs import as_choice, as_floating
from .._values import shown
from ..algebra import AbstractHopfAlgebra
from ..geometry import AbstractGeometry
from ._block_matrices import Blocks
from ._linear import lift_matrices, window_matrices


class LinearFields(eqx.Module):
    r"""The driving fields $V_i(y) = A_i y + b_i$, or on a matrix group $V_i(Y) = A_i Y$
    or $Y A_i$.

    [`arborax.solve`][] follows them exactly: the flow over a window is the exponential
    of one matrix, formed once from the log-signature (a Magnus-type scheme, see
    [`arborax.Magnus`][]). Other schemes treat them like any other fields.

    !!! example

        ```python
        fields = abx.LinearFields(jnp.stack([drift, noise]))          # (2, n, n)
        sol = abx.solve(fields, y0, control)

        spin = abx.LinearFields(skew, geometry=abx.SO(3), side="right")
        sol = abx.solve(spin, jnp.eye(3), control, geometry=abx.SO(3))
        ```
    """

    matrices: Float[Array, "channels ..."]
    offsets: Float[Array, "channels n"] | None
    lifted: Float[Array, "primitives size columns blocks"] | None
    geometry: AbstractGeometry | None = eqx.field(static=True)
    side: Literal["left", "right"] = eqx.field(static=True)

    def __init__(
        self,
        matrices: Any,
        offsets: Any = None,
        *,
        geometry: AbstractGeometry | None = None,
        side: Literal["left", "right"] = "left",
    ):
        """**Arguments:**

        - `matrices`: `(channels, n, n)`; block-diagonal ones as `(channels, blocks, k,
            k)` with `n = blocks * k`, diagonal ones as `(channels, n)`.
        - `offsets`: `(channels, n)`, in Euclidean space only.
        - `geometry`: a matrix group such as `SO(3)`; `None` for vectors.
        - `side`: on a group, whether matrices multiply the state from the left (fields
            that commute with right translations) or from the right.
        """
        matrices = as_floating("matrices", matrices)
        square = matrices.ndim < 3 or matrices.shape[-1] == matrices.shape[-2]
        if not 2 <= matrices.ndim <= 4 or not square or 0 in matrices.shape:
            raise ValueError(
                "`matrices` must have shape (channels, n, n), (channels, blocks, k, k) "
                f"or (channels, n), got {matrices.shape}."
            )
        self.matrices, self.geometry, self.lifted = matrices, geometry, None
        self.side = as_choice("side", side, ("left", "right"))
        self.offsets = None
        if geometry is not None:
            self._check_group(geometry)
            if offsets is not None:
                raise ValueError("`offsets` leave a group; they are for vectors.")
        elif offsets is not None:
            offsets = as_floating("offsets", offsets)
            expected = (matrices.shape[0], self.dim)
            if offsets.shape != expected or offsets.dtype != matrices.dtype:
                raise ValueError(
                    f"`offsets` must have shape {expected} and dtype {matrices.dtype}, "
                    f"got {offsets.shape} and {offsets.dtype}."
                )
            self.offsets = offsets

    def _check_group(self, geometry: Any) -> None:
        shape = getattr(geometry, "point_shape", None)
        if not getattr(geometry, "invariant_frame", False) or shape is None:
            raise ValueError(
                f"linear fields live on vectors or on a matrix group such as `SO(3)`, "
                f"got {shown(geometry)}."
            )
        if self.matrices.ndim != 3 or shape != self.matrices.shape[1:]:
            raise ValueError(
                f"`matrices` must have shape (channels, *{shape}) on {shown(geometry)},"
                f" got {self.matrices.shape}."
            )
        if self.side == "left" and geometry.connection != "frame":
            raise ValueError(
                "fields with matrices from the left need `connection='frame'`; use "
                f"`side='right'` on {shown(geometry)}."
            )

    @property
    def dim(self) -> int:
        """Numbers in a state in Euclidean space."""
        shape = self.matrices.shape
        return shape[1] * shape[2] if len(shape) == 4 else shape[1]

    @property
    def blocks(self) -> Blocks:
        """How matrices are stored for exponentials."""
        affine, shape = self.offsets is not None, self.matrices.shape
        if len(shape) == 2:
            return Blocks(1, shape[1], affine)
        return Blocks(shape[-1], shape[1] if len(shape) == 4 else 1, affine)

    def __call__(self, y: Float[Array, "..."]) -> Float[Array, "channels dim"]:
        """All fields at `y`, in frame coordinates."""
        a = self.matrices.astype(y.dtype)
        if self.geometry is not None:
            rows = [m @ y if self.side == "left" else y @ m for m in a]
            return jnp.stack([self.geometry.coordinates(y, row) for row in rows])
        if a.ndim == 2:
            out = a * y[None]
        elif a.ndim == 3:
            out = jnp.einsum("dij,j->di", a, y)
        else:
            out = jnp.einsum("dbij,bj->dbi", a, y.reshape(a.shape[1], -1))
            out = out.reshape(a.shape[0], -1)
        return out if self.offsets is None else out + self.offsets.astype(y.dtype)

    def prepare(self, algebra: AbstractHopfAlgebra) -> "LinearFields":
        """The same fields, with the matrices of all primitive elements of the
        algebra."""
        if self.geometry is not None:
            return self
        a, d = self.matrices, self.matrices.shape[0]
        k, blocks = self.blocks.size, self.blocks.count
        parts = [a.reshape(d, blocks, k, k)]
        if self.offsets is not None:
            parts.append(self.offsets.reshape(d, blocks, k, 1))
        stored = jnp.moveaxis(jnp.concatenate(parts, axis=-1), 1, -1)
        lifted = lift_matrices(stored, algebra, self.blocks)
        return eqx.tree_at(
            lambda f: f.lifted, self, lifted, is_leaf=lambda x: x is None
        )

    def flow(
        self,
        y: Float[Array, " n"],
        lam: Float[Array, " primitives"],
        h: Float[Array, ""],
    ) -> Float[Array, " n"]:
        """The state after the share `h` of a window, in Euclidean space."""
        assert self.lifted is not None
        blocks = self.blocks
        omega = window_matrices(lam, self.lifted.astype(y.dtype))
        z = y.reshape(blocks.count, blocks.size).T
        return blocks.act(blocks.exponential(h * omega), z).T.reshape(-1)


def exact_flow(field: Any, y: Any, lam: Array, h: Array) -> Any:
    """The flow of the window field of linear fields, exact to rounding.

    On a group the generator of the window field is constant along its flow: one group
    exponential.
    """
    fields, geometry = field.fields.fields, field.geometry
    if not isinstance(fields, LinearFields):
        raise TypeError(
            "`Magnus` follows `arborax.LinearFields` exactly and knows no others. Use "
            "`CFEES25`, `CF4` or, in flat space, `Heun`."
        )
    if fields.geometry is None:
        return fields.flow(y, lam, h)
    u = field.evaluate(None, y, field.coefficients(lam))
    xi = jtu.tree_map(lambda leaf: h * leaf, geometry.generator(y, u))
    return geometry.act(xi, y)


def check_linear(
    fields: LinearFields, alg: AbstractHopfAlgebra, geometry: AbstractGeometry
) -> None:
    """Refuse linear fields made for another driver or geometry."""
    channels = fields.matrices.shape[0]
    if channels != alg.dim:
        raise ValueError(
            f"linear fields have one matrix per channel: got {channels} matrices for "
            f"the {alg.dim} channels of {alg}."
        )
    if fields.geometry is not None:
        if fields.geometry != geometry:
            raise ValueError(
                f"linear fields made for {fields.geometry} were given {geometry}."
            )
    elif not geometry.flat:
        raise ValueError(
            f"linear fields on vectors leave {geometry}. Give `LinearFields` the "
            "argument `geometry`, a matrix group."
        )
    elif geometry.dim != fields.dim:
        raise ValueError(
            f"linear fields on vectors of {fields.dim} numbers were given a state with "
            f"{geometry.dim}."
        )
