# %% [markdown]
# # Train a generator
#
# Learn the law of a sample of paths, draw new paths from it, and measure how far they
# are from the data. You need `pip install 'arborax[plots,sklearn]'`.

# %%
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


# %% [markdown]
# ## Data
#
# Log-prices of the rough Bergomi model at 33 times. Your own array of shape
# `(paths, times, channels)` can take their place. All paths begin at zero.

# %%
law = abx.datasets.RoughBergomi(steps=32)
data = np.asarray(law.sample(1500, key=jr.key(0)).values[..., :1])
train, held_out = data[:1000], data[1000:]
print(train.shape)

# %% [markdown]
# ## Training
#
# A neural rough differential equation turns time and Brownian motion into paths. It is
# trained so that random signature features have the same means over its paths as over
# the data. This run is short: the default is `steps=400`.

# %%
generator = abx.estimators.PathGenerator(
    "bnrde", steps=150, batch_size=128, features=32, cylinders=128, random_state=0
)
generator.fit(train)
samples = generator.sample(500, random_state=1)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 3.2), sharey=True, layout="constrained"
)
for ax, sample, name in ((left, held_out, "Data"), (right, samples, "Generated")):
    abx.plots.fan_chart(sample, show=6, ax=ax)
    ax.set(title=name, xlabel="time step")

# %% [markdown]
# ## How good is it?
#
# `compare` draws as many paths as there are in the test data and returns
# Kolmogorov-Smirnov distances between the two samples. The distance between two finite
# samples is never zero: the floor next to it is what a perfect generator would score.

# %%
scores = generator.compare(held_out)
print(f"squared distance of mean features: {scores.pop('mmd'):.4f}")
for name, score in scores.items():
    print(f"{name:<27} {score['ks'][0]:.3f}, floor {score['floor'][0]:.3f}")

# %% [markdown]
# A score far above its floor shows what this short run has not learned: here the
# tails, and the leverage effect, by which falling prices raise later volatility.
