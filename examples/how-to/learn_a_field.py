# %% [markdown]
# # Learn a field on the rotation group
#
# The state is a rotation matrix, moved by exponentials of the Lie algebra: it stays
# orthogonal to rounding. Then a field is learned from the end points of the solution
# by gradient descent through the solver.

# %%
import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


so3 = abx.SO(3)
ts = jnp.linspace(0.0, 1.0, 257)
axes = jnp.array([[1.0, 0.0, 0.2], [0.0, 1.0, -0.3]])


def end_points(axes, control):
    """Rotation at the end of the driver; `axes[i]` is the axis of channel `i`."""

    def fields(y):
        return (1 + 0.5 * y[2, 2]) * axes

    return abx.solve(
        fields, jnp.eye(3), control, geometry=so3, saveat=diffrax.SaveAt(t1=True)
    ).ys[-1]


# %% [markdown]
# ## Windows and depth
#
# The reference takes one window for each sample.

# %%
path = abx.brownian(ts, dim=2, key=jr.key(2))
reference = end_points(axes, abx.rough_path(ts, path, abx.Shuffle(2, 2)))
for depth in (1, 2):
    for window in (64, 16):
        control = abx.rough_path(ts, path, abx.Shuffle(2, depth), window=window)
        y = end_points(axes, control)
        error = so3.distance(reference, y)
        print(f"depth {depth}, {256 // window:>2} windows: distance {error:.1e}")
print("defect of orthogonality:", jnp.abs(y.T @ y - jnp.eye(3)).max())

# %% [markdown]
# ## Learning the axes
#
# Sixteen drivers, their end points, and plain gradient descent on the squared distance
# in the ambient space. `solve` is batched with `jax.vmap`.

# %%
paths = abx.brownian(ts, dim=2, shape=(16,), key=jr.key(3))
alg = abx.Shuffle(dim=2, depth=2)
controls = jax.vmap(lambda x: abx.rough_path(ts, x, alg, window=32))(paths)
solve_all = jax.vmap(end_points, in_axes=(None, 0))
targets = solve_all(axes, controls)


@jax.jit
@jax.value_and_grad
def loss(guess):
    return jnp.mean((solve_all(guess, controls) - targets) ** 2)


guess = jnp.array([[0.5, 0.3, 0.0], [-0.2, 0.6, 0.0]])
for step in range(60):
    value, gradient = loss(guess)
    guess = guess - 0.8 * gradient
    if step % 20 == 0:
        print(f"step {step:>2}: loss {value:.2e}")
print(f"found\n{guess.round(3)}")
print(f"truth\n{axes}")
