# %% [markdown]
# # Signatures in four algebras
#
# One Brownian path, its signature by words and by trees, in Stratonovich and in Itô
# calculus, and how the four are related.

# %%
import jax
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


ts = jnp.linspace(0.0, 1.0, 129)
path = abx.brownian(ts, dim=2, key=jr.key(0))
brackets = abx.brownian_brackets(ts, dim=2)

# %% [markdown]
# ## Words
#
# The coordinates of `Shuffle` are iterated integrals of the piecewise linear path. The
# ordinary product rule holds, so the integrals of `0` against `1` and of `1` against
# `0` add up to the product of the increments.

# %%
words = abx.Shuffle(dim=2, depth=2)
x = dict(zip(words.basis, abx.signature(path, words)))
print("int X0 dX1 + int X1 dX0:", x[0, 1] + x[1, 0], " product:", x[0,] * x[1,])

# %% [markdown]
# ## Trees
#
# A vertex on top of another is integrated first: `(1, ((0, ()),))` is the integral of
# channel 0 against channel 1. With `brackets` the integral is Itô's, and the product
# rule gains the bracket.

# %%
trees = abx.GrossmanLarson(dim=2, depth=2)
ladder = ((0, ((0, ()),)),)
square = ((0, ()), (0, ()))
for name, kind in [("Stratonovich", None), ("Itô", brackets)]:
    x = dict(zip(trees.basis, abx.signature(path, trees, brackets=kind)))
    print(f"{name}: (X0)^2 - 2 int X0 dX0 = {x[square] - 2 * x[ladder]:.6f}")

# %% [markdown]
# ## The compressed basis
#
# `Ito` holds in fewer coordinates what the tree log-signature of a semimartingale
# holds. The conversion is exact.

# %%
gl, ito = abx.GrossmanLarson(dim=2, depth=3), abx.Ito(dim=2, depth=3)
long = abx.log_signature(path, gl, brackets=brackets)
short = abx.log_signature(path, ito, brackets=brackets)
convert = abx.algebra.primitive_conversion(ito, gl)
print(f"{short.size} coordinates instead of {long.size}")
print("largest difference:", jnp.abs(convert(short) - long).max())

# %% [markdown]
# ## Chen's identity and gradients
#
# Signatures of adjacent pieces are joined by `combine`. All of it can be
# differentiated, the brackets included.

# %%
joined = abx.combine(
    abx.signature(path[:65], gl, brackets=brackets[:64]),
    abx.signature(path[64:], gl, brackets=brackets[64:]),
    gl,
)
whole = abx.signature(path, gl, brackets=brackets)
print("defect of Chen's identity:", jnp.abs(joined - whole).max())

gradient = jax.grad(lambda b: abx.signature(path, gl, brackets=b)[gl.index[ladder]])
print("d int X0 dX0 / d<X0>:", gradient(brackets)[0, 0, 0])
