"""The outcome of a two-sample test."""

import numpy as np

from .._inputs import as_count, as_kind
from ..kernels import TwoSampleResult
from ._style import as_axes, as_finite, Axes, DATA, MODEL, styled


@styled
def permutation_histogram(
    result: TwoSampleResult, *, bins: int = 40, ax: Axes | None = None
) -> Axes:
    """The statistic of a two-sample test among those of relabelled samples.

    **Arguments:**

    - `result`: from [`arborax.two_sample_test`][].
    - `bins`: number of bars.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    must = "come from `abx.two_sample_test`"
    as_kind("result", result, TwoSampleResult, must)
    permuted = as_finite("result.permuted", result.permuted)
    if permuted.ndim != 1:
        raise ValueError(
            f"`result` holds {permuted.shape[0]} tests. Draw one at a time, e.g. "
            "`jax.tree.map(lambda x: x[0], result)`."
        )
    statistic, p_value = float(result.statistic), float(result.p_value)
    ax = as_axes(ax)
    ax.hist(permuted, as_count("bins", bins), color=DATA, alpha=0.45, label="permuted")
    limit = float(np.quantile(permuted, 0.95))
    # The legend has the top of the picture for itself.
    ax.axvline(limit, ymax=0.84, color=DATA, ls=":", label="95 % of permuted")
    found = f"observed, p = {p_value:.3g}"
    ax.axvline(statistic, ymax=0.84, color=MODEL, lw=2, label=found)
    ax.set(xlabel="squared MMD", ylabel="permutations")
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])
    ax.legend(loc="upper center", ncols=3)
    return ax
