"""The control of a log-ODE: one log-signature for each knot interval."""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_count, as_number
from .._values import is_concrete, refuse
from ..algebra import AbstractHopfAlgebra
from ..paths import (
    add_basepoint,
    SampledPath,
    windows_at_known_times,
    windows_by_points,
    windows_by_time,
)
from ._increments import is_array, is_left_point, read_path, with_brackets
from ._signature import expanding_log_of_steps, log_signature_of_steps


_LEAVES = (
    "the interval is not within one window of the control. `arborax.signature_tree` "
    "takes any interval of the control."
)


class RoughPath(eqx.Module):
    """The control of a log-ODE: one log-signature per window, and the calculus it
    carries.

    `solve`, the Diffrax bridge and models take it. Made by [`arborax.rough_path`][], or
    by the method `prepare` of a model. Batches are made with `jax.vmap`.

    - `alg`, `calculus`: the algebra, and `"ito"` or `"stratonovich"`.
    - `knots`: ends of the windows.
    - `log_signatures`: one per window.
    - `times`, `values`, `brackets`: the points of each window, padded by repeating the
        last one, and the brackets of its steps, zero on padding.
    - `left_point`: whether log-signatures are those of left-point sums.
    - `num_steps`: steps in all windows, if windows were cut by number of steps; `None`
        if they were cut by time.
    - `basepoint`: whether the first point is a basepoint and not a sample.
    - `straight`: whether only the log-signature of a window is known, so that the path
        inside is `exp(theta * log_signature)`.
    """

    alg: AbstractHopfAlgebra = eqx.field(static=True)
    calculus: Literal["ito", "stratonovich"] = eqx.field(static=True)
    knots: Float[Array, " knots"]
    log_signatures: Float[Array, "windows primitive"]
    times: Float[Array, "windows points"]
    values: Float[Array, "windows points dim"]
    brackets: Float[Array, "windows steps dim dim"] | None
    left_point: bool = eqx.field(static=True)
    num_steps: int | None = eqx.field(static=True, default=None)
    basepoint: bool = eqx.field(static=True, default=False)
    straight: bool = eqx.field(static=True, default=False)

    @property
    def num_windows(self) -> int:
        """Number of knot intervals."""
        return self.log_signatures.shape[-2]

    @property
    def t0(self) -> Array:
        """First knot."""
        return self.knots[0]

    @property
    def t1(self) -> Array:
        """Last knot."""
        return self.knots[-1]

    def window(self, t: ArrayLike) -> Array:
        """Number `k` of the window `[knots[k], knots[k+1])` that holds `t`."""
        t = jnp.asarray(t, self.knots.dtype)
        place = jnp.searchsorted(self.knots, t, side="right") - 1
        return jnp.clip(place, 0, self.num_windows - 1)

    def log_signature(
        self, s: ArrayLike, t: ArrayLike, window: ArrayLike | None = None
    ) -> Float[Array, " primitive"]:
        """Log-signature over `[s, t]` inside one window; the times may be traced.

        The path between samples is linear and its bracket grows linearly in time, so
        pieces of a window multiply up to the whole (Chen). With left-point sums a time
        between samples counts as a further sample. Cost: one log-signature of the
        window. Derivatives with respect to a time that falls on a sample are one-sided,
        from within `[s, t]`.

        **Arguments:**

        - `s`, `t`: times, `s <= t`, in the same window.
        - `window`: its number, if known: times are then cut off at its ends. `None`:
            the window of `s`, and an interval that leaves it is refused.
        """
        dtype = self.times.dtype
        s, t = (jnp.asarray(as_time(n, x), dtype) for n, x in (("s", s), ("t", t)))
        k = self.window(s) if window is None else jnp.asarray(window)
        if window is None:
            inside = (self.knots[k] <= s) & (s <= t) & (t <= self.knots[k + 1])
            s, t = refuse((s, t), ~inside, _LEAVES)
        times, values = self.times[k], self.values[k]
        # Not `jnp.clip`: its derivative at a tie, a time on a sample, is one half.
        t = jnp.where(t < s, s, t)
        # Ordered so that NaN, for a time that is refused, is passed on.
        clipped = jnp.where(times > s, jnp.where(times < t, times, t), s)
        span = jnp.diff(times)
        safe = jnp.where(span > 0, span, jnp.ones_like(span))
        share = jnp.where(span > 0, jnp.diff(clipped) / safe, jnp.zeros_like(span))
        share = share.astype(values.dtype)
        if self.straight:
            return share * self.log_signatures[k]
        steps = share[:, None] * jnp.diff(values, axis=0)
        brackets: Any = "left-point" if self.left_point else None
        if self.brackets is not None:
            brackets = share[:, None, None] * self.brackets[k]
        return log_signature_of_steps(self.alg, steps, brackets)

    def expanding(self) -> Float[Array, "windows points primitive"]:
        """Log-signatures from the start of each window to each of its points but the
        first; the last of them are `log_signatures`, up to rounding."""
        if self.values.shape[-2] == 2:
            return self.log_signatures[..., None, :]
        brackets: Any = "left-point" if self.left_point else self.brackets
        steps = jnp.diff(self.values, axis=-2)
        return expanding_log_of_steps(self.alg, steps, brackets)


def as_time(name: str, value: Any) -> Any:
    """One end of an interval; `jax.vmap` takes many."""
    if hasattr(value, "dtype") and np.ndim(value):
        raise TypeError(
            f"`{name}` must be one time, got shape {np.shape(value)}. Use `jax.vmap` "
            "for many intervals."
        )
    return as_number(name, value)


def rough_path(
    ts: ArrayLike | None,
    xs: ArrayLike | SampledPath,
    alg: AbstractHopfAlgebra,
    knots: ArrayLike | None = None,
    brackets: Any = None,
    *,
    window: int | None = None,
    basepoint: bool = False,
    max_points: int | None = None,
) -> RoughPath:
    """Turn a sampled path into the driver of an equation: one log-signature per window.

    !!! example

        ```python
        ts = jnp.linspace(0.0, 1.0, 513)
        control = abx.rough_path(ts, xs, abx.Ito(2, 2), window=16, brackets="realised")
        control.log_signatures        # (32, 6)
        ```

    **Arguments:**

    - `ts`: times `(times,)`, strictly increasing; `None` if `xs` is a
        [`arborax.SampledPath`][], which has its own times.
    - `xs`: values `(times, dim)`, or a `SampledPath` (masks, lengths and brackets are
        respected). Use `jax.vmap` for batches.
    - `alg`: the algebra.
    - `knots`: `(windows + 1,)`, strictly increasing, within the sampled times. Knots
        may lie between samples, where the path is linear and its bracket grows
        linearly.
    - `brackets`: as in [`arborax.signature`][]. With brackets the control is Itô,
        without them Stratonovich (`control.calculus`). Realised brackets belong to the
        step at which an observation arrives; a knot inside a step divides them in
        proportion to time.
    - `window`: number of steps per window, instead of `knots`. A shorter last window is
        padded with its last point. With neither `knots` nor `window`, there is one
        window per step.
    - `basepoint`: prepend a zero sample ([`arborax.add_basepoint`][]), so that the
        control also knows the level at which the path starts.
    - `max_points`: needed only when `ts` is traced, see
        [`arborax.windows_by_time`][].

    **Returns:**

    A [`arborax.RoughPath`][], the control of [`arborax.solve`][] and of the models.
    """
    if isinstance(xs, SampledPath):
        if ts is not None:
            raise ValueError("a SampledPath brings its own times: pass ts=None.")
        path = xs
    elif ts is None:
        raise ValueError("`ts` is needed unless `xs` is a SampledPath")
    else:
        path = SampledPath(ts, xs)
    if path.batch_shape:
        raise ValueError(
            f"rough_path takes one path, got batch shape {path.batch_shape}; use "
            "jax.vmap (times may be shared)"
        )
    if knots is not None and window is not None:
        raise ValueError("give either `knots` or `window`, not both")
    if brackets is None and alg.calculus == "stratonovich":
        # Stratonovich calculus has no use for the brackets of the samples.
        path = dataclasses.replace(path, brackets=None, check=False)
    elif is_array(brackets):
        path, brackets = with_brackets(path, brackets), None
    left_point = is_left_point(brackets)
    lengths = path.lengths
    path = path.filled("forward" if left_point else "linear")
    if basepoint:
        path = add_basepoint(path)
        lengths = None if lengths is None else lengths + 1
    if path.num_times < 2 and window is None:
        raise ValueError("a control needs at least two samples, got one")
    read = read_path(path, alg, brackets)
    given = read.brackets
    if isinstance(given, str):
        given = None if left_point else path.realised_brackets()
    if knots is None:
        size = 1 if window is None else as_count("window", window)
        source = SampledPath(path.ts, path.xs, brackets=given, check=False)
        cut = windows_by_points(source, size)
        knots_ = jnp.concatenate([cut.ts[:, 0], cut.ts[-1:, -1]])
    else:
        # Lengths say that the path is stopped, so that knots may lie beyond its end.
        source = SampledPath(
            path.ts, path.xs, lengths=lengths, brackets=given, check=False
        )
        cut = _cut_by_time(None if basepoint else ts, source, knots, max_points)
        knots_ = jnp.asarray(knots, path.ts.dtype)
    steps = jnp.diff(cut.xs, axis=-2)
    pieces = "left-point" if left_point else cut.brackets
    return RoughPath(
        alg=alg,
        calculus="stratonovich" if read.brackets is None else "ito",
        knots=knots_,
        log_signatures=read.guard(log_signature_of_steps(alg, steps, pieces, cut.xs)),
        times=jnp.broadcast_to(cut.ts, cut.xs.shape[:-1]),
        values=cut.xs,
        brackets=cut.brackets,
        left_point=left_point,
        num_steps=path.num_times - 1 if knots is None else None,
        basepoint=basepoint,
    )


def _cut_by_time(
    ts: Any, source: SampledPath, knots: Any, max_points: int | None
) -> SampledPath:
    """Windows between knots; whether times are known is decided by the caller's own
    array, since those of `source` are traced inside `jit` even if they are constant."""
    if ts is not None and is_concrete(ts, knots):
        if source.lengths is None and max_points is None:
            return windows_at_known_times(source, ts, knots)
    return windows_by_time(source, knots, max_points=max_points)
