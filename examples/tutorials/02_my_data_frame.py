# %% [markdown]
# # My DataFrame
#
# From a table with one row per time to features, a plot and predictions. You need
# `pip install 'arborax[plots,sklearn]'` and pandas; polars and pyarrow tables work too.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import arborax as abx


# %% [markdown]
# ## The table
#
# Sixty machines, each with a temperature and a pressure that are read at irregular
# times. In half of them the pressure follows the temperature; in the other half the
# temperature follows the pressure. Some readings are missing, and machines have
# different numbers of rows.

# %%
rng = np.random.default_rng(0)
tables = []
for machine in range(60):
    n = rng.integers(25, 45)
    leader = rng.normal(size=n + 2).cumsum()
    follower = leader[:-2] + 0.3 * rng.normal(size=n)
    first, second = (leader[2:], follower)[:: 1 if machine % 2 else -1]
    tables.append(
        pd.DataFrame(
            {
                "machine": f"m{machine:02}",
                "time": pd.Timestamp("2026-01-01")
                + pd.to_timedelta(np.cumsum(rng.exponential(1.0, n)), unit="h"),
                "temperature": 60 + 2 * first,
                "pressure": 5 + 0.1 * second,
            }
        )
    )
df = pd.concat(tables, ignore_index=True)
df.loc[rng.random(len(df)) < 0.05, "pressure"] = np.nan
labels = np.where(np.arange(60) % 2, "temperature leads", "pressure leads")
print(df.head(4).to_string())

# %% [markdown]
# ## Paths
#
# Name the column of times and the column that says which rows belong together.
# Missing values become a mask. A mistake in the table, such as a row out of order,
# raises an error that names the row.

# %%
paths = abx.SampledPath.from_dataframe(df, time="time", group="machine", unit="h")
print(paths.xs.shape, "machines, samples of the longest, channels")
print(int((~paths.mask).sum()), "values are marked as missing or padding")

# %% [markdown]
# ## Features
#
# Itô log-signature features of weight 1 and 2: increments, areas, and quadratic
# variations (times -1/2). The area of temperature and pressure is positive if the
# temperature moves first.

# %%
features = abx.estimators.SignatureFeatures("ito", depth=2)
table = pd.DataFrame(
    features.fit_transform(paths),
    columns=features.get_feature_names_out(["temperature", "pressure"]),
)
print(table.iloc[:3].round(2).to_string())

figure, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for name, colour in [("temperature leads", "#33658a"), ("pressure leads", "#d9822b")]:
    chosen = table[labels == name]
    xs, ys = chosen["temperature"], chosen["[temperature,pressure]"]
    ax.scatter(xs, ys, s=18, color=colour, label=name)
ax.set(
    title="The area says who leads",
    xlabel="increment of the temperature",
    ylabel="area of temperature and pressure",
)
ax.legend(frameon=False, loc="lower right")

# %% [markdown]
# ## Predictions
#
# The features are one step of a scikit-learn pipeline, which learns from forty machines
# and is tested on the other twenty.

# %%
train = df[df["machine"] < "m40"]
test = df[df["machine"] >= "m40"]
train, test = (
    abx.SampledPath.from_dataframe(part, time="time", group="machine", unit="h")
    for part in (train, test)
)
model = make_pipeline(features, StandardScaler(), LogisticRegression())
model.fit(train, labels[:40])
print(f"accuracy on unseen machines: {model.score(test, labels[40:]):.2f}")

# %% [markdown]
# `features.save("features.abx")` saves the fitted features to a file; every estimator
# in `abx.estimators` has this method. [Your own data](../../guides/own-data.md)
# continues with forecasts, generated paths and targets on manifolds. [From the
# shell](../../guides/shell.md) does all this without Python.
