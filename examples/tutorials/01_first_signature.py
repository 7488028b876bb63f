# %% [markdown]
# # First signature
#
# A signature turns a path into a list of numbers, its iterated integrals. On this page
# you compute one, read its coordinates, and compare Stratonovich with Itô calculus.
# All you need is `pip install 'arborax[plots]'`.

# %%
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt

import arborax as abx


ts = jnp.linspace(0.0, 1.0, 129)
path = abx.brownian(ts, dim=2, key=jr.key(0))  # (times, channels)

figure, ax = plt.subplots(figsize=(4.5, 4.0), layout="constrained")
ax.plot(path[:, 0], path[:, 1], color="#33658a")
ax.plot(*path[0], "o", *path[-1], "s", color="#33658a")
ax.set(title="A Brownian path in the plane", xlabel="channel 0", ylabel="channel 1")

# %% [markdown]
# ## Words
#
# An algebra says which integrals you get, and how they are indexed. `Shuffle` indexes
# them by words: `(0,)` is the increment of channel 0, and `(0, 1)` is the integral of
# channel 0 against channel 1.

# %%
words = abx.Shuffle(dim=2, depth=2)
values = abx.signature(path, words)
for word, value in zip(words.basis, values):
    print(word, f"{value:8.4f}")

# %% [markdown]
# Words obey the ordinary product rule: the two mixed integrals add up to the product
# of the increments. Half their difference is the area between the path and its chord.

# %%
x = dict(zip(words.basis, values))
print(f"sum {x[0, 1] + x[1, 0]:.4f}, product of increments {x[0,] * x[1,]:.4f}")
print(f"area {(x[0, 1] - x[1, 0]) / 2:.4f}")

# %% [markdown]
# The log-signature holds the same information in fewer numbers: two increments and the
# area.

# %%
for word, value in zip(words.primitive_basis, abx.log_signature(path, words)):
    print(word, f"{value:8.4f}")

# %% [markdown]
# ## Trees and Itô calculus
#
# Under Itô calculus the product rule has one more term, the quadratic variation (or
# *bracket*). Words have no place for it, but trees do. `(1, ((0, ()),))` is a tree with
# root 1 and a vertex 0 on top: the integral of channel 0 against channel 1.
#
# Pass the bracket, here that of Brownian motion, and you get Itô integrals. In the
# picture, the colour of a vertex is its channel.

# %%
brackets = abx.brownian_brackets(ts, dim=2)
trees = abx.GrossmanLarson(dim=2, depth=2)
both = {
    "Stratonovich": abx.signature(path, trees),
    "Itô": abx.signature(path, trees, brackets=brackets),
}
ax = abx.plots.signature_bars(both, trees)
ax.set(title="One path, two calculi")

ladder, square = ((0, ((0, ()),)),), ((0, ()), (0, ()))
for name, values in both.items():
    x = dict(zip(trees.basis, values))
    print(f"{name:<13} (X0)^2 - 2 int X0 dX0 = {x[square] - 2 * x[ladder]:9.6f}")

# %% [markdown]
# The second number is the quadratic variation of channel 0 on [0, 1].
#
# ## Pieces and gradients
#
# `combine` joins the signatures of adjacent pieces, so a long path can be processed in
# parts. You can differentiate with respect to everything, brackets included.

# %%
first = abx.signature(path[:65], trees, brackets=brackets[:64])
second = abx.signature(path[64:], trees, brackets=brackets[64:])
gap = abx.combine(first, second, trees) - both["Itô"]
print(f"largest difference {jnp.abs(gap).max():.0e}")

slope = jax.grad(lambda b: abx.signature(path, trees, brackets=b)[trees.index[ladder]])(
    brackets
)
print("d int X0 dX0 / d<X0> =", slope[0, 0, 0])

# %% [markdown]
# ## Fewer coordinates
#
# `Ito` is the compressed basis for Itô calculus. For a path with a bracket it holds the
# same information as the trees, and the conversion loses nothing.

# %%
trees, ito = abx.GrossmanLarson(dim=2, depth=4), abx.Ito(dim=2, depth=4)
long = abx.log_signature(path, trees, brackets=brackets)
short = abx.log_signature(path, ito, brackets=brackets)
there = abx.algebra.primitive_conversion(ito, trees)
print(f"{short.size} coordinates instead of {long.size}")
print(f"largest difference {jnp.abs(there(short) - long).max():.0e}")
