"""A learned mean of candidate paths."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.models import MLP

from .candidates import Bundle, ExtrapolatorBank
from .extrapolators import AbstractExtrapolator
from .learned_extrapolators import log_step
from .motion_bank import MotionBank
from .statistics import rotation_statistics, STATISTICS


Bank = MotionBank | ExtrapolatorBank


class RotationMixture(AbstractExtrapolator):
    r"""The development of a learned mean of candidate paths.

    The bank gives paths $x^p$ in $\mathbb{R}^3$ and logits
    (`MotionBank`); the forecast is the development of $X_t =
    \sum_p g_p(t, c)\, x^p_t$, with gains that are positive, of sum one, and begin at
    the softmax of the logits. An MLP of time and context $c$ corrects them; the
    context consists of `rotation_statistics`, the features of the bank and, with
    `seconds`, the logarithm of the mean step. A rotation of space
    turns the output with it; so does one of the body if the bank has no bodies.
    """

    bank: Bank
    mlp: MLP
    trust: Float[Array, ""]
    seconds: bool = eqx.field(static=True)

    def __init__(
        self,
        drivers: Sequence[AbstractExtrapolator] | Bank | None = None,
        *,
        width: int = 32,
        depth: int = 2,
        seconds: bool = False,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `drivers`: a bank, or extrapolators whose paths are used; default
            `MotionBank()`.
        - `width`, `depth`: of the MLP.
        - `seconds`: whether times are in seconds and the model is told the rate.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        if drivers is not None and not isinstance(drivers, Bank):
            if len(drivers) == 0:
                raise ValueError("`drivers` needs one extrapolator or more.")
            drivers = ExtrapolatorBank(tuple(drivers))
        self.bank = MotionBank() if drivers is None else drivers
        self.seconds = seconds
        dtype = jnp.result_type(float) if dtype is None else dtype
        size = self.context_size + 1
        options = dict(activation=jax.nn.silu, dtype=dtype)
        self.mlp = quieted(MLP(size, self.bank.count, width, depth, **options, key=key))
        self.trust = jnp.ones((), dtype)

    @property
    def context_size(self) -> int:
        """Length of the context."""
        return STATISTICS + self.bank.num_features + self.seconds

    def mean(
        self, ts, rotations, times, mask=None
    ) -> tuple[Bundle, Float[Array, " context"], Float[Array, "times 3"]]:
        """The bundle, the context and the weighted path."""
        bundle = self.bank(ts, rotations, times, mask)
        statistics = rotation_statistics(ts, rotations, mask)
        context = jnp.concatenate([statistics, bundle.features])
        if self.seconds:
            context = jnp.append(context, log_step(ts, context.dtype))
        logits = self.trust * bundle.logits

        def gains(t):
            entries = jnp.append(context, 2 * t - 1)
            return jax.nn.softmax(logits + self.mlp(entries))

        weights = jax.vmap(gains)(clock(times, context.dtype))
        return bundle, context, jnp.einsum("tp,ptc->tc", weights, bundle.paths)

    def __call__(self, ts, rotations, times, mask=None):
        bundle, _, path = self.mean(ts, rotations, times, mask)
        return bundle.rotations(path, times)


def clock(times: Float[Array, " times"], dtype: Any) -> Float[Array, " times"]:
    return ((times - times[0]) / (times[-1] - times[0])).astype(dtype)


def quieted(mlp: MLP, factor: float = 0.1) -> MLP:
    """The same MLP with a smaller last layer."""
    where = lambda m: (m.layers[-1].weight, m.layers[-1].bias)  # noqa: E731
    last = mlp.layers[-1]
    assert last.bias is not None
    return eqx.tree_at(where, mlp, (factor * last.weight, factor * last.bias))
