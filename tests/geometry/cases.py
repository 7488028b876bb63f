"""The geometries and connections every law is tested on."""

import jax.numpy as jnp
import jax.tree_util as jtu

import arborax as abx


GEOMETRIES = [
    abx.Euclidean(3),
    abx.SO(2),
    abx.SO(3),
    abx.SO(3, connection="levi-civita"),
    abx.SO(4, connection="levi-civita"),
    abx.SE(3),
    abx.SE(3, connection="levi-civita"),
    abx.SPD(2, "root"),
    abx.SPD(3),
    abx.SPD(3, connection="frame"),
    abx.SPD(3, "root"),
    abx.SPD(5),
    abx.Sphere(2),
    abx.Sphere(3),
    abx.Hyperbolic(2),
    abx.Hyperbolic(2, connection="frame"),
    abx.Hyperbolic(3),
    abx.Product(abx.SO(3), abx.SPD(2), abx.Sphere(2)),
]

# One geometry for each kind of action: connections do not matter there.
ACTIONS = [
    abx.SO(3),
    abx.SO(4),
    abx.SE(3),
    abx.SPD(2, "root"),
    abx.SPD(3),
    abx.Sphere(2),
    abx.Hyperbolic(2),
    abx.Product(abx.SO(3), abx.Euclidean(2)),
]


def name(geometry) -> str:
    if isinstance(geometry, abx.Product):
        return "-".join(map(name, geometry.factors))
    root = getattr(geometry, "root", "")
    return f"{type(geometry).__name__}{geometry.n}{root}_{geometry.connection}"


def error(a, b) -> float:
    """Largest difference of two points, relative to their size if that exceeds one."""
    gaps = jtu.tree_map(
        lambda x, y: jnp.max(jnp.abs(x - y)) / (1 + jnp.max(jnp.abs(y))), a, b
    )
    return float(max(jtu.tree_leaves(gaps)))


def subtract(a, b):
    return jtu.tree_map(jnp.subtract, a, b)


def scale(s, a):
    return jtu.tree_map(lambda x: s * x, a)


def has_log(geometry) -> bool:
    return not (isinstance(geometry, abx.SPD) and geometry.connection == "frame")


def ambient_connection(geometry, y, value, derivative, direction):
    """Levi-Civita covariant derivative from ambient formulas: `value` and `derivative`
    are a tangent field and its ambient derivative along `direction`."""
    if isinstance(geometry, abx.Product):
        rows = zip(geometry.factors, y, value, derivative, direction)
        return tuple(ambient_connection(*row) for row in rows)
    if isinstance(geometry, abx.SO):
        a = y.T @ derivative
        return y @ (a - a.T) / 2
    if isinstance(geometry, abx.SE):
        r = y[:3, :3]
        a = r.T @ derivative[:3, :3]
        return derivative.at[:3, :3].set(r @ (a - a.T) / 2)
    if isinstance(geometry, abx.SPD):
        a = direction @ jnp.linalg.inv(y) @ value
        return derivative - (a + a.T) / 2
    if isinstance(geometry, abx.Sphere):
        return derivative + jnp.sum(direction * value) * y
    if isinstance(geometry, abx.Hyperbolic):
        product = direction * value
        return derivative - (jnp.sum(product) - 2 * product[0]) * y
    return derivative
