"""Explicit feature maps: reference for all kernels, and cheapest in low dimension."""

import math
from typing import Any, Literal

import jax.lax as lax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._inputs import as_floating, as_number, as_numbers
from .._xla import custom_jvp, scan
from ..algebra import (
    AbstractHopfAlgebra,
    GrossmanLarson,
    MuntheKaasWright,
    Shuffle,
    symmetry_factor,
)
from ..signatures import signature
from ._prepare import Kind, refuse_beyond


InnerProduct = Literal["hopf", "trees"]


def algebra(kind: Kind, dim: int, depth: int) -> AbstractHopfAlgebra:
    """The algebra whose coordinates a kernel of this kind sums over."""
    trees = {"branched": GrossmanLarson, "planar": MuntheKaasWright}
    return trees.get(kind, Shuffle)(dim, depth)


def _ito_words(points: Array, brackets: Array | None, words: Any) -> Array:
    """Words of the Itô signature: left-point sums, or products of `exp(dx - dA/2)`."""
    steps = jnp.diff(points, axis=-2)
    if brackets is not None and words.depth > 1:
        second = -0.5 * brackets.reshape(*steps.shape[:-1], -1)
        steps = jnp.concatenate([steps, second], axis=-1)
    rest = [(0, 0)] * (steps.ndim - 1) + [(0, words.size - steps.shape[-1])]
    steps = jnp.moveaxis(jnp.pad(steps, rest), -2, 0)

    def step(total, element):
        factor = element if brackets is None else words.exp(element)
        return words.product(total, factor), None

    return scan(step, jnp.zeros(steps.shape[1:], steps.dtype), steps)[0]


def explicit_features(
    points: Float[Array, "... times d"],
    brackets: Float[Array, "... steps d d"] | None,
    kind: Kind,
    depth: int,
    inner_product: InnerProduct,
) -> Float[Array, "... features"]:
    """Coordinates whose inner product is the truncated kernel minus one.

    `"hopf"`: words, forests with weight `1/sigma`, ordered forests, without the unit.
    `"trees"`: plain tree coordinates without weights (`kind="branched"`), the
    definition used in the literature on branched signature kernels for training.
    """
    alg = algebra(kind, points.shape[-1], depth)
    if kind == "geometric":
        return signature(points, alg)
    if kind == "ito":
        return _ito_words(points, brackets, alg)
    out = signature(points, alg, "left-point" if brackets is None else brackets)
    if kind == "planar":
        return out
    if inner_product == "trees":
        return out[..., jnp.asarray(_trees(alg))]
    factors = [1 / math.sqrt(symmetry_factor(forest)) for forest in alg.basis]
    return out * jnp.asarray(factors, out.dtype).reshape((1,) * (out.ndim - 1) + (-1,))


def _trees(alg: AbstractHopfAlgebra) -> np.ndarray:
    return np.flatnonzero([len(forest) == 1 for forest in alg.basis])


def feature_weights(
    kind: Kind, dim: int, depth: int, inner_product: InnerProduct
) -> np.ndarray:
    """Weight (letters or vertices) of each coordinate of `explicit_features`."""
    alg = algebra(kind, dim, depth)
    weights = np.asarray(alg.weights)
    return weights[_trees(alg)] if inner_product == "trees" else weights


def _excess(z: Array, norms: Array, target: Array) -> tuple[Array, Array]:
    """`sum_k z^k norms_k - target`, and its derivative in `z`."""
    ks = jnp.arange(1, norms.shape[-1] + 1, dtype=z.dtype)
    ks = ks.reshape((1,) * z.ndim + (-1,))
    value = jnp.sum(z[..., None] ** ks * norms, axis=-1) - target
    return value, jnp.sum(ks * z[..., None] ** (ks - 1) * norms, axis=-1)


@custom_jvp
def _dilation(norms: Array, target: Array) -> Array:
    """The zero `z` of the excess, at most one; `z` is the square of a dilation."""

    def halve(_, ends):
        low, high = ends
        mid = (low + high) / 2
        above = _excess(mid, norms, target)[0] > 0
        return jnp.where(above, low, mid), jnp.where(above, mid, high)

    ends = (jnp.zeros_like(target), jnp.ones_like(target))
    low, high = lax.fori_loop(0, jnp.finfo(norms.dtype).nmant + 4, halve, ends)
    z = (low + high) / 2
    value, slope = _excess(z, norms, target)  # a Newton step
    step = value / jnp.where(slope > 0, slope, 1)
    return jnp.clip(z - jnp.where(slope > 0, step, 0), 1e-12, 1.0)


@_dilation.defjvp
def _dilation_jvp(primals, tangents):
    z = _dilation(*primals)
    change, _ = _excess(z, *tangents)
    _, slope = _excess(z, *primals)
    change = change / jnp.where(slope > 0, slope, 1)
    return z, -jnp.where(slope > 0, change, 0)


def robust_normalisation(
    features: Float[Array, "... features"],
    weights: np.ndarray,
    *,
    bound: float = 4.0,
    power: float = 1.0,
) -> Float[Array, "... features"]:
    r"""Tensor normalisation: a dilation that makes signature features bounded.

    Coordinates of weight `k` are multiplied by `lambda^k`, with `lambda` chosen for
    each path so that the squared norm (unit included) becomes `psi(|S|^2)`, where
    `psi(r) = r` up to `bound` and
    `psi(r) = bound + bound^{1+power} (bound^{-power} - r^{-power}) / power` beyond:
    bounded by `bound (1 + 1/power)`. It depends on no other path of the batch, and has
    no scale taken from data. Injective, so nothing is lost; robust, since one wild path
    can no longer dominate a mean (Chevyrev and Oberhauser, "Signature moments to
    characterize laws of stochastic processes", 2022, §3 and appendix A).

    **Arguments:**

    - `features`: `(..., features)` without the unit.
    - `weights`: weight of each feature, `alg.weights` of an algebra.
    - `bound`, `power`: the constants of `psi`.

    **Returns:**

    Array of the same shape, differentiable (implicit function theorem).
    """
    features = as_floating("features", features)
    weights = np.asarray(as_numbers("weights", weights))
    whole = weights.dtype.kind in "iu" and weights.size and np.all(weights >= 1)
    if not whole or not features.ndim or weights.shape != features.shape[-1:]:
        raise ValueError(
            "`weights` must be positive integers, one for each feature (`alg.weights` "
            f"of the algebra), got {weights.dtype}{list(weights.shape)} for features "
            f"of shape {features.shape}."
        )
    as_number("bound", bound, 1)
    as_number("power", power, 0, above=True)
    message = "The features hold NaN or infinity: use smaller paths."
    features = refuse_beyond(features, float("inf"), message)
    depth = int(np.max(weights))
    norms = jnp.stack(
        [
            jnp.sum(jnp.square(features[..., np.flatnonzero(weights == k)]), axis=-1)
            for k in range(1, depth + 1)
        ],
        axis=-1,
    )
    total = 1 + jnp.sum(norms, axis=-1)
    capped = jnp.maximum(total, bound)
    beyond = bound + bound * (1 - (bound / capped) ** power) / power
    target = jnp.where(total > bound, beyond, total) - 1
    root = _dilation(norms, target)
    root = jnp.where(total > bound, root, 1)
    exponents = jnp.asarray(weights, features.dtype) / 2
    factors = root[..., None] ** exponents.reshape((1,) * root.ndim + (-1,))
    return features * factors
