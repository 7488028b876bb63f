# %% [markdown]
# # My first SDE on a manifold
#
# A compass needle shaken by noise: its direction is a point on the sphere. The solver
# moves it by rotations, so no step leaves the sphere, and rounding errors are corrected
# at each step instead of adding up. You need `pip install 'arborax[plots]'`.

# %%
import jax
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


# %% [markdown]
# ## Noise alone
#
# Drift and diffusion take `(t, y, args)`, as in Diffrax. On the sphere they return
# vectors in space, of which only the part tangent to the sphere counts. With the
# identity as diffusion the result is therefore Brownian motion on the sphere.

# %%
sphere = abx.Sphere(2)
north = jnp.array([0.0, 0.0, 1.0])
ts = jnp.linspace(0.0, 1.0, 41)


def rest(t, y, args):
    return jnp.zeros(3)


def noise(t, y, args):
    return args["sigma"] * jnp.eye(3)


sol = abx.solve_sde(
    rest,
    noise,
    north,
    ts,
    key=jr.key(0),
    geometry=sphere,
    args={"sigma": jnp.array(1.0)},
    paths=2000,
)
print("states", sol.ys.shape)
print(f"length off by {jnp.abs(jnp.linalg.norm(sol.ys, axis=-1) - 1).max():.0e}")

ax = abx.plots.on_sphere(sol.ys[:3])
ax.set_title("Three Brownian paths from the north pole")

# %% [markdown]
# The mean height of Brownian motion on the sphere is known: $e^{-\sigma^2 t}$. The
# 2,000 paths agree within two standard errors.

# %%
height = sol.ys[:, -1, 2]
error = height.std() / len(height) ** 0.5
print(f"mean height {height.mean():.3f} +- {error:.3f}, exact {jnp.exp(-1.0):.3f}")

# %% [markdown]
# ## A force
#
# A magnet pulls the needle towards the direction `target`. By default the equation is
# an Itô equation (with respect to the Levi-Civita connection of the sphere). Pass
# `calculus="stratonovich"` to make it a Stratonovich equation.

# %%
target = jnp.array([1.0, 0.0, 0.0])


def pull(t, y, args):
    return args["pull"] * target


def mean_angle(args):
    options = dict(key=jr.key(1), geometry=sphere, args=args, paths=256)
    ys = abx.solve_sde(pull, noise, north, ts, **options).ys
    angles = jnp.rad2deg(jnp.arccos(jnp.clip(ys @ target, -0.999999, 0.999999)))
    return angles[:, -1].mean(), angles


args = {"pull": jnp.array(8.0), "sigma": jnp.array(0.5)}
with_slopes = jax.jit(jax.value_and_grad(mean_angle, has_aux=True))
(mean, angles), slopes = with_slopes(args)
ax = abx.plots.fan_chart(angles, ts, show=4)
ax.set(title="Needle under a magnet", xlabel="time", ylabel="degrees from the target")

# %% [markdown]
# ## Sensitivities
#
# The noise does not depend on the parameters, so a mean over paths is a smooth function
# of them. `value_and_grad` has already returned its derivatives.

# %%
print(f"mean angle at the end: {mean:.1f} degrees")
for name, slope in slopes.items():
    print(f"  per unit of {name}: {slope:.1f}")

# %% [markdown]
# Rotations, poses, covariance matrices and hyperbolic space work the same way, with
# `abx.SO(3)`, `abx.SE(3)`, `abx.SPD(n)` and `abx.Hyperbolic(n)`:
# see [Choosing a geometry and a solver](../../choosing-a-solver.md).
