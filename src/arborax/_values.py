"""Bad values: an error where they are known, NaN where they are traced.

Arrays that are known now are checked on the host, and a bad one raises a plain error
with the caller's own stack. Compiled code never calls back to the host: there a bad
value turns the result, and every gradient through it, into NaN. Within
[`arborax.debug_checks`][] compiled code raises as well.
"""

import reprlib
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.core import Tracer


_T = TypeVar("_T")

_TEXTS = 128  # of messages written beforehand

# Part of the key under which JAX caches compiled programs: `True` within
# `debug_checks`, `Notes` within `noting`.
_debugging = jax.make_user_context(False)


def debug_checks():
    """A context in which bad values raise inside compiled code too.

    Functions are compiled again within it, with checks that call back to the host:
    slower, and not for `jax.export`. Outside it, compiled code answers bad values with
    NaN.

    !!! example

        ```python
        with abx.debug_checks():
            jax.jit(abx.signature, static_argnums=1)(path, alg)  # raises if not finite
        ```
    """
    return _debugging(True)


class Notes:
    """The messages of checks that failed in compiled code, in their order."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def watch(self, bad: Any, places: Any, texts: list[str]) -> Any:
        """`bad`, which may be traced; one of `texts` is noted where it is true."""

        def note(bad: Any, places: Any) -> np.ndarray:
            found = np.asarray(places)[np.asarray(bad)]
            self.texts += [texts[int(found.min())]] if found.size else []
            return np.asarray(bad)

        kind = jax.ShapeDtypeStruct((), np.bool_)
        places = jnp.asarray(places, jnp.int32)
        return jax.pure_callback(note, kind, bad, places, vmap_method="broadcast_all")


def noting(notes: Notes):
    """A context in which compiled code notes bad values and goes on, to NaN."""
    return _debugging(notes)


def is_concrete(*values: Any) -> bool:
    """Whether no array in `values` is traced; `None` counts as known."""
    return not any(isinstance(leaf, Tracer) for leaf in jtu.tree_leaves(values))


def refuse(values: _T, bad: Any, message: str) -> _T:
    """`values`, unless `bad`.

    **Arguments:**

    - `values`: a PyTree. If `bad` is traced, its real and complex floating arrays are
        multiplied by one or by NaN, so at least one should be there.
    - `bad`: boolean, a scalar or an array of which no element may be true.
    - `message`: what was wrong, what was expected and what to do.
    """
    if is_concrete(bad):
        if np.any(bad):
            raise ValueError(message)
        return values
    bad = jnp.any(bad)
    debugging = _debugging.value
    if isinstance(debugging, Notes):
        bad = debugging.watch(bad, 0, [message])
    elif debugging:
        return eqx.error_if(values, bad, message)
    return _poisoned(values, bad)


def _poisoned(values: _T, bad: Any) -> _T:
    """NaN where `bad`, in all real and complex arrays."""

    def poison(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        one = jnp.ones((), leaf.dtype)
        return leaf * jnp.where(bad, jnp.nan * one, one)

    return jtu.tree_map(poison, values)


def refuse_first(values: _T, bad: Any, message: Callable[[str], str]) -> _T:
    """`values`, unless one of `bad`, and then an error that names the first.

    **Arguments:**

    - `values`: a PyTree that is NaN where it is bad: compiled code returns it as it is.
    - `bad`: boolean `(number,)`.
    - `message`: of the place of the first. In compiled code within `debug_checks`,
        where texts are written beforehand, of a range of places if there are many.
    """
    if is_concrete(bad):
        if np.any(bad):
            raise ValueError(message(str(int(np.argmax(bad)))))
        return values
    debugging = _debugging.value
    if not debugging:
        return values
    number = bad.shape[0]
    size = -(-number // _TEXTS)
    starts = range(0, number, size)
    ranges = [str(k) if size == 1 else f"{k} to {k + size - 1}" for k in starts]
    place = jnp.argmax(bad) // size
    texts = [message(text) for text in ranges]
    if isinstance(debugging, Notes):
        return _poisoned(values, debugging.watch(jnp.any(bad), place, texts))
    return eqx.branched_error_if(values, jnp.any(bad), place, texts)


def refuse_times(values: _T, ts: jax.Array, given: Any, message: str) -> _T:
    """`values`, unless the times `ts`, cast from those `given`, are not finite and
    strictly increasing."""
    known = is_concrete(given)
    xp: Any = np if known else jnp
    checked = np.asarray(given, ts.dtype) if known else ts
    with np.errstate(invalid="ignore"):
        rising = checked[1:] > checked[:-1]
    bad = ~(xp.all(xp.isfinite(checked)) & xp.all(rising))
    if known and bad:
        message = explain_times(given, message)
    return refuse(values, bad, message)


def explain_times(ts: Any, message: str) -> str:
    """A better message for times that rounding made equal."""
    exact = np.asarray(ts)
    dtype = jax.dtypes.canonicalize_dtype(exact.dtype)
    if not np.all(np.isfinite(exact.astype(dtype))) or exact.shape[-1] < 2:
        return message
    spacing = float(jnp.finfo(dtype).eps) * np.max(np.abs(exact))
    mean = np.max(exact[..., -1] - exact[..., 0]) / (exact.shape[-1] - 1)
    lost = (np.diff(exact) > 0) & (np.diff(exact.astype(dtype)) == 0)
    if not (np.any(lost) or 0 <= mean < 4 * spacing):
        return message
    return (
        f"times of `ts` that differ are equal in {dtype}, which cannot tell stamps of "
        f"size {np.max(np.abs(exact)):.3g} apart below {spacing:.1g}. Use float64 "
        "(jax_enable_x64; in the shell JAX_ENABLE_X64=1) or subtract the first stamp."
    )


def shown(value: Any) -> str:
    """`value` in an error message: its `repr`, cut to sixty characters."""
    text = " ".join(reprlib.repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def rounded(rows: np.ndarray) -> np.ndarray:
    """In which columns of values `(rows, columns)` JAX would lose what happens.

    Without its x64 mode it stores float32, too coarse where the spacing of these
    numbers at the largest value exceeds a thousandth of the median step.
    """
    found = np.zeros(rows.shape[1], bool)
    if rows.dtype == np.float32 or jax.dtypes.canonicalize_dtype(float) == np.float64:
        return found
    for k, column in enumerate(rows.T):
        steps = np.abs(np.diff(column))
        steps = steps[steps > 0]
        if len(steps):
            largest = np.float32(np.nanmax(np.abs(column)))
            found[k] = np.spacing(largest) > 1e-3 * np.median(steps)
    return found


def warn_if_days(name: str, times: np.ndarray) -> None:
    """Warns of numbers such as 20240131, which are read as numbers and not as dates."""
    month, day = times // 100 % 100, times % 100
    days = (times >= 19000101) & (times <= 21001231) & (times % 1 == 0)
    days &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    if len(times) and days.all():
        warnings.warn(
            f"column {name!r} holds numbers such as {times[0]:.0f}, which look like "
            "dates but are counted as numbers. Write dates as 2024-01-31, or convert "
            "them by `pandas.to_datetime`.",
            RuntimeWarning,
            stacklevel=6,
        )
