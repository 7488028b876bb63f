"""Random equations whose readout alone is fitted, by ridge regression."""

import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from .._inputs import as_count, as_number
from .._values import shown
from ..algebra import AbstractHopfAlgebra
from ..geometry import Euclidean
from ..paths import SampledPath
from ..signatures import RoughPath
from ._base import AbstractCausalModel
from ._bnrde import BNRDE
from ._checks import as_sizes, check_options
from ._linear_bnrde import LinearBNRDE


class RandomFields(eqx.Module):
    r"""The fields $V_i(y) = \sigma(A_i y + b_i)$ with fixed random weights."""

    matrices: Float[Array, "channels hidden hidden"]
    offsets: Float[Array, "channels hidden"]
    activation: Callable = eqx.field(static=True)

    def __call__(self, y: Float[Array, " hidden"]) -> Float[Array, "channels hidden"]:
        moved = jnp.einsum("dij,j->di", self.matrices, y) + self.offsets
        return self.activation(moved)


class Reservoir(AbstractCausalModel):
    r"""A random branched equation with a readout fitted by ridge regression.

    $dY = \sum_i \sigma(A_i Y + b_i)\, dX^i$ with random $A_i$ and $b_i$ that are never
    trained. A linear equation's state is a linear function of the signature of the
    driver, here a random one: a few hundred numbers in place of all coordinates.
    `fit` solves one linear system; nothing is differentiated.

    Without `activation` the equation is linear and windows are taken all at once
    ([`arborax.models.LinearBNRDE`][], blocks of size `block`); with one it is a
    [`arborax.models.BNRDE`][].

    !!! example

        ```python
        model = abx.models.Reservoir(abx.Ito(3, 2), 2, brackets="realised", key=key)
        model = model.fit(paths, targets)              # (paths, 2) or (paths, times, 2)
        model.predict(more_paths)
        ```

    ??? cite "Reference"

        C. Cuchiero, L. Gonon, L. Grigoryeva, J.-P. Ortega, J. Teichmann, Discrete-time
        signatures and randomness in reservoir computing, IEEE Transactions on Neural
        Networks and Learning Systems 33 (2022).
    """

    core: LinearBNRDE | BNRDE
    readout: eqx.nn.Linear
    channels: int = eqx.field(static=True)
    calculus: str = eqx.field(static=True)

    def __init__(
        self,
        alg: AbstractHopfAlgebra,
        output: int,
        *,
        hidden: int = 256,
        block: int = 4,
        activation: Callable | None = None,
        scale: float = 0.5,
        memory: tuple[float, float] | None = None,
        window: int = 16,
        basepoint: bool = True,
        calculus: Literal["ito", "stratonovich"] | None = None,
        brackets: Literal["realised"] | None = None,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `alg`: the algebra, with one channel per channel of the driver, time included.
        - `output`: number of outputs.
        - `hidden`: numbers in the state.
        - `block`: size of the blocks of a linear equation.
        - `activation`: `None` for a linear equation, or a function of arrays such as
            `jnp.tanh`, number by number.
        - `scale`: about the norm of the random matrices. Blocks of a linear equation
            have norms up to it.
        - `memory`: the shortest and the longest time after which a block of a linear
            equation forgets, in units of the first channel, which is time. Blocks, of
            even size, are then damped oscillators of random frequencies that start at
            rest; each is driven by a few channels, and no window lengthens a state.
        - `window`, `basepoint`, `calculus`, `brackets`, `dtype`: as in
            [`arborax.models.BNRDE`][].
        - `key`: a JAX random key.
        """
        check_options(key, dtype)
        scale = as_number("scale", scale, 0, above=True)
        output, hidden = as_sizes(output=output, hidden=hidden)
        first, second, third, last = jr.split(key, 4)
        shared: dict[str, Any] = dict(
            window=window, basepoint=basepoint, calculus=calculus, brackets=brackets
        )
        if memory is not None:
            memory = _as_memory(memory, activation, block, alg.dim)
        if activation is None:
            core: Any = LinearBNRDE(
                alg,
                None,
                hidden=hidden,
                block=block,
                normalise=False,
                gated=False,
                damped=False,
                contractive=memory is not None,
                dtype=dtype,
                key=first,
                **shared,
            )
            shape = core.layers[0].matrices.shape
            full = jr.normal(second, shape[:2] + (shape[1], shape[3]), dtype)
            sizes = jr.uniform(third, (1, 1, 1, shape[3]), dtype, 0.0, scale)
            full = full * sizes / math.sqrt(2 * shape[1])
            offsets = core.layers[0].matrices[:, :, -1:]
            matrices = jnp.concatenate([full, offsets], axis=2)
            if memory is not None:
                matrices = _oscillators(matrices, memory, jr.clone(third))
                start = jax.tree.map(jnp.zeros_like, core.layers[0].initial)
                core = eqx.tree_at(lambda m: m.layers[0].initial, core, start)
            core = eqx.tree_at(lambda m: m.layers[0].matrices, core, matrices)
        else:
            fields = RandomFields(
                jr.normal(first, (alg.dim, hidden, hidden), dtype)
                * (scale / math.sqrt(hidden)),
                jr.normal(second, (alg.dim, hidden), dtype),
                activation,
            )
            initial = eqx.nn.Linear(alg.dim, hidden, dtype=dtype, key=third)
            core = BNRDE(
                alg,
                geometry=Euclidean(hidden),
                vector_field=fields,
                initial=initial,
                dtype=dtype,
                **shared,
            )
        self.core = core
        self.channels, self.calculus = core.channels, core.calculus
        self.readout = eqx.nn.Linear(hidden, output, dtype=dtype, key=last)

    def __call__(self, path: SampledPath | RoughPath) -> Float[Array, "times output"]:
        """Outputs at the samples of one path."""
        return jax.vmap(self.readout)(self.core(path))

    def fit(
        self,
        paths: SampledPath,
        targets: ArrayLike,
        *,
        ridge: float = 1e-3,
        batch: int = 256,
    ) -> "Reservoir":
        r"""The same model with the readout of least squares: the mean of $|w \phi_k + b
        - z_k|^2$ plus `ridge` times $|w|^2$, for features $\phi$ divided by their
        standard deviation.

        **Arguments:**

        - `paths`: a batch `(paths,)` of paths.
        - `targets`: `(paths, output)` for the states at the last samples, or `(paths,
            times, output)` for those at all samples. What stands after the end of a
            path is ignored.
        - `ridge`: strength of the penalty, positive.
        - `batch`: paths whose states are computed at a time.
        """
        ridge = as_number("ridge", ridge, 0, above=True)
        batch = as_count("batch", batch)
        z = np.asarray(targets, np.float64)
        size, features = self.readout.weight.shape
        if len(paths.batch_shape) != 1:
            raise ValueError(
                f"`paths` must have one batch axis, got shape {paths.batch_shape}."
            )
        number, times = paths.batch_shape[0], paths.num_times
        if z.shape not in ((number, size), (number, times, size)):
            raise ValueError(
                f"`targets` must have shape ({number}, {size}) or ({number}, {times}, "
                f"{size}), got {z.shape}."
            )
        last = z.ndim == 2
        full = paths.broadcast()

        @eqx.filter_jit
        def states(core, some):
            return core.predict(some)[:, -1] if last else core.predict(some)

        rows = []
        for start in range(0, number, batch):
            some = jax.tree.map(lambda x: x[start : start + batch], full)  # noqa: B023
            rows.append(np.asarray(states(self.core, some), np.float64))
        phi = np.concatenate(rows)
        if not last and full.lengths is not None:
            there = np.arange(times) < np.asarray(full.lengths)[:, None]
            phi, z = phi[there], z[there]
        z = z.reshape(-1, size)
        weight, bias = _ridge(phi.reshape(-1, features), z, float(ridge))
        dtype = self.readout.weight.dtype
        return eqx.tree_at(
            lambda m: (m.readout.weight, m.readout.bias),
            self,
            (jnp.asarray(weight, dtype), jnp.asarray(bias, dtype)),
        )

    def start(
        self, t: ArrayLike, x: Float[Array, " channels"], **options: Any
    ) -> tuple[PyTree, Float[Array, " output"]]:
        state, features = self.core.start(t, x, **options)
        return state, self.readout(features)

    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, Float[Array, " output"]]:
        state, features = self.core.update(state, t, x, bracket)
        return state, self.readout(features)


def _as_memory(
    memory: Any, activation: Callable | None, block: int, channels: int
) -> tuple[float, float]:
    """The two times, checked."""
    if not isinstance(memory, tuple | list) or len(memory) != 2:
        raise TypeError(
            f"`memory` must be a shortest and a longest time, got {shown(memory)}."
        )
    low, high = (float(as_number("memory", t, 0, above=True)) for t in memory)
    if low > high:
        raise ValueError(f"`memory` must not decrease, got {(low, high)}.")
    if activation is not None or block % 2 or channels < 2:
        raise ValueError(
            "`memory` needs a linear equation (activation=None), blocks of even size "
            f"and a channel beside time; got activation={activation}, block={block} "
            f"and {channels} channels."
        )
    return low, high


def _oscillators(
    matrices: Float[Array, "channels size columns blocks"],
    memory: tuple[float, float],
    key: PRNGKeyArray,
) -> Float[Array, "channels size columns blocks"]:
    """Random matrices with a damped rotation in place of the first one. A block keeps
    one and a half of the other channels on average, one at least."""
    first, second, third, fourth = jr.split(key, 4)
    channels, size, columns, count = matrices.shape
    dtype, others = matrices.dtype, channels - 1
    low, high = (math.log(time) for time in memory)
    times = jnp.exp(jr.uniform(first, (1, 1, count), dtype, low, high))
    turns = math.pi * jr.uniform(second, times.shape, dtype)
    turns = turns / jnp.sqrt(times * memory[0])
    turn = np.kron(np.eye(size // 2), [[0.0, -1.0], [1.0, 0.0]])
    clock = jnp.asarray(turn, dtype)[:, :, None] * turns
    clock = clock - jnp.eye(size, dtype=dtype)[:, :, None] / times
    clock = jnp.pad(clock, [(0, 0), (0, columns - size), (0, 0)])
    kept = jr.uniform(third, (others, count)) < 1.5 / others
    sure = jr.randint(fourth, (1, count), 0, others)
    kept = kept | (jnp.arange(others)[:, None] == sure)
    rest = matrices[1:] * kept[:, None, None].astype(dtype)
    return jnp.concatenate([clock[None], rest])


def _ridge(
    phi: np.ndarray, z: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of ridge regression on standardised features."""
    if not np.all(np.isfinite(phi)):
        raise ValueError(
            "states of the reservoir are not finite: the driver is too large for its "
            "`scale`. Choose a smaller one, or standardise the paths."
        )
    centre, spread = phi.mean(0), phi.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    rows, mean = (phi - centre) / spread, z.mean(0)
    gram = rows.T @ rows / len(rows) + ridge * np.eye(rows.shape[1])
    weight = np.linalg.solve(gram, rows.T @ (z - mean) / len(rows)).T / spread
    return weight, mean - weight @ centre
