"""Signature kernels: one object, values for pairs and Gram matrices in blocks."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Real

from ..paths import SampledPath
from ._blocks import in_blocks
from ._evaluate import evaluate
from ._features import (
    explicit_features,
    feature_count,
    feature_weights,
    InnerProduct,
    robust_normalisation,
)
from ._prepare import Brackets, check_kind, Kind, prepare
from ._scale import safe_scale
from ._static import AbstractStaticKernel, as_static_kernel, LinearKernel


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
    gradient for reverse mode; pass `custom_gradient=False` for forward mode
    (`jax.jvp`, `jax.jacfwd`, Hessians).
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
            brackets); `"auto"` or `"bounded"`: see [`arborax.safe_scale`][].
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
        - `normalise`: divide by `sqrt(k(x, x) k(y, y))`.
        - `custom_gradient`: see above.
        """
        check_kind(kind, depth)
        if isinstance(refinement, int):
            refinement = (refinement, refinement)
        orders = refinement
        if orders != (0, 0) and (kind != "geometric" or depth is not None):
            raise ValueError(
                "`refinement` belongs to the Goursat scheme of the complete geometric "
                f"kernel; the {kind} kernel with depth={depth} is exact on the grid. "
                "Leave it at 0, or refine the paths."
            )
        if min(orders) < 0:
            raise ValueError(f"`refinement` must not be negative, got {refinement}.")
        if isinstance(scale, str) and scale not in ("auto", "bounded"):
            raise ValueError(
                f"`scale` must be a number, 'auto', 'bounded' or None, got {scale!r}."
            )
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
        self.add_time, self.add_basepoint = add_time, add_basepoint
        self.lead_lag, self.solver, self.refinement = lead_lag, solver, orders
        self.method, self.inner_product = method, inner_product
        self.normalise, self.custom_gradient = normalise, custom_gradient

    @property
    def linear(self) -> bool:
        """Whether the kernel is a finite inner product of explicit features."""
        linear = isinstance(self.static_kernel, LinearKernel) and not self.normalise
        return linear and self.depth is not None and not isinstance(self.scale, str)

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

    def _scaled(self, px, ax, py, ay):
        if self.scale is None:
            return px, ax, py, ay
        if isinstance(self.scale, str):
            factor = safe_scale(px, py, ax, ay, self.scale)  # pyright: ignore
        else:
            factor = self.scale
        factor = jnp.asarray(factor, px.dtype)
        square = factor * factor
        ax = None if ax is None else ax * square
        ay = None if ay is None else ay * square
        return px * factor, ax, py * factor, ay

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
        """Explicit coordinates: `k(x, y) = 1 + <features(x), features(y)>`.

        **Arguments:**

        - `x`, `brackets`, `lengths`, `mask`: as in [`arborax.signature_kernel`][].
        - `robust`: apply [`arborax.robust_normalisation`][] with `bound`.
        """
        if not self.linear:
            raise ValueError(
                "Only a truncated kernel with the linear static kernel and a numeric "
                f"scale has explicit features, got depth={self.depth}, "
                f"{type(self.static_kernel).__name__}, scale={self.scale!r}."
            )
        points, increments = self.prepared(x, brackets, lengths, mask)
        points, increments, _, _ = self._scaled(points, increments, points, None)
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

    def _uses_features(
        self, d: int, lx: int, ly: int, bx: int, by: int, pairs: int, brackets: bool
    ) -> bool:
        linear = isinstance(self.static_kernel, LinearKernel) and self.depth is not None
        if self.method != "auto" or not linear:
            return self.method == "features"
        if self.inner_product == "trees":
            return True
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
        d = px.shape[-1]
        if py.shape[-1] != d:
            raise ValueError(
                f"Both paths must have the same number of channels, got {d} and "
                f"{py.shape[-1]} (after augmentation)."
            )
        if px.dtype != py.dtype:
            raise TypeError(
                f"Both paths must have the same dtype, got {px.dtype} and {py.dtype}."
            )
        pairs = px.shape[0] * py.shape[0] if outer else px.shape[0]
        brackets = ax is not None or ay is not None
        sizes = (px.shape[1], py.shape[1], px.shape[0], py.shape[0], pairs)
        if self._uses_features(d, *sizes, brackets):
            fx, fy = self._explicit(px, ax), self._explicit(py, ay)
            unit = 0.0 if self.inner_product == "trees" else 1.0
            if outer:
                return unit + fx @ fy.T
            return unit + jnp.sum(fx * fy, axis=-1)

        def values(x, y, a, b):
            return evaluate(
                self.kind,
                self.depth,
                self.static_kernel,
                self.solver,
                self.refinement,
                outer,
                self.custom_gradient,
                x,
                y,
                a,
                b,
            )

        if not outer:
            return values(px, py, ax, ay)
        return in_blocks(values, px, py, ax, ay, block or self._block(px, py, brackets))

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
        trees = self.kind in ("branched", "planar") and self.depth is None
        if not trees:
            return values
        limit = float(jnp.finfo(values.dtype).max) ** 0.5
        blown = ~(jnp.abs(values) < limit)
        return eqx.error_if(
            values,
            blown,
            f"The complete {self.kind} signature kernel blew up (or its input was not "
            "finite). Its series has a finite radius of convergence: for straight "
            "lines the non-planar kernel is (1 - c/2)^-2 with c = <x_1 - x_0, "
            "y_1 - y_0>, infinite at c = 2. Pass scale='auto' (or a smaller number), "
            "or truncate with `depth`.",
        )

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
        sides = (
            *self.prepared(x, brackets_x, lengths_x, mask_x),
            *self.prepared(y, brackets_y, lengths_y, mask_y),
        )
        return _pairs(self, *sides)

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
        px, ax = self.prepared(x, brackets_x, lengths_x, mask_x)
        py, ay = None, None
        if y is not None:
            py, ay = self.prepared(y, brackets_y, lengths_y, mask_y)
        return _gram(self, px, ax, py, ay, block)


@eqx.filter_jit
def _pairs(kernel: SignatureKernel, px, ax, py, ay) -> Array:
    px, ax, py, ay = kernel._scaled(px, ax, py, ay)
    batch = jnp.broadcast_shapes(px.shape[:-2], py.shape[:-2])

    def flat(a, core):
        if a is None:
            return None
        a = jnp.broadcast_to(a, (*batch, *a.shape[a.ndim - core :]))
        return a.reshape(-1, *a.shape[a.ndim - core :])

    px, py, ax, ay = flat(px, 2), flat(py, 2), flat(ax, 3), flat(ay, 3)
    out = kernel._values(False, px, ax, py, ay, None)
    if kernel.normalise:
        norm_x = kernel._values(False, px, ax, px, ax, None)
        norm_y = kernel._values(False, py, ay, py, ay, None)
        out = out / jnp.sqrt(norm_x * norm_y)
    return kernel._checked(out.reshape(batch))


@eqx.filter_jit
def _gram(kernel: SignatureKernel, px, ax, py, ay, block) -> Array:
    symmetric = py is None
    if symmetric:
        py, ay = px, ax
    px, ax, py, ay = kernel._scaled(px, ax, py, ay)
    if symmetric:  # the same objects: only half of the blocks are computed
        py, ay = px, ax
    if px.ndim != 3 or py.ndim != 3:
        raise ValueError(
            "A Gram matrix needs paths of shape (batch, times, channels), got "
            f"{px.shape} and {py.shape}."
        )
    out = kernel._values(True, px, ax, py, ay, block)
    if kernel.normalise:
        norm_x = kernel._values(False, px, ax, px, ax, None)
        norm_y = kernel._values(False, py, ay, py, ay, None)
        out = out / jnp.sqrt(norm_x[:, None] * norm_y[None, :])
    return kernel._checked(out)
