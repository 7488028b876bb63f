"""The kernels as functions."""

from typing import Literal

from jaxtyping import Array, ArrayLike, Bool, Float, Int, Real

from ._features import InnerProduct
from ._kernel import Path, SignatureKernel
from ._prepare import Brackets, Kind


def signature_kernel(
    x: Path,
    y: Path,
    kind: Kind = "geometric",
    depth: int | None = None,
    *,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
    static_kernel: object = None,
    scale: Real[ArrayLike, ""] | Literal["auto", "bounded"] | None = None,
    add_time: bool = False,
    add_basepoint: bool = False,
    lead_lag: bool = False,
    lengths_x: Int[Array, "..."] | None = None,
    lengths_y: Int[Array, "..."] | None = None,
    mask_x: Bool[Array, "..."] | None = None,
    mask_y: Bool[Array, "..."] | None = None,
    solver: Literal["goursat", "series"] = "goursat",
    refinement: int | tuple[int, int] = 0,
    method: Literal["auto", "recursion", "features"] = "auto",
    inner_product: InnerProduct = "hopf",
    normalise: bool = False,
    custom_gradient: bool = True,
) -> Float[Array, "..."]:
    """Signature kernel of paths, paired one by one.

    **Arguments:**

    - `x`, `y`: arrays `(..., times, d)`, whose leading axes broadcast, or
        [`arborax.SampledPath`][] (with mask, lengths and brackets of its own).
    - `kind`, `depth`: see [`arborax.SignatureKernel`][].
    - `brackets_x`, `brackets_y`: for the Itô kinds. `None`: the brackets of the
        `SampledPath`, or left-point sums where there are none. `"left-point"`,
        `"realised"` (`dx dx^T` of observed increments), `"canonical"` (zero) or
        increments `(..., steps, d, d)`. The two sides may differ.
    - `lengths_x`, `mask_x`, ...: valid points and observed points of padded or
        irregular batches, as in [`arborax.SampledPath`][]; padding is exact. Missing
        points are interpolated; left-point sums carry the last value forward instead,
        and so sum over observed increments.
    - all others: see [`arborax.SignatureKernel`][].

    With `scale=None` or a number, a value depends on its two paths only. With
    `scale="auto"` or `"bounded"` all pairs of the call share one number, from all paths
    of `x` and `y` together.

    **Returns:**

    Array of the broadcast batch shape.
    """
    kernel = SignatureKernel(
        kind,
        depth,
        static_kernel=static_kernel,
        scale=scale,
        add_time=add_time,
        add_basepoint=add_basepoint,
        lead_lag=lead_lag,
        solver=solver,
        refinement=refinement,
        method=method,
        inner_product=inner_product,
        normalise=normalise,
        custom_gradient=custom_gradient,
    )
    return kernel(
        x,
        y,
        brackets_x=brackets_x,
        brackets_y=brackets_y,
        lengths_x=lengths_x,
        lengths_y=lengths_y,
        mask_x=mask_x,
        mask_y=mask_y,
    )


def signature_gram(
    x: Path,
    y: Path | None = None,
    kind: Kind = "geometric",
    depth: int | None = None,
    *,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
    static_kernel: object = None,
    scale: Real[ArrayLike, ""] | Literal["auto", "bounded"] | None = None,
    add_time: bool = False,
    add_basepoint: bool = False,
    lead_lag: bool = False,
    lengths_x: Int[Array, "..."] | None = None,
    lengths_y: Int[Array, "..."] | None = None,
    mask_x: Bool[Array, "..."] | None = None,
    mask_y: Bool[Array, "..."] | None = None,
    solver: Literal["goursat", "series"] = "goursat",
    refinement: int | tuple[int, int] = 0,
    method: Literal["auto", "recursion", "features"] = "auto",
    inner_product: InnerProduct = "hopf",
    normalise: bool = False,
    custom_gradient: bool = True,
    block: int | None = None,
) -> Float[Array, "n m"]:
    """Gram matrix of two batches of paths, in blocks of bounded memory.

    **Arguments:**

    - `x`: `(n, times, d)`. `y`: `(m, times, d)`, or `None` for the symmetric matrix of
        `x` with itself, at half the cost.
    - `block`: rows and columns computed at a time. `None`: so many that one diagonal of
        the recursion stays near the cache (about a megabyte).
    - all others: as in [`arborax.signature_kernel`][].

    With `scale=None` or a number, an entry depends on its two paths only. With
    `scale="auto"` or `"bounded"` all entries share one number, from all paths of `x`
    and `y` together, or of `x` alone without `y`. Blocks of one large matrix, or the
    matrices of a training and a test set, need one number: see
    [`arborax.SignatureKernel.fit`][].

    **Returns:**

    Array `(n, m)`.
    """
    kernel = SignatureKernel(
        kind,
        depth,
        static_kernel=static_kernel,
        scale=scale,
        add_time=add_time,
        add_basepoint=add_basepoint,
        lead_lag=lead_lag,
        solver=solver,
        refinement=refinement,
        method=method,
        inner_product=inner_product,
        normalise=normalise,
        custom_gradient=custom_gradient,
    )
    return kernel.gram(
        x,
        y,
        brackets_x=brackets_x,
        brackets_y=brackets_y,
        lengths_x=lengths_x,
        lengths_y=lengths_y,
        mask_x=mask_x,
        mask_y=mask_y,
        block=block,
    )
