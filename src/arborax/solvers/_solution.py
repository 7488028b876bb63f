"""What a solve returns."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, PyTree, Real


class RESULTS(eqx.Enumeration):
    """Outcome of a solve. Members print as their message."""

    successful = ""
    nonfinite = (
        "A state became NaN or infinite during the solve. Use more windows or "
        "substeps, or bound the driving fields."
    )
    off_manifold = (
        "The initial state is not on the manifold. Project it first: no solver "
        "projects for you."
    )
    left_manifold = (
        "The solution left the manifold by more than the tolerance. Use float64, or "
        "shorter windows."
    )
    max_steps_reached = (
        "The adaptive solve used all its windows before the end of the path. Raise "
        "`max_windows` or the tolerance."
    )


class Solution(eqx.Module):
    """A solution of a rough differential equation.

    - `ts`: times at which states were saved, shape `(times,)`.
    - `ys`: the states, with leading axis `times`.
    - `result`: a member of [`arborax.RESULTS`][]; compare with `RESULTS.successful`.
    - `stats`: numbers of windows, steps and field evaluations.
    """

    ts: Real[Array, " times"]
    ys: PyTree[Array]
    result: RESULTS
    stats: dict[str, Any]
