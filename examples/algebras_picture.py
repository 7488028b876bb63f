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


COLOURS = ["#1b6b58", "#d9822b"]
ITO, STRATONOVICH = "#5b5ea6", "#b9bbd9"


# Drawing keys: words as tiles, trees as trees, the root at the bottom.


def layout(tree, left=0.0, height=0.0):
    """Positions of a tree's vertices: (width, [(x, y, colour)], [edges])."""
    colour, children = tree
    points, edges, roots, x = [], [], [], left
    for child in children:
        width, child_points, child_edges = layout(child, x, height + 1)
        roots.append(child_points[-1])
        points += child_points
        edges += child_edges
        x += width
    middle = left + 0.5 if not roots else np.mean([root[0] for root in roots])
    root = (middle, height, colour)
    edges += [(root, other) for other in roots]
    return max(x - left, 1.0), [*points, root], edges


def tile(ax, x, y, colour, scale):
    ax.add_patch(
        plt.Rectangle((x - scale / 2, y), scale, scale, color=COLOURS[colour], lw=0)
    )


def draw_forest(ax, forest, x, y, scale):
    width, points, edges = 0.0, [], []
    for tree in forest:
        step, more_points, more_edges = layout(tree, width)
        points += more_points
        edges += more_edges
        width += step

    def place(point):
        return x + scale * (point[0] - width / 2), y + scale * point[1]

    for start, end in edges:
        ax.plot(*zip(place(start), place(end)), color="#555", lw=1, zorder=1)
    for point in points:
        ax.plot(*place(point), "o", ms=5.5, color=COLOURS[point[2]], mew=0, zorder=2)


def draw_word(ax, word, x, y, scale):
    letters = [letter if isinstance(letter, tuple) else (letter,) for letter in word]
    width = sum(len(letter) for letter in letters) + 0.5 * (len(letters) - 1)
    at = x - scale * width / 2
    for letter in letters:
        for colour in letter:
            tile(ax, at + scale / 2, y, colour, scale * 0.92)
            at += scale
        if len(letter) == 2:  # a bracket letter: a bar joins its two channels
            ax.plot(
                [at - 1.9 * scale, at - 0.1 * scale], [y - 0.35 * scale] * 2, "#555"
            )
        at += 0.5 * scale


def draw_key(ax, alg, key, x, y):
    if isinstance(alg, abx.GrossmanLarson | abx.MuntheKaasWright):
        draw_forest(ax, key, x, y + 0.12, 0.36)
    else:
        draw_word(ax, key, x, y + 0.12, 0.24)


# The figure and the table.


def signatures(path, alg):
    """Signature by each calculus the algebra knows."""
    out = {}
    if not isinstance(alg, abx.Ito):
        out["Stratonovich"] = abx.signature(path, alg)
    if not isinstance(alg, abx.Shuffle):
        out["Itô"] = abx.signature(path, alg, brackets="realised")
    return {name: np.asarray(value) for name, value in out.items()}


def panel(ax, path, alg):
    found = signatures(path, alg)
    width = 0.76 / len(found)
    for k, (name, value) in enumerate(found.items()):
        x = np.arange(alg.size) + (k - (len(found) - 1) / 2) * width
        colour = ITO if name == "Itô" else STRATONOVICH
        ax.bar(x, value, width, color=colour, label=name, zorder=2)
    ax.axhline(0, color="#9a9a9a", lw=0.8)
    ax.set_xticks([])
    ax.set_xlim(-0.7, alg.size - 0.3)
    ax.spines["bottom"].set_visible(False)
    ax.grid(axis="y")
    ax.set_title(type(alg).__name__)
    keys = ax.inset_axes([0, -0.3, 1, 0.26])
    keys.set_xlim(-0.7, alg.size - 0.3)
    keys.set_ylim(0, 1)
    keys.axis("off")
    for k, key in enumerate(alg.basis):
        draw_key(keys, alg, key, k, 0.15)


def figure(path):
    plt.style.use("arborax.arborax")
    fig = plt.figure(figsize=(11, 5.4))
    grid = fig.add_gridspec(2, 3, width_ratios=[1.05, 1.2, 1.2], hspace=0.12)
    ax = fig.add_subplot(grid[:, 0])
    ax.plot(*path.T, color="#777", lw=0.8, zorder=1)
    ax.scatter(*path.T, c=np.linspace(0, 1, len(path)), s=6, cmap="viridis", zorder=2)
    ax.set_title("a sampled Brownian path")
    ax.set_xlabel("channel 0", color=COLOURS[0])
    ax.set_ylabel("channel 1", color=COLOURS[1])
    ax.set_aspect("equal")
    algebras = [abx.Shuffle, abx.Ito, abx.GrossmanLarson, abx.MuntheKaasWright]
    for k, algebra in enumerate(algebras):
        row, column = divmod(k, 2)
        panel_ax = fig.add_subplot(grid[row, column + 1])
        panel(panel_ax, path, algebra(dim=2, depth=2))
    handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in (STRATONOVICH, ITO)]
    fig.legend(handles, ["Stratonovich", "Itô"], loc="outside upper right", ncols=2)
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
    for algebra in (abx.Shuffle, abx.Ito, abx.GrossmanLarson, abx.MuntheKaasWright):
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
