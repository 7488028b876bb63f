"""The picture on the front page: a branched flow, rough volatility, covariances.

Run it with `python examples/front_picture.py`; the picture goes to
`demo-output/front.png`.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex

import arborax as abx


LEVELS, STEPS = 5, 120
VIEW = (20.0, 35.0)


def branched_drivers():
    """Time and a Brownian channel, `(2 ** LEVELS, times, 2)`: paths that share their
    increments until they part in pairs."""
    ts, parts = jnp.linspace(0.0, 1.0, STEPS + 1), []
    for level in range(LEVELS + 1):
        noise = abx.brownian(ts, dim=1, shape=(2**level,), key=jr.key(30 + level))
        shared = jnp.diff(noise, axis=1)
        parts.append(jnp.repeat(shared, 2 ** (LEVELS - level), axis=0))
    noise = jnp.concatenate(parts, axis=1)
    both = jnp.concatenate([jnp.full_like(noise, 1 / noise.shape[1]), noise], axis=-1)
    return jnp.pad(jnp.cumsum(both, axis=1), ((0, 0), (1, 0), (0, 0)))


def flow_on_sphere(drivers):
    """A point that moves straight ahead and is steered by noise: an Itô equation,
    solved with planar trees."""
    ts = jnp.linspace(0.0, 1.0, drivers.shape[1])
    south, away = np.deg2rad(52.0), np.deg2rad(VIEW[1])
    out = np.array([np.cos(away), np.sin(away), 0.0])
    point = jnp.asarray(np.cos(south) * out - np.sin(south) * np.eye(3)[2])
    east = jnp.array([-np.sin(away), np.cos(away), 0.0])
    axes = jnp.stack([-2.3 * east, 0.55 * point])
    # Each level is a Brownian motion on [0, 1].
    brackets = jnp.zeros((len(ts) - 1, 2, 2)).at[:, 1, 1].set(1 / STEPS)
    trees = abx.MuntheKaasWright(2, 2)

    def solve(driver):
        control = abx.rough_path(ts, driver, trees, window=4, brackets=brackets)
        sol = abx.solve(lambda y: axes, jnp.eye(3), control, geometry=abx.SO(3))
        return sol.ys @ point

    return jax.jit(jax.vmap(solve))(drivers)


def covariances(ts):
    """A diffusion on SPD(2), as an Itô equation."""
    driver = abx.brownian(ts, dim=3, key=jr.key(10))
    brackets = abx.brownian_brackets(ts, dim=3)
    control = abx.rough_path(ts, driver, abx.Ito(3, 2), window=8, brackets=brackets)
    start = jnp.array([[1.0, 0.3], [0.3, 0.7]])
    fields = jnp.diag(jnp.array([0.8, 1.0, 0.8]))
    return abx.solve(lambda y: fields, start, control, geometry=abx.SPD(2)).ys


def figure():
    plt.style.use("arborax.arborax")
    fig = plt.figure(figsize=(11, 4.8))
    grid = fig.add_gridspec(2, 2, width_ratios=[1, 1.35], height_ratios=[1.9, 1])
    sphere = fig.add_subplot(grid[:, 0])
    fan, row = fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[1, 1])

    curves = np.asarray(flow_on_sphere(branched_drivers()))
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(curves)))
    look = dict(view=VIEW, ax=sphere)
    for curve, shade in zip(curves, shades):
        abx.plots.on_sphere(curve, colour=to_hex(shade), width=1.3, **look)
    sphere.set_title("A branched flow on the sphere")

    data = abx.datasets.RoughBergomi().sample(3000, key=jr.key(0))
    abx.plots.fan_chart(data.values, data.ts, show=6, ax=fan)
    fan.set(title="Rough volatility", ylabel="log-price")

    ts = jnp.linspace(0.0, 1.0, 129)
    abx.plots.covariance_ellipses(covariances(ts), ts[::8], count=9, ax=row)
    row.set_title("An Itô diffusion of covariance matrices")
    return fig


def main(folder="demo-output"):
    target = pathlib.Path(folder)
    target.mkdir(exist_ok=True)
    fig = figure()
    fig.savefig(target / "front.png")
    plt.close(fig)
    print(f"Picture: {target / 'front.png'}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
