"""Window fields: driving fields contracted with a log-signature."""

import functools as ft
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._inputs import as_kind
from .._values import shown
from .._xla import sharded, vary_as
from ..algebra import AbstractHopfAlgebra
from ..geometry import AbstractGeometry
from ._calculus import FrameCalculus
from ._closed_forms import CLOSED_FORMS
from ._coefficients import coefficient_tables, Coefficients, Tables
from ._fields import as_driving_fields, DrivingFields
from ._jet import jet_coefficients, jet_value
from ._linear_fields import check_linear, LinearFields
from ._recursion import any_order


class WindowField(eqx.Module):
    r"""The vector field $L(y) = \sum_p \lambda^p F(p)(y)$ of a log-signature $\lambda$.

    Made by [`arborax.lift`][]. Call it as `field(y, lam)`, or `field(t, y, lam)` if the
    driving fields depend on time; the value is in frame coordinates, shape `(dim,)`.
    """

    fields: DrivingFields
    alg: AbstractHopfAlgebra = eqx.field(static=True)
    geometry: AbstractGeometry = eqx.field(static=True)

    @property
    def time_dependent(self) -> bool:
        """Whether the field is called as `field(t, y, lam)`."""
        return self.fields.time_dependent

    def __call__(self, *args) -> Float[Array, " dim"]:
        """The field at `(y, lam)` or `(t, y, lam)`."""
        if len(args) != 2 + self.time_dependent:
            expected = "(t, y, lam)" if self.time_dependent else "(y, lam)"
            raise TypeError(f"call this window field as `field{expected}`.")
        t = args[0] if self.time_dependent else None
        y, lam = args[-2:]
        self.geometry.check_shape(y)
        return self.evaluate(t, y, self.coefficients(lam))

    @property
    def _parallel(self) -> bool:
        """Whether covariant derivatives are those of frame coordinates. Lie brackets do
        not see the connection, so without brackets in the control any will do."""
        return self.geometry.flat or self.alg.calculus == "stratonovich"

    @property
    def _tables(self) -> Tables:
        torsion_free = not self._parallel and self.geometry.torsion_free
        return coefficient_tables(self.alg, self.geometry.flat, torsion_free)

    def coefficients(self, lam: Float[Array, " primitives"]) -> Coefficients:
        """The coefficients that `evaluate` takes, linear in the log-signature; once per
        window."""
        if not jnp.issubdtype(getattr(lam, "dtype", object), jnp.floating):
            raise TypeError(
                f"a log-signature is an array of floating point, got {shown(lam)}."
            )
        if lam.shape != (self.alg.primitive_size,):
            raise ValueError(
                f"a log-signature in {self.alg} has shape "
                f"({self.alg.primitive_size},), got {lam.shape}. For a batch use "
                "`jax.vmap`."
            )
        if self.alg.scalar:
            return jet_coefficients(self.alg, lam)
        return self._tables(lam)

    def evaluate(
        self, t, y: PyTree[Array], coefficients: Coefficients
    ) -> Float[Array, " dim"]:
        """The field at `y`, from the result of `coefficients`. `t` may be `None` if the
        fields do not depend on time."""
        if sharded():  # a point and its tangents must vary alike
            value = jax.eval_shape(lambda z: self.fields(t, z), y)
            y = vary_as(y, coefficients, value)
        calculus = FrameCalculus(self.fields, self.geometry, t, self._parallel)
        if self.alg.scalar:
            return jet_value(calculus, self.alg, coefficients, y)
        layout = self._tables.layout
        if layout.depth in CLOSED_FORMS:
            return CLOSED_FORMS[layout.depth](calculus, coefficients, y)
        return any_order(calculus, layout, coefficients, y)


def lift(
    fields: Callable | Sequence[Callable],
    alg: AbstractHopfAlgebra,
    geometry: AbstractGeometry,
    *,
    args: PyTree = None,
    time_dependent: bool | None = None,
) -> WindowField:
    r"""Lift driving fields to the window field of a log-signature.

    $F$ maps products to compositions of operators, $F(a * b) = F(a) F(b)$, and
    primitive elements to vector fields:

    - `Shuffle`: Jacobi brackets of the $V_i$;
    - `Ito`: Jacobi brackets of $V_i$ and $V_{(ij)} = (\nabla_{V_i} V_j + \nabla_{V_j}
      V_i)/2$;
    - `MuntheKaasWright`: $F([t_1 .. t_k]_i) = \nabla^k V_i(F(t_1), .., F(t_k))$ with
      total covariant derivatives, and Jacobi brackets of these for words over trees,
      for any connection;
    - `GrossmanLarson`: elementary differentials $D^k V_i[F(t_1), .., F(t_k)]$ over the
      symmetry factor; Euclidean space only;
    - `MultiIndex`: products of derivatives of scalar fields; `Euclidean(1)` only.

    Any other algebra is lifted from its `forests`.

    No bracket is formed. Coefficients are contracted before derivatives are taken, so a
    call costs, with $m = \min(d, dim)$, $m$ directional derivatives of the fields at
    depth 2 for every algebra; at depth 3 $m$ of first and $m^2$ of second order, for
    fields that give their own second derivatives (`arborax.models.VectorField`) only
    $m + d$ rows through the network; and of the order of $m^{N-1}$ nested ones of order
    $N - 1$ at depth $N$. The number of primitives does not enter.

    A control without brackets makes any of these lifts give the Stratonovich solution;
    the Itô solution (with respect to the connection of the geometry) comes from the
    brackets in the control.

    **Arguments:**

    - `fields`: `fields(y)` returning frame coordinates of all `d` driving fields, shape
        `(d, dim)`; or a list of `d` callables returning `(dim,)`. They may have the
        form `fields(t, y, args)` as well: time is then frozen in each evaluation (its
        derivatives do not enter the brackets; make time a state or a channel of the
        driver if these are wanted).
    - `alg`: the algebra of the log-signature.
    - `geometry`: where the state lives.
    - `args`: passed to `fields(t, y, args)`; any PyTree.
    - `time_dependent`: whether `fields` has the form `(t, y, args)`; set it if their
        number of arguments is misleading.

    **Returns:**

    A [`arborax.WindowField`][], callable as `(y, lam)` or `(t, y, lam)`.

    ??? cite "Reference"

        C. Curry, K. Ebrahimi-Fard, D. Manchon, H. Munthe-Kaas, Planarly branched rough
        paths and rough differential equations on homogeneous spaces, Journal of
        Differential Equations 269 (2020).
    """
    as_kind("alg", alg, AbstractHopfAlgebra, "be an algebra such as `Shuffle(2, 3)`")
    as_kind("geometry", geometry, AbstractGeometry, "be a geometry such as `SO(3)`")
    if alg.scalar and not (geometry.dim == 1 and geometry.flat):
        raise ValueError(
            f"{type(alg).__name__} is for a scalar state, `Euclidean(1)`; got "
            f"{geometry}. Use `GrossmanLarson`, or `Ito` for semimartingales."
        )
    if not (alg.planar or geometry.flat):
        raise ValueError(
            f"{type(alg).__name__} has no lift to {geometry}: covariant derivatives do "
            "not commute there. Use `MuntheKaasWright`, or `Ito` for semimartingales."
        )
    if isinstance(fields, LinearFields):
        check_linear(fields, alg, geometry)
        fields = fields.prepare(alg)
    driving = as_driving_fields(fields, alg.dim, geometry.dim, time_dependent, args)
    if driving.number != alg.dim or driving.dim != geometry.dim:
        raise ValueError(
            f"fields made for {driving.number} channels and frame dimension "
            f"{driving.dim} do not fit {alg} and {geometry}."
        )
    return WindowField(driving, alg, geometry)


def lifted_fields(
    fields: Callable | Sequence[Callable],
    alg: AbstractHopfAlgebra,
    geometry: AbstractGeometry,
    *,
    args: PyTree = None,
    time_dependent: bool | None = None,
) -> Callable:
    """The individual fields `F(p)`, for study and tests; arguments as in
    [`arborax.lift`][].

    **Returns:** a function of `y` (or `t, y`) with values `(primitive_size, dim)`, the
    fields of `alg.primitive_basis`, at the cost of one window field for each. In
    `GrossmanLarson` row `t` is the elementary differential over the symmetry factor, so
    that in every algebra the window field is `lam @ lifted_fields(y)`.
    """
    field = lift(fields, alg, geometry, args=args, time_dependent=time_dependent)

    def evaluate(*args):
        dtype = jtu.tree_leaves(args[-1])[0].dtype
        eye = jnp.eye(alg.primitive_size, dtype=dtype)
        return jax.vmap(ft.partial(field, *args))(eye)

    return evaluate


def check_lift(field: WindowField, y: PyTree[Array], t: Array) -> None:
    """Refuse, at trace time, points and fields of the wrong shape; `t` is any time."""
    field.geometry.check_shape(y)
    jax.eval_shape(field.fields, t, y)
