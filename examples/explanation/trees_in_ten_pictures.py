# %% [markdown]
# # Trees in ten pictures
#
# Why does a library for differential equations draw trees? Ten pictures, from the
# Taylor series of a solution to the algebras of arborax.

# %%
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


dot, dot1 = (0, ()), (1, ())
ladder, cherry = (0, (dot,)), (0, (dot, dot))
tall = (0, (ladder,))


def row(forests, titles, title, width=1.6):
    """Forests side by side."""
    size = (width * len(forests), 2.2)
    figure, axes = plt.subplots(
        1, len(forests), figsize=size, squeeze=False, layout="constrained"
    )
    for ax, forest, name in zip(axes[0], forests, titles):
        abx.plots.draw_forest(forest, ax=ax)
        ax.set_title(name, fontsize=9, loc="center")
    # One frame for all, so that vertices have one size and titles stand in a row.
    widest = max(np.ptp(ax.get_xlim()) for ax in axes[0]) / 2
    highest = max(ax.get_ylim()[1] for ax in axes[0])
    for ax in axes[0]:
        middle = np.mean(ax.get_xlim())
        ax.set(xlim=(middle - widest, middle + widest))
        ax.set_ylim(top=highest)
    figure.suptitle(title, fontsize=10)


# %% [markdown]
# ## 1. Derivatives of a solution
#
# Let $y' = V(y)$. Differentiate again: $y'' = V'[V]$. And again: $y''' = V''[V, V] +
# V'[V'[V]]$. Draw each $V$ as a vertex, and put what it is differentiated along on top
# of it. Each term is a tree.

# %%
row(
    [dot, ladder, cherry, tall],
    ["$V$", "$V'[V]$", "$V''[V,V]$", "$V'[V'[V]]$"],
    "Derivatives of a solution",
)

# %% [markdown]
# ## 2. Colours
#
# With several noises, $dY = V_0\,dX^0 + V_1\,dX^1$, the colour of a vertex says which
# one it stands for. The tree with root 1 and 0 on top is the field $V_1'[V_0]$, and it
# comes with the integral $\int X^0\,dX^1$: what is on top is integrated first.

# %%
row(
    [(1, (dot,)), (0, (dot1,)), (1, (dot, dot1))],
    [r"$\int X^0 dX^1$", r"$\int X^1 dX^0$", r"$\int X^0 X^1 dX^1$"],
    "A colour for each channel",
    2.2,
)

# %% [markdown]
# ## 3. Forests are products
#
# Two trees side by side stand for the product of their integrals. Under Itô calculus
# this product is a separate coordinate, since it does not follow from the others.

# %%
row([(dot, dot1), (dot, ladder)], ["$X^0 X^1$", r"$X^0 \int X^0 dX^0$"], "Forests", 2.4)

# %% [markdown]
# ## 4. Words and their limits
#
# A word is an iterated integral with no branching: a ladder. By the ordinary product
# rule every tree is a sum of ladders, one for each order that keeps children above
# their parents. The cherry is twice the tall ladder. Under Itô calculus this fails,
# and the quadratic variation says by how much.

# %%
path = abx.brownian(jnp.linspace(0.0, 1.0, 513), dim=1, key=jr.key(1))
trees = abx.GrossmanLarson(dim=1, depth=3)
for name, brackets in (("Stratonovich", None), ("Itô", "realised")):
    x = dict(zip(trees.basis, abx.signature(path, trees, brackets=brackets)))
    print(f"{name:<13} cherry {x[(cherry,)]:.4f}, 2 x ladder {2 * x[(tall,)]:.4f}")
row([cherry, tall], ["cherry", "ladder"], "Equal up to a factor, for words only", 2.0)

# %% [markdown]
# ## 5. A path and its trees
#
# All coordinates of one Brownian path up to weight two, in both calculi. The bars
# differ where a colour meets itself.

# %%
path = abx.brownian(jnp.linspace(0.0, 1.0, 513), dim=2, key=jr.key(2))
trees = abx.GrossmanLarson(dim=2, depth=2)
both = {
    "Stratonovich": abx.signature(path, trees),
    "Itô": abx.signature(path, trees, brackets="realised"),
}
abx.plots.signature_bars(both, trees).set_title("A signature, tree by tree")

# %% [markdown]
# ## 6. Cutting: Chen's identity
#
# The signature over a whole interval follows from those over its two halves. Cut a tree
# in every possible way: the part that is cut off belongs to the first half (the past),
# the trunk to the second (the present). For the ladder there are three ways.

# %%
row(
    [ladder, (dot, dot), ladder],
    ["all in the past", "top past, root present", "all in the present"],
    "Three ways to cut a ladder",
    2.2,
)
for (past, present), count in trees.cuts((ladder,)).items():
    print(f"{count} x past {past}, present {present}")

# %% [markdown]
# ## 7. Symmetry
#
# Two equal branches can be exchanged. The number of ways to do so is the symmetry
# factor $\sigma$; Taylor's formula divides by it.

# %%
bush = (0, (dot, dot, dot))
forests = [ladder, cherry, bush, (0, (dot, dot1))]
factors = [abx.algebra.symmetry_factor(tree) for tree in forests]
row(forests, [rf"$\sigma = {factor}$" for factor in factors], "Symmetry factors")

# %% [markdown]
# ## 8. Order on a manifold
#
# In flat space second derivatives commute, and the order of branches does not matter.
# On a manifold the derivative is covariant: $\nabla_U \nabla_V$ and $\nabla_V
# \nabla_U$ differ. These two are one tree in `GrossmanLarson`, and two trees in
# `MuntheKaasWright`.

# %%
row(
    [(0, (dot, dot1)), (0, (dot1, dot))],
    ["0 left of 1", "1 left of 0"],
    "Planar trees",
    2.0,
)

# %% [markdown]
# ## 9. How many
#
# The price of generality: coordinates of the log-signature for two channels.

# %%
depths = [1, 2, 3, 4, 5]
figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
algebras = (abx.Shuffle, abx.Ito, abx.GrossmanLarson, abx.MuntheKaasWright)
for algebra, colour in zip(algebras, ["#33658a", "#d9822b", "#1b6b58", "#8a6a9a"]):
    sizes = [algebra(2, depth).primitive_size for depth in depths]
    ax.semilogy(depths, sizes, "o-", color=colour, label=algebra.__name__)
ax.set(title="Coordinates by depth", xlabel="depth", xticks=depths)
ax.legend(frameon=False)

# %% [markdown]
# ## 10. Fewer trees
#
# For a semimartingale most trees are redundant. Its log-signature lives on vertices
# and on symmetric ladders, one for each bracket $\langle X^i, X^j \rangle$. `Ito`
# works with words in these letters: tiles are channels, and a bar below two tiles
# joins them to a bracket letter. Nothing is lost, since the conversion to trees is
# exact.

# %%
ito = abx.Ito(dim=2, depth=3)
values = abx.log_signature(path, ito, brackets="realised")
abx.plots.signature_bars(values, ito).set_title("The same path in compressed form")

# %% [markdown]
# [Conventions](../../conventions.md) has the definitions, [Choosing an
# algebra](../../choosing-an-algebra.md) the advice, and the
# [playground](../../play.md) lets you draw a path and watch its trees move.
