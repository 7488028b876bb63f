"""Static kernels: kernels of two points of the state space."""

import abc
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from .._inputs import as_number
from .._xla import custom_jvp, inner


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


@custom_jvp
def _square_distances(x: Array, y: Array) -> Array:
    """`|x_i - y_j|^2` from points `(..., d, n)` and `(..., d, m)`, to `(..., n, m)`.

    From differences, one channel at a time: `|x|^2 + |y|^2 - 2 <x, y>` would lose all
    digits of points that are close to each other and far from zero.
    """
    total: Any = 0
    for i in range(x.shape[-2]):
        difference = x[..., i, :, None] - y[..., i, None, :]
        total = total + difference * difference
    return total


@_square_distances.defjvp
def _square_distances_jvp(primals, tangents):
    # As matrix products, which transpose to matrix products. A point in common keeps
    # their digits: the derivative depends on differences only.
    (x, y), (dx, dy) = primals, tangents
    shared = lax.stop_gradient(x[(0,) * (x.ndim - 2)][:, :1])
    shared = shared.reshape((1,) * (x.ndim - 2) + shared.shape)
    near_x, near_y = x - shared, y - shared
    own_x = jnp.sum(near_x * dx, axis=-2)[..., :, None]
    own_y = jnp.sum(near_y * dy, axis=-2)[..., None, :]
    crossed = jnp.einsum("...dn,...dm->...nm", dx, near_y)
    crossed = crossed + jnp.einsum("...dn,...dm->...nm", near_x, dy)
    return _square_distances(x, y), 2 * (own_x + own_y - crossed)


class LinearKernel(AbstractStaticKernel):
    """`k(x, y) = <x, y>`: the signature kernel in the usual sense."""

    def __call__(self, x, y):
        return inner(x, y)

    def gram(self, x, y):
        return jnp.einsum("...nd,...md->...nm", x, y)


class AbstractStationaryKernel(AbstractStaticKernel):
    """A function of `|x - y| / lengthscale`: no translation of both points is seen."""

    lengthscale: eqx.AbstractVar[Real[Array, ""] | float]

    @abc.abstractmethod
    def of_square(self, square: Float[Array, "..."]) -> Float[Array, "..."]:
        """Values from squared distances in units of the length scale."""

    def _of_distance(self, square: Array) -> Array:
        scale = jnp.asarray(self.lengthscale, square.dtype)
        return self.of_square(square / scale**2)

    def __call__(self, x, y):
        return self._of_distance(inner(x - y, x - y))

    def gram(self, x, y):
        x, y = jnp.swapaxes(x, -1, -2), jnp.swapaxes(y, -1, -2)
        return self._of_distance(_square_distances(x, y))


class RBFKernel(AbstractStationaryKernel):
    r"""`k(x, y) = exp(-|x - y|^2 / (2 lengthscale^2))`."""

    lengthscale: Real[Array, ""] | float = 1.0

    def __check_init__(self):
        as_number("lengthscale", self.lengthscale, 0, above=True)

    def of_square(self, square):
        return jnp.exp(-0.5 * square)


class RationalQuadraticKernel(AbstractStationaryKernel):
    r"""`k(x, y) = (1 + |x - y|^2 / (2 alpha lengthscale^2))^(-alpha)`."""

    lengthscale: Real[Array, ""] | float = 1.0
    alpha: Real[Array, ""] | float = 1.0

    def __check_init__(self):
        as_number("lengthscale", self.lengthscale, 0, above=True)
        as_number("alpha", self.alpha, 0, above=True)

    def of_square(self, square):
        alpha = jnp.asarray(self.alpha, square.dtype)
        return (1 + square / (2 * alpha)) ** (-alpha)


class CustomKernel(AbstractStaticKernel):
    """A user's function of two points `(d,), (d,) -> ()`, mapped over all pairs.

    The function has to be positive semi-definite for the signature kernel to be so;
    this is not checked.
    """

    function: Callable[[Float[Array, " d"], Float[Array, " d"]], Float[Array, ""]]

    def __call__(self, x, y):
        return self._mapped(x, y)

    def gram(self, x, y):
        return self._mapped(x[..., :, None, :], y[..., None, :, :])

    def _mapped(self, x, y):
        points = [jax.ShapeDtypeStruct(z.shape[-1:], z.dtype) for z in (x, y)]
        value = jax.eval_shape(self.function, *points)
        if not hasattr(value, "shape") or value.shape != ():
            got = getattr(value, "shape", type(value).__name__)
            raise ValueError(
                "`static_kernel` must give one number for two points `(d,)`, got "
                f"{got}."
            )
        return jnp.vectorize(self.function, signature="(d),(d)->()")(x, y)


def as_static_kernel(kernel: object) -> AbstractStaticKernel:
    """A static kernel from its name (`None`: linear), from a function of two points, or
    as it is."""
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
    if callable(kernel) and not isinstance(kernel, type):
        try:
            inspect.signature(kernel).bind("x", "y")
        except TypeError:
            raise TypeError(
                "`static_kernel` must be a function of two points, `k(x, y)`."
            ) from None
        except ValueError:
            pass  # a function that does not say what it takes
        return CustomKernel(jax.tree_util.Partial(kernel))
    raise TypeError(
        f"`static_kernel` must be a name, a static kernel or a function of two points, "
        f"got {type(kernel).__name__}."
    )
