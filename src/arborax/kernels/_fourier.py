"""Random Fourier signature features: linear in batch and length, standardised."""

import functools as ft
import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from .._inputs import (
    as_choice,
    as_count,
    as_flag,
    as_floating,
    as_key,
    as_number,
    as_real_dtype,
)
from .._values import is_concrete, refuse
from .._xla import cosine as fast_cosine, in_turn
from ._blocks import split
from ._iterated import forest_shapes, ladder, random_levels, shape_symmetry
from ._prepare import as_sample, Brackets, Path, prepare, Side


_BLOCK = 2**18  # numbers per array in one block of paths: stay near the cache


def cosine(turns: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """`cos(2 pi turns)`, several times faster than `jnp.cos` on a CPU.

    Error below `1e-6` in single and `1e-13` in double precision. NaN where `turns` is
    not finite.
    """
    return fast_cosine(as_floating("turns", turns))


def _wider(a: Any, b: Any) -> Any:
    return a if jnp.finfo(a).bits > jnp.finfo(b).bits else b


class RandomFourierSignature(eqx.Module):
    r"""Random features of a signature kernel over an RBF static kernel.

    Channel-wise standardised points are mapped to `u(x) = sqrt(2) cos(<w, x> + phi)`
    with Gaussian frequencies `w`, a mixture of several scales; the features of weight
    `m` are iterated sums of increments of `m` such functions:

    * `"geometric"`: words of the piecewise linear lift of `(u_1, .., u_m)`;
    * `"ito"`: words with left-point sums `sum u_1 .. du_m`;
    * `"branched"`: every forest of unlabelled trees with `m` vertices, one function
      for each vertex, left-point sums, weight `1/sqrt(sigma)`.

    Before [`fit`][], the inner product of two feature vectors is an unbiased estimate
    of the kernel of the same kind and depth with the static kernel
    `mean_s exp(-s^2 |x - y|^2 / 2)` over the `scales` `s` (minus the constant 1). After
    it, every feature is divided by its standard deviation under the data, which makes
    the squared distance of means a sensible training loss at all scales.

    Angles are taken from a point's distance to the fitted location, so an offset of all
    paths costs no digits once fitted. Before it, the location is zero: centre data that
    lie far from there.

    With supplied `brackets`, the step gets the two-vertex term
    `(du_1 du_2 - grad u_1 . dA grad u_2) / 2`, zero for realised brackets to leading
    order, so that the features see a bracket that the samples do not show.

    Cost `O(batch * times * features * (levels + dim))`: no recursion in time up to
    weight 3 (the first and the last sum are explicit), one cumulative sum beyond.
    Memory is bounded by blocks of paths. Fixed by the key; differentiable in paths and
    brackets. Reference: Tóth, Oberhauser, Szabó, "Random Fourier signature features",
    2023 (here with shared frequencies between weights, and with trees).
    """

    linear: ClassVar[bool] = True  # it is an inner product of features,
    unit: ClassVar[float] = 1.0  # which leave out this constant
    kind: Literal["geometric", "ito", "branched"] = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    count: int = eqx.field(static=True)
    add_time: bool = eqx.field(static=True)
    frequencies: Float[Array, "levels dim features"]
    phases: Float[Array, "levels features"]
    location: Float[Array, " dim"]
    remainder: Float[Array, " dim"]
    spread: Float[Array, " dim"]
    deviation: Float[Array, " total"] | None

    def __init__(
        self,
        dim: int,
        *,
        key: PRNGKeyArray,
        kind: Literal["geometric", "ito", "branched"] = "ito",
        levels: int = 3,
        features: int = 256,
        scales: tuple[float, ...] = (1.0, 3.0, 8.0),
        add_time: bool = True,
        time_scale: float = 3.0,
        dtype: jnp.dtype | None = None,
    ):
        """**Arguments:**

        - `dim`: channels of the paths, without time.
        - `key`: fixes frequencies and phases.
        - `kind`: see above.
        - `levels`: largest weight.
        - `features`: features for each word length or forest shape.
        - `scales`: the frequencies' standard deviations, in units of one over the
            channels' standard deviations; one is drawn for each function.
        - `add_time`: let the functions depend on time, scaled to `[0, 1]` for arrays,
            with frequencies of standard deviation `time_scale`.
        - `dtype`: of the tables; default the default float.
        """
        as_choice("kind", kind, ("geometric", "ito", "branched"))
        key = as_key(key)
        for name, value in (("dim", dim), ("levels", levels), ("features", features)):
            as_count(name, value)
        if not isinstance(scales, tuple | list) or not scales:
            raise ValueError("`scales` must be a tuple of at least one number.")
        for scale in scales:
            as_number("scales", scale, 0, above=True)
        as_number("time_scale", time_scale, 0)
        dtype, add_time = as_real_dtype(dtype), as_flag("add_time", add_time)
        key_w, key_s, key_p, key_t = jr.split(key, 4)
        normal = jr.normal(key_w, (levels, dim, features), dtype)
        choice = jr.choice(key_s, jnp.asarray(scales, dtype), (levels, 1, features))
        self.frequencies = normal * choice
        if add_time:
            clock = time_scale * jr.normal(key_t, (levels, 1, features), dtype)
            self.frequencies = jnp.concatenate([clock, self.frequencies], axis=1)
        self.phases = jr.uniform(key_p, (levels, features), dtype)
        width = dim + int(add_time)
        self.location = jnp.zeros((width,), dtype)
        self.remainder = jnp.zeros((width,), dtype)
        self.spread = jnp.ones((width,), dtype)
        self.deviation = None
        self.kind, self.levels, self.count = kind, levels, features
        self.add_time = add_time

    @property
    def forests(self) -> tuple:
        """The shape of each block of `count` features, by weight."""
        if self.kind == "branched":
            return tuple(f for m in range(1, self.levels + 1) for f in forest_shapes(m))
        return tuple((ladder(m),) for m in range(1, self.levels + 1))

    @property
    def size(self) -> int:
        """Total number of features."""
        return len(self.forests) * self.count

    def _read(self, x: Path, brackets: Brackets) -> Side:
        points, increments = prepare(x, brackets, kind=self.kind, time=self.add_time)
        width = self.frequencies.shape[1]
        if points.shape[-1] != width:
            raise ValueError(
                f"Expected paths with {width - int(self.add_time)} channels, got "
                f"{points.shape[-1] - int(self.add_time)}."
            )
        return points, increments

    def fit(self, x: Path, *, brackets: Brackets = None) -> "RandomFourierSignature":
        """Standardise from data `(batch, times, dim)`.

        Sets the location and spread of each channel (over batch and time; time itself
        is left alone), then the standard deviation of each feature.

        **Returns:**

        A new, fitted object.
        """
        points, increments = self._read(as_sample("x", x), brackets)
        # Far from zero the mean is rounded. The rest is kept apart, so that the
        # fitted map of moved data is the same map, moved.
        wide = _wider(points.dtype, self.location.dtype)
        channels = points.reshape(-1, points.shape[-1]).astype(wide)
        first = channels[:1]
        location = first[0] + jnp.mean(channels - first, axis=0)
        if self.add_time:
            location = location.at[0].set(0)
        location = location.astype(self.location.dtype)
        centred = channels - location.astype(wide)[None]
        remainder, spread = jnp.mean(centred, axis=0), jnp.std(centred, axis=0)
        if self.add_time:
            remainder, spread = remainder.at[0].set(0), spread.at[0].set(1)
        spread = jnp.where(spread > 0, spread, 1)
        new = eqx.tree_at(
            lambda r: (r.location, r.remainder, r.spread, r.deviation),
            self,
            (
                location,
                remainder.astype(self.location.dtype),
                spread.astype(self.spread.dtype),
                None,
            ),
            is_leaf=lambda leaf: leaf is None,
        )
        values = _features(new, points, increments).reshape(-1, self.size)
        deviation = jnp.std(values, axis=0)
        largest = jnp.max(deviation)
        known = np.asarray(largest) if is_concrete(largest) else largest
        message = "All paths have the same features: there is nothing to standardise."
        largest = refuse(largest, ~(known > 0), message)
        deviation = jnp.maximum(deviation, 1e-3 * largest) * math.sqrt(self.size)
        deviation = lax.stop_gradient(deviation.astype(self.location.dtype))
        return eqx.tree_at(
            lambda r: r.deviation, new, deviation, is_leaf=lambda leaf: leaf is None
        )

    def features(
        self, x: Path, *, brackets: Brackets = None
    ) -> Float[Array, "... size"]:
        """Features of paths `(..., times, dim)`; brackets as in the kernels."""
        return _features(self, *self._read(x, brackets))


@eqx.filter_jit
def _features(
    maps: RandomFourierSignature, points: Array, increments: Array | None
) -> Array:
    lead, (times, d) = points.shape[:-2], points.shape[-2:]
    dtype = points.dtype
    flat = points.reshape(-1, times, d)
    if increments is not None:
        increments = increments.reshape(flat.shape[0], times - 1, d, d)
    block = max(1, _BLOCK // max(1, times * maps.count))

    if flat.shape[0] <= block:
        out = _block_features(maps, flat, increments)
    else:

        @ft.partial(jax.checkpoint, prevent_cse=False)  # inside a loop: not needed
        def one(arguments):
            return _block_features(maps, *arguments)

        tiles = lax.map(one, (split(flat, block), split(increments, block)))
        out = tiles.reshape(-1, maps.size)[: flat.shape[0]]
    if maps.deviation is not None:
        out = out / maps.deviation.astype(dtype)[None]
    return out.reshape(*lead, maps.size)


def _block_features(
    maps: RandomFourierSignature, points: Array, increments: Array | None
) -> Array:
    dtype = points.dtype
    cast = lambda a: a.astype(dtype)  # noqa: E731
    # Points are centred before they meet the frequencies, which saves their digits;
    # spread goes into the frequencies.
    wide = _wider(dtype, maps.location.dtype)
    location, remainder = (
        a.astype(wide)[None, None] for a in (maps.location, maps.remainder)
    )
    points = cast(points.astype(wide) - location - remainder)
    frequencies = cast(maps.frequencies) / cast(maps.spread)[None, :, None]
    phases = cast(maps.phases)
    turns = frequencies / (2 * math.pi)
    sloped = increments is not None

    def level(table: tuple[Array, Array]) -> tuple[Array, Array | None]:
        angle = jnp.einsum("btd,dk->btk", points, table[0]) + table[1][None, None]
        slope = math.sqrt(2) * fast_cosine(angle[:, :-1] + 0.25) if sloped else None
        return math.sqrt(2) * fast_cosine(angle), slope  # slope: -sqrt(2) sin

    # Stored, or each cosine would be computed again wherever a sum or its derivative
    # uses it, which makes gradients four times slower.
    values, tilts = in_turn(level, (turns, phases))
    functions = [values[m] for m in range(maps.levels)]
    slopes = [tilts[m] for m in range(maps.levels)] if tilts is not None else []

    def bracket(i: int, j: int) -> Array:
        """Bracket increments of two functions, `grad u_i . dA grad u_j`."""
        image = jnp.einsum("btde,dk->btek", increments, frequencies[i])
        inner = jnp.einsum("btek,ek->btk", image, frequencies[j])
        return slopes[i] * slopes[j] * inner

    values = random_levels(
        maps.kind, maps.forests, functions, None if increments is None else bracket
    )
    weights = [1 / math.sqrt(shape_symmetry(f) * maps.count) for f in maps.forests]
    scaled = [v * w for v, w in zip(values, weights, strict=True)]
    return jnp.concatenate(scaled, axis=-1)
