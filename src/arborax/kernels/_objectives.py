"""Scores and distances between laws of paths."""

from typing import Any

import equinox as eqx
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._inputs import as_count, as_flag
from ..paths import SampledPath
from ._fourier import RandomFourierSignature
from ._kernel import Path, SignatureKernel
from ._prepare import as_sample, Brackets, check_alike


AnyKernel = SignatureKernel | RandomFourierSignature


class MeanEmbedding(eqx.Module):
    """What an objective needs to know of a sample, computed once.

    Made by [`arborax.embed`][]; pass it in place of the data.
    """

    mean: Float[Array, " features"]
    square: Float[Array, ""]
    count: int = eqx.field(static=True)


def embed(
    y: Path,
    kernel: AnyKernel,
    *,
    brackets: Brackets = None,
    batch: int = 4096,
) -> MeanEmbedding:
    """Mean features of a whole data set, in batches: the cached target of training.

    **Arguments:**

    - `y`: paths `(n, times, d)`, or a `SampledPath`.
    - `kernel`: a [`arborax.RandomFourierSignature`][] or a linear
        [`arborax.SignatureKernel`][].
    - `brackets`: as in [`arborax.signature_kernel`][].
    - `batch`: paths at a time (arrays without or with an array of brackets).

    **Returns:**

    A [`arborax.MeanEmbedding`][] without gradient.
    """
    _need_linear(kernel)
    batch = as_count("batch", batch)
    paths: Any = as_sample("y", y)
    array = not isinstance(paths, SampledPath)
    size = paths.shape[0] if array else paths.xs.shape[0]
    total: Any = 0
    square: Any = 0
    step = batch if array else size
    for start in range(0, size, step):
        part = paths[start : start + step] if array else paths
        brackets_: Any = brackets
        if array and getattr(brackets, "ndim", 0) == 4:
            brackets_ = brackets[start : start + step]
        values = kernel.features(part, brackets=brackets_)
        total = total + jnp.sum(values, axis=0)
        square = square + jnp.sum(values * values)
    return lax.stop_gradient(MeanEmbedding(total / size, square / size, size))


def _check_kernel(kernel: Any) -> None:
    if not isinstance(kernel, AnyKernel):
        raise TypeError(
            "`kernel` must be a SignatureKernel or a RandomFourierSignature, got "
            f"{type(kernel).__name__}."
        )


def _need_linear(kernel: Any) -> None:
    _check_kernel(kernel)
    if not kernel.linear:
        raise ValueError(
            "A mean embedding needs explicit features: RandomFourierSignature, or a "
            "truncated kernel that has the linear static kernel and a numeric scale "
            "and is not normalised. `kernel.fit(y)` makes scale='auto' a number."
        )


def pooled(
    x: Any, y: Any, kernel: Any, brackets_x: Brackets, brackets_y: Brackets
) -> tuple[Any, Any, Any]:
    """Checked samples, and the kernel with one scale for both together."""
    kernel = SignatureKernel() if kernel is None else kernel
    _check_kernel(kernel)
    embedded = [isinstance(z, MeanEmbedding) for z in (x, y)]
    x = x if embedded[0] else as_sample("x", x)
    y = y if embedded[1] else as_sample("y", y)
    if (embedded[0] and brackets_x is not None) or (
        embedded[1] and brackets_y is not None
    ):
        raise ValueError("A MeanEmbedding holds its brackets: give them to `embed`.")
    if any(embedded):
        _need_linear(kernel)
        return x, y, kernel
    check_alike(x, y)
    if isinstance(getattr(kernel, "scale", None), str):
        kernel = kernel.fit(x, y, brackets_x=brackets_x, brackets_y=brackets_y)
    return x, y, kernel


def _summaries(
    x, y, kernel, brackets_x, brackets_y
) -> tuple[MeanEmbedding, MeanEmbedding]:
    def summary(z: Any, brackets: Brackets) -> MeanEmbedding:
        if isinstance(z, MeanEmbedding):
            return z
        values = kernel.features(z, brackets=brackets)
        square = jnp.mean(jnp.sum(values * values, axis=-1))
        return MeanEmbedding(jnp.mean(values, axis=0), square, values.shape[0])

    sx, sy = summary(x, brackets_x), summary(y, brackets_y)
    if sx.mean.shape != sy.mean.shape or sx.mean.dtype != sy.mean.dtype:
        raise ValueError(
            "The mean embedding was not made with this kernel and dtype: "
            f"{sx.mean.shape[0]} features of {sx.mean.dtype} for `x`, "
            f"{sy.mean.shape[0]} of {sy.mean.dtype} for `y`."
        )
    return sx, sy


def _within(mean: Array, diagonal: Array, n: int, unbiased: bool) -> Array:
    """`E k(X, X')` from the means of the Gram matrix and of its diagonal, which the
    unbiased estimate leaves out."""
    if not unbiased:
        return mean
    if n < 2:
        raise ValueError(
            "The unbiased estimator needs at least two paths in each sample whose own "
            "term is asked for. Pass unbiased=False."
        )
    return (n * mean - diagonal) / (n - 1)


def _score(
    x, y, kernel, brackets_x, brackets_y, unbiased: bool, data_term: bool
) -> Array:
    """`E k(X, X') - 2 E k(X, Y)`, and `E k(Y, Y')` with the data term."""
    if kernel.linear:
        sx, sy = _summaries(x, y, kernel, brackets_x, brackets_y)

        def own(s: MeanEmbedding) -> Array:
            return _within(jnp.sum(s.mean * s.mean), s.square, s.count, unbiased)

        score = own(sx) - 2 * jnp.sum(sx.mean * sy.mean)
        # The constant of the kernel, left out of the features, counts 1 - 2 + 1 times.
        return score + own(sy) if data_term else score - kernel.unit

    def own_gram(z: Any, brackets: Brackets) -> Array:
        gram = kernel.gram(z, brackets_x=brackets)
        diagonal = jnp.mean(jnp.diagonal(gram))
        return _within(jnp.mean(gram), diagonal, gram.shape[0], unbiased)

    cross = jnp.mean(kernel.gram(x, y, brackets_x=brackets_x, brackets_y=brackets_y))
    score = own_gram(x, brackets_x) - 2 * cross
    return score + own_gram(y, brackets_y) if data_term else score


def signature_score(
    x: Path | MeanEmbedding,
    y: Path | MeanEmbedding,
    kernel: AnyKernel | None = None,
    *,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
    unbiased: bool = True,
    data_term: bool = False,
) -> Float[Array, ""]:
    """Signature-kernel score `E k(X, X') - 2 E k(X, Y)`, `X` the model, `Y` the data.

    A strictly proper score for characteristic kernels: a training objective. Where the
    kernel is linear (`kernel.linear`), it is computed from mean features in
    `O(n + m)`, never through a Gram matrix. The published objectives are the biased
    score with `SignatureKernel("geometric", 5, add_time=True, add_basepoint=True)` and
    with `SignatureKernel("branched", 3, inner_product="trees", ...)`.

    **Arguments:**

    - `x`: generated paths `(n, times, d)`; `y`: data `(m, times, d)`, or the
        [`arborax.MeanEmbedding`][] of the data.
    - `kernel`: default `SignatureKernel()`, the complete geometric kernel.
    - `brackets_x`, `brackets_y`: as in [`arborax.signature_kernel`][].
    - `unbiased`: leave out the diagonal in `E k(X, X')`.
    - `data_term`: add `E k(Y, Y')`, which does not depend on the model: the result is
        then the squared MMD.

    The constant 1 of the kernel is part of the score, whichever way it is computed;
    only `inner_product="trees"` has none. With `scale="auto"` or `"bounded"` all terms
    share one scale, from `x` and `y` together. It changes with the batch: for training
    fix it first with [`arborax.SignatureKernel.fit`][].

    **Returns:**

    A scalar.
    """
    unbiased, data_term = as_flag("unbiased", unbiased), as_flag("data_term", data_term)
    x, y, kernel = pooled(x, y, kernel, brackets_x, brackets_y)
    return _score(x, y, kernel, brackets_x, brackets_y, unbiased, data_term)


def mmd(
    x: Path | MeanEmbedding,
    y: Path | MeanEmbedding,
    kernel: AnyKernel | None = None,
    *,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
    unbiased: bool = False,
) -> Float[Array, ""]:
    """Squared maximum mean discrepancy of two samples of paths.

    Arguments as in [`arborax.signature_score`][]. The biased estimate is the squared
    distance of mean features and never negative; the unbiased one may be.

    **Returns:**

    A scalar.
    """
    unbiased = as_flag("unbiased", unbiased)
    x, y, kernel = pooled(x, y, kernel, brackets_x, brackets_y)
    if kernel.linear and not unbiased:
        sx, sy = _summaries(x, y, kernel, brackets_x, brackets_y)
        gap = sx.mean - sy.mean
        return jnp.sum(gap * gap)
    return _score(x, y, kernel, brackets_x, brackets_y, unbiased, True)
