"""Neural rough differential equations."""

from collections.abc import Callable
from typing import Any, Literal

import jax

from ..algebra import AbstractHopfAlgebra, Shuffle
from ..geometry import AbstractGeometry
from ._window_model import AbstractWindowModel


class NRDE(AbstractWindowModel):
    r"""The neural rough differential equation: one learned field per coordinate of the
    log-signature, $dh = f_\theta(h)\, \lambda$, in place of brackets of fields.

    Softplus inside, tanh on the output (as printed in the paper; its code has the
    identity), no basepoint. Interpolation `"taylor"` is of first order here,
    $h_k + f_\theta(h_k) \lambda_{k,t}$.

    ??? cite "Reference"

        J. Morrill, C. Salvi, P. Kidger, J. Foster, T. Lyons, Neural rough differential
        equations for long time series, ICML 2021.
    """

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry | None = None,
        *,
        log_depth: int = 2,
        activation: Callable = jax.nn.softplus,
        basepoint: bool = False,
        interpolation: Literal["taylor", "log-ode", "geodesic", "linear"] = "taylor",
        **options: Any,
    ):
        """**Arguments:** as [`arborax.models.LogNCDE`][]. A `vector_field` of your own
        has one row per coordinate of the log-signature."""
        alg = Shuffle(channels, log_depth)
        options |= dict(activation=activation, basepoint=basepoint)
        options |= dict(interpolation=interpolation)
        AbstractWindowModel.__init__(self, alg, output, **options)

    @property
    def lift_algebra(self) -> AbstractHopfAlgebra:
        # A depth-one equation that is driven by the log-signature itself.
        return Shuffle(self.alg.primitive_size, 1)
