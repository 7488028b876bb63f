# %% [markdown]
# # Itô and Stratonovich
#
# Two people integrate the same noisy path against itself and get different answers.
# Both are right: an integral against a rough path depends on where in each step the
# integrand is evaluated. At the left end of the step it is Itô's, in the middle
# Stratonovich's. Trading strategies are Itô (they cannot look ahead); limits of smooth
# noise, and mechanics on manifolds, are Stratonovich. The two differ by the quadratic
# variation. Data do not tell you which one to use: you have to decide.
#
# ## One driver, two solutions
#
# Geometric Brownian motion $dY = \sigma Y\, dW$ has a closed form in either calculus:
# $Y_t = \exp(\sigma W_t - \sigma^2 t / 2)$ in Itô's and $Y_t = \exp(\sigma W_t)$ in
# Stratonovich's. The same fields and the same samples give one or the other, depending
# on what the control carries.

# %%
import diffrax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt

import arborax as abx


sigma, steps = 0.8, 1024
ts = jnp.linspace(0.0, 1.0, steps + 1)
path = abx.brownian(ts, dim=1, key=jr.key(1))
brackets = abx.brownian_brackets(ts, dim=1)
y0 = jnp.ones(1)
exact = {
    "ito": jnp.exp(sigma * path - sigma**2 * ts[:, None] / 2),
    "stratonovich": jnp.exp(sigma * path),
}


def fields(y):
    return sigma * y[None]  # one field: shape (1, 1)


# %%
for algebra in (abx.Shuffle, abx.Ito, abx.GrossmanLarson):
    alg = algebra(dim=1, depth=2)
    given = None if algebra is abx.Shuffle else brackets
    control = abx.rough_path(ts, path, alg, window=64, brackets=given)
    sol = abx.solve(fields, y0, control, solver=abx.CF4(), substeps=2)
    truth = exact[control.calculus][::64]
    error = jnp.abs(sol.ys - truth).max()
    print(f"{algebra.__name__:<15} {control.calculus:<13} largest error {error:.1e}")

figure, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
ax.plot(ts, exact["stratonovich"][:, 0], color="#33658a", label="Stratonovich")
ax.plot(ts, exact["ito"][:, 0], color="#d9822b", label="Itô")
ax.set(title="The same noise, the same equation, two calculi", xlabel="time")
ax.legend(frameon=False)

# %% [markdown]
# The mean of the Itô solution is one at all times, as in a fair game. The mean of the
# Stratonovich solution grows like $e^{\sigma^2 t / 2}$. An algebra with no place for
# the bracket, such as `Shuffle`, cannot give the Itô solution.

# %% [markdown]
# ## Which bracket
#
# A simulator knows its bracket, here $dt$. Data come without one, so we use the
# realised bracket instead: squared increments of the samples. The error then falls like
# the square root of the time between samples.

# %%
alg = abx.Ito(dim=1, depth=2)
for every in (64, 8, 1):
    samples = slice(None, None, every)
    control = abx.rough_path(
        ts[samples], path[samples], alg, window=64 // every, brackets="realised"
    )
    sol = abx.solve(
        fields, y0, control, solver=abx.CF4(), saveat=diffrax.SaveAt(t1=True)
    )
    error = jnp.abs(sol.ys[-1] - exact["ito"][-1])[0]
    print(f"{steps // every:>4} steps: error with the realised bracket {error:.1e}")

# %% [markdown]
# ## States between knots
#
# You can ask for the state at any time. The solver then uses the log-signature up to
# that time, so between knots the solution is as rough as its driver.

# %%
control = abx.rough_path(ts, path, alg, window=128, brackets=brackets)
sol = abx.solve(
    fields,
    y0,
    control,
    solver=abx.CF4(),
    substeps=2,
    saveat=diffrax.SaveAt(ts=ts[::16]),
)
error = jnp.abs(sol.ys - exact["ito"][::16]).max()
print(f"largest error between knots {error:.1e}")
