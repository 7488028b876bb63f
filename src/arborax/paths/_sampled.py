"""The container of sampled paths."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from ._checks import as_count, as_floating, is_concrete, is_suffix
from ._missing import check_times, check_values, fill_missing, observed_mask


class SampledPath(eqx.Module):
    """Samples of a path: times, values, and what is known about gaps and brackets.

    All array fields are differentiable leaves of a pytree. Leading axes of `xs` are
    batch axes; `ts`, `lengths` and `brackets` may leave out batch axes from the left,
    and are then shared (call [`arborax.SampledPath.broadcast`][] before
    `jax.vmap(f)(path)`).

    The path meant is the piecewise-linear one through the observed values, stopped at
    its last valid point. Missing points and padding are exact: [`filled`][] makes a
    path whose padding repeats the last point, with increments, time steps and brackets
    that are zero to the last bit.
    """

    ts: Float[Array, "*#batch times"]
    xs: Float[Array, "*batch times channels"]
    mask: Bool[Array, "..."] | None
    lengths: Int[Array, "*#batch"] | None
    brackets: Float[Array, "*#batch times-1 channels channels"] | None

    def __init__(
        self,
        ts: ArrayLike,
        xs: ArrayLike,
        mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        brackets: ArrayLike | None = None,
        *,
        check: bool = True,
    ):
        """**Arguments:**

        - `ts`: times `(times,)` or `(..., times)`, strictly increasing. May have
            another floating dtype than `xs` (double-precision stamps of
            single-precision data).
        - `xs`: values `(..., times, channels)`, real floating. One point is legal.
        - `mask`: boolean, True where observed: `(..., times)` for whole points or
            `(..., times, channels)`. Masked values may be NaN.
        - `lengths`: number of valid points `(...)`, between 1 and `times`. What stands
            after them, in any argument, is ignored.
        - `brackets`: increments of the quadratic covariation over each step,
            `(..., times - 1, channels, channels)`, symmetric. They belong to the
            process and not to its samples, so the mask does not touch them.
        - `check`: whether values are checked (finite where observed, times increasing,
            brackets symmetric, lengths in range) by `equinox.error_if`. Shapes and
            dtypes are always checked.
        """
        xs = check_values(xs)
        ts = check_times(ts, xs)
        batch, times, dim = xs.shape[:-2], xs.shape[-2], xs.shape[-1]
        if mask is not None:
            mask = jnp.asarray(mask)
            observed_mask(xs, mask)
        if lengths is not None:
            lengths = jnp.asarray(lengths)
            if not jnp.issubdtype(lengths.dtype, jnp.integer):
                raise TypeError(f"`lengths` must be integers, got {lengths.dtype}.")
            if not is_suffix(lengths.shape, batch):
                raise ValueError(
                    f"`lengths` must have the batch shape {batch} of `xs` (or be a "
                    f"scalar), got {lengths.shape}."
                )
        if brackets is not None:
            brackets = as_floating("brackets", brackets)
            expected = (*batch, times - 1, dim, dim)
            if brackets.ndim < 3 or not is_suffix(brackets.shape, expected):
                raise ValueError(
                    f"`brackets` must have shape {expected}, one matrix for each of "
                    f"the {times - 1} steps of `xs` of shape {xs.shape}, got "
                    f"{brackets.shape}."
                )
            if brackets.dtype != xs.dtype:
                raise TypeError(
                    f"`brackets` must have the dtype {xs.dtype} of `xs`, got "
                    f"{brackets.dtype}. Cast one of them."
                )
        if check:
            xs = _check_sampled(ts, xs, mask, lengths, brackets)
        self.ts = ts
        self.xs = xs
        self.mask = mask
        self.lengths = lengths
        self.brackets = brackets

    @property
    def num_times(self) -> int:
        """Number of points, padding included."""
        return self.xs.shape[-2]

    @property
    def dim(self) -> int:
        """Number of channels."""
        return self.xs.shape[-1]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading axes of `xs`."""
        return self.xs.shape[:-2]

    @property
    def dt(self) -> Float[Array, "..."]:
        """Time steps `(..., times - 1)`; zero on padding."""
        return jnp.diff(self.filled().ts, axis=-1)

    def increments(self) -> Float[Array, "..."]:
        """Increments `(..., times - 1, channels)` once filled; zero on padding."""
        return jnp.diff(self.filled().xs, axis=-2)

    def filled(self, method: Literal["linear", "forward"] = "linear") -> "SampledPath":
        """The same path without mask and lengths.

        Missing values are filled by [`arborax.fill_missing`][]; padding repeats the
        last valid point and its time, with zero brackets.

        **Arguments:**

        - `method`: `"linear"` or `"forward"`, as in [`arborax.fill_missing`][].
        """
        if self.mask is None and self.lengths is None:
            return self
        ts, xs, brackets = self.ts, self.xs, self.brackets
        mask = None if self.mask is None else observed_mask(xs, self.mask)
        if self.lengths is not None:
            valid = _valid(self.lengths, self.num_times)
            ts = _hold_last(ts[..., None], self.lengths, valid)[..., 0]
            if mask is None:
                xs = _hold_last(xs, self.lengths, valid)
            else:
                mask = mask & jnp.broadcast_to(valid[..., None], mask.shape)
            if brackets is not None:
                inside = valid[..., 1:, None, None]
                shape = jnp.broadcast_shapes(brackets.shape, inside.shape)
                inside = jnp.broadcast_to(inside, shape)
                brackets = jnp.where(inside, jnp.broadcast_to(brackets, shape), 0)
        if mask is not None:
            xs = fill_missing(ts, xs, mask, method)
        return SampledPath(ts, xs, brackets=brackets, check=False)

    def slice(self, start: int, stop: int) -> "SampledPath":
        """The filled path restricted to the points `start, ..., stop - 1`.

        **Arguments:**

        - `start`, `stop`: Python integers, `0 <= start < stop <= num_times`.
        """
        start = as_count("start", start, 0)
        stop = as_count("stop", stop, 0)
        if not start < stop <= self.num_times:
            raise ValueError(
                f"`slice` needs 0 <= start < stop <= {self.num_times}, got "
                f"start={start}, stop={stop}."
            )
        path = self.filled()
        brackets = path.brackets
        if brackets is not None:
            brackets = brackets[..., start : stop - 1, :, :]
        return SampledPath(
            path.ts[..., start:stop],
            path.xs[..., start:stop, :],
            brackets=brackets,
            check=False,
        )

    def broadcast(self) -> "SampledPath":
        """The same path with the full batch shape on every field, ready for `vmap`."""
        batch, times, dim = self.batch_shape, self.num_times, self.dim
        lengths, brackets = self.lengths, self.brackets
        if lengths is not None:
            lengths = jnp.broadcast_to(lengths, batch)
        if brackets is not None:
            brackets = jnp.broadcast_to(brackets, (*batch, times - 1, dim, dim))
        ts = jnp.broadcast_to(self.ts, (*batch, times))
        return SampledPath(ts, self.xs, self.mask, lengths, brackets, check=False)


def _valid(lengths: Int[Array, "*batch"], times: int) -> Bool[Array, "*batch times"]:
    place = jnp.arange(times, dtype=lengths.dtype)
    place = place.reshape((1,) * lengths.ndim + (times,))
    return place < lengths[..., None]


def _hold_last(values: Array, lengths: Array, valid: Array) -> Array:
    """Repeat the last valid row of `(..., times, channels)` over the padding."""
    batch = jnp.broadcast_shapes(values.shape[:-2], lengths.shape)
    values = jnp.broadcast_to(values, (*batch, *values.shape[-2:]))
    valid = jnp.broadcast_to(valid, (*batch, valid.shape[-1]))[..., None]
    last = jnp.broadcast_to(lengths - 1, batch)[..., None, None]
    last = jnp.take_along_axis(values, last, axis=-2)
    return jnp.where(valid, values, last)


_MESSAGES = (
    "`xs` holds NaN or infinity at an observed place. Pass `mask` (True where "
    "observed), e.g. `mask=~jnp.isnan(xs)`, or clean the data.",
    "`ts` must be finite and strictly increasing over the valid points. Sort the "
    "samples by time and drop repeated times.",
    "`lengths` must lie between 1 and the number of times.",
    "`brackets` must be finite and symmetric matrices over the valid steps.",
)


def _check_sampled(
    ts: Array,
    xs: Array,
    mask: Array | None,
    lengths: Array | None,
    brackets: Array | None,
) -> Array:
    """Check values: on the host if they are known now, else when they run."""
    xp: Any = np if is_concrete(ts, xs, mask, lengths, brackets) else jnp
    ts_, xs_ = xp.asarray(ts), xp.asarray(xs)
    batch, times = xs.shape[:-2], xs.shape[-2]
    valid = xp.ones((*batch, times), bool)

    finite = xp.isfinite(xs_)
    steps_ok = xp.isfinite(ts_[..., 1:]) & (ts_[..., 1:] > ts_[..., :-1])
    steps_ok = xp.broadcast_to(steps_ok, (*batch, times - 1))
    start_ok = xp.all(xp.isfinite(ts_[..., 0]))
    if lengths is None:
        bad_lengths = xp.zeros((), bool)
    else:
        lengths_ = xp.asarray(lengths)
        bad_lengths = xp.any((lengths_ < 1) | (lengths_ > times))
        place = xp.arange(times, dtype=lengths.dtype)
        place = place.reshape((1,) * lengths.ndim + (times,))
        valid = xp.broadcast_to(place < lengths_[..., None], (*batch, times))
    finite = finite | ~valid[..., None]
    steps_ok = steps_ok | ~valid[..., 1:]
    if mask is not None:
        mask_ = xp.asarray(mask if mask.ndim == xs.ndim else mask[..., None])
        finite = finite | ~xp.broadcast_to(mask_, xs.shape)
    tests = [~xp.all(finite), ~(xp.all(steps_ok) & start_ok), bad_lengths]
    if brackets is not None:
        brackets_ = xp.asarray(brackets)
        tolerance = float(jnp.finfo(brackets.dtype).eps) ** 0.75
        with np.errstate(invalid="ignore"):
            gap = xp.abs(brackets_ - xp.swapaxes(brackets_, -1, -2))
        biggest = xp.max(xp.abs(brackets_), axis=(-1, -2), keepdims=True)
        good = xp.all(gap <= tolerance * biggest, axis=(-1, -2))
        good = xp.broadcast_to(good, (*batch, times - 1)) | ~valid[..., 1:]
        tests.append(~xp.all(good))
    for bad, message in zip(tests, _MESSAGES):
        if isinstance(bad, np.ndarray | np.bool_) and not bad:
            continue
        xs = eqx.error_if(xs, bad, message)
    return xs
