"""Forecasts of rotations by a branched neural rough differential equation on SO(3)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.algebra import Shuffle
from arborax.geometry import Euclidean, Product, SO
from arborax.models import BNRDE, MLP
from arborax.paths import SampledPath

from .candidates import Developed
from .correction import COEFFICIENTS, Correction, Torque
from .extrapolators import AbstractExtrapolator
from .mixture import Bank, clock, quieted, RotationMixture


STATE = Product(SO(3), Euclidean(1))
ALGEBRA = Shuffle(4, 2)


class _Start(eqx.Module):
    """The initial state of the equation, as numbers from which the geometry makes a
    point: the first two columns of the identity, and the clock."""

    def __call__(self, x: Float[Array, " channels"]) -> Float[Array, " 7"]:
        return jnp.append(jnp.eye(3, dtype=x.dtype)[:2].reshape(-1), x[0])


class RotationBNRDE(AbstractExtrapolator):
    r"""A learned extrapolator: a rough differential equation on $SO(3)$, driven by the
    path that a bank of smoothers and learned gains forms from the observations.

    The control is time and the path $X$ of a `RotationMixture`. With $M$ the
    development of $X$, the output is $R = M Z$,

    $$dM = M\,\widehat{dX}, \qquad dZ = Z \sum_i \widehat{V_i(Z, t, c)}\, d(t, X)^i,$$

    which is $dR = R\,(\mathrm{Ad}_{Z^{-1}} \widehat{dX} + \hat V d(t, X))$ in the
    moving frame of $M$. It is exact where the learned fields $V$ (`Correction`) vanish,
    as they do before training, so the model contains the mixture. The equation begins
    in the middle of the times and runs forward and backward from there.

    The control enters through its log-signature of depth 2 over windows of `window`
    samples and solved by CF-EES(2,5), one step per window: 21 points at `window=10`
    take two steps, one to each side. Brackets are those of $SO(3)$. A rotation of space
    turns the output with it.
    """

    mixture: RotationMixture
    mlp: MLP
    flow: BNRDE
    inertia: bool = eqx.field(static=True)

    def __init__(
        self,
        drivers: Sequence[AbstractExtrapolator] | Bank | None = None,
        *,
        window: int = 10,
        width: int = 32,
        depth: int = 2,
        inertia: bool = False,
        seconds: bool = False,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `drivers`, `width`, `depth`, `seconds`, `dtype`: as `RotationMixture`.
        - `inertia`: whether the fields have a torque about the axes of the body
            (`Torque`), from which they can learn Euler's equations.
        - `window`: samples for each step of the solver.
        - `key`: a JAX random key.
        """
        first, second = jr.split(key)
        options = dict(width=width, depth=depth, dtype=dtype)
        self.mixture = RotationMixture(drivers, seconds=seconds, **options, key=first)
        flow = BNRDE(
            ALGEBRA,
            geometry=STATE,
            initial=_Start(),
            window=window,
            basepoint=False,
            key=key,
        )
        # The fields are built from `mlp` for each window of observations.
        self.flow = eqx.tree_at(lambda m: m.vector_field, flow, None)
        self.inertia = inertia
        size = self.mixture.context_size + 2 + inertia * Torque.INPUTS
        count = COEFFICIENTS + inertia * 3
        dtype = jnp.result_type(float) if dtype is None else dtype
        options = dict(activation=jax.nn.silu, dtype=dtype)
        self.mlp = quieted(MLP(size, count, width, depth, **options, key=second), 0.0)

    def __call__(self, ts, rotations, times, mask=None):
        bundle, context, path = self.mixture.mean(ts, rotations, times, mask)
        frame = bundle.rotations(path, times)
        moments = clock(times, path.dtype)
        values = jnp.concatenate([moments[:, None], path], axis=1)
        velocity = path[-1] - path[0]
        torque = None
        if self.inertia:
            torque = Torque(Developed(ts, rotations, mask), ts, times)
        fields = Correction(self.mlp, context, velocity, torque)
        where = lambda m: m.vector_field  # noqa: E731
        flow = eqx.tree_at(where, self.flow, fields, is_leaf=lambda x: x is None)
        count = times.shape[0]
        middle = (count - 1) // 2
        # Both directions have the same length; the shorter one stays at its end.
        later, earlier = values[middle:], values[middle::-1]
        size = max(later.shape[0], earlier.shape[0])
        later, earlier = (
            jnp.pad(part, [(0, size - part.shape[0]), (0, 0)], mode="edge")
            for part in (later, earlier)
        )
        index = jnp.arange(size, dtype=values.dtype)

        def solve(xs):
            rotations, _ = flow(SampledPath(index, xs, check=False))
            return rotations

        after, before = jax.vmap(solve)(jnp.stack([later, earlier]))
        z = jnp.concatenate([before[middle:0:-1], after[: count - middle]])
        return jnp.einsum("kij,kjl->kil", frame, z)
