"""Signature kernels: one object, values for pairs and Gram matrices in blocks."""

import functools as ft
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Real

from .._inputs import as_choice, as_count, as_flag, as_number
from .._values import is_concrete, shown
from ..paths import SampledPath
from ._blocks import in_blocks
from ._evaluate import evaluate
from ._features import (
    explicit_features,
    feature_count,
    feature_weights,
    INNER_PRODUCTS,
    InnerProduct,
    robust_normalisation,
)
from ._prepare import (
    as_sample,
    Brackets,
    check_alike,
    check_kind,
    Kind,
    prepare,
    refuse_beyond,
)
from ._scale import pooled_scale
from ._static import (
    AbstractStaticKernel,
    AbstractStationaryKernel,
    as_static_kernel,
    LinearKernel,
)


Path = SampledPath | Float[ArrayLike, "..."]
_DIAGONAL = 2**17  # elements of one diagonal of one block: about a megabyte
_MOST_FEATURES = 4000


class SignatureKernel(eqx.Module):
    r"""A signature kernel with all its choices made.

    | `kind` | coordinates summed over | steps |
    |---|---|---|
    | `"geometric"` | words | piecewise linear |
    | `"ito"` | words | left-point sums, or supplied brackets |
    | `"branched"` | forests of non-planar trees, weight `1/sigma` | the same |
    | `"planar"` | ordered forests of planar trees | the same |

    All kernels contain the constant 1 of the empty word. Truncated at weight `depth`,
    or complete. No word or tree is enumerated by the recursions: for paths of `L`
    points the cost of a pair is `O(L^2 (d + N^2))` and the memory `O(N L)`.

    Differentiable in paths, brackets and parameters of the static kernel. The node
    recursions (`geometric`, `ito`, `branched` without brackets) have an exact custom
    gradient for reverse mode (`custom_gradient`); forward mode and higher orders work
    either way.
    """

    kind: Kind = eqx.field(static=True)
    depth: int | None = eqx.field(static=True)
    static_kernel: AbstractStaticKernel
    scale: Real[Array, ""] | float | str | None
    add_time: bool = eqx.field(static=True)
    add_basepoint: bool = eqx.field(static=True)
    lead_lag: bool = eqx.field(static=True)
    solver: Literal["goursat", "series"] = eqx.field(static=True)
    refinement: tuple[int, int] = eqx.field(static=True)
    method: Literal["auto", "recursion", "features"] = eqx.field(static=True)
    inner_product: InnerProduct = eqx.field(static=True)
    normalise: bool = eqx.field(static=True)
    custom_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        kind: Kind = "geometric",
        depth: int | None = None,
        *,
        static_kernel: object = None,
        scale: Real[ArrayLike, ""] | Literal["auto", "bounded"] | None = None,
        add_time: bool = False,
        add_basepoint: bool = False,
        lead_lag: bool = False,
        solver: Literal["goursat", "series"] = "goursat",
        refinement: int | tuple[int, int] = 0,
        method: Literal["auto", "recursion", "features"] = "auto",
        inner_product: InnerProduct = "hopf",
        normalise: bool = False,
        custom_gradient: bool = True,
    ):
        r"""**Arguments:**

        - `kind`: `"geometric"`, `"ito"`, `"branched"` or `"planar"`.
        - `depth`: truncation weight, or `None` for the complete kernel.
        - `static_kernel`: `"linear"`, `"rbf"`, `"rational-quadratic"`, a static kernel
            object or a function of two points. Enters by second differences.
        - `scale`: a number that multiplies the augmented path (and its square the
            brackets); `"auto"` or `"bounded"`: one number for all paths of a call (both
            sides of a Gram matrix, both samples of a test), see
            [`arborax.safe_scale`][]. Values of two calls are comparable only under one
            number: fix it with [`arborax.SignatureKernel.fit`][].
        - `add_time`, `add_basepoint`, `lead_lag`: augmentations, applied in the order
            lead-lag, time (first channel), basepoint (zero).
        - `solver`: complete geometric kernel: `"goursat"`, the second-order scheme on
            the grid, or `"series"`, power series in each cell, exact to rounding.
        - `refinement`: dyadic refinement of the Goursat grid, one order or one for
            each path.
        - `method`: `"recursion"`, `"features"` (explicit coordinates, needs `depth`
            and the linear static kernel) or `"auto"`, the cheaper one by operation
            count.
        - `inner_product`: `"trees"` replaces the branched kernel by the plain
            inner product of tree coordinates, without weights and without forests.
        - `normalise`: divide by `sqrt(k(x, x) k(y, y))`, all three with one scale.
        - `custom_gradient`: see above.
        """
        check_kind(kind, depth)
        as_choice("solver", solver, ("goursat", "series"))
        as_choice("method", method, ("auto", "recursion", "features"))
        as_choice("inner_product", inner_product, INNER_PRODUCTS)
        orders = _as_orders(refinement)
        if orders != (0, 0) and (kind != "geometric" or depth is not None):
            raise ValueError(
                "`refinement` belongs to the Goursat scheme of the complete geometric "
                f"kernel; the {kind} kernel with depth={depth} is exact on the grid. "
                "Leave it at 0, or refine the paths."
            )
        if isinstance(scale, str) and scale not in ("auto", "bounded"):
            raise ValueError(
                f"`scale` must be a number, 'auto', 'bounded' or None, got {scale!r}."
            )
        if not (scale is None or isinstance(scale, str)) and is_concrete(scale):
            as_number("scale", scale)
        static = as_static_kernel(static_kernel)
        explicit = method == "features" or inner_product == "trees"
        if inner_product == "trees" and kind != "branched":
            raise ValueError(
                f"inner_product='trees' belongs to kind='branched', got {kind!r}."
            )
        if explicit and (depth is None or not isinstance(static, LinearKernel)):
            raise ValueError(
                "Explicit features need a finite `depth` and the linear static kernel, "
                f"got depth={depth} and {type(static).__name__}. For an RBF kernel use "
                "RandomFourierSignature."
            )
        if method == "recursion" and inner_product == "trees":
            raise ValueError(
                "The plain inner product of tree coordinates has no recursion: use "
                "method='auto' or 'features'."
            )
        self.kind, self.depth, self.static_kernel = kind, depth, static
        self.scale = scale  # pyright: ignore[reportAttributeAccessIssue]
        self.add_time = as_flag("add_time", add_time)
        self.add_basepoint = as_flag("add_basepoint", add_basepoint)
        self.lead_lag = as_flag("lead_lag", lead_lag)
        self.solver, self.refinement = solver, orders
        self.method, self.inner_product = method, inner_product
        self.normalise = as_flag("normalise", normalise)
        self.custom_gradient = as_flag("custom_gradient", custom_gradient)

    @property
    def linear(self) -> bool:
        """Whether the kernel is a finite inner product of explicit features."""
        linear = isinstance(self.static_kernel, LinearKernel) and not self.normalise
        return linear and self.depth is not None and not isinstance(self.scale, str)

    @property
    def unit(self) -> float:
        """The constant in `k(x, y) = unit + <features(x), features(y)>`."""
        return 0.0 if self.inner_product == "trees" else 1.0

    def fit(
        self,
        x: Path,
        y: Path | None = None,
        *,
        brackets_x: Brackets = None,
        brackets_y: Brackets = None,
        lengths_x: Int[Array, "..."] | None = None,
        lengths_y: Int[Array, "..."] | None = None,
        mask_x: Bool[Array, "..."] | None = None,
        mask_y: Bool[Array, "..."] | None = None,
    ) -> "SignatureKernel":
        """Fix `scale="auto"` or `"bounded"` to the number that belongs to these paths.

        Arguments as in [`arborax.signature_gram`][]: `x`, or `x` and `y` together.

        **Returns:**

        The kernel with a number for its scale, a constant for differentiation. A kernel
        whose scale is a number or `None` is returned as it is.
        """
        if not isinstance(self.scale, str):
            return self
        sides = [self.prepared(as_sample("x", x), brackets_x, lengths_x, mask_x)]
        if y is not None:
            other = as_sample("y", y)
            sides.append(self.prepared(other, brackets_y, lengths_y, mask_y))
        factor = pooled_scale(sides, self.scale)  # pyright: ignore
        return eqx.tree_at(lambda kernel: kernel.scale, self, factor)

    def prepared(
        self,
        x: Path,
        brackets: Brackets = None,
        lengths: Int[Array, "..."] | None = None,
        mask: Bool[Array, "..."] | None = None,
    ) -> tuple[Array, Array | None]:
        """Filled and augmented points, and increments of the brackets or `None`."""
        points, increments = prepare(
            x,
            brackets,
            kind=self.kind,
            time=self.add_time,
            basepoint=self.add_basepoint,
            leads=self.lead_lag,
            lengths=lengths,
            mask=mask,
        )
        if increments is not None and not isinstance(self.static_kernel, LinearKernel):
            raise ValueError(
                "Supplied brackets live in the linear state space: they cannot be "
                f"combined with {type(self.static_kernel).__name__}. Use "
                "RandomFourierSignature, or left-point sums (brackets=None)."
            )
        return points, increments

    def _scaled(
        self, *sides: tuple[Array, Array | None]
    ) -> tuple["SignatureKernel", list[tuple[Array, Array | None]]]:
        """The kernel without a scale, and its arguments with it."""
        if self.scale is None:
            return self, list(sides)
        scale, static = self.scale, self.static_kernel
        if isinstance(scale, str):
            scale = pooled_scale(sides, scale)  # pyright: ignore[reportArgumentType]
        factor = jnp.asarray(scale, sides[0][0].dtype)
        if isinstance(static, AbstractStationaryKernel):
            # Distances are scaled and not points: far from zero, products with points
            # would round away what is left of their differences.
            length = jnp.asarray(static.lengthscale, factor.dtype) / factor
            static = eqx.tree_at(lambda k: k.lengthscale, static, length)
            factor = jnp.ones_like(factor)

        def scaled(points: Array, increments: Array | None):
            if isinstance(static, LinearKernel):  # for the same reason
                points = points - points[..., :1, :]
            if increments is not None:
                increments = increments * factor * factor
            return points * factor, increments

        plain = eqx.tree_at(
            lambda k: (k.static_kernel, k.scale),
            self,
            (static, None),
            is_leaf=lambda leaf: leaf is None,
        )
        return plain, [scaled(*side) for side in sides]

    def features(
        self,
        x: Path,
        *,
        brackets: Brackets = None,
        lengths: Int[Array, "..."] | None = None,
        mask: Bool[Array, "..."] | None = None,
        robust: bool = False,
        bound: float = 4.0,
    ) -> Float[Array, "... features"]:
        """Explicit coordinates: `k(x, y) = unit + <features(x), features(y)>`.

        The coordinates of a path do not depend on the other paths of the batch, with
        `robust` neither: its dilation is chosen for each path.

        **Arguments:**

        - `x`, `brackets`, `lengths`, `mask`: as in [`arborax.signature_kernel`][].
        - `robust`: apply [`arborax.robust_normalisation`][] with `bound`.
        """
        if not self.linear:
            raise ValueError(
                "Only a truncated kernel with the linear static kernel and a numeric "
                f"scale has explicit features, got depth={self.depth}, "
                f"{type(self.static_kernel).__name__}, scale={self.scale!r}, "
                f"normalise={self.normalise}. `kernel.fit(x)` makes 'auto' a number."
            )
        points, increments = self.prepared(x, brackets, lengths, mask)
        _, [(points, increments)] = self._scaled((points, increments))
        out = self._explicit(points, increments)
        if not robust:
            return out
        assert self.depth is not None
        weights = feature_weights(
            self.kind, points.shape[-1], self.depth, self.inner_product
        )
        return robust_normalisation(out, weights, bound=bound)

    def _explicit(self, points: Array, increments: Array | None) -> Array:
        return explicit_features(
            points,
            increments,
            kind=self.kind,
            depth=self.depth,  # pyright: ignore[reportArgumentType]
            inner_product=self.inner_product,
        )

    def _uses_features(self, px: Array, py: Array, outer: bool, brackets: bool) -> bool:
        """Whether explicit features are asked for, or cheaper by operation count."""
        linear = isinstance(self.static_kernel, LinearKernel) and self.depth is not None
        if self.method != "auto" or not linear:
            return self.method == "features"
        if self.inner_product == "trees":
            return True
        (bx, lx, d), (by, ly, _) = px.shape, py.shape
        pairs = bx * by if outer else bx
        depth = self.depth or 0
        count = feature_count(self.kind, d, depth)
        if count > _MOST_FEATURES:
            return False
        cell = d + depth**2
        if self.kind in ("geometric", "planar"):
            cell = d + depth**3
        if brackets:
            cell = depth * (depth + 1) ** 2 * (d * d + depth * d)
        explicit = 4 * count * (bx * lx + by * ly) + count * pairs
        return explicit < cell * lx * ly * pairs

    def _values(self, outer: bool, px, ax, py, ay, block: int | None) -> Array:
        brackets = ax is not None or ay is not None
        if self._uses_features(px, py, outer, brackets):
            fx, fy = self._explicit(px, ax), self._explicit(py, ay)
            if outer:
                return self.unit + fx @ fy.T
            return self.unit + jnp.sum(fx * fy, axis=-1)

        values = ft.partial(
            evaluate,
            self.kind,
            self.depth,
            self.static_kernel,
            self.solver,
            self.refinement,
            outer,
            self.custom_gradient,
        )
        if not outer:
            return values(px, py, ax, ay)
        return in_blocks(values, px, py, ax, ay, block or self._block(px, py, brackets))

    def _norms(self, px: Array, ax: Array | None) -> Array:
        return jnp.sqrt(self._values(False, px, ax, px, ax, None))

    def _block(self, px: Array, py: Array, brackets: bool) -> int:
        """Rows and columns of a block, so that a diagonal stays near the cache."""
        steps = min(
            px.shape[1] * 2 ** self.refinement[0], py.shape[1] * 2 ** self.refinement[1]
        )
        depth = self.depth or 1
        components = depth
        if brackets:
            d, nodes = px.shape[-1], (self.depth or 5) + 1
            components = 2 * depth * nodes * (1 + d)
        elif self.kind == "planar" or (self.kind == "geometric" and self.depth):
            components = 4 * depth * depth
        elements = _DIAGONAL * 8 // px.dtype.itemsize // (steps * components)
        return int(np.clip(2 ** int(np.log2(max(elements, 1)) / 2), 4, 64))

    def _checked(self, values: Array) -> Array:
        """Refuse values that are not finite, or beyond the radius of convergence."""
        limit = float("inf")
        message = (
            f"The {self.kind} signature kernel is not finite in {values.dtype}: its "
            "paths are too large. Pass a smaller `scale` (or 'auto'), or truncate with "
            "`depth`."
        )
        if self.kind in ("branched", "planar") and self.depth is None:
            limit = float(jnp.finfo(values.dtype).max) ** 0.5
            message = (
                f"The complete {self.kind} signature kernel blew up: its series has a "
                "finite radius of convergence (for straight lines, non-planar: "
                "<x_1 - x_0, y_1 - y_0> < 2). Pass scale='auto' or a smaller number, "
                "or truncate with `depth`."
            )
        return refuse_beyond(values, limit, message)

    def __call__(
        self,
        x: Path,
        y: Path,
        *,
        brackets_x: Brackets = None,
        brackets_y: Brackets = None,
        lengths_x: Int[Array, "..."] | None = None,
        lengths_y: Int[Array, "..."] | None = None,
        mask_x: Bool[Array, "..."] | None = None,
        mask_y: Bool[Array, "..."] | None = None,
    ) -> Float[Array, "..."]:
        """Kernel of paired paths; see [`arborax.signature_kernel`][]."""
        px, ax = self.prepared(x, brackets_x, lengths_x, mask_x)
        py, ay = self.prepared(y, brackets_y, lengths_y, mask_y)
        check_alike(px, py)
        try:
            jnp.broadcast_shapes(px.shape[:-2], py.shape[:-2])
        except ValueError:
            raise ValueError(
                "Paths are paired one by one, but their leading axes do not match: "
                f"{px.shape[:-2]} and {py.shape[:-2]}. For all pairs use "
                "`signature_gram`."
            ) from None
        return self._checked(_pairs(self, px, ax, py, ay))

    def gram(
        self,
        x: Path,
        y: Path | None = None,
        *,
        brackets_x: Brackets = None,
        brackets_y: Brackets = None,
        lengths_x: Int[Array, "..."] | None = None,
        lengths_y: Int[Array, "..."] | None = None,
        mask_x: Bool[Array, "..."] | None = None,
        mask_y: Bool[Array, "..."] | None = None,
        block: int | None = None,
    ) -> Float[Array, "..."]:
        """Gram matrix; see [`arborax.signature_gram`][]."""
        px, ax = self.prepared(as_sample("x", x), brackets_x, lengths_x, mask_x)
        py, ay = None, None
        if y is not None:
            py, ay = self.prepared(as_sample("y", y), brackets_y, lengths_y, mask_y)
            check_alike(px, py)
        if block is not None:
            block = as_count("block", block)
        return self._checked(_gram(self, px, ax, py, ay, block))


def _as_orders(refinement: Any) -> tuple[int, int]:
    """Orders of refinement for each of the two paths."""
    orders = refinement if isinstance(refinement, tuple) else (refinement, refinement)
    if len(orders) != 2:
        raise ValueError(
            "`refinement` must be one order or one for each of the two paths, got "
            f"{shown(refinement)}."
        )
    first, second = (as_count("refinement", order, 0) for order in orders)
    return first, second


@eqx.filter_jit
def _pairs(kernel: SignatureKernel, px, ax, py, ay) -> Array:
    kernel, [(px, ax), (py, ay)] = kernel._scaled((px, ax), (py, ay))
    batch = jnp.broadcast_shapes(px.shape[:-2], py.shape[:-2])

    def flat(a, core) -> Any:
        if a is None:
            return None
        a = jnp.broadcast_to(a, (*batch, *a.shape[a.ndim - core :]))
        return a.reshape(-1, *a.shape[a.ndim - core :])

    px, py, ax, ay = flat(px, 2), flat(py, 2), flat(ax, 3), flat(ay, 3)
    out = kernel._values(False, px, ax, py, ay, None)
    if kernel.normalise:
        out = out / (kernel._norms(px, ax) * kernel._norms(py, ay))
    return out.reshape(batch)


@eqx.filter_jit
def _gram(kernel: SignatureKernel, px, ax, py, ay, block) -> Array:
    if py is None:
        kernel, [(px, ax)] = kernel._scaled((px, ax))
        py, ay = px, ax  # the same objects: only half of the blocks are computed
    else:
        kernel, [(px, ax), (py, ay)] = kernel._scaled((px, ax), (py, ay))
    out = kernel._values(True, px, ax, py, ay, block)
    if kernel.normalise:
        out = out / (kernel._norms(px, ax)[:, None] * kernel._norms(py, ay)[None, :])
    return out
