"""The kernels as functions."""

from typing import Literal, TypedDict, Unpack

from jaxtyping import Array, ArrayLike, Float, Real

from ._features import InnerProduct
from ._kernel import SignatureKernel
from ._prepare import Brackets, Kind, Path
from ._scale import Mode


class KernelOptions(TypedDict, total=False):
    """Options of [`arborax.SignatureKernel`][] by keyword."""

    static_kernel: object
    scale: Real[ArrayLike, ""] | Mode | None
    add_time: bool
    add_basepoint: bool
    lead_lag: bool
    solver: Literal["goursat", "series"]
    method: Literal["auto", "recursion", "features"]
    inner_product: InnerProduct
    normalise: bool


def signature_kernel(
    x: Path,
    y: Path,
    kind: Kind = "geometric",
    depth: int | None = None,
    *,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
    **options: Unpack[KernelOptions],
) -> Float[Array, "..."]:
    """Signature kernel: the similarity of two paths, for each pair from `x` and `y`.

    **Arguments:**

    - `x`, `y`: arrays `(..., times, d)`, whose leading axes broadcast, or
        [`arborax.SampledPath`][] for padded or irregular batches. Padding is exact.
        Missing points are interpolated; left-point sums carry the last value forward.
    - `kind`, `depth`, `options`: those of [`arborax.SignatureKernel`][].
    - `brackets_x`, `brackets_y`: for the Itô kinds. `None`: the brackets of the
        `SampledPath`, or left-point sums where there are none. `"left-point"`,
        `"realised"` (`dx dx^T` of observed increments), `"canonical"` (zero) or
        increments `(..., steps, d, d)`. The two sides may differ.

    With `scale=None` or a number, each value depends only on its two paths. If `scale`
    is a string, all pairs of the call share one number, computed from all paths of `x`
    and `y`.

    **Returns:**

    Array of the broadcast batch shape.
    """
    kernel = SignatureKernel(kind, depth, **options)
    return kernel(x, y, brackets_x=brackets_x, brackets_y=brackets_y)


def signature_gram(
    x: Path,
    y: Path | None = None,
    kind: Kind = "geometric",
    depth: int | None = None,
    *,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
    block: int | None = None,
    **options: Unpack[KernelOptions],
) -> Float[Array, "n m"]:
    """Gram matrix of two batches of paths, in blocks of bounded memory.

    **Arguments:**

    - `x`: `(n, times, d)`. `y`: `(m, times, d)`, or `None` for the symmetric matrix of
        `x` with itself, at half the cost.
    - `block`: rows and columns computed at a time. `None`: chosen so that one diagonal
        of the recursion takes about a megabyte, which suits the cache.
    - all others: as in [`arborax.signature_kernel`][].

    A string for `scale` finds one number per call. Parts of one large matrix, or the
    matrices of a training and a test set, must share it: fix it first with
    [`arborax.SignatureKernel.fit`][].

    **Returns:**

    Array `(n, m)`.
    """
    kernel = SignatureKernel(kind, depth, **options)
    return kernel.gram(x, y, brackets_x=brackets_x, brackets_y=brackets_y, block=block)
