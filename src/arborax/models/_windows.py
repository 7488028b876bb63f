"""A path cut into windows of equally many steps, and sums over parts of windows."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._xla import scan
from ..algebra import AbstractHopfAlgebra
from ..paths import SampledPath
from ..signatures import log_signature, windowed_log_signature


class Windows(eqx.Module):
    """What a window model needs of a path; made by its method `prepare`.

    Log-signatures do not depend on the weights of the model. Where the driver is data,
    prepare it once and train on the result.

    - `first`: what the initial state is computed from, `(channels,)`.
    - `log_signatures`: `(windows, primitives)`.
    - `steps`: increments `(windows, window, channels)`, zero on padding.
    - `brackets`: `(windows, window, channels, channels)`, or `None`.
    """

    alg: AbstractHopfAlgebra = eqx.field(static=True)
    first: Float[Array, " channels"]
    log_signatures: Float[Array, "windows primitives"]
    steps: Float[Array, "windows window channels"]
    brackets: Float[Array, "windows window channels channels"] | None
    num_steps: int = eqx.field(static=True)

    @property
    def calculus(self) -> str:
        """`"ito"` if there are brackets."""
        return "stratonovich" if self.brackets is None else "ito"


def cut(
    path: SampledPath,
    alg: AbstractHopfAlgebra,
    window: int,
    brackets: Float[Array, "steps channels channels"] | None,
) -> Windows:
    """Cut a filled path into windows of `window` steps, the last one padded."""
    steps = jnp.diff(path.xs, axis=0)
    count = steps.shape[0]
    windows = -(-count // window)

    def pad(values):
        zeros = [(0, windows * window - count)] + [(0, 0)] * (values.ndim - 1)
        return jnp.pad(values, zeros).reshape(windows, window, *values.shape[1:])

    if count:
        source = SampledPath(path.ts, path.xs, brackets=brackets, check=False)
        lams = windowed_log_signature(source, alg, window)
    else:
        lams = jnp.zeros((0, alg.primitive_size), path.xs.dtype)
    cut_brackets = None if brackets is None else pad(brackets)
    return Windows(alg, path.xs[0], lams, pad(steps), cut_brackets, count)


def prefix_log_signatures(
    alg: AbstractHopfAlgebra,
    steps: Float[Array, "window channels"],
    brackets: Float[Array, "window channels channels"] | None,
) -> Float[Array, "window primitives"]:
    """Log-signatures from the start of a window to each of its samples.

    Each is that of the window with the later steps set to zero, so it costs the square
    of the length; exactly the sum that a stream of samples would give.
    """
    size = steps.shape[0]
    keep = jnp.tril(jnp.ones((size, size), steps.dtype))
    values = jnp.cumsum(keep[:, :, None] * steps[None], axis=1)
    values = jnp.pad(values, [(0, 0), (1, 0), (0, 0)])
    given: Any = None
    if brackets is not None:
        given = keep[:, :, None, None] * brackets[None]
    ts = jnp.arange(size + 1, dtype=steps.dtype)
    path = SampledPath(ts, values, brackets=given, check=False)
    return log_signature(path, alg)


def second_order_sums(
    steps: Float[Array, "window channels"],
    brackets: Float[Array, "window channels channels"] | None,
) -> tuple[Float[Array, "window channels"], Float[Array, "window channels channels"]]:
    r"""$X^i$ and $\int X^i dX^j$ from the start of a window to each of its samples.

    The integral is that of Stratonovich, less half the bracket if there is one.
    """
    first = jnp.cumsum(steps, axis=0)
    middle = first - steps / 2
    area = middle[:, :, None] * steps[:, None, :]
    if brackets is not None:
        area = area - brackets / 2
    return first, jnp.cumsum(area, axis=0)


def scan_windows(step, y0, lams: Float[Array, "windows primitives"]):
    """States at all knots, the first included.

    Steps are recomputed in the backward pass: their intermediate values would fill
    memory, and writing them costs several times the arithmetic.
    """

    @jax.checkpoint
    def body(y, lam):
        y = step(y, lam)
        return y, y

    _, ys = scan(body, y0, lams)
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), y0, ys)
