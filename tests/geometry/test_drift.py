"""The action stays on the manifold for 10^5 steps without projection."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .cases import name


def defect(g, y):
    y = np.asarray(y, float)
    if isinstance(g, abx.SPD):
        assert np.linalg.eigvalsh(y)[0] > 0
        return np.abs(y - y.T).max()
    if isinstance(g, abx.Sphere):
        return abs(y @ y - 1)
    if isinstance(g, abx.Hyperbolic):
        return abs(y[0] ** 2 - y[1:] @ y[1:] - 1) / y[0] ** 2
    r = y[:3, :3] if isinstance(g, abx.SE) else y
    return np.abs(r.T @ r - np.eye(len(r))).max()


@pytest.mark.parametrize("dtype, tol", [(jnp.float32, 1e-5), (jnp.float64, 1e-12)])
@pytest.mark.parametrize(
    "g",
    [
        abx.SO(3),
        abx.SO(4),
        abx.SE(3),
        abx.Sphere(2),
        abx.Sphere(3),
        abx.Hyperbolic(2),
        abx.SPD(3),
    ],
    ids=name,
)
def test_defect(g, dtype, tol):
    y = g.random_point(key=jr.PRNGKey(1), dtype=dtype)
    u = 0.3 * jr.normal(jr.PRNGKey(2), (1000, g.dim), dtype)
    # Half of them constant: errors of one increment add up instead of averaging.
    u = u.at[500:].set(u[0])

    def step(y, u):
        # There and back, so that non-compact spaces stay in a bounded region.
        xi = g.generator(y, u)
        back = xi if isinstance(g, abx.SO) else -xi
        return g.act(back, g.act(xi, y)), None

    def sweep(_, y):
        return jax.lax.scan(step, y, u)[0]

    y = jax.jit(lambda y: jax.lax.fori_loop(0, 50, sweep, y))(y)
    assert defect(g, y) <= tol
