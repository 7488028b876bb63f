"""Signature kernels: one object, values for pairs and Gram matrices in blocks."""

import functools as ft
from typing import Any, get_args, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from .._inputs import as_choice, as_count, as_flag, as_number
from ._blocks import in_blocks
from ._costs import block_size, features_pay
from ._evaluate import evaluate
from ._features import (
    explicit_features,
    feature_weights,
    InnerProduct,
    robust_normalisation,
)
from ._prepare import (
    as_sample,
    Brackets,
    check_alike,
    Kind,
    KINDS,
    Path,
    prepare,
    refuse_beyond,
    Side,
)
from ._scale import Mode, pooled_scale
from ._static import (
    AbstractStaticKernel,
    AbstractStationaryKernel,
    as_static_kernel,
    LinearKernel,
)


class SignatureKernel(eqx.Module):
    r"""A signature kernel: kind, depth, static kernel, scale and augmentations.

    | `kind` | coordinates summed over | steps |
    |---|---|---|
    | `"geometric"` | words | piecewise linear |
    | `"ito"` | words | left-point sums, or supplied brackets |
    | `"branched"` | forests of non-planar trees, weight `1/sigma` | the same |
    | `"planar"` | ordered forests of planar trees | the same |

    All kernels contain the constant 1 of the empty word. They are truncated at weight
    `depth`, or complete. The recursions enumerate no word or tree: for paths of `L`
    points a pair costs `O(L^2 (d + N^2))` operations and `O(N L)` memory.

    Differentiable in paths, brackets and parameters of the static kernel, in forward
    and reverse mode and to any order.
    """

    kind: Kind = eqx.field(static=True)
    depth: int | None = eqx.field(static=True)
    static_kernel: AbstractStaticKernel
    scale: Real[Array, ""] | float | str | None
    add_time: bool = eqx.field(static=True)
    add_basepoint: bool = eqx.field(static=True)
    lead_lag: bool = eqx.field(static=True)
    solver: Literal["goursat", "series"] = eqx.field(static=True)
    method: Literal["auto", "recursion", "features"] = eqx.field(static=True)
    inner_product: InnerProduct = eqx.field(static=True)
    normalise: bool = eqx.field(static=True)

    def __init__(
        self,
        kind: Kind = "geometric",
        depth: int | None = None,
        *,
        static_kernel: object = None,
        scale: Real[ArrayLike, ""] | Mode | None = None,
        add_time: bool = False,
        add_basepoint: bool = False,
        lead_lag: bool = False,
        solver: Literal["goursat", "series"] = "goursat",
        method: Literal["auto", "recursion", "features"] = "auto",
        inner_product: InnerProduct = "hopf",
        normalise: bool = False,
    ):
        r"""**Arguments:**

        - `kind`: `"geometric"`, `"ito"`, `"branched"` or `"planar"`.
        - `depth`: truncation weight, or `None` for the complete kernel.
        - `static_kernel`: `"linear"`, `"rbf"`, `"rational-quadratic"`, a static kernel
            object or a function of two points. Enters by second differences.
        - `scale`: a number that multiplies the augmented path (its square multiplies
            the brackets). A string computes one number from all paths of a call (both
            sides of a Gram matrix, both samples of a test), a constant for
            differentiation. `"auto"` brings the largest distance from the start and the
            root of the quadratic variation to at most 1/2. This suits rough paths;
            paths with many fast rotations may still blow up, which raises an error.
            `"bounded"` brings the length to at most 1: complete tree kernels then
            converge for every path, but rough paths shrink to zero as their mesh is
            refined. `"median"` brings the larger of the two quantities of `"auto"` to 2
            for the median path, which spreads the values of a truncated kernel;
            complete ones may blow up.
            Values of different calls are comparable only with the same number: fix it
            with [`arborax.SignatureKernel.fit`][].
        - `add_time`, `add_basepoint`, `lead_lag`: augmentations, applied in the order
            lead-lag, time (first channel), basepoint (zero).
        - `solver`: complete geometric kernel: `"goursat"`, the second-order scheme on
            the grid, or `"series"`, power series in each cell, exact to rounding.
        - `method`: `"recursion"`, `"features"` (explicit coordinates, needs `depth`
            and the linear static kernel) or `"auto"`, the cheaper one by operation
            count.
        - `inner_product`: `"trees"` replaces the branched kernel by the plain
            inner product of tree coordinates, without weights and without forests.
        - `normalise`: divide by `sqrt(k(x, x) k(y, y))`, all three with one scale.
        """
        as_choice("kind", kind, KINDS)
        depth = None if depth is None else as_count("depth", depth)
        as_choice("solver", solver, ("goursat", "series"))
        as_choice("method", method, ("auto", "recursion", "features"))
        as_choice("inner_product", inner_product, ("hopf", "trees"))
        if isinstance(scale, str):
            as_choice("scale", scale, get_args(Mode))
        elif scale is not None:
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
        self.solver, self.method, self.inner_product = solver, method, inner_product
        self.normalise = as_flag("normalise", normalise)

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
    ) -> "SignatureKernel":
        """Fix a `scale` given as a word to the number that belongs to these paths.

        Arguments as in [`arborax.signature_gram`][]: `x`, or `x` and `y` together.

        **Returns:**

        The kernel with a number for its scale, a constant for differentiation. A kernel
        whose scale is a number or `None` is returned as it is.
        """
        samples = self._samples(x, y, brackets_x, brackets_y)
        if not isinstance(self.scale, str):
            return self
        factor = pooled_scale(samples, self.scale)  # pyright: ignore
        return eqx.tree_at(lambda kernel: kernel.scale, self, factor)

    def prepared(self, x: Path, brackets: Brackets = None) -> Side:
        """Filled and augmented points, and increments of the brackets or `None`."""
        points, increments = prepare(
            x,
            brackets,
            kind=self.kind,
            time=self.add_time,
            basepoint=self.add_basepoint,
            leads=self.lead_lag,
        )
        if increments is not None and not isinstance(self.static_kernel, LinearKernel):
            raise ValueError(
                "Supplied brackets live in the linear state space: they cannot be "
                f"combined with {type(self.static_kernel).__name__}. Use "
                "RandomFourierSignature, or left-point sums (brackets=None)."
            )
        return points, increments

    def _scaled(self, *sides: Side) -> tuple["SignatureKernel", list[Side]]:
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
        robust: bool = False,
        bound: float = 4.0,
    ) -> Float[Array, "... features"]:
        """Explicit coordinates: `k(x, y) = unit + <features(x), features(y)>`.

        The coordinates of a path do not depend on the other paths of the batch, nor
        does the dilation of `robust`.

        **Arguments:**

        - `x`, `brackets`: as in [`arborax.signature_kernel`][].
        - `robust`: apply [`arborax.robust_normalisation`][] with `bound`.
        """
        if not self.linear:
            raise ValueError(
                "Only a truncated kernel with the linear static kernel and a numeric "
                f"scale has explicit features, got depth={self.depth}, "
                f"{type(self.static_kernel).__name__}, scale={self.scale!r}, "
                f"normalise={self.normalise}. `kernel.fit(x)` makes 'auto' a number."
            )
        robust = as_flag("robust", robust)
        as_number("bound", bound, 1)
        _, [side] = self._scaled(self.prepared(x, brackets))
        out = self._explicit(side)
        if not robust:
            return out
        assert self.depth is not None
        dim = side[0].shape[-1]
        weights = feature_weights(self.kind, dim, self.depth, self.inner_product)
        return robust_normalisation(out, weights, bound=bound)

    def _explicit(self, side: Side) -> Array:
        assert self.depth is not None
        return explicit_features(*side, self.kind, self.depth, self.inner_product)

    def _values(self, outer: bool, x: Side, y: Side, block: int | None = None) -> Array:
        explicit = self.method == "features" or self.inner_product == "trees"
        if self.method == "auto" and isinstance(self.static_kernel, LinearKernel):
            explicit |= features_pay(self.kind, self.depth, x, y, outer)
        if explicit:
            fx, fy = self._explicit(x), self._explicit(y)
            return self.unit + (fx @ fy.T if outer else jnp.sum(fx * fy, axis=-1))
        values = ft.partial(
            evaluate, self.kind, self.depth, self.static_kernel, self.solver, outer
        )
        if not outer:
            return values(x, y)
        size = block or block_size(self.kind, self.depth, x, y)
        return in_blocks(values, x, y, size)

    def _norms(self, x: Side) -> Array:
        return jnp.sqrt(self._values(False, x, x))

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

    def _samples(
        self, x: Path, y: Path | None, brackets_x: Brackets, brackets_y: Brackets
    ) -> list[Side]:
        """Both samples prepared, or `x` alone."""
        samples = [self.prepared(as_sample("x", x), brackets_x)]
        if y is not None:
            samples.append(self.prepared(as_sample("y", y), brackets_y))
            check_alike(samples[0][0], samples[1][0])
        elif brackets_y is not None:
            raise ValueError("`brackets_y` belong to `y`, which is missing.")
        return samples

    def __call__(
        self,
        x: Path,
        y: Path,
        *,
        brackets_x: Brackets = None,
        brackets_y: Brackets = None,
    ) -> Float[Array, "..."]:
        """Kernel of paired paths; see [`arborax.signature_kernel`][]."""
        pair = self.prepared(x, brackets_x), self.prepared(y, brackets_y)
        check_alike(pair[0][0], pair[1][0])
        leads = [points.shape[:-2] for points, _ in pair]
        try:
            jnp.broadcast_shapes(*leads)
        except ValueError:
            raise ValueError(
                "Paths are paired one by one, but their leading axes do not match: "
                f"{leads[0]} and {leads[1]}. For all pairs use `signature_gram`."
            ) from None
        return self._checked(_pairs(self, *pair))

    def gram(
        self,
        x: Path,
        y: Path | None = None,
        *,
        brackets_x: Brackets = None,
        brackets_y: Brackets = None,
        block: int | None = None,
    ) -> Float[Array, "n m"]:
        """Gram matrix; see [`arborax.signature_gram`][]."""
        samples = self._samples(x, y, brackets_x, brackets_y)
        block = None if block is None else as_count("block", block)
        return self._checked(_gram(self, samples, block))


@eqx.filter_jit
def _pairs(kernel: SignatureKernel, x: Side, y: Side) -> Array:
    kernel, sides = kernel._scaled(x, y)
    batch = jnp.broadcast_shapes(*(points.shape[:-2] for points, _ in sides))

    def flat(a: Array | None, core: int) -> Any:
        if a is None:
            return None
        a = jnp.broadcast_to(a, (*batch, *a.shape[a.ndim - core :]))
        return a.reshape(-1, *a.shape[a.ndim - core :])

    x, y = ((flat(points, 2), flat(brackets, 3)) for points, brackets in sides)
    out = kernel._values(False, x, y)
    if kernel.normalise:
        out = out / (kernel._norms(x) * kernel._norms(y))
    return out.reshape(batch)


@eqx.filter_jit
def _gram(kernel: SignatureKernel, samples: list[Side], block: int | None) -> Array:
    kernel, sides = kernel._scaled(*samples)
    x, y = sides[0], sides[-1]  # the same object: only half of the blocks are computed
    out = kernel._values(True, x, y, block)
    if kernel.normalise:
        out = out / (kernel._norms(x)[:, None] * kernel._norms(y)[None, :])
    return out
