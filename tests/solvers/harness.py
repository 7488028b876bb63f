"""Shared noise, reference solutions and slopes for convergence tests."""

import arborax as abx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from arborax.signatures import rough_path


def brownian_paths(key, paths, steps, d, horizon=1.0):
    """Sample paths `(paths, steps + 1, d)` on a fine uniform grid."""
    dt = horizon / steps
    dx = jnp.sqrt(dt) * jr.normal(key, (paths, steps, d), jnp.float64)
    zero = jnp.zeros((paths, 1, d))
    return jnp.concatenate([zero, jnp.cumsum(dx, axis=1)], axis=1)


def geodesic_euler(fields, y0, xs, geometry):
    """Final states of the geodesic Euler-Maruyama scheme, one for each path."""

    def one(x):
        def body(y, dx):
            return geometry.exp(y, dx @ fields(y)), None

        return jax.lax.scan(body, y0, jnp.diff(x, axis=0))[0]

    return jax.jit(jax.vmap(one))(xs)


def stratonovich_reference(fields, y0, xs, geometry):
    """Final states of the equation driven by the piecewise-linear paths."""
    alg = abx.Shuffle(xs.shape[-1], 1)

    def one(x):
        ts = jnp.linspace(0.0, 1.0, x.shape[0])
        control = rough_path(ts, x, alg)
        return abx.solve(
            fields, y0, control, geometry=geometry, solver=abx.CF4(), save="final"
        ).ys

    out = jax.jit(jax.vmap(one))(xs)
    return jtu.tree_map(lambda leaf: leaf[:, 0], out)


def log_ode(
    fields, y0, xs, alg, geometry, windows, *, brackets=None, mask=None, **options
):
    """Final states of the log-ODE with equal windows, one for each path.

    `mask` multiplies the log-signatures, to leave terms out on purpose.
    """
    options = {"solver": abx.CF4(), "substeps": 2, **options}

    def one(x):
        ts = jnp.linspace(0.0, 1.0, x.shape[0])
        window = (x.shape[0] - 1) // windows
        control = rough_path(ts, x, alg, window=window, brackets=brackets)
        if mask is not None:
            lams = control.log_signatures
            lams = lams * jnp.broadcast_to(jnp.asarray(mask, lams.dtype), lams.shape)
            control = _replace(control, lams)
        return abx.solve(
            fields, y0, control, geometry=geometry, save="final", **options
        ).ys

    out = jax.jit(jax.vmap(one))(xs)
    return jtu.tree_map(lambda leaf: leaf[:, 0], out)


def _replace(control, lams):
    import equinox as eqx

    return eqx.tree_at(lambda c: c.log_signatures, control, lams)


def rms(x, y):
    """Root mean square over paths of the largest ambient difference."""
    gap = jnp.abs(x - y).reshape(x.shape[0], -1).max(axis=1)
    return float(jnp.sqrt(jnp.mean(gap**2)))


def slope(sizes, errors):
    """Least-squares slope of log error against log of the window length."""
    return -float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
