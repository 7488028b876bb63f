"""Static kernels: what a signature kernel does with two points of the state space."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Real


class AbstractStaticKernel(eqx.Module):
    """A positive semi-definite kernel on points, lifted to paths by second differences.

    Only the mixed second difference
    `k(x', y') - k(x', y) - k(x, y') + k(x, y)` of neighbouring points enters a
    signature kernel, so constants and functions of one point alone do not matter.
    """

    @abc.abstractmethod
    def __call__(
        self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]
    ) -> Float[Array, "..."]:
        """Values for points paired by broadcasting, `(..., d), (..., d) -> (...)`."""

    @abc.abstractmethod
    def gram(
        self, x: Float[Array, "*batch n d"], y: Float[Array, "*batch m d"]
    ) -> Float[Array, "*batch n m"]:
        """Values for all pairs, `(..., n, d), (..., m, d) -> (..., n, m)`."""


def _inner(x: Array, y: Array) -> Array:
    # Summed channel by channel: XLA vectorises this, not a reduction of length `d`.
    if x.shape[-1] > 16:
        return jnp.sum(x * y, axis=-1)
    total = x[..., 0] * y[..., 0]
    for i in range(1, x.shape[-1]):
        total = total + x[..., i] * y[..., i]
    return total


def _inner_gram(x: Array, y: Array) -> Array:
    return jnp.einsum("...nd,...md->...nm", x, y)


def _square_distance(x: Array, y: Array) -> Array:
    difference = x - y
    return _inner(difference, difference)


def _square_distance_gram(x: Array, y: Array) -> Array:
    squares_x = jnp.sum(x * x, axis=-1)[..., :, None]
    squares_y = jnp.sum(y * y, axis=-1)[..., None, :]
    return jnp.maximum(squares_x + squares_y - 2 * _inner_gram(x, y), 0)


class LinearKernel(AbstractStaticKernel):
    """`k(x, y) = <x, y>`: the signature kernel in the usual sense."""

    def __call__(self, x, y):
        return _inner(x, y)

    def gram(self, x, y):
        return _inner_gram(x, y)


class RBFKernel(AbstractStaticKernel):
    r"""`k(x, y) = exp(-|x - y|^2 / (2 lengthscale^2))`."""

    lengthscale: Real[Array, ""] | float = 1.0

    def _of_square(self, square: Array) -> Array:
        scale = jnp.asarray(self.lengthscale, square.dtype)
        return jnp.exp(-square / (2 * scale**2))

    def __call__(self, x, y):
        return self._of_square(_square_distance(x, y))

    def gram(self, x, y):
        return self._of_square(_square_distance_gram(x, y))


class RationalQuadraticKernel(AbstractStaticKernel):
    r"""`k(x, y) = (1 + |x - y|^2 / (2 alpha lengthscale^2))^(-alpha)`."""

    lengthscale: Real[Array, ""] | float = 1.0
    alpha: Real[Array, ""] | float = 1.0

    def _of_square(self, square: Array) -> Array:
        scale = jnp.asarray(self.lengthscale, square.dtype)
        alpha = jnp.asarray(self.alpha, square.dtype)
        return (1 + square / (2 * alpha * scale**2)) ** (-alpha)

    def __call__(self, x, y):
        return self._of_square(_square_distance(x, y))

    def gram(self, x, y):
        return self._of_square(_square_distance_gram(x, y))


class CustomKernel(AbstractStaticKernel):
    """A user's function of two points `(d,), (d,) -> ()`, mapped over all pairs.

    The function has to be positive semi-definite for the signature kernel to be so;
    this is not checked.
    """

    function: Callable[[Float[Array, " d"], Float[Array, " d"]], Float[Array, ""]]

    def __call__(self, x, y):
        return jnp.vectorize(self.function, signature="(d),(d)->()")(x, y)

    def gram(self, x, y):
        return jnp.vectorize(self.function, signature="(d),(d)->()")(
            x[..., :, None, :], y[..., None, :, :]
        )


def as_static_kernel(kernel: object) -> AbstractStaticKernel:
    """Turn a name, a function or a kernel into a static kernel.

    **Arguments:**

    - `kernel`: `None` or `"linear"`, `"rbf"`, `"rational-quadratic"`, an
        [`arborax.AbstractStaticKernel`][], or a function of two points.

    **Returns:**

    An [`arborax.AbstractStaticKernel`][].
    """
    if isinstance(kernel, AbstractStaticKernel):
        return kernel
    named = {
        None: LinearKernel,
        "linear": LinearKernel,
        "rbf": RBFKernel,
        "rational-quadratic": RationalQuadraticKernel,
    }
    if kernel is None or isinstance(kernel, str):
        if kernel not in named:
            raise ValueError(
                f"Unknown static kernel {kernel!r}: expected one of "
                f"{sorted(k for k in named if k)}, a static kernel object or a "
                "function of two points."
            )
        return named[kernel]()
    if callable(kernel):
        return CustomKernel(jax.tree_util.Partial(kernel))
    raise TypeError(
        f"`static_kernel` must be a name, a static kernel or a function of two points, "
        f"got {type(kernel).__name__}."
    )
