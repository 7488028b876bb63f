"""Small models of every kind, and paths for them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


M = abx.models
KEY = jr.PRNGKey(0)
SMALL = dict(hidden=4, width=5, depth=1, initial_depth=1, key=KEY)
WINDOWED = dict(window=4, **SMALL)

CAUSAL = {
    "bnrde": lambda **kw: M.BNRDE(abx.Ito(2, 2), 1, **WINDOWED, **kw),
    "bnrde-log-ode": lambda **kw: M.BNRDE(
        abx.GrossmanLarson(2, 2), 1, interpolation="log-ode", **WINDOWED, **kw
    ),
    "bnrde-so": lambda **kw: M.BNRDE(
        abx.MuntheKaasWright(2, 2), geometry=abx.SO(3), **WINDOWED, **kw
    ),
    "linear-bnrde": lambda **kw: M.LinearBNRDE(
        abx.Ito(2, 2), 1, hidden=8, window=4, key=KEY, **kw
    ),
    "linear-bnrde-stacked": lambda **kw: M.LinearBNRDE(
        abx.Shuffle(2, 3),
        1,
        hidden=4,
        structure="diagonal",
        layers=2,
        window=4,
        mode="associative",
        key=KEY,
        **kw,
    ),
    "log-ncde": lambda **kw: M.LogNCDE(2, 1, **WINDOWED, **kw),
    "nrde": lambda **kw: M.NRDE(2, 1, **WINDOWED, **kw),
    "ncde": lambda **kw: M.NCDE(2, abx.SO(3), solver=abx.Heun(), **SMALL, **kw),
    "ncdepp": lambda **kw: M.NCDEpp(2, 1, **SMALL, **kw),
    "gru": lambda **kw: M.GRU(2, abx.SPD(2), hidden=4, width=5, key=KEY, **kw),
    "xlstm": lambda **kw: M.XLSTM(2, 1, size=4, heads=2, chunk=4, key=KEY, **kw),
    "stacked-xlstm": lambda **kw: M.XLSTM(
        2, 1, size=4, heads=2, layers=2, chunk=4, key=KEY, **kw
    ),
}


def driver(model, times=10, dtype=jnp.float64, seed=1):
    ts = jnp.linspace(0, 1, times, dtype=dtype) ** 2 + 0.1
    return M.brownian_driver(
        ts, model.channels - 1, brackets=model.calculus == "ito", key=jr.PRNGKey(seed)
    )


def rotation_path(times=21, dtype=jnp.float64, speed=(1.0, 0.5, -0.3)):
    """Time and a rotation of constant angular velocity, flattened."""
    ts = jnp.linspace(0, 1, times, dtype=dtype)
    start = abx.SO(3).random_point(key=jr.PRNGKey(7), dtype=dtype)
    axis = jnp.asarray(speed, dtype)
    rotations = jax.vmap(lambda t: abx.SO(3).exp(start, t * axis))(ts)
    xs = jnp.concatenate([ts[:, None], rotations.reshape(times, 9)], axis=1)
    return abx.SampledPath(ts, xs), rotations


def count(model):
    arrays = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return sum(leaf.size for leaf in arrays)
