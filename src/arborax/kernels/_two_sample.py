"""The permutation two-sample test."""

import functools as ft
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._inputs import as_count, as_floating, as_key
from .._values import is_concrete, refuse
from ._objectives import AnyKernel, MeanEmbedding, pooled
from ._prepare import Brackets, Path


class TwoSampleResult(NamedTuple):
    """Result of [`arborax.two_sample_test`][].

    - `statistic`: unbiased squared MMD of the samples.
    - `p_value`: share of relabelled samples at least as far apart, the given labels
        included; uniform under the null hypothesis.
    - `permuted`: the statistics of the relabelled samples.
    """

    statistic: Float[Array, ""]
    p_value: Float[Array, ""]
    permuted: Float[Array, " permutations"]


def permutation_test(
    gram: Float[Array, "n n"], first: int, *, key: PRNGKeyArray, permutations: int
) -> TwoSampleResult:
    """The test for a given Gram matrix of the pooled sample, `first` paths first.

    Each relabelling costs one row of two matrix products, so the kernel is evaluated
    once. May be mapped over many matrices.
    """
    key, permutations = as_key(key), as_count("permutations", permutations)
    gram, first = as_floating("gram", gram), as_count("first", first)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(f"`gram` must be a square matrix, got shape {gram.shape}.")
    second = gram.shape[0] - first
    if first < 2 or second < 2:
        raise ValueError(
            f"Each sample needs at least two paths, got {first} and {second}."
        )
    known = np.asarray(gram) if is_concrete(gram) else gram
    bad = ~(abs(known) < float("inf"))
    result = _permutation_test(gram, first, key, permutations)
    return refuse(
        result,
        bad,
        "The Gram matrix is not finite, so the samples cannot be compared. Use a "
        "smaller `scale` (or 'auto'), or truncate the kernel with `depth`.",
    )


@ft.partial(jax.jit, static_argnums=(1, 3))
def _permutation_test(
    gram: Array, first: int, key: PRNGKeyArray, permutations: int
) -> TwoSampleResult:
    size = gram.shape[0]
    second = size - first
    labels = (jnp.arange(size) < first).astype(gram.dtype)
    shuffled = jax.vmap(lambda k: jr.permutation(k, labels))(
        jr.split(key, permutations)
    )
    ones = jnp.concatenate([labels[None], shuffled])
    without = gram - jnp.diag(jnp.diag(gram))
    image = ones @ without
    inside = jnp.sum(image * ones, axis=1)
    crossed = jnp.sum(image, axis=1) - inside
    outside = jnp.sum(without) - inside - 2 * crossed
    values = inside / (first * (first - 1)) + outside / (second * (second - 1))
    values = values - 2 * crossed / (first * second)
    observed, permuted = values[0], values[1:]
    tolerance = 1e-12 if gram.dtype == jnp.float64 else 1e-6
    slack = tolerance * jnp.max(jnp.abs(values))
    beaten = jnp.sum(permuted >= observed - slack)
    p_value = (1 + beaten).astype(gram.dtype) / (1 + permutations)
    return TwoSampleResult(observed, p_value, permuted)


def two_sample_test(
    x: Path,
    y: Path,
    kernel: AnyKernel,
    *,
    key: PRNGKeyArray,
    permutations: int = 500,
    brackets_x: Brackets = None,
    brackets_y: Brackets = None,
) -> TwoSampleResult:
    """Permutation test, based on the MMD, of whether two samples of paths have the same
    law.

    The level is exact for every sample size and kernel, because the labels are
    exchangeable under the null hypothesis. For this the kernel must not depend on the
    labels: a string for `scale` gives one number for both samples, and random features
    should be fitted to both samples together or to other data. The power depends on the
    kernel: one without brackets cannot tell apart laws that differ only in their
    brackets. Cost: one Gram matrix of the pooled sample.

    **Arguments:**

    - `x`, `y`: samples `(n, times, d)`, `(m, times, d)`, `n, m >= 2`.
    - `kernel`: a signature kernel or random Fourier features.
    - `key`: a JAX random key, for the permutations.
    - `permutations`: their number. The smallest possible p-value is
        `1 / (1 + permutations)`.
    - `brackets_x`, `brackets_y`: as in [`arborax.signature_kernel`][].

    **Returns:**

    A [`arborax.TwoSampleResult`][].
    """
    key = as_key(key)
    for name, paths in (("x", x), ("y", y)):
        if isinstance(paths, MeanEmbedding):
            raise TypeError(
                f"`{name}` is a mean embedding, which holds no labels to permute: pass "
                "the paths themselves."
            )
    x, y, fixed = pooled(x, y, kernel, brackets_x, brackets_y)
    if fixed.linear:
        fx = fixed.features(x, brackets=brackets_x)
        fy = fixed.features(y, brackets=brackets_y)
        features = jnp.concatenate([fx, fy])
        # Centring does not change the MMD and saves digits.
        features = features - jnp.mean(features, axis=0, keepdims=True)
        gram, first = features @ features.T, fx.shape[0]
    else:
        xx = fixed.gram(x, brackets_x=brackets_x)
        yy = fixed.gram(y, brackets_x=brackets_y)
        xy = fixed.gram(x, y, brackets_x=brackets_x, brackets_y=brackets_y)
        gram, first = jnp.block([[xx, xy], [xy.T, yy]]), xx.shape[0]
    return permutation_test(gram, first, key=key, permutations=permutations)
