"""Log neural controlled differential equations."""

from collections.abc import Callable
from typing import Any

import jax

from ..algebra import AbstractHopfAlgebra, Shuffle
from ..geometry import AbstractGeometry
from ._window_model import AbstractWindowModel


class LogNCDE(AbstractWindowModel):
    r"""The log-NCDE: the log-ODE with Lie brackets of neural fields.

    $L = \sum_i \lambda^i V_i + \sum_{i<j} \lambda^{ij} [V_i, V_j] + \dots$, which is
    [`arborax.models.BNRDE`][] in the algebra `Shuffle`, with the defaults of its paper:
    softplus inside, tanh on the fields, no basepoint (the initial state is a function
    of the first sample).

    ??? cite "Reference"

        B. Walker, A. D. McLeod, T. Qin, Y. Cheng, H. Li, T. Lyons, Log neural
        controlled differential equations: the Lie brackets make a difference, ICML
        2024.
    """

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry | None = None,
        *,
        log_depth: int = 2,
        activation: Callable = jax.nn.softplus,
        basepoint: bool = False,
        **options: Any,
    ):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `log_depth`: depth of the log-signature.
        - All others: as [`arborax.models.BNRDE`][].
        """
        alg = Shuffle(channels, log_depth)
        options |= dict(activation=activation, basepoint=basepoint)
        AbstractWindowModel.__init__(self, alg, output, **options)

    @property
    def lift_algebra(self) -> AbstractHopfAlgebra:
        return self.alg
