"""Scores and distances between laws of paths."""

from typing import Any

import equinox as eqx
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._inputs import as_count, as_flag, as_kind
from ..paths import SampledPath
from ._fourier import RandomFourierSignature
from ._kernel import SignatureKernel
from ._prepare import as_sample, Brackets, check_alike, Path


AnyKernel = SignatureKernel | RandomFourierSignature


class MeanEmbedding(eqx.Module):
    """Mean features of a sample, computed once for an objective.

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
    batch, paths = as_count("batch", batch), as_sample("y", y)
    if isinstance(paths, SampledPath):
        return lax.stop_gradient(_embedding(paths, kernel, brackets))
    parts = []
    for start in range(0, paths.shape[0], batch):
        rows = slice(start, start + batch)
        own: Any = brackets
        if getattr(own, "ndim", 0) == 4:
            own = own[rows]
        parts.append(_embedding(paths[rows], kernel, own))
    size = sum(part.count for part in parts)
    mean: Any = sum(part.mean * part.count for part in parts) / size
    square: Any = sum(part.square * part.count for part in parts) / size
    return lax.stop_gradient(MeanEmbedding(mean, square, size))


def _embedding(x: Path, kernel: AnyKernel, brackets: Brackets) -> MeanEmbedding:
    values = kernel.features(x, brackets=brackets)
    square = jnp.mean(jnp.sum(values * values, axis=-1))
    return MeanEmbedding(jnp.mean(values, axis=0), square, values.shape[0])


def _check_kernel(kernel: Any) -> None:
    must = "be a SignatureKernel or a RandomFourierSignature"
    as_kind("kernel", kernel, AnyKernel, must)


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
    sx, sy = (
        z if isinstance(z, MeanEmbedding) else _embedding(z, kernel, brackets)
        for z, brackets in ((x, brackets_x), (y, brackets_y))
    )
    if sx.mean.shape != sy.mean.shape or sx.mean.dtype != sy.mean.dtype:
        raise ValueError(
            "The mean embedding was not made with this kernel and dtype: "
            f"{sx.mean.shape[0]} features of {sx.mean.dtype} for `x`, "
            f"{sy.mean.shape[0]} of {sy.mean.dtype} for `y`."
        )
    return sx, sy


def _bias(mean: Array, diagonal: Array, n: int) -> Array:
    """The mean of a Gram matrix less the mean off its diagonal."""
    if n < 2:
        raise ValueError(
            "The unbiased estimator needs at least two paths in each sample whose own "
            "term is asked for. Pass unbiased=False."
        )
    return (diagonal - mean) / (n - 1)


def _score(
    x, y, kernel, brackets_x, brackets_y, unbiased: bool, data_term: bool
) -> Array:
    """`E k(X, X') - 2 E k(X, Y)`, and `E k(Y, Y')` with the data term."""
    if kernel.linear:
        sx, sy = _summaries(x, y, kernel, brackets_x, brackets_y)
        if data_term:
            score = jnp.sum(jnp.square(sx.mean - sy.mean))
        else:  # the constant of the kernel counts once, less twice
            score = jnp.sum(sx.mean * (sx.mean - 2 * sy.mean)) - kernel.unit
        for own in (sx, sy)[: 1 + data_term] if unbiased else ():
            score = score - _bias(jnp.sum(jnp.square(own.mean)), own.square, own.count)
        return score
    cross = kernel.gram(x, y, brackets_x=brackets_x, brackets_y=brackets_y)
    score = -2 * jnp.mean(cross)
    for z, brackets in ((x, brackets_x), (y, brackets_y))[: 1 + data_term]:
        gram = kernel.gram(z, brackets_x=brackets)
        mean, diagonal = jnp.mean(gram), jnp.mean(jnp.diagonal(gram))
        score = score + mean
        score = score - _bias(mean, diagonal, gram.shape[0]) if unbiased else score
    return score


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
    """Squared maximum mean discrepancy (MMD): the distance between the laws of two
    samples of paths.

    Arguments and cost are those of [`arborax.signature_score`][]. The default, biased
    estimate is the squared distance of mean features and never negative; the unbiased
    one may be negative.

    **Returns:**

    A scalar.
    """
    sides: Any = {"brackets_x": brackets_x, "brackets_y": brackets_y}
    return signature_score(x, y, kernel, **sides, unbiased=unbiased, data_term=True)
