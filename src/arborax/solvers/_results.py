"""The outcome of a solve, and what to do if it failed."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from .._values import is_concrete, refuse


class RESULTS(eqx.Module):
    """Outcome of a solve, an array like any other: under `vmap` one for each solve.

    Compare it with the members `successful`, `nonfinite`, `off_manifold`,
    `left_manifold`, `times_outside` and `max_steps_reached`. `str` gives the message,
    and for a batch how often each outcome occurred.
    """

    code: Int[Array | np.ndarray, "..."]

    successful: ClassVar["RESULTS"]
    nonfinite: ClassVar["RESULTS"]
    off_manifold: ClassVar["RESULTS"]
    left_manifold: ClassVar["RESULTS"]
    times_outside: ClassVar["RESULTS"]
    max_steps_reached: ClassVar["RESULTS"]

    @staticmethod
    def where(condition: Any, a: "RESULTS", b: "RESULTS") -> "RESULTS":
        """`a` where the condition holds, otherwise `b`."""
        return RESULTS(jnp.where(condition, a.code, b.code))

    def __eq__(self, other) -> Bool[Array, "..."]:
        if not isinstance(other, RESULTS):
            raise TypeError(
                "compare a result with a member of `arborax.RESULTS`, not with "
                f"{type(other).__name__}."
            )
        return jnp.asarray(self.code == other.code)

    def __ne__(self, other) -> Bool[Array, "..."]:
        return ~(self == other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        if not is_concrete(self.code):
            return "RESULTS(traced)"
        names = [_NAMES[code] for code in np.ravel(self.code)]
        if np.ndim(self.code) == 0:
            return f"RESULTS.{names[0]}"
        shown = names[:4] + ["..."] * (len(names) > 4)
        return f"RESULTS[{', '.join(shown)}]"

    def __str__(self) -> str:
        if not is_concrete(self.code):
            return "The outcome is traced; it is known when the program has run."
        if np.ndim(self.code) == 0:
            return _MESSAGES[int(self.code)]
        counts = np.bincount(np.ravel(self.code), minlength=len(_MESSAGES))
        total = counts.sum()
        lines = [f"{n} of {total}: {m}" for n, m in zip(counts, _MESSAGES) if n]
        return "\n".join(lines)


_MEMBERS = {
    "successful": "The solve was successful.",
    "nonfinite": (
        "A state became NaN or infinite during the solve. Use more windows or "
        "substeps, or bound the driving fields."
    ),
    "off_manifold": (
        "The initial state is not on the manifold, or not finite. Project it first: no "
        "solver projects for you."
    ),
    "left_manifold": (
        "The solution left the manifold by more than the tolerance. Use float64, or "
        "shorter windows."
    ),
    "times_outside": (
        "times must be finite and lie within the knots of the control. Clip them, or "
        "build the control with knots that cover them."
    ),
    "max_steps_reached": (
        "The adaptive solve used all its windows before the end of the path. Raise "
        "`max_windows` or the tolerance."
    ),
}
_NAMES, _MESSAGES = tuple(_MEMBERS), tuple(_MEMBERS.values())
for _code, _name in enumerate(_NAMES):
    setattr(RESULTS, _name, RESULTS(np.array(_code, np.int32)))


def throw_failure(result: RESULTS, ys: PyTree[Array]) -> PyTree[Array]:
    """`ys`, unless the result is a failure: an error if it is known, otherwise NaN."""
    if is_concrete(result):
        return refuse(ys, result != RESULTS.successful, str(result))
    # One factor for all states, so that they are multiplied once.
    factor = jnp.ones(())
    for name, message in list(_MEMBERS.items())[1:]:
        factor = refuse(factor, result == getattr(RESULTS, name), message)
    return jtu.tree_map(lambda y: y * factor.astype(y.dtype), ys)
