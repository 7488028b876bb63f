# %% [markdown]
# # Train a model with `fit`
#
# A B-NRDE learns, from examples, how an Itô equation turns its driver into a solution:
# $dY = (0.5 - Y)\, dt + 0.6\, Y\, dW$. The driver has two channels, time and $W$, and
# carries its bracket.

# %%
import tempfile

import jax
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


ts = jnp.linspace(0.0, 1.0, 33)
alg = abx.Ito(dim=2, depth=2)
bracket = jnp.zeros((32, 2, 2)).at[:, 1, 1].set(1 / 32)  # d<W> = dt, time has none


def drivers(key, n):
    noise = abx.brownian(ts, dim=1, shape=(n,), key=key)
    time = jnp.broadcast_to(ts[:, None], noise.shape)
    return jnp.concatenate([time, noise], axis=-1)


def truth(path):
    """The solution at all samples, by the log-ODE with one window for each step."""
    control = abx.rough_path(ts, path, alg, brackets=bracket)
    return abx.solve(
        lambda y: jnp.stack([0.5 - y, 0.6 * y]), jnp.ones(1), control, solver=abx.Heun()
    ).ys


train, valid = drivers(jr.key(0), 256), drivers(jr.key(1), 64)
targets = jax.jit(jax.vmap(truth))
data, validation = (train, targets(train)), (valid, targets(valid))

# %% [markdown]
# The objective sees a batch and a key. `fit` compiles one step, keeps the best model by
# validation, and can log, checkpoint and resume; here it is given only a length.

# %%
model = abx.models.BNRDE(alg, output=1, hidden=8, width=16, window=8, key=jr.key(2))


def objective(model, batch, key):
    del key
    paths, ys = batch
    predicted = model.predict(abx.SampledPath(ts, paths, brackets=bracket, check=False))
    return jnp.mean((predicted - ys) ** 2)


result = abx.fit(
    model,
    data,
    objective,
    key=jr.key(3),
    steps=150,
    batch_size=64,
    learning_rate=1e-2,
    validation=validation,
    progress=False,
)
before, after = (float(objective(m, validation, None)) for m in (model, result.model))
spread = float(jnp.var(validation[1], axis=0).mean())
print(f"squared error {before:.4f} before, {after:.4f} after; variance {spread:.4f}")

# %% [markdown]
# One file holds the trained model, its sizes and its weights.

# %%
with tempfile.TemporaryDirectory() as folder:
    abx.save(f"{folder}/model.abx", result.model)
    again = abx.load(f"{folder}/model.abx")
print("the same after loading:", float(objective(again, validation, None)) == after)
