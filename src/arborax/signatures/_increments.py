"""From a sampled path and its brackets to increments of letters."""

import dataclasses
import functools as ft
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._inputs import as_floating, as_real, as_values, is_suffix
from .._values import is_concrete, refuse
from .._xla import all_finite, scale
from ..algebra import AbstractHopfAlgebra, AbstractWordAlgebra
from ..paths import SampledPath


_NOT_FINITE = (
    "`path` has NaN or infinite values. Fill them, or pass a SampledPath with a "
    "mask of observed values."
)
_NOT_SYMMETRIC = (
    "`brackets` must be finite symmetric matrices; symmetrise them with "
    "(a + swapaxes(a, -1, -2)) / 2"
)
_FINITE_VARIATION = (
    "`brackets` are not zero on channels that are marked `finite_variation`; set them "
    "to zero there, or leave out the mark."
)


class Steps(NamedTuple):
    """A path as signatures read it.

    - `values`: `(..., times, dim)` without gaps.
    - `brackets`: `None`, `"realised"`, `"left-point"` or `(..., times - 1, dim, dim)`.
    - `faults`: pairs of a traced boolean `(...)` and a message, for values that are not
        known before the program runs.
    """

    values: Float[Array, "..."]
    brackets: Any
    faults: list[tuple[Array, str]]

    def guard(self, out: Float[Array, "..."]) -> Float[Array, "..."]:
        """A result `(..., *core)`, or NaN throughout for each path with a fault."""
        for bad, message in self.faults:
            check = ft.partial(refuse, message=message)
            for _ in bad.shape:
                check = jax.vmap(check)
            out = check(out, bad)
        return out


def read_elements(
    alg: AbstractHopfAlgebra, *, primitive: bool = False, **given: Any
) -> tuple[Float[Array, "..."], ...]:
    """Finite elements of `alg` with leading axes that fit, by name."""
    size = alg.primitive_size if primitive else alg.size
    arrays = []
    for name, value in given.items():
        array = as_floating(name, value)
        if array.ndim < 1 or array.shape[-1] != size:
            what = "primitive_size" if primitive else "size"
            raise ValueError(
                f"`{name}` must have shape (..., {size}), the `{what}` of {alg}; got "
                f"{array.shape}"
            )
        known = is_concrete(value)
        finite = np.isfinite(np.asarray(value)) if known else jnp.isfinite(array)
        message = f"`{name}` has NaN or infinite values."
        arrays.append(refuse(array, ~finite, message))
    check_leading({name: array.shape[:-1] for name, array in zip(given, arrays)})
    return tuple(arrays)


def check_leading(shapes: dict[str, tuple]) -> None:
    """Refuse leading axes, by name, that do not broadcast."""
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"leading axes do not fit together: {text}.") from None


def read_path(path: Any, alg: AbstractHopfAlgebra, brackets: Any) -> Steps:
    """Values, brackets and faults of a path, for a signature in `alg`.

    A [`arborax.SampledPath`][] has its own brackets unless others are given.
    """
    check_mode(alg, brackets)
    given, marks = path, ()
    if isinstance(path, SampledPath):
        check_channels(path.xs, alg)
        path, brackets = _fill(path, brackets)
        check_mode(alg, brackets)
        given, marks = path.xs, path.finite_variation
    values = as_values("path", given)
    check_channels(values, alg)
    if brackets is None and alg.calculus == "ito":
        raise ValueError(
            f"{type(alg).__name__} needs brackets: pass brackets='realised', or "
            "increments of the quadratic covariation, an array (..., steps, dim, dim); "
            "for the canonical (Stratonovich) lift use Shuffle"
        )
    faults = _check_finite(values, given)
    if is_array(brackets):
        brackets, more = _check_brackets(brackets, values, marks)
        faults = faults + more
    elif isinstance(path, SampledPath) and brackets == "realised":
        if marks or path.ticks is not None:
            brackets = path.realised_brackets()
    return Steps(values, brackets, faults)


def is_left_point(brackets: Any) -> bool:
    """Whether steps are left-point characters. Without trees, which is up to depth
    two, that is the same as realised brackets."""
    return isinstance(brackets, str) and brackets == "left-point"


def is_array(brackets: Any) -> bool:
    return brackets is not None and not isinstance(brackets, str)


def _fill(path: SampledPath, brackets: Any) -> tuple[SampledPath, Any]:
    """A path without gaps, and the brackets that are meant."""
    if is_left_point(brackets):
        return path.filled("forward"), brackets
    if path.lengths is not None and is_array(brackets):
        path, brackets = with_brackets(path, brackets), None
    path = path.filled()
    return path, path.brackets if brackets is None else brackets


def with_brackets(path: SampledPath, brackets: Any) -> SampledPath:
    """The path with these brackets, of which it ignores those of padding."""
    brackets = as_real("brackets", brackets)
    if brackets.dtype != path.xs.dtype:
        brackets = brackets.astype(path.xs.dtype)
    return dataclasses.replace(path, brackets=brackets)


def _check_finite(values: Array, given: Any) -> list[tuple[Array, str]]:
    """Refuse values that are known and not finite; the fault if they are traced."""
    if not is_concrete(given):
        rows = values.reshape(*values.shape[:-2], -1)
        return [(~all_finite(rows), _NOT_FINITE)]
    known = np.asarray(given)
    if known.dtype != values.dtype:
        known = known.astype(values.dtype)
    refuse((), ~np.isfinite(known), _NOT_FINITE)
    return []


def check_channels(values: Array, alg: AbstractHopfAlgebra) -> None:
    """Refuse a path with another number of channels than the algebra."""
    if values.shape[-1] == alg.dim:
        return
    if values.shape[-2] == alg.dim:
        raise ValueError(
            f"the path has shape {values.shape}, but {alg} expects (..., times, "
            f"{alg.dim}). Channels come last: use jnp.swapaxes(path, -1, -2)."
        )
    raise ValueError(
        f"the path has {values.shape[-1]} channels (shape {values.shape}, channels "
        f"last), but {alg} expects {alg.dim}; build the algebra with "
        f"dim={values.shape[-1]}."
    )


def check_mode(alg: AbstractHopfAlgebra, brackets: Any) -> None:
    """Refuse brackets that the algebra cannot honour, and modes that do not exist."""
    if isinstance(brackets, str) and brackets not in ("realised", "left-point"):
        raise ValueError(
            "`brackets` must be None, 'realised', 'left-point' or an array, got "
            f"{brackets!r}"
        )
    if brackets is None:
        return
    if alg.calculus == "stratonovich":
        raise ValueError(
            f"{type(alg).__name__} is Stratonovich calculus and cannot carry brackets; "
            "use Ito, GrossmanLarson or MuntheKaasWright, or brackets=None"
        )
    if is_left_point(brackets) and alg.depth > 2 and alg.tree_algebra is None:
        raise ValueError(
            f"left-point sums of depth 3 or more do not lie in {type(alg).__name__}; "
            "use GrossmanLarson or MuntheKaasWright, or brackets='realised'"
        )


def _check_brackets(
    brackets: Any, values: Array, marks: tuple[int, ...]
) -> tuple[Array, list]:
    """Supplied brackets in the shape and dtype of the path, and faults if traced."""
    array = as_floating("brackets", brackets)
    dim = values.shape[-1]
    expected = (values.shape[-2] - 1, dim, dim)
    full = (*values.shape[:-2], *expected)
    if array.ndim < 3 or not is_suffix(array.shape, full):
        raise ValueError(
            f"`brackets` must have shape (..., {expected[0]}, {dim}, {dim}), one "
            "increment of the quadratic covariation for each step of the path of shape "
            f"{values.shape}; got {array.shape}"
        )
    concrete = is_concrete(brackets)
    xp = np if concrete else jnp
    checked = np.asarray(brackets) if concrete else array
    last = (-3, -2, -1)
    gap = xp.max(xp.abs(checked - xp.swapaxes(checked, -1, -2)), last, initial=0.0)
    size = xp.max(xp.abs(checked), last, initial=0.0)
    uneven = ~(gap <= 1e3 * float(jnp.finfo(values.dtype).eps) * size)
    faults = [(uneven, _NOT_SYMMETRIC)]
    if marks:
        moving = xp.any(checked[..., list(marks), :] != 0, last)
        faults.append((moving, _FINITE_VARIATION))
    if concrete:
        for bad, message in faults:
            refuse((), bad, message)
        faults = []
    array = jnp.broadcast_to(array.astype(values.dtype), full)
    faults = [(jnp.broadcast_to(bad, full[:-3]), text) for bad, text in faults]
    return array, faults


def letter_increments(
    words: AbstractWordAlgebra, last: Float[Array, "... dim steps"], brackets: Any
) -> list[Float[Array, "... _ steps"]]:
    """Increments of the letters of weight one and, in `Ito`, of weight two.

    The letter `(i, j)` moves by `-dA^ij / 2`, doubled off the diagonal. `brackets` are
    a string for realised ones, or `(..., steps, dim, dim)`.
    """
    if len(words.letter_counts) == 1:
        return [last]
    i, j = np.triu_indices(words.dim)
    factor = np.where(i == j, -0.5, -1.0)
    if isinstance(brackets, str):
        rows = [last[..., k : k + 1, :] for k in range(words.dim)]
        rows = [scale(row, last[..., k:, :]) for k, row in enumerate(rows)]
        pairs = jnp.concatenate(rows, axis=-2)
    else:
        pairs = jnp.swapaxes(brackets[..., i, j], -1, -2)
    factors = jnp.asarray(factor, last.dtype)[:, None]
    return [last, pairs * jnp.broadcast_to(factors, pairs.shape)]
