"""Window fields: driving fields contracted with a log-signature."""

import functools as ft
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.lax import Precision
from jaxtyping import Array, Float, PyTree

from .._values import shown
from .._xla import sharded, vary_as
from ..algebra import (
    AbstractHopfAlgebra,
    GrossmanLarson,
    Ito,
    MuntheKaasWright,
    Shuffle,
    SparseMap,
)
from ..geometry import AbstractGeometry
from ._ambient import AmbientCalculus
from ._calculus import FrameCalculus
from ._fields import as_driving_fields, check_fields, DrivingFields
from ._grading import tree_grading
from ._linear import Tensors
from ._magma import magma_maps
from ._third_coefficients import third_maps, ThirdCoefficients
from ._third_order import third_order
from ._torsion import forest_part, torsion_part
from ._words import alphabet, word_maps


_DENSE = 1 << 14  # entries below which a matrix product beats gathering


def _apply(table: SparseMap, x: Array) -> Array:
    if math.prod(table.shape) <= _DENSE:
        # From the left: under `vmap` the batch then comes first.
        dense = jnp.asarray(table.todense().T, x.dtype)
        return jnp.matmul(x, dense, precision=Precision.HIGHEST)
    return table(x)


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
    def _by_words(self) -> bool:
        return isinstance(self.alg, Shuffle | Ito) and self.alg.depth > 3

    @property
    def _parallel(self) -> bool:
        """Whether covariant derivatives are those of frame coordinates."""
        return isinstance(self.alg, Shuffle) or self.geometry.flat

    @property
    def _torsion_free(self) -> bool:
        return not self._parallel and self.geometry.torsion_free

    def coefficients(self, lam: Float[Array, " primitives"]) -> PyTree[Array]:
        """What `evaluate` needs of the log-signature. Linear; do this once per
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
        if self.alg.depth == 3:
            maps = third_maps(self.alg, self.geometry.flat, self._torsion_free)
            d = self.alg.dim
            return ThirdCoefficients(
                _apply(maps.singles, lam),
                _apply(maps.pairs, lam).reshape(d, d),
                None if maps.two is None else _apply(maps.two, lam).reshape(d, d),
                _apply(maps.triples, lam).reshape(d, -1, d, d),
                maps.roles,
            )
        if self._by_words:
            return [_apply(table, lam) for table in word_maps(self.alg)]
        maps = magma_maps(self.alg, self.geometry.flat)
        trees = [_apply(maps[k,], lam) for k in range(1, self.alg.depth + 1)]
        forests = [(key, table) for key, table in maps.items() if len(key) > 1]
        return trees, [_apply(table, lam) for _, table in forests]

    def evaluate(
        self, t, y: PyTree[Array], coefficients: PyTree[Array]
    ) -> Float[Array, " dim"]:
        """The field at `y`, from the result of `coefficients`. `t` may be `None` if the
        fields do not depend on time."""
        if sharded():  # a point and its tangents must vary alike
            value = jax.eval_shape(lambda z: self.fields(t, z), y)
            y = vary_as(y, coefficients, value)
        depth = self.alg.depth
        frame = FrameCalculus(self.fields, self.geometry, t, self._parallel)
        if depth == 3:
            return third_order(frame, coefficients, y)
        if self._by_words:
            alg: Any = self.alg
            pairs = tuple(p for p in alg.letters if isinstance(p, tuple))
            pairs = tuple(p for p in pairs if len(p) == 2)
            words = AmbientCalculus(frame, pairs)
            return words.contract(coefficients, y, alphabet(alg))
        trees, forests = coefficients
        grading = tree_grading(self.alg.dim, depth)
        # Pairs of trees only see the torsion.
        if not forests or (depth == 2 and self._torsion_free):
            return frame.contract(trees, y, grading)
        if depth == 2:
            out, v, w = frame.second_order(trees, y)
            if isinstance(self.alg, Shuffle | Ito):
                # Trees and pairs have the same coefficients up to a symmetric part.
                tensor = Tensors(self.geometry.dim).einsum("ka,kb->ab", w, v)
                return out + torsion_part(frame, y, tensor)
            values = (v,)
        else:
            values = frame.trees(y, depth - 1)
            out = frame.contract(trees, y, grading, values)
        maps = magma_maps(self.alg, False)
        keys = [key for key in maps if len(key) > 1]
        return out + forest_part(frame, y, dict(zip(keys, forests)), values)


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
      symmetry factor; Euclidean space only.

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
    - `time_dependent`: whether `fields` has the form `(t, y, args)`; set it if counting
        the arguments of `fields` misleads.

    **Returns:**

    A [`arborax.WindowField`][], callable as `(y, lam)` or `(t, y, lam)`.

    ??? cite "Reference"

        C. Curry, K. Ebrahimi-Fard, D. Manchon, H. Munthe-Kaas, Planarly branched rough
        paths and rough differential equations on homogeneous spaces, Journal of
        Differential Equations 269 (2020).
    """
    if not isinstance(alg, AbstractHopfAlgebra):
        raise TypeError(
            f"`alg` must be an algebra such as `Shuffle(2, 3)`, got {shown(alg)}."
        )
    if not isinstance(geometry, AbstractGeometry):
        raise TypeError(
            f"`geometry` must be a geometry such as `SO(3)`, got {shown(geometry)}."
        )
    if isinstance(alg, GrossmanLarson) and not geometry.flat:
        raise ValueError(
            f"GrossmanLarson has no lift to {geometry}: covariant derivatives do not "
            "commute there. Use `MuntheKaasWright`, or `Ito` for semimartingales."
        )
    known = Shuffle | Ito | MuntheKaasWright | GrossmanLarson
    if not isinstance(alg, known):
        raise TypeError(f"There is no lift for {type(alg).__name__}.")
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
    """The individual fields `F(p)`, for study and tests.

    **Arguments:** as [`arborax.lift`][].

    **Returns:**

    A function of `y` (or `t, y`) with values `(primitive_size, dim)`, the fields of
    `alg.primitive_basis`. In `GrossmanLarson` row `t` is the elementary differential
    divided by the symmetry factor, so that in every algebra the window field is
    `lam @ lifted_fields(y)`. It costs one window field for each primitive.
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
    check_fields(field.fields, y, t)
