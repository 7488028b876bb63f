"""Branched neural rough differential equations."""

from ..algebra import AbstractHopfAlgebra
from ._window_model import AbstractWindowModel


class BNRDE(AbstractWindowModel):
    r"""A branched neural rough differential equation,
    $dY = \sum_i V^\theta_i(Y)\, dX^i$, in flat space or on a manifold.

    The model reads its driver through log-signatures over windows of `window` samples.
    In each window the state follows the window field ([`arborax.lift`][]) of the
    learned fields $V^\theta$, by default an MLP with outputs `(channels, dim)`.

    * Without `geometry` the state is a vector of size `hidden`, read out linearly. If
      `output` is a manifold, the result is projected onto it (6D Gram-Schmidt for
      `SO(3)`, a floor under the eigenvalues for `SPD`).
    * With a `geometry` the state lives there and is the output. The initial state is
      the point that `geometry.point_from_vector` makes from the output of `initial`.

    There is an output at every sample. `interpolation` says how to find those between
    knots:

    * `"taylor"` (default at depth 2) expands the solution at the knot to second order.
      Cost: one derivative of the fields per window.
    * `"log-ode"` (default at other depths) solves again up to each sample. Cost: one
      solver step per sample.
    * `"geodesic"` and `"linear"` join the states at the knots: cheap and smooth, but
      not causal, and their quadratic variation is wrong.

    The first two are causal, and as rough as the driver.

    `basepoint` prepends a zero sample: the first step is then the level at which the
    path starts, and the initial state is a learned constant. Without it the initial
    state is a function of the first sample.

    !!! example

        ```python
        model = abx.models.BNRDE(abx.Ito(2, 2), geometry=abx.SO(3), key=key)
        model.predict(paths)                  # (batch, times, 3, 3)
        ```

    ??? cite "Reference"

        Learning manifold and Itô dynamics with branched neural rough differential
        equations, arXiv:2606.05272 (2026).
    """

    # Repeated for type checkers, which would give a subclass another one.
    __init__ = AbstractWindowModel.__init__

    @property
    def lift_algebra(self) -> AbstractHopfAlgebra:
        return self.alg
