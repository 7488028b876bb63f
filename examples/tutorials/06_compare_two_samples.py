# %% [markdown]
# # Compare two samples
#
# Do two samples of paths have the same law? A permutation test with a signature kernel
# gives the answer. What it can detect depends on the kernel: a geometric one sees the
# path, a branched one its quadratic variation as well. You need
# `pip install 'arborax[plots]'`.

# %%
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


ts = jnp.linspace(0.0, 1.0, 33)
n = 64
first, second, third, test = jr.split(jr.key(4), 4)
x = abx.brownian(ts, dim=1, shape=(n,), key=first)
y = abx.brownian(ts, dim=1, shape=(n,), key=second)
z = 1.5 * abx.brownian(ts, dim=1, shape=(n,), key=third)

# %% [markdown]
# ## Path laws
#
# `x` and `y` have the same law, and `z` has more volatility. The statistic is the
# squared distance of mean signatures (MMD). Relabelling the paths at random shows how
# large it gets by chance; the p-value is the share of relabellings that reach the value
# found.

# %%
geometric = abx.SignatureKernel("geometric", depth=4, add_time=True)
for name, other in [("same law", y), ("other volatility", z)]:
    result = abx.two_sample_test(x, other, geometric, key=test, permutations=200)
    abx.plots.permutation_histogram(result).set_title(name.capitalize())
    print(f"{name:<17} p = {result.p_value:.3f}")

# %% [markdown]
# The level is exact for any kernel and any number of paths: if both samples have the
# same law, the p-value is below 0.05 in one test out of twenty.
#
# ## Brackets
#
# Now the paths have the same law on the grid, but one sample comes with the bracket of
# Brownian motion and the other with none, as if from a model whose output is smooth
# between grid points. Only a kernel that reads brackets can tell them apart.

# %%
brownian = jnp.broadcast_to(abx.brownian_brackets(ts, dim=1), (n, 32, 1, 1))
branched = abx.SignatureKernel("branched", depth=2)
for name, given in [("same bracket", brownian), ("no bracket", 0 * brownian)]:
    result = abx.two_sample_test(
        x,
        y,
        branched,
        key=test,
        permutations=200,
        brackets_x=brownian,
        brackets_y=given,
    )
    print(f"{name:<17} p = {result.p_value:.3f}")

# %% [markdown]
# From the shell, `arborax compare a.csv b.csv --group id --time t` runs the test on two
# files and writes a page with the picture. [Signature kernels and
# objectives](../../guides/kernels.md) says which kernel sees what, and at what cost.
