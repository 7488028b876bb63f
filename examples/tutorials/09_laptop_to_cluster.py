# %% [markdown]
# # From laptop to cluster
#
# The same calls work on one core, on many devices and on many machines: features part
# by part, and training on a mesh of devices. You need
# `pip install 'arborax[plots,sklearn]'` and pandas.

# %%
import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import arborax as abx


# %% [markdown]
# ## Features, part by part
#
# Groups do not depend on each other, so a table can be processed in parts.
# `features_of_frame` turns one part, with one row per time, into one row per group. It
# needs fitted `SignatureFeatures`, for example from a sample of the groups.

# %%
rng = np.random.default_rng(0)
df = pd.DataFrame(
    {"id": np.repeat(np.arange(64), 20), "t": np.tile(np.arange(20.0), 64)}
)
df["x"] = rng.normal(size=len(df)).cumsum()
df["y"] = rng.normal(size=len(df)).cumsum()

sample = abx.SampledPath.from_dataframe(df[df["id"] < 16], time="t", group="id")
features = abx.estimators.SignatureFeatures("ito", depth=2).fit(sample)
of_part = ft.partial(
    abx.estimators.features_of_frame, features=features, group="id", time="t"
)
parts = [df[df["id"].between(k, k + 15)] for k in range(0, 64, 16)]
table = pd.concat(map(of_part, parts), ignore_index=True)
assert np.allclose(table, of_part(df), atol=1e-5)
print(table.shape, "the same as in one piece")

# %% [markdown]
# All rows of a group must be in the same part. In Dask, `shuffle` takes care of that;
# empty partitions do no harm:
#
# ```text
# ddf = dask.dataframe.read_parquet("data.parquet").shuffle(on="id")
# meta = of_part(df.iloc[:0])
# ddf.map_partitions(of_part, meta=meta).to_parquet("features")
# ```
#
# Ray Data groups the rows itself:
#
# ```text
# rows = ray.data.read_parquet("data.parquet")
# rows = rows.groupby("id").map_groups(of_part, batch_format="pandas")
# rows.write_parquet("features")
# ```
#
# In Spark, one call per group is slow if groups are small. Put many groups into one
# bucket, and let Spark group by bucket:
#
# ```text
# names = features.get_feature_names_out(["x", "y"])
# schema = "id long, " + ", ".join(f"`{name}` double" for name in names)
# rows = spark.read.parquet("data.parquet")
# rows = rows.withColumn("bucket", F.abs(F.hash("id")) % 512)
# def of_bucket(part):
#     return of_part(part.drop(columns="bucket").sort_values(["id", "t"]))
# rows.groupBy("bucket").applyInPandas(of_bucket, schema).write.parquet("features")
# ```
#
# The tests run Dask on a cluster of two processes; they do not run the lines for Ray
# and Spark. On one machine `arborax features data.parquet --group id --time t` does the
# same in constant memory, without a cluster.
#
# ## Training on a mesh
#
# `fit` splits each batch over the devices of a mesh. The objective keeps its meaning: a
# run gives the same numbers, up to rounding, with one device or many.

# %%
inputs = table.drop(columns="id").to_numpy()
inputs = (inputs - inputs.mean(axis=0)) / (inputs.std(axis=0) + 1e-6)
targets = np.tanh(inputs[:, 1] * inputs[:, 2])


def objective(model, batch, key):
    xs, ys = batch
    return jnp.mean((jax.vmap(model)(xs) - ys) ** 2)


model = eqx.nn.MLP(inputs.shape[1], "scalar", 16, 1, key=jr.key(0))
options = dict(
    key=jr.key(1), steps=80, batch_size=32, learning_rate=1e-2, progress=False
)
mesh = abx.training.data_mesh()
alone = abx.fit(model, (inputs, targets), objective, **options)
spread = abx.fit(model, (inputs, targets), objective, mesh=mesh, **options)
difference = np.abs(np.subtract(alone.history.loss, spread.history.loss)).max()
print(f"{mesh.size} device(s), largest difference of losses {difference:.0e}")

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
abx.plots.training_curve(alone, label="no mesh", ax=ax)
abx.plots.training_curve(spread, label="mesh", style="--", colour="#d9822b", ax=ax)
ax.set(title="The same run with and without a mesh")
ax.legend(frameon=False)

# %% [markdown]
# | machine | what to add |
# |---|---|
# | one device | nothing |
# | several devices | `mesh=abx.training.data_mesh()` |
# | several hosts | `mesh=abx.training.initialise_distributed(...)` |
#
# On several hosts the same program runs in each process. With `checkpoint=folder`, a
# run that was killed resumes where it stopped.
