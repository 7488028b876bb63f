"""A manifold as a user writes it, with nothing but the abstract methods."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


class Positive(abx.AbstractGeometry):
    """Positive vectors, with multiplication as the group."""

    n: int = eqx.field(static=True)

    @property
    def connection(self):
        return "levi-civita"

    @property
    def dim(self):
        return self.n

    @property
    def manifold_dim(self):
        return self.n

    @property
    def point_shape(self):
        return (self.n,)

    def frame(self, y, u):
        return y * u

    def coordinates(self, y, v):
        return v / y

    def generator(self, y, u):
        return u

    def act(self, xi, y):
        return y * jnp.exp(xi)

    def fundamental(self, xi, y):
        return y * xi

    def lie_bracket(self, xi, eta):
        return jnp.zeros_like(xi)

    def exp(self, y, u):
        return y * jnp.exp(u)

    def log(self, y, z):
        return jnp.log(z / y)

    def distance(self, y, z):
        return jnp.linalg.norm(self.log(y, z))

    def christoffel(self, y, u, v):
        return jnp.zeros_like(u)

    def bracket(self, y, u, v):
        return jnp.zeros_like(u)

    def belongs(self, y, tol=None):
        return jnp.all(jnp.isfinite(y) & (y > 0))

    def random_point(self, key, dtype=None):
        return jnp.exp(jr.normal(key, (self.n,), dtype or jnp.result_type(float)))
