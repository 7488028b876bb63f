# %% [markdown]
# # Classify
#
# Three ways to classify series: signature features with a linear model, a random
# equation with a trained readout, and a neural equation. You need
# `pip install 'arborax[plots,sklearn]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import arborax as abx


# %% [markdown]
# ## A task
#
# Two volatility regimes: mean-reverting series that have the same normal law at every
# single time and differ only in their speed. So no single value, such as the last one,
# says anything about the class.

# %%
task = abx.datasets.VolatilityRegimes(slow=4.0, fast=8.0, steps=48)
series = task.sample(400, seed=0)
X, y = series.values, np.array(series.classes)[series.labels]
X_train, y_train, X_test, y_test = X[:250], y[:250], X[250:], y[250:]

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for label, colour in (("slow", "#33658a"), ("fast", "#d9822b")):
    ax.plot(X_train[y_train == label][0], color=colour, label=label)
ax.set(title="One series of each class", xlabel="time step")
ax.legend(frameon=False)

# %% [markdown]
# ## Three models
#
# `SignatureFeatures` works with every classifier of scikit-learn. We try Stratonovich
# features (`"shuffle"`) and Itô features: what separates the classes is the quadratic
# variation, which only the second kind can see.

# %%
linear = LogisticRegression(max_iter=1000)
models = {
    f"{name} features": make_pipeline(
        abx.estimators.SignatureFeatures(name, depth=2), StandardScaler(), linear
    )
    for name in ("shuffle", "ito")
}
models["reservoir"] = abx.estimators.ReservoirClassifier(hidden=64, random_state=0)
models["neural equation"] = abx.estimators.SequenceClassifier(
    "bnrde", steps=150, random_state=0
)

# %% [markdown]
# All of them have `fit`, `predict` and `score`. The reservoir draws its equation at
# random and solves one linear system. The neural model is trained step by step; part
# of the training data is held out to decide when to stop.

# %%
scores = {}
for name, model in models.items():
    scores[name] = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{name:<18} accuracy {scores[name]:.2f}")

figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(list(scores), list(scores.values()), color="#33658a")
ax.axvline(0.5, color="#777777", linestyle=":")
ax.set(title="Accuracy on 150 test series; dotted: chance", xlim=(0, 1))
ax.invert_yaxis()

# %% [markdown]
# ## Your own series
#
# `X` may be an array `(series, times, channels)`, a list of arrays of unequal length,
# or a [`SampledPath`](02_my_data_frame.md) made from a DataFrame. `SequenceClassifier`
# trains a B-NRDE unless you pass another model of `abx.models`, by name or as an
# object. `predict_proba` returns probabilities, and `save` writes one file.

# %%
model = models["neural equation"]
print(model.classes_, model.predict_proba(X_test[:2]).round(2))
