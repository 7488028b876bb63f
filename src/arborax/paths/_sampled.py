"""The container of sampled paths."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .._inputs import as_array, as_count, as_values, is_suffix
from ._brackets import realised_brackets
from ._checks import as_channels, as_steps, check_sampled, valid_points
from ._missing import check_times, fill, observed_mask
from ._tables import merge, read_frame, stack, write_frame


class SampledPath(eqx.Module):
    """A sampled path, or a batch of them: times, values, and which values are missing.

    !!! example

        ```python
        path = abx.SampledPath(ts, xs, mask)               # one array
        paths = abx.SampledPath.from_list(arrays)          # unequal lengths
        paths = abx.SampledPath.from_dataframe(df, time="t", group="id")
        ```

    Leading axes of `xs` are batch axes. `ts`, `lengths` and `brackets` may omit batch
    axes on the left and are then shared (call [`arborax.SampledPath.broadcast`][]
    before `jax.vmap(f)(path)`).

    Between observed values the path is linear, and it stops at its last valid point.
    Gaps and padding are exact: padding has increments, time steps and brackets of
    exactly zero.

    Realised brackets ([`arborax.SampledPath.realised_brackets`][]) use observed
    increments only, never a value filled in by interpolation. A path that was filled,
    augmented or cut keeps these increments as `ticks`. Channels of finite variation,
    such as time, have no bracket.
    """

    ts: Float[Array, "*#batch times"]
    xs: Float[Array, "*batch times channels"]
    mask: Bool[Array, "..."] | None
    lengths: Int[Array, "*#batch"] | None
    brackets: Float[Array, "*#batch times-1 channels channels"] | None
    ticks: Float[Array, "*batch times-1 channels"] | None
    finite_variation: tuple[int, ...] = eqx.field(static=True)
    interpolated: bool = eqx.field(static=True)

    def __init__(
        self,
        ts: ArrayLike,
        xs: ArrayLike,
        mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        brackets: ArrayLike | None = None,
        *,
        finite_variation: Iterable[int] = (),
        ticks: ArrayLike | None = None,
        interpolated: bool = False,
        check: bool = True,
    ):
        """**Arguments:**

        - `ts`: times `(times,)` or `(..., times)`, strictly increasing. Their floating
            dtype may differ from that of `xs`.
        - `xs`: values `(..., times, channels)`, real floating. A single point is
            allowed.
        - `mask`: boolean, True where observed: `(..., times)` for whole points or
            `(..., times, channels)`. Masked values may be NaN.
        - `lengths`: number of valid points `(...)`, between 1 and `times`. All
            later entries of any argument are ignored.
        - `brackets`: increments of the quadratic covariation over each step,
            `(..., times - 1, channels, channels)`, symmetric. They belong to the
            process and not to its samples, so the mask does not apply to them.
        - `finite_variation`: indices of the channels of finite variation, such as time.
            Their brackets are zero. [`arborax.add_time`][] marks the channel it adds.
        - `ticks`: observed increments `(..., times - 1, channels)`, each at the step at
            which its later observation arrives. `None`: those of the observed values of
            `xs`. Filling, augmenting and cutting set it.
        - `interpolated`: whether missing values were filled by interpolation; set by
            `filled`. Left-point sums of such a path raise an error.
        - `check`: whether to check values as well as shapes and dtypes. Bad values
            raise an error, or become NaN in compiled code.
        """
        given = dict(ts=ts, xs=xs, mask=mask, lengths=lengths, brackets=brackets)
        xs = as_values("xs", xs)
        ts = check_times(ts, xs)
        batch, dim = xs.shape[:-2], xs.shape[-1]
        if mask is not None:
            mask = as_array("mask", mask)
            observed_mask(xs, mask)
        if lengths is not None:
            lengths = as_array("lengths", lengths)
            if not jnp.issubdtype(lengths.dtype, jnp.integer):
                raise TypeError(f"`lengths` must be integers, got {lengths.dtype}.")
            if not is_suffix(lengths.shape, batch):
                raise ValueError(
                    f"`lengths` must have the batch shape {batch} of `xs` (or be a "
                    f"scalar), got {lengths.shape}."
                )
        self.brackets = as_steps("brackets", brackets, xs, dim, dim, shared=True)
        self.ticks = as_steps("ticks", ticks, xs, dim, shared=False)
        self.finite_variation = as_channels(finite_variation, dim)
        self.interpolated = interpolated
        self.ts, self.xs, self.mask, self.lengths = ts, xs, mask, lengths
        if check:
            self.xs = check_sampled(given, self)

    @staticmethod
    def from_list(arrays: Sequence[Any], times: Any = None) -> "SampledPath":
        """A batch of paths from series of unequal length. Padding is exact.

        **Arguments:**

        - `arrays`: a list of `(times, channels)`, or of `(times,)` for one channel.
            NaN marks a missing value.
        - `times`: one array for all series (shorter ones use its beginning), or a list
            of arrays. Numbers, or dates, which become seconds since the first. `None`:
            0, 1, 2 and so on.
        """
        return _from_numpy(*stack(arrays, times))

    @staticmethod
    def from_channels(series: Sequence[Any]) -> "SampledPath":
        """One path from channels that were observed at different times: its times are
        those of all channels together, with a mask.

        For its brackets, see [`arborax.SampledPath.realised_brackets`][].

        **Arguments:**

        - `series`: pairs of arrays `(times, values)`, one per channel. Dates become
            seconds since the first one of all channels; NaN marks a missing value.
        """
        return _from_numpy(*merge(series))

    @staticmethod
    def from_dataframe(
        df: Any,
        *,
        time: str | None = None,
        group: str | None = None,
        channels: Sequence[str] | None = None,
        unit: Literal["ms", "s", "min", "h", "D"] = "s",
        origin: Literal["group", "frame"] = "group",
    ) -> "SampledPath":
        """Paths from a data frame of pandas, polars or pyarrow, one row per time.

        Missing values become a mask. A row that is out of order or repeats a time
        raises an error that names the row, counted from 0.

        Dates become numbers, counted in whole nanoseconds, or in microseconds if the
        column is no finer, and stored in float64. If JAX is not in x64 mode, it stores
        them in float32: seconds over one day are then exact to 4 ms, and stamps that
        become equal raise an error.

        **Arguments:**

        - `df`: the frame.
        - `time`: the column of times: dates, durations, or numbers (used unchanged).
            `None`: the index of a pandas frame if it has dates, otherwise the row
            number.
        - `group`: the column that says which path a row belongs to. `None`: all rows
            are one path, without a batch axis.
        - `channels`: columns of numbers. `None`: all others.
        - `unit`: of time, for dates and durations.
        - `origin`: where to count dates from: the first row of each group, or the first
            date of the frame.

        **Returns:**

        A path with one batch axis, groups in the order in which they first appear.
        """
        return _from_numpy(*read_frame(df, time, group, channels, unit, origin))

    def to_dataframe(
        self,
        *,
        time: str = "time",
        group: str = "group",
        groups: Sequence[Any] | None = None,
        channels: Sequence[str] | None = None,
        start: Any = None,
        unit: Literal["ms", "s", "min", "h", "D"] = "s",
        backend: Literal["pandas", "polars", "pyarrow"] = "pandas",
    ) -> Any:
        """A data frame with one row per valid point, NaN where a value is missing.

        **Arguments:**

        - `time`, `group`, `channels`: names of the columns; a path without batch axis
            has no column of groups.
        - `groups`: names of the paths of a batch. `None`: 0, 1, 2 and so on.
        - `start`: a date (`numpy.datetime64`): times become dates, counted from there
            in units of `unit`.
        - `backend`: the kind of the frame.
        """
        if len(self.batch_shape) > 1:
            raise ValueError(
                f"a data frame has one batch axis at most, got {self.batch_shape}."
            )
        many = bool(self.batch_shape)
        xs = np.asarray(self.xs if many else self.xs[None])
        if self.mask is not None:
            seen = np.asarray(observed_mask(self.xs, self.mask))
            xs = np.where(seen.reshape(xs.shape), xs, np.nan)
        valid = np.broadcast_to(valid_points(jnp, self, self.lengths), xs.shape[:-1])
        names = dict(time=time, group=group if many else None, groups=groups)
        ts = np.broadcast_to(np.asarray(self.ts), xs.shape[:-1])
        return write_frame(
            ts, xs, valid, names | dict(channels=channels), start, unit, backend
        )

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
        """Increments `(..., times - 1, channels)` of the filled path; zero on
        padding."""
        return jnp.diff(self.filled().xs, axis=-2)

    def observed_increments(self) -> Float[Array, "..."]:
        """Increments `(..., times - 1, channels)` between successive observations of a
        channel, each at the step at which the later one arrives; zero elsewhere."""
        path = self.filled()
        return jnp.diff(path.xs, axis=-2) if path.ticks is None else path.ticks

    def filled(self, method: Literal["linear", "forward"] = "linear") -> "SampledPath":
        """The same path without mask and lengths: missing values filled by the method
        of [`arborax.fill_missing`][], padding by the last valid point and its time,
        with zero brackets. If interpolation hides observed increments, `ticks` keeps
        them, and values can no longer be carried forward: that is an error."""
        if method == "forward" and self.interpolated:
            raise ValueError(
                "values are to be carried forward, as in left-point sums, but the gaps "
                "of this path were filled by interpolation. Call "
                "`path.filled('forward')` before augmenting or cutting it, or use "
                "brackets='realised'."
            )
        if self.mask is None and self.lengths is None:
            return self
        ts, xs, brackets, ticks = self.ts, self.xs, self.brackets, self.ticks
        mask = None if self.mask is None else observed_mask(xs, self.mask)
        if self.lengths is not None:
            valid = valid_points(jnp, self, self.lengths)
            ts = _hold_last(ts[..., None], self.lengths, valid)[..., 0]
            if mask is None:
                xs = _hold_last(xs, self.lengths, valid)
            else:
                mask = mask & jnp.broadcast_to(valid[..., None], mask.shape)
            if brackets is not None:
                brackets = jnp.where(valid[..., 1:, None, None], brackets, 0)
            if ticks is not None:
                ticks = jnp.where(valid[..., 1:, None], ticks, 0)
        if mask is None:
            return derived(self, ts, xs, brackets, ticks)
        observed = xs
        xs = fill(ts, observed, mask, method)
        if method == "forward":
            return derived(self, ts, xs, brackets, ticks)
        if ticks is None:
            ticks = jnp.diff(fill(ts, observed, mask, "forward"), axis=-2)
        filled = derived(self, ts, xs, brackets, ticks)
        return dataclasses.replace(filled, interpolated=True, check=False)

    def realised_brackets(
        self, estimator: Literal["previous-tick", "hayashi-yoshida"] = "previous-tick"
    ) -> Float[Array, "..."]:
        """Increments `(..., times - 1, channels, channels)` of the realised bracket.

        The bracket of a step is the outer product of the observed increments that
        arrive there, so missing values take nothing from the quadratic variation.
        Padding and channels of finite variation have bracket zero.

        **Arguments:**

        - `estimator`: `"previous-tick"`, as above: never negative, but blind to the
            covariation of channels that are never observed at the same time.
            `"hayashi-yoshida"`: all products of increments over overlapping intervals,
            each at the step at which the later one arrives (Hayashi & Yoshida, "On
            covariance estimation of non-synchronously observed diffusion processes",
            2005). It is unbiased for channels observed at different times, equals the
            other estimator if all channels are observed together, and may be negative.
            It needs the mask: use it before the path is filled, augmented or cut.
        """
        return realised_brackets(self, estimator)

    def slice(self, start: int, stop: int) -> "SampledPath":
        """The filled path restricted to the points `start, ..., stop - 1`, where
        `0 <= start < stop <= num_times`."""
        start, stop = as_count("start", start, 0), as_count("stop", stop, 0)
        if not start < stop <= self.num_times:
            raise ValueError(
                f"`slice` needs 0 <= start < stop <= {self.num_times}, got "
                f"start={start}, stop={stop}."
            )
        path = self.filled()
        brackets, ticks = path.brackets, path.ticks
        if brackets is not None:
            brackets = brackets[..., start : stop - 1, :, :]
        if ticks is not None:
            ticks = ticks[..., start : stop - 1, :]
        ts, xs = path.ts[..., start:stop], path.xs[..., start:stop, :]
        return derived(path, ts, xs, brackets, ticks)

    def broadcast(self) -> "SampledPath":
        """The same path with the full batch shape on every field, ready for `vmap`."""
        batch, lengths, brackets = self.batch_shape, self.lengths, self.brackets
        if lengths is not None:
            lengths = jnp.broadcast_to(lengths, batch)
        if brackets is not None:
            brackets = jnp.broadcast_to(brackets, (*batch, *brackets.shape[-3:]))
        ts = jnp.broadcast_to(self.ts, self.xs.shape[:-1])
        return dataclasses.replace(
            self, ts=ts, lengths=lengths, brackets=brackets, check=False
        )


def derived(
    path: SampledPath,
    ts: Array,
    xs: Array,
    brackets: Array | None = None,
    ticks: Array | None = None,
    finite_variation: Iterable[int] | None = None,
) -> SampledPath:
    """A path made from `path`, without mask and lengths, that keeps what it knows."""
    marks = path.finite_variation if finite_variation is None else finite_variation
    return SampledPath(
        ts,
        xs,
        brackets=brackets,
        finite_variation=marks,
        ticks=ticks,
        interpolated=path.interpolated,
        check=False,
    )


def _hold_last(values: Array, lengths: Array, valid: Array) -> Array:
    """Repeat the last valid row of `(..., times, channels)` over the padding."""
    batch = jnp.broadcast_shapes(values.shape[:-2], lengths.shape)
    values = jnp.broadcast_to(values, (*batch, *values.shape[-2:]))
    valid = jnp.broadcast_to(valid, (*batch, valid.shape[-1]))[..., None]
    last = jnp.broadcast_to(lengths - 1, batch)[..., None, None]
    last = jnp.take_along_axis(values, last, axis=-2)
    return jnp.where(valid, values, last)


def _from_numpy(ts: Any, xs: Any, mask: Any, lengths: Any) -> SampledPath:
    """The path of new NumPy arrays. They are put on the device as they are, since
    `jnp.asarray` would compile a program for each number of paths; `ts` may be the
    user's own and is copied."""
    put = jax.device_put((ts.copy(), xs, mask, lengths))
    path = SampledPath(*put, check=False)
    given = dict(ts=ts, xs=xs, mask=mask, lengths=lengths, brackets=None)
    check_sampled(given, path)
    return path
