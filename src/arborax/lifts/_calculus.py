r"""Nested directional derivatives, contracted with coefficients before they are taken.

All recursions have one form. For coefficients $x$ of objects $a_1 a_2 \dots$, let $x_a$
be the coefficients of what follows the first letter $a$; then

$$G_x = \sum_i x_i V_i + \sum_a \nabla_{F(a)} G_{x_a} .$$

Three ways of taking the sum over $a$, chosen by a static count of derivatives:

* *letters*: one derivative for each letter;
* *frame*: since $\nabla$ is linear in its direction,
  $\sum_a \nabla_{F(a)} G_{x_a} = \sum_e \nabla_{E_e} G_{x'_e}$ with
  $x'_e = \sum_a F(a)^e x_a$ frozen, one derivative for each frame field;
* *channels*: where only a single $V_i$ follows, $\sum_i \nabla_{W_i} V_i$ with
  $W_i = \sum_a x_{ai} F(a)$, one derivative for each channel, of that channel alone.
"""

import functools as ft
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import barrier
from ..geometry import AbstractGeometry
from ._expansion import AbstractExpansion, expand
from ._fields import DrivingFields
from ._grading import Grading, tree_grading
from ._linear import add, small_product, sum_rows, Tensors
from ._third_coefficients import ThirdCoefficients, TREES
from ._third_order import third_order


SWEPT = 2  # directions for which nested derivatives are


@ft.cache
def _costs(grading: Grading, dim: int, weight: int) -> tuple[int, int]:
    """Derivatives taken by the letters mode and the frame mode for this weight."""
    if weight == 1:
        return 0, 0
    channels = grading.singles[0] if grading.letters[weight - 2] else 0
    letters = channels + sum(
        grading.letters[k - 1] * (1 + min(_costs(grading, dim, weight - k)))
        for k in range(1, weight - 1)
    )
    return letters, dim * (1 + min(_costs(grading, dim, weight - 1)))


@ft.cache
def _value_costs(grading: Grading, dim: int, weight: int) -> tuple[int, int]:
    """The same for the values of all trees up to this weight."""
    if weight == 1:
        return 0, 0
    letters = sum(
        grading.letters[k - 1] * (1 + min(_value_costs(grading, dim, weight - k)))
        for k in range(1, weight)
    )
    return letters, dim * (1 + min(_value_costs(grading, dim, weight - 1)))


class FrameCalculus:
    """Covariant derivatives in frame coordinates, and the fields of planar trees.

    **Arguments:**

    - `fields`: the driving fields.
    - `geometry`: the geometry.
    - `t`: the time, where fields depend on it.
    - `parallel`: use the flat connection of the frame, not that of the geometry.
    """

    def __init__(
        self, fields: DrivingFields, geometry: AbstractGeometry, t, parallel: bool
    ):
        self.geometry = geometry
        self.dim = geometry.dim
        self.parallel = parallel
        self.driving = fields
        self.t = t

    def fields(self, y) -> Float[Array, "channels dim"]:
        """All driving fields at `y`."""
        return self.driving(self.t, y)

    def connect(self, y, u, v):
        """The zeroth-order part of the covariant derivative."""
        if self.parallel:
            return jnp.zeros_like(v)
        return self.geometry.christoffel(y, u, v)

    def connect_rows(self, y, u, v) -> Float[Array, " dim"]:
        """The sum of `connect` over rows."""
        return self.geometry.christoffel_sum(y, small_product(u.T, v))

    @property
    def by_frame(self) -> bool:
        """Whether derivatives are taken along the frame fields, because these are
        fewer than the driving fields."""
        return self.dim < self.driving.number

    def expand(self, y) -> tuple[AbstractExpansion, PyTree[Array] | None]:
        """All driving fields at `y`, with derivatives; and the frame fields there, if
        derivatives are taken along them."""
        directions = None
        if self.by_frame:
            eye = jnp.eye(self.dim, dtype=jtu.tree_leaves(y)[0].dtype)
            directions = self.tangents(y, eye)
        return expand(self.driving, self.t, y, directions), directions

    def tangents(self, y, rows: Float[Array, "directions dim"]) -> PyTree[Array]:
        """Ambient tangent vectors at `y` from frame coordinates. The frame is linear in
        these, so what depends on the point alone, such as a root of a matrix, is
        computed once, and differentiated once."""
        frame = jax.linearize(lambda u: self.geometry.frame(y, u), rows[0])[1]
        return jax.vmap(frame)(rows)

    def nabla(self, g: Callable, y, u) -> Float[Array, " dim"]:
        """Covariant derivative at `y` of the field `g`, in direction `u`."""
        value, dot = jax.jvp(g, (y,), (self.geometry.frame(y, u),))
        return dot + self.connect(y, u, value)

    def eye(self, like: Array) -> Array:
        """All frame directions."""
        return jnp.eye(self.dim, dtype=like.dtype)

    def differentiate(
        self, y
    ) -> tuple[Float[Array, "channels dim"], Callable[[Array], Array]]:
        r"""All driving fields at `y`, and the map $W \mapsto \sum_i D v_i[E_{W_i}]$ of
        their coordinates, `(channels, dim)` to `(dim,)`: a derivative for each channel,
        or for each frame field if these are fewer."""
        (expansion, directions), tensors = self.expand(y), Tensors(self.dim)

        def derivative(w):
            if directions is None:
                return expansion.contract(self.tangents(y, w))
            dots, _ = expansion.along(directions)
            dots = tensors.bring("ekn", dots)
            return tensors.einsum("ke,ekn->n", w, dots)

        return expansion.value, derivative

    def channels(self, y, w: Float[Array, "channels dim"]) -> Float[Array, " dim"]:
        r"""$\sum_i \nabla_{W_i} V_i$."""
        v, derivative = self.differentiate(y)
        out = derivative(w)
        return out if self.parallel else out + self.connect_rows(y, w, v)

    def second_order(self, x, y) -> tuple[Float[Array, " dim"], Array, Array]:
        """Coefficients of weights one and two, with one evaluation of the fields.

        **Returns:** the field; the values of the driving fields; and the directions
        along which they are differentiated, both `(channels, dim)`.
        """
        d, tensors = self.driving.number, Tensors(self.dim)
        v, derivative = self.differentiate(y)
        v = tensors.bring("kn", v)
        w = tensors.einsum("jk,jn->kn", x[1].reshape(d, d), v)
        out = tensors.einsum("k,kn->n", x[0], v) + derivative(w)
        if not self.parallel:
            # sum_ij x_ij V_i (x) V_j, whichever way the derivatives were taken.
            moment = tensors.einsum("ka,kn->an", w, v)
            out = out + self.geometry.christoffel_sum(y, moment)
        return barrier(out), v, w

    def _third_order(self, x, y) -> Float[Array, " dim"]:
        d = self.driving.number
        triples = x[2].reshape(2, d, d, d)  # see `tree_grading`
        triples = jnp.swapaxes(triples, 0, 1)
        known = ThirdCoefficients(x[0], x[1].reshape(d, d), None, triples, TREES)
        return third_order(self, known, y)

    def trees(self, y, weight: int) -> tuple[Float[Array, "_ dim"], ...]:
        """Fields of all magma trees of weights `1..weight`, as in `tree_grading`."""
        if weight == 1:
            return (self.fields(y),)
        d = self.driving.number
        letters, frame = _value_costs(tree_grading(d, weight), self.dim, weight)
        if frame <= letters:
            return self._trees_by_frame(y, weight)
        lower = self.trees(y, weight - 1)
        blocks = [
            self._derive(lambda z, r=weight - k: self.trees(z, r)[-1], y, lower[k - 1])
            for k in range(1, weight)
        ]
        top = jnp.concatenate([block.reshape(-1, self.dim) for block in blocks])
        return (*lower, top)

    def _derive(
        self, g: Callable, y, directions
    ) -> Float[Array, "directions trees dim"]:
        """Derivatives of a family of fields along each direction."""
        lift = jax.vmap(self.connect, in_axes=(None, None, 0))

        def one(u):
            value, dot = jax.jvp(g, (y,), (self.geometry.frame(y, u),))
            return dot + lift(y, u, value)

        return jax.vmap(one)(directions)

    def _trees_by_frame(self, y, weight: int):
        inner = lambda z: self.trees(z, weight - 1)  # noqa: E731
        leaf = jtu.tree_leaves(y)[0]

        def one(u):
            lower, dots = jax.jvp(inner, (y,), (self.geometry.frame(y, u),))
            lift = jax.vmap(self.connect, in_axes=(None, None, 0))
            return lower, [dot + lift(y, u, low) for low, dot in zip(lower, dots)]

        lower, dots = jax.vmap(one, out_axes=(None, 0))(self.eye(leaf))
        blocks = [
            jnp.einsum("ae,emc->amc", lower[k - 1], dots[weight - k - 1])
            for k in range(1, weight)
        ]
        top = jnp.concatenate([block.reshape(-1, self.dim) for block in blocks])
        return (*lower, top)

    def contract(
        self, x: list[Float[Array, " _"]], y, grading: Grading, letters=None
    ) -> Float[Array, " dim"]:
        """The tree part of the window field: coefficients of weights `1..len(x)`.

        `letters` are the values of `trees` at `y` where they are known already.
        """

        def single(parts, z):
            return parts[0] @ self.fields(z)

        return contract(
            x,
            y,
            grading,
            self.dim,
            single=single,
            letters=self.trees,
            derive=self.nabla,
            channels=self.channels,
            known=letters,
            shortcuts={
                2: lambda tail, z: self.second_order(tail, z)[0],
                3: self._third_order,
            },
        )


def contract(
    x: list[Float[Array, " _"]],
    y,
    grading: Grading,
    dim: int,
    *,
    single: Callable,
    letters: Callable,
    derive: Callable,
    channels: Callable,
    known=None,
    shortcuts: dict[int, Callable],
):
    """The recursion of this module; see its docstring.

    **Arguments:**

    - `x`: coefficients of each weight, in the layout of `grading`.
    - `y`: the point.
    - `grading`: the layout.
    - `dim`: number of frame fields.
    - `single`: `(coefficients of single letters by weight, y)` to a field value.
    - `letters`: `(y, weight)` to frame coordinates of the letters of each weight.
    - `derive`: `(g, y, u)` to the derivative of `g` along frame coordinates `u`.
    - `channels`: `(y, w)` to the sum over channels of their derivatives along `w`.
    - `known`: values of `letters(y, len(x) - 1)` if they are at hand.
    - `shortcuts`: shorter ways for coefficients up to some weight, if there are any.
    """
    top = len(x)
    if top in shortcuts:
        return shortcuts[top](x, y)
    weights = range(1, top + 1)
    parts = [grading.single(x[w - 1], w) for w in weights]
    out = single(parts, y)
    if top == 1:
        return out

    values = letters(y, top - 1) if known is None else known
    by_letters, by_frame = _costs(grading, dim, top)
    active = [k for k in range(1, top) if grading.letters[k - 1]]
    recurse = lambda tail, z: contract(  # noqa: E731
        tail,
        z,
        grading,
        dim,
        single=single,
        letters=letters,
        derive=derive,
        channels=channels,
        shortcuts=shortcuts,
    )

    def sweep(tails, directions):
        one = lambda tail, u: derive(lambda z: recurse(tail, z), y, u)  # noqa: E731
        count = directions.shape[0]
        if count > SWEPT:
            return sum_rows(jax.vmap(one)(tails, directions))
        rows = [one([tail[k] for tail in tails], directions[k]) for k in range(count)]
        return ft.reduce(add, rows)

    if by_frame < by_letters:
        tails = [
            sum(
                values[k - 1].T @ grading.block(x[k + r - 1], k + r, k)
                for k in active
                if k + r <= top
            )
            for r in range(1, top)
        ]
        return add(out, sweep(tails, jnp.eye(dim, dtype=x[0].dtype)))

    for k in active:
        blocks = [grading.block(x[k + r - 1], k + r, k) for r in range(1, top - k + 1)]
        if k == top - 1:
            term = channels(y, blocks[0].T @ values[k - 1])
        else:
            term = sweep(blocks, values[k - 1])
        out = add(out, term)
    return out
