# %% [markdown]
# # Stream in real time
#
# Samples arrive one at a time, and you want an answer after each. Updating a signature
# or a causal model costs the same however many samples came before. You need
# `pip install 'arborax[plots]'`.

# %%
import time

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


# %% [markdown]
# ## A running signature
#
# By Chen's identity, the signature so far and the newest samples are all you need to
# keep. An empty path has the signature zero.

# %%
alg = abx.Ito(dim=2, depth=3)
path = abx.brownian(jnp.linspace(0.0, 1.0, 65), dim=2, key=jr.key(0))
state = jnp.zeros(alg.size)
for k in range(0, 64, 8):  # eight steps at a time, from the last sample seen so far
    state = abx.extend_signature(state, path[k : k + 9], alg, "realised")
whole = abx.signature(path, alg, "realised")
print(f"streamed against whole: {jnp.abs(state - whole).max():.0e}")

# %% [markdown]
# ## A model on a stream
#
# The task: estimate the volatility of a price while it trades. The volatility jumps
# between two values and is known in the training data. A `Reservoir` is a random
# equation with a readout fitted by least squares, so there is no training loop.
# `memory` sets how fast its parts forget: here within times between 0.02 and 0.5. It is
# driven by time and by the realised variance so far.

# %%
ts = np.arange(257) / 256
rng = np.random.default_rng(0)


def market(n):
    """Log-prices `(n, times)` and their volatilities."""
    jumps = rng.random((n, 257)) < 0.015
    high = (jumps.cumsum(axis=1) + rng.integers(2, size=(n, 1))) % 2
    volatility = np.where(high, 0.9, 0.3)
    steps = volatility[:, :-1] * rng.normal(size=(n, 256)) / 16
    return np.pad(steps.cumsum(axis=1), ((0, 0), (1, 0))), volatility


def driver(prices):
    variance = np.cumsum(np.diff(prices, prepend=0.0) ** 2, axis=-1)
    return abx.add_time(abx.SampledPath(ts, variance[..., None]))


prices, volatility = market(100)
model = abx.models.Reservoir(
    abx.Shuffle(2, 1), 1, hidden=64, memory=(0.02, 0.5), window=1, key=jr.key(1)
)
model = model.fit(driver(prices), volatility[..., None])

# %% [markdown]
# `start` takes the first sample, and `update` each later one. Both return a state of
# fixed size and the output.

# %%
prices, volatility = market(1)
samples = np.asarray(driver(prices).xs[0])
clock = np.asarray(driver(prices).ts)
start, update = eqx.filter_jit(model.start), eqx.filter_jit(model.update)
state, y = start(clock[0], samples[0])
estimates, seconds = [y[0]], []
for t, x in zip(clock[1:], samples[1:]):
    begin = time.perf_counter()
    state, y = update(state, t, x)
    estimates.append(float(y[0]))
    seconds.append(time.perf_counter() - begin)

together = model.predict(driver(prices))[0, :, 0]
print(f"stream against batch: {np.abs(np.array(estimates) - together).max():.0e}")
print(f"median time of an update: {1000 * np.median(seconds):.2f} ms")

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.step(ts, volatility[0], color="#777777", label="volatility")
ax.plot(ts, estimates, color="#d9822b", label="estimate, online")
ax.set(title="Volatility, estimated while samples arrive", xlabel="time")
ax.legend(frameon=False)

# %% [markdown]
# Every causal model in `abx.models` has `start` and `update`, trained neural equations
# included. To run a stream where only JAX is installed, see [Export and
# serve](08_export_and_serve.md).
