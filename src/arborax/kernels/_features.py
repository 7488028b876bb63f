"""Explicit feature maps: reference for all kernels, and cheapest in low dimension."""

import functools as ft
import math
from typing import Literal

import jax
import jax.lax as lax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._inputs import (
    as_choice,
    as_count,
    as_floating,
    as_number,
    as_numbers,
    as_values,
)
from .._xla import scan
from ..algebra import GrossmanLarson, MuntheKaasWright, Shuffle, symmetry_factor
from ..signatures import signature
from ._prepare import as_brackets, check_kind, Kind, refuse_beyond


InnerProduct = Literal["hopf", "trees"]
INNER_PRODUCTS = ("hopf", "trees")


def feature_count(kind: Kind, dim: int, depth: int) -> int:
    """Number of coordinates up to weight `depth`, without building the basis."""
    check_kind(kind, depth)
    dim, depth = as_count("dim", dim), as_count("depth", depth)
    if kind in ("geometric", "ito"):
        return sum(dim**k for k in range(1, depth + 1))
    if kind == "planar":  # ordered forests: Catalan numbers times colours
        return sum(math.comb(2 * k, k) // (k + 1) * dim**k for k in range(1, depth + 1))
    forests = [1]
    for n in range(1, depth + 1):  # Euler transform; trees of weight j: d * forests
        total = 0
        for k in range(1, n + 1):
            divisors = sum(
                j * dim * forests[j - 1] for j in range(1, k + 1) if k % j == 0
            )
            total += divisors * forests[n - k]
        forests.append(total // n)
    return sum(forests[1:])


@ft.cache
def _tree_selection(
    dim: int, depth: int, inner_product: InnerProduct
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Positions kept, roots of the weights, and vertices, for non-planar trees."""
    alg = GrossmanLarson(dim, depth)
    if inner_product == "trees":
        keep = np.array([i for i, f in enumerate(alg.basis) if len(f) == 1])
        return keep, np.ones(len(keep)), np.asarray(alg.weights)[keep]
    weights = [1 / math.sqrt(symmetry_factor(f)) for f in alg.basis]
    return None, np.array(weights), np.asarray(alg.weights)


def _flat(values: Array, lead: tuple[int, ...]) -> Array:
    """All axes after `lead` as one; the batch may be empty."""
    return values.reshape(*lead, math.prod(values.shape[len(lead) :]))


def _tensor_multiply(a: list[Array], b: list[Array]) -> list[Array]:
    """Product of tensor series with levels `(..., d, .., d)`, units left out."""
    out = []
    for k in range(len(a)):
        total = a[k] + b[k]
        for j in range(k):
            left, right = a[j], b[k - j - 1]
            lead = left.ndim - (j + 1)
            flat_l = _flat(left, left.shape[:lead])
            flat_r = _flat(right, right.shape[:lead])
            total = total + (flat_l[..., :, None] * flat_r[..., None, :]).reshape(
                total.shape
            )
        out.append(total)
    return out


def _ito_words(dx: Array, brackets: Array | None, depth: int) -> list[Array]:
    """Words of the Itô signature: left-point sums, or products of `exp(dx - dA/2)`."""
    lead, d = dx.shape[:-2], dx.shape[-1]

    def zeros():
        return [jnp.zeros((*lead, *(d,) * k), dx.dtype) for k in range(1, depth + 1)]

    def step(total, increments):
        first, second = increments
        element = zeros()
        element[0] = first
        if second is None:
            return _tensor_multiply(total, element), None
        if depth > 1:
            element[1] = -0.5 * second
        # exp by Horner's rule: E = x (1 + x/2 (1 + x/3 (...)))
        factor = zeros()
        for k in range(depth, 0, -1):
            scaled = [e / k for e in element]
            product = _tensor_multiply(scaled, factor)
            factor = [p - f for p, f in zip(product, factor, strict=True)]
        return _tensor_multiply(total, factor), None

    steps = jnp.moveaxis(dx, -2, 0)
    moved = None if brackets is None else jnp.moveaxis(brackets, -3, 0)
    return scan(step, zeros(), (steps, moved))[0]


def explicit_features(
    points: Float[Array, "... times d"],
    brackets: Float[Array, "... steps d d"] | None,
    *,
    kind: Kind,
    depth: int,
    inner_product: InnerProduct = "hopf",
) -> Float[Array, "... features"]:
    """Coordinates whose inner product is the truncated kernel minus one.

    **Arguments:**

    - `points`: paths `(..., times, d)`.
    - `brackets`: increments of the brackets, or `None`: left-point sums (`geometric`:
        piecewise linear).
    - `kind`, `depth`: as in [`arborax.signature_kernel`][].
    - `inner_product`: `"hopf"`: words, forests with weight `1/sigma`, ordered forests.
        `"trees"`: plain tree coordinates without weights (`kind="branched"`), the
        definition used in the literature on branched signature kernels for training.

    **Returns:**

    Array `(..., features)`; the constant coordinate of the empty word or forest is
    left out.
    """
    check_kind(kind, depth)
    depth = as_count("depth", depth)
    as_choice("inner_product", inner_product, INNER_PRODUCTS)
    points = as_values("points", points)
    d = points.shape[-1]
    if brackets is not None and kind == "geometric":
        raise ValueError("The geometric features know no brackets: leave them out.")
    if brackets is not None:
        brackets = as_brackets("brackets", brackets, points)
    if kind == "geometric":
        return signature(points, Shuffle(d, depth))
    if kind == "ito":
        levels = _ito_words(jnp.diff(points, axis=-2), brackets, depth)
        lead = points.shape[:-2]
        return jnp.concatenate([_flat(v, lead) for v in levels], axis=-1)
    step = "left-point" if brackets is None else brackets
    if kind == "planar":
        return signature(points, MuntheKaasWright(d, depth), step)
    keep, weights, _ = _tree_selection(d, depth, inner_product)
    out = signature(points, GrossmanLarson(d, depth), step)
    if keep is not None:
        return out[..., jnp.asarray(keep)]
    factors = jnp.asarray(weights, out.dtype)
    return out * factors.reshape((1,) * (out.ndim - 1) + (-1,))


def feature_weights(
    kind: Kind, dim: int, depth: int, inner_product: InnerProduct = "hopf"
) -> np.ndarray:
    """Weight (letters or vertices) of each coordinate of `explicit_features`."""
    check_kind(kind, depth)
    dim, depth = as_count("dim", dim), as_count("depth", depth)
    as_choice("inner_product", inner_product, INNER_PRODUCTS)
    if kind in ("geometric", "ito"):
        return np.concatenate([np.full(dim**k, k) for k in range(1, depth + 1)])
    if kind == "planar":
        return np.asarray(MuntheKaasWright(dim, depth).weights)
    return _tree_selection(dim, depth, inner_product)[2]


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
    no scale taken from data. Injective, so nothing is lost; robust, since one
    wild path can no longer rule a mean (Chevyrev and Oberhauser, "Signature moments to
    characterize laws of stochastic processes", 2022, §3 and appendix A).

    **Arguments:**

    - `features`: `(..., features)` without the unit.
    - `weights`: weight of each feature, from `feature_weights`.
    - `bound`, `power`: the constants of `psi`.

    **Returns:**

    Array of the same shape, differentiable (implicit function theorem).
    """
    features = as_floating("features", features)
    weights = np.asarray(as_numbers("weights", weights))
    if weights.dtype.kind not in "iu" or np.any(weights < 1) or not weights.size:
        raise ValueError(
            "`weights` must be positive integers, one for each feature. Make them with "
            "`feature_weights`."
        )
    as_number("bound", bound, 1)
    as_number("power", power, 0, above=True)
    if features.ndim < 1 or weights.shape != features.shape[-1:]:
        raise ValueError(
            f"`weights` must have one entry for each feature, got {weights.shape} for "
            f"features of shape {features.shape}. Make them with `feature_weights`."
        )
    message = "The features hold NaN or infinity: use smaller paths."
    features = refuse_beyond(features, float("inf"), message)
    depth = int(np.max(weights))
    dtype = features.dtype
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
    ks = jnp.arange(1, depth + 1, dtype=dtype)

    def excess(z, norms, target):  # z = lambda^2
        powers = z[..., None] ** ks.reshape((1,) * z.ndim + (-1,))
        return jnp.sum(powers * norms, axis=-1) - target

    fixed, goal = lax.stop_gradient((norms, target))

    def halve(_, ends):
        low, high = ends
        mid = (low + high) / 2
        above = excess(mid, fixed, goal) > 0
        return jnp.where(above, low, mid), jnp.where(above, mid, high)

    ends = (jnp.zeros_like(goal), jnp.ones_like(goal))
    low, high = lax.fori_loop(0, jnp.finfo(dtype).nmant + 4, halve, ends)
    z = (low + high) / 2
    slope = jax.vmap(jax.grad(excess))(
        z.reshape(-1), fixed.reshape(-1, depth), goal.reshape(-1)
    ).reshape(z.shape)
    # One Newton step: polishes the root and carries its exact derivative.
    step = excess(z, norms, target) / jnp.where(slope > 0, slope, 1)
    root = jnp.clip(z - jnp.where(slope > 0, step, 0), 1e-12, 1.0)
    root = jnp.where(total > bound, root, 1)
    exponents = jnp.asarray(weights, dtype) / 2
    factors = root[..., None] ** exponents.reshape((1,) * root.ndim + (-1,))
    return features * factors
