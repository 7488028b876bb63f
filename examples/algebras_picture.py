"""One Brownian path, seen by the four algebras: a table and a picture.

Run it with `python examples/algebras_picture.py`; the picture goes to
`demo-output/algebras.png`.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


COLOURS = {"Stratonovich": "#b5cbdb", "Itô": "#33658a"}
ALGEBRAS = (abx.Shuffle, abx.Ito, abx.GrossmanLarson, abx.MuntheKaasWright)


def signatures(path, alg):
    """Signature by each calculus the algebra knows."""
    out = {}
    if not isinstance(alg, abx.Ito):
        out["Stratonovich"] = abx.signature(path, alg)
    if not isinstance(alg, abx.Shuffle):
        out["Itô"] = abx.signature(path, alg, brackets="realised")
    return {name: np.asarray(value) for name, value in out.items()}


def figure(path):
    plt.style.use("arborax.arborax")
    fig = plt.figure(figsize=(11, 5.4))
    grid = fig.add_gridspec(2, 3, width_ratios=[1.05, 1.2, 1.2], hspace=0.12)
    ax = fig.add_subplot(grid[:, 0])
    ax.plot(*path.T, color="#777", lw=0.8, zorder=1)
    ax.scatter(*path.T, c=np.linspace(0, 1, len(path)), s=6, cmap="viridis", zorder=2)
    ax.set_title("a sampled Brownian path")
    ax.set_xlabel("channel 0", color="#1b6b58")
    ax.set_ylabel("channel 1", color="#d9822b")
    ax.set_aspect("equal")
    for k, algebra in enumerate(ALGEBRAS):
        row, column = divmod(k, 2)
        alg = algebra(dim=2, depth=2)
        ax = fig.add_subplot(grid[row, column + 1])
        values = signatures(path, alg)
        colours = [COLOURS[name] for name in values]
        abx.plots.signature_bars(values, alg, colours=colours, legend=False, ax=ax)
        ax.set_title(algebra.__name__)
    handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in COLOURS.values()]
    fig.legend(handles, COLOURS, loc="outside upper right", ncols=2)
    return fig


def table(path, depth):
    print(
        f"\nA path of {len(path)} points in 2 channels, truncated at depth {depth}.\n"
    )
    row = "{:<18} {:<13} {:>10} {:>14} {:>11} {:>12}"
    print(
        row.format("algebra", "calculus", "signature", "log-signature", "norm", "Chen")
    )
    half = len(path) // 2
    for algebra in ALGEBRAS:
        alg = algebra(dim=2, depth=depth)
        whole = signatures(path, alg)
        first, second = signatures(path[: half + 1], alg), signatures(path[half:], alg)
        for name, value in whole.items():
            joined = abx.combine(
                jnp.asarray(first[name]), jnp.asarray(second[name]), alg
            )
            defect = np.abs(np.asarray(joined) - value).max()
            sizes = (alg.size, alg.primitive_size)
            norm = f"{np.linalg.norm(value):.4f}"
            print(row.format(algebra.__name__, name, *sizes, norm, f"{defect:.1e}"))
    print("\n'Chen' is the largest error of joining the signatures of the two halves.")


def main(folder="demo-output"):
    path = abx.brownian(jnp.linspace(0.0, 1.0, 401), dim=2, key=jr.key(7))
    print(f"arborax {abx.__version__} on JAX {jax.__version__}")
    table(path, depth=3)
    target = pathlib.Path(folder)
    target.mkdir(exist_ok=True)
    fig = figure(np.asarray(path))
    fig.savefig(target / "algebras.png")
    plt.close(fig)
    print(f"\nPicture: {target / 'algebras.png'}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
