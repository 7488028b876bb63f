"""Linear branched rough differential equations, parallel in time."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, PyTree

from .._inputs import as_choice, as_count, as_flag
from .._values import refuse_first
from .._xla import vary_as
from ..algebra import AbstractHopfAlgebra
from ..geometry import AbstractGeometry
from ..lifts import Blocks, check_ordered
from ..paths import SampledPath
from ..signatures import expanding_log_signature, rough_path, RoughPath
from ._checks import (
    as_output,
    as_sample,
    as_sizes,
    check_options,
    finite,
)
from ._control_model import AbstractControlModel, check_algebra, resolve_calculus
from ._linear_layer import LinearLayer


_EXPLODES = (
    "the state of layer {} is not finite {}: its matrices are too large for the "
    "driver. Scale the path, use shorter windows, or `contractive=True`."
)
STRUCTURES = ("dense", "block", "diagonal", "low-rank")
OUTPUTS = ("samples", "windows", "last")


class LinearStream(eqx.Module):
    """One layer between two samples: its state at the last knot, the last value of its
    driver, and the steps since the knot."""

    y: Float[Array, "size blocks"]
    x: Float[Array, " channels"]
    steps: Float[Array, "window channels"]
    brackets: Float[Array, "window channels channels"] | None


class LinearState(eqx.Module):
    """A linear model between two samples."""

    layers: tuple[LinearStream, ...]
    count: Int[Array, ""]
    finite_variation: tuple[int, ...] = eqx.field(static=True)


class LinearBNRDE(AbstractControlModel):
    r"""The linear branched rough differential equation
    $dY = \sum_i (A_i Y + b_i)\, dX^i$, parallel in time.

    The flow over a window is the exponential of one matrix, a sum of fixed products of
    the $A_i$ whose coefficients are the log-signature. At depth two, with Lévy area $a$
    and bracket $B$,

    $$\Omega = \sum_i A_i x^i + \sum_{i<j} a_{ij} (A_j A_i - A_i A_j)
        - \frac12 \sum_{ij} B^{ij} A_i A_j , \qquad Y_{k+1} = e^{\Omega_k} Y_k .$$

    So a Stratonovich model (`Shuffle`) sees increments and areas, and an Itô model also
    sees the quadratic variation. By default an Itô model is `damped`: it solves

    $$dY = \sum_i (A_i Y + b_i)\, dX^i
        - \kappa \sum_{ij} A_i^\top (A_j Y + b_j)\, d[X]^{ij} ,$$

    and $A_i$ in the last sum of $\Omega$ becomes $A_i + 2 \kappa A_i^\top$. The numbers
    $\kappa$ go from 1 for the first block to 1/2 for the last one. If the matrices are
    skew, the first block shrinks where the equation above would grow, at the same rate,
    and the last keeps its length.

    The matrices of all windows are computed and
    exponentiated at once; only their product is sequential, and `mode="associative"`
    computes it in logarithmic depth.

    `structure` says which matrices are allowed:

    - `"dense"`: all of them; `hidden^3` operations per window.
    - `"block"` (default): block-diagonal, with blocks of size `block`.
    - `"diagonal"`: complex diagonal matrices, that is, blocks of size 2 that rotate and
      scale. They commute, so areas have no effect; brackets do.
    - `"low-rank"`: a diagonal plus a matrix of rank `rank`. Sums of products of such
      matrices are dense, and so are the flows: the cost is that of dense matrices, with
      fewer parameters. Not with `mode="associative"`.

    With several `layers`, the states of each layer are normalised, gated and added to
    the features of the layers before. A linear map of the sum, with `channels` outputs,
    drives the next layer (in an Itô model, with realised brackets).

    States between knots are exact: they follow from the log-signature up to the sample.

    ??? cite "Reference"

        B. Walker, L. Yang, N. Muca Cirone, C. Salvi, T. Lyons, Structured linear CDEs:
        maximally expressive and parallel-in-time sequence models, NeurIPS 2025, for
        Stratonovich drivers.
    """

    layers: tuple[LinearLayer, ...]
    mixers: tuple[eqx.nn.Linear, ...]
    readout: eqx.nn.Linear | None
    output: AbstractGeometry = eqx.field(static=True)
    outputs: str = eqx.field(static=True)
    mode: Literal["scan", "associative"] | None = eqx.field(static=True)

    def __init__(
        self,
        alg: AbstractHopfAlgebra,
        output: int | AbstractGeometry | None,
        *,
        hidden: int = 64,
        structure: Literal["dense", "block", "diagonal", "low-rank"] = "block",
        block: int = 4,
        rank: int = 2,
        layers: int = 1,
        affine: bool = True,
        normalise: bool = True,
        gated: bool = True,
        damped: bool = True,
        contractive: bool = False,
        window: int = 16,
        basepoint: bool = True,
        outputs: Literal["samples", "windows", "last"] = "samples",
        mode: Literal["scan", "associative"] | None = None,
        calculus: Literal["ito", "stratonovich"] | None = None,
        brackets: Literal["realised"] | None = None,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `alg`: the algebra, with one channel per channel of the driver, time included.
        - `output`: number of outputs, or their manifold. `None`: no readout; outputs
            are the features of the last layer, `hidden` numbers.
        - `hidden`: numbers in the state of a layer.
        - `structure`: of the matrices, see above.
        - `block`: size of the blocks of `structure="block"`.
        - `rank`: of `structure="low-rank"`.
        - `layers`: number of equations, each driven by the one before.
        - `affine`: whether the equations have offsets $b_i$.
        - `normalise`: whether states are divided by their root mean square before they
            are gated or read out.
        - `gated`: whether states pass through a gated linear unit.
        - `damped`: whether an Itô equation has the second term above. Without offsets,
            skew matrices then lengthen no state on any path, and others do not increase
            its mean square if the driver is a martingale. Without effect on
            Stratonovich equations, and on weights above two.
        - `contractive`: whether to change the blocks of a window matrix that would
            lengthen a state until they no longer do, for any weights and any path. The
            equation is then not exactly one of those above.
        - `window`: samples per window.
        - `basepoint`: whether to prepend a zero sample, as in
            [`arborax.models.BNRDE`][].
        - `outputs`: at all `"samples"`, at the knots between `"windows"`, or only the
            `"last"` one. With one layer, the last two skip the states inside windows.
        - `mode`: `"scan"` takes windows one after another, `"associative"` in parallel.
            `None`: the first on a CPU and for few windows, otherwise the second.
        - `calculus`, `brackets`: as in [`arborax.models.BNRDE`][].
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        check_algebra(alg)
        check_ordered(alg)
        check_options(key, dtype)
        hidden, block, layers, rank = as_sizes(
            hidden=hidden, block=block, layers=layers, rank=rank
        )
        self.alg, self.channels = alg, alg.dim
        self.calculus = resolve_calculus(alg, calculus)
        self.brackets = as_choice("brackets", brackets, (None, "realised"))
        self.window = as_count("window", window)
        self.basepoint = as_flag("basepoint", basepoint)
        mode = as_choice("mode", mode, (None, "scan", "associative"))
        self.outputs = as_choice("outputs", outputs, OUTPUTS)
        blocks = _make_blocks(structure, hidden, block, as_flag("affine", affine))
        if structure == "low-rank" and mode == "associative":
            raise ValueError(
                "products of diagonal-plus-low-rank matrices are not of this form, so "
                "an associative scan would multiply dense ones. Use mode='scan', or "
                "structure='dense' or 'block'."
            )
        if structure == "low-rank" and rank > hidden:
            raise ValueError(
                f"`rank` must be at most `hidden`, {hidden}, got {rank}. For matrices "
                "without restrictions use structure='dense'."
            )
        rank = rank if structure == "low-rank" else 0
        mode = "scan" if rank else mode
        options = dict(normalise=normalise, gated=gated)
        options |= dict(damped=damped, contractive=contractive)
        options = {name: as_flag(name, flag) for name, flag in options.items()}
        self.mode = mode
        last, *keys = jr.split(key, 2 * layers)
        self.layers = tuple(
            LinearLayer(alg, blocks, rank=rank, **options, dtype=dtype, key=k)
            for k in keys[:layers]
        )
        self.mixers = tuple(
            eqx.nn.Linear(hidden, alg.dim, dtype=dtype, key=k) for k in keys[layers:]
        )
        self.output = as_output(hidden if output is None else output)
        self.readout = None
        if output is not None:
            size = self.output.vector_size
            self.readout = eqx.nn.Linear(hidden, size, dtype=dtype, key=last)

    def __call__(self, path: SampledPath | RoughPath) -> PyTree[Array]:
        """Outputs of one path or control, where `outputs` says. With
        `outputs="samples"` a control that was cut by time (`knots=`) has its outputs at
        its knots; there is no output at a basepoint."""
        control = self._control(path)
        where = self.outputs
        if where == "samples" and control.num_steps is None:
            where = "windows"
        return self._outputs(control, where)

    def at_knots(self, path: SampledPath | RoughPath) -> PyTree[Array]:
        """Outputs at the knots of a control, whatever `outputs` says: every `window`-th
        point, a basepoint included, and the last one."""
        return self._outputs(self._control(path), "windows")

    def _outputs(self, control: RoughPath, where: str) -> PyTree[Array]:
        first, inner = self._features(control, where)
        if where == "last":
            return finite(self._output(inner[-1, -1]))
        if where == "windows":
            inner, skip, points = inner[:, -1:], 0, None
        else:
            skip, points = int(control.basepoint), control.num_steps + 1
        rows = jnp.concatenate([first[None], inner.reshape(-1, inner.shape[-1])])
        return finite(jax.vmap(self._output)(rows[skip:points]))

    def states(self, path: SampledPath | RoughPath) -> Float[Array, "knots hidden"]:
        """States of the first layer at the knots, block after block: the solution of
        the linear equation itself."""
        control, layer = self._control(path), self.layers[0]
        y0 = layer.start(control.values[0, 0])
        flows = layer.flows(control.log_signatures.astype(y0.dtype))[:, None]
        inner = _refuse_explosion(layer.states(y0, flows, self.mode), 0)
        states = jnp.concatenate([y0[None], inner[:, 0]])
        return jnp.swapaxes(states, 1, 2).reshape(states.shape[0], -1)

    def _features(
        self, control: RoughPath, where: str
    ) -> tuple[Float[Array, " hidden"], Float[Array, "windows points hidden"]]:
        """Features of the last layer at the first point, and at the points of all
        windows, or their last ones, or the last one of all, if nothing else is
        needed."""
        if where == "samples" or len(self.layers) > 1:
            lams = control.expanding()
        else:
            lams = control.log_signatures[:, None]
        x0, total = control.values[0, 0], None
        for k, layer in enumerate(self.layers):
            final = k == len(self.mixers)
            if final and where != "samples":
                lams = lams[:, -1:]
            y0 = layer.start(x0)
            flows = layer.flows(lams.astype(y0.dtype))
            inner = _refuse_explosion(layer.states(y0, flows, self.mode), k)
            if final and where == "last":
                inner = inner[-1:]
            first, rest = layer.features(y0), layer.features(inner)
            if total is not None:
                before = total[1][-rest.shape[0] :, -rest.shape[1] :]
                first, rest = total[0] + first, before + rest
            total = first, rest
            if k < len(self.mixers):
                x0, lams = self._next_driver(self.mixers[k], *total)
        assert total is not None
        return total

    def _next_driver(self, mixer: eqx.nn.Linear, first: Array, inner: Array):
        """The driver of the next layer: its first value, and its log-signatures."""
        x0 = mixer(first)
        values = jax.vmap(jax.vmap(mixer))(inner)
        starts = jnp.concatenate([x0[None], values[:-1, -1]])
        values = jnp.concatenate([starts[:, None], values], axis=1)
        brackets = "realised" if self.calculus == "ito" else None
        return x0, expanding_log_signature(values, self.alg, brackets)[:, 1:]

    def _output(self, features: Float[Array, " hidden"]) -> PyTree[Array]:
        if self.readout is None:
            return features
        return self.output.project_vector(self.readout(features))

    def start(
        self,
        t: ArrayLike,
        x: Float[Array, " channels"],
        *,
        finite_variation: tuple[int, ...] = (),
    ) -> tuple[LinearState, PyTree[Array]]:
        """The state after the first sample, and the output there, whatever `outputs`
        says.

        **Arguments:**

        - `finite_variation`: channels without a bracket, such as time, if brackets are
            realised; as in [`arborax.SampledPath`][]. Missing values are carried
            forward by the caller.
        """
        x = as_sample("x", x, (self.channels,), self)
        d, size = self.channels, self.window
        value, total, streams = jnp.zeros_like(x) if self.basepoint else x, None, []
        for k, layer in enumerate(self.layers):
            brackets = None
            if self.calculus == "ito":
                brackets = jnp.zeros((size, d, d), x.dtype)
            y = layer.start(value).astype(x.dtype)
            steps = jnp.zeros((size, d), x.dtype)
            streams.append(LinearStream(y, value, steps, brackets))
            here = layer.features(y)
            total = here if total is None else total + here
            value = self.mixers[k](total) if k < len(self.mixers) else value
        assert total is not None
        state = LinearState(
            tuple(streams), jnp.zeros((), jnp.int32), tuple(finite_variation)
        )
        state = vary_as(state, x)  # in a loop it will vary as samples do
        if self.basepoint:
            return self._push(state, x, jnp.zeros((d, d), x.dtype))
        return state, self._output(total)

    def update(
        self,
        state: LinearState,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[LinearState, PyTree[Array]]:
        """The state after one more sample, and the output there."""
        x = as_sample("x", x, (self.channels,), self)
        marks = state.finite_variation
        bracket = self._step_bracket(state.layers[0].x, x, bracket, marks)
        return self._push(state, x, bracket)

    def _push(self, state: LinearState, x: Array, bracket: Array | None):
        full = state.count + 1 == self.window
        streams, total, value = [], None, x
        for k, (layer, stream) in enumerate(zip(self.layers, state.layers)):
            step = value - stream.x
            steps = stream.steps.at[state.count].set(step)
            brackets = stream.brackets
            if brackets is not None:
                bracket = step[:, None] * step[None] if k else bracket
                brackets = brackets.at[state.count].set(bracket)
            # The steps so far as a control of one window; those to come are zero.
            ts = jnp.arange(self.window + 1, dtype=x.dtype)
            values = jnp.pad(jnp.cumsum(steps, axis=0), [(1, 0), (0, 0)])
            path = SampledPath(ts, values, brackets=brackets, check=False)
            lam = rough_path(None, path, self.alg, window=self.window).log_signatures
            y = layer.blocks.act(layer.flows(lam[0]), stream.y)
            y = _refuse_explosion(y[None], k, "after this sample")[0]
            kept = jnp.where(full, y, stream.y)
            steps, brackets = jax.tree.map(
                lambda leaf: jnp.where(full, jnp.zeros_like(leaf), leaf),
                (steps, brackets),
            )
            streams.append(LinearStream(kept, value, steps, brackets))
            here = layer.features(y)
            total = here if total is None else total + here
            value = self.mixers[k](total) if k < len(self.mixers) else value
        count = jnp.where(full, 0, state.count + 1)
        state = LinearState(tuple(streams), count, state.finite_variation)
        assert total is not None
        return state, self._output(total)


def _refuse_explosion(
    states: Array, layer: int, where: str = "from window {} on"
) -> Array:
    """The states of a layer, windows first, if they are finite."""
    bad = ~jnp.all(jnp.isfinite(states), axis=tuple(range(1, states.ndim)))
    message = lambda window: _EXPLODES.format(layer, where.format(window))  # noqa: E731
    return refuse_first(states, bad, message)


def _make_blocks(structure: Any, hidden: int, block: int, affine: bool) -> Blocks:
    """The form of the matrices of a layer."""
    as_choice("structure", structure, STRUCTURES)
    size = {"block": block, "diagonal": 2}.get(structure, hidden)
    if hidden % size:
        raise ValueError(
            f"`hidden` must be a multiple of the size of a block, {size}, got {hidden}."
        )
    return Blocks(size, hidden // size, affine, structure == "diagonal")
