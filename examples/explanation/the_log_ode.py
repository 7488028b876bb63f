# %% [markdown]
# # The log-ODE
#
# A driver with a thousand samples does not need a thousand steps. The log-ODE method
# cuts time into a few windows, summarises the driver in each of them by its
# log-signature, and solves one ordinary differential equation per window. This page
# shows the idea, its order of convergence and its cost.

# %%
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


# %% [markdown]
# ## The idea
#
# Over a window, $dY = \sum_i V_i(Y)\,dX^i$ moves the state along a complicated path.
# A single vector field, followed for unit time, ends at almost the same point:
#
# $$ L = \sum_i X^i V_i + \sum_{i<j} A^{ij}\,[V_i, V_j] + \dots , $$
#
# with the increments $X^i$ of the window, the areas $A^{ij}$ between driver and
# chord, and the brackets of the fields. The coefficients are the log-signature.
# Without the areas (depth 1) the driver is replaced by its chord; with them (depth 2)
# loops of the driver count, which is what a Brownian driver needs.

# %%
ts = jnp.linspace(0.0, 1.0, 1025)
path = abx.brownian(ts, dim=2, key=jr.key(0))
figure, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
ax.plot(path[:, 0], path[:, 1], color="#b5cbdb", linewidth=0.8, label="driver")
ax.plot(
    path[::128, 0], path[::128, 1], "o-", color="#33658a", label="chords, 8 windows"
)
ax.set(title="What depth 1 sees; depth 2 adds the areas")
ax.legend(frameon=False)

# %% [markdown]
# ## Order
#
# Two fields on the rotation group that do not commute. The reference has one window
# per sample.

# %%
axes = jnp.array([[1.0, 0.0, 0.2], [0.0, 1.0, -0.3]])
so3 = abx.SO(3)


def fields(y):
    return (1 + 0.5 * y[2, 2]) * axes


def last(control):
    return abx.solve(fields, jnp.eye(3), control, geometry=so3).ys[-1]


paths = abx.brownian(ts, dim=2, shape=(32,), key=jr.key(1))[:, ::2]
windows, errors = [4, 16, 64], {}


def solution(depth, window):
    alg = abx.Shuffle(2, depth)
    run = jax.vmap(lambda x: last(abx.rough_path(ts[::2], x, alg, window=window)))
    return jax.jit(run)(paths)


reference = solution(2, 1)
distance = jax.vmap(so3.distance)
for depth in (1, 2, 3):
    errors[depth] = [
        float(distance(reference, solution(depth, 512 // n)).mean()) for n in windows
    ]

figure, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
for (depth, values), colour in zip(errors.items(), ["#8a6a9a", "#33658a", "#d9822b"]):
    slope = -np.polyfit(np.log(windows), np.log(values), 1)[0]
    ax.loglog(windows, values, "o-", color=colour, label=f"depth {depth}")
    print(f"depth {depth}: error falls with order {slope:.1f}")
ax.set(
    title="Mean error over 32 drivers",
    xlabel="windows",
    ylabel="distance on SO(3)",
    xticks=windows,
    xticklabels=windows,
)
ax.minorticks_off()
ax.legend(frameon=False)

# %% [markdown]
# For Brownian drivers theory gives order $N/2$ in the length of the windows at depth
# $N$. The state is orthogonal at any depth, since each window moves it by an
# exponential of the Lie algebra.
#
# ## Cost
#
# A window costs one log-signature and the stages of one ODE step, whatever the number
# of samples in it. Depth 2 with more windows is usually the best choice for training,
# depth 3 for accurate simulation with few windows. If the driver carries a bracket,
# the sum has the terms $-\tfrac12 \sum_{ij} B^{ij}\,\nabla_{V_j} V_i$ as well, and
# the solution is Itô's: see [Itô and Stratonovich](ito_and_stratonovich.md). For a
# given tolerance, `abx.solve_adaptive` chooses windows and depths ([Choosing a
# geometry and a solver](../../choosing-a-solver.md)).
