# %% [markdown]
# # Kernels and brackets
#
# A signature kernel measures how alike two paths are: it is the inner product of their
# signatures. Averaged over samples of paths it compares two laws (the MMD). What it
# sees depends on the algebra. This page shows two laws that one kernel cannot tell
# apart and another can.

# %%
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


# %% [markdown]
# ## The same points, different motion between them
#
# Nine points are observed. In the first law the path between them is Brownian; in the
# second it is straight. The observed points have the same law in both.

# %%
fine = jnp.linspace(0.0, 1.0, 513)
rough = abx.brownian(fine, dim=1, key=jr.key(0))
figure, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
ax.plot(fine, rough[:, 0], color="#b5cbdb", label="Brownian between the points")
ax.plot(
    fine[::64], rough[::64, 0], color="#d9822b", label="straight between the points"
)
ax.plot(fine[::64], rough[::64, 0], "o", color="#3b3b3b", label="observed")
ax.set(title="Two paths with the same observations", xlabel="time")
ax.legend(frameon=False, fontsize=8)

# %% [markdown]
# No function of the nine points can tell the two apart. Quadratic variation can: it is
# 1 for the first law and 0 for the second. A simulator or a model knows it, and can
# supply it as the **bracket** of each step.
#
# ## Who sees what
#
# | kernel | sums over | sees |
# |---|---|---|
# | geometric | words | the path through the points |
# | Itô | words, left-point sums | path and bracket |
# | branched | trees | path and bracket, with a coordinate for every product |
# | planar | ordered trees | the same, for states on manifolds |
#
# Now compare 128 paths with the same 128 paths, but give the second sample only a share
# of the bracket. The geometric kernel finds no difference, whatever the share.

# %%
ts = jnp.linspace(0.0, 1.0, 9)
x = abx.brownian(ts, dim=1, shape=(128,), key=jr.key(1))
bracket = jnp.broadcast_to(abx.brownian_brackets(ts, dim=1), (128, 8, 1, 1))
shares = np.linspace(0.0, 1.0, 5)
geometric = abx.SignatureKernel("geometric", depth=2)
flat = float(abx.mmd(x, x, geometric, unbiased=False))
branched = abx.SignatureKernel("branched", depth=2)
found = [
    float(
        abx.mmd(
            x,
            x,
            branched,
            unbiased=False,
            brackets_x=bracket,
            brackets_y=share * bracket,
        )
    )
    for share in shares
]
figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.plot(shares, found, "o-", color="#d9822b", label="branched")
ax.plot(shares, np.full(5, flat), "o-", color="#33658a", label="geometric")
ax.set(
    title="Squared distance of two laws",
    xlabel="bracket of the second law, share of the first",
    ylabel="MMD$^2$, biased",
)
ax.legend(frameon=False)
print(f"branched, no bracket: {found[0]:.3f}, half: {found[2]:.3f}")

# %% [markdown]
# The branched distance is at least a quarter of the squared gap of mean brackets: 0.25
# where the second sample has none.
#
# ## When it matters
#
# On a fine grid the bracket can be estimated from the samples (`brackets="realised"`),
# and left-point sums contain it anyway. On a coarse grid only a supplied bracket
# carries it. Whether an objective that sees brackets trains better generators is the
# subject of [Which objective](../../which-objective.md); how to use each kernel is in
# [Signature kernels and objectives](../../guides/kernels.md).
