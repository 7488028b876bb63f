"""`export`: a model as compiled functions that need JAX alone to run."""

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
from jax import export as jax_export

from .._inputs import as_count, as_real_dtype
from .._values import shown
from ..models import AbstractCausalModel, AbstractModel
from ..paths import SampledPath
from ._container import write_atomically


def export(
    model: AbstractModel,
    path: str | os.PathLike,
    *,
    times: int | None = None,
    stream: bool = False,
    finite_variation: tuple[int, ...] = (),
    dtype: Any = None,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
) -> None:
    """Writes a model as StableHLO, weights included, for use with JAX but without
    arborax.

    The file is a zip archive of functions serialised by `jax.export`, which later
    versions of JAX can read:

    - `predict(ts, xs)`, if `times` is given: outputs for a batch of any size, from
        `ts (times,)` and `xs (batch, times, channels)`. Itô models without
        `brackets="realised"` also take `brackets (batch, times - 1, channels,
        channels)`.
    - `start(t, x)` and `update(state, t, x)` (with `bracket` for those Itô models), if
        `stream` is true: a causal model, sample by sample. Both return a state, which
        is a list of arrays, and the outputs.

    **Arguments:**

    - `model`: any model with a fixed number of channels.
    - `path`: the file to write.
    - `times`: samples per path of `predict`.
    - `stream`: whether to write `start` and `update`.
    - `finite_variation`: channels without a bracket, such as time, for models with
        `brackets="realised"`; as in [`arborax.SampledPath`][].
    - `dtype`: of all arguments; by default that of the weights.
    - `platforms`: where the functions are to run.

    !!! example

        ```python
        abx.export(model, "m.stablehlo", times=64, stream=True)

        # where JAX is installed, and arborax is not
        with zipfile.ZipFile("m.stablehlo") as file:
            predict = jax.export.deserialize(bytearray(file.read("predict"))).call
        ys = predict(ts, xs)
        ```
    """
    if not isinstance(model, AbstractModel) or model.channels is None:
        raise TypeError(
            "export takes a model that says how many `channels` it has, got "
            f"{shown(model)}."
        )
    if times is None and not stream:
        raise ValueError("say what to export: `times=64`, `stream=True`, or both.")
    weights = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    dtype = as_real_dtype(weights[0].dtype if dtype is None and weights else dtype)
    marks = dict(finite_variation=finite_variation) if finite_variation else {}
    functions = {}
    if times is not None:
        functions["predict"] = _predict(model, as_count("times", times), dtype, marks)
    if stream:
        functions |= _stream(model, dtype, marks)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, (function, arguments) in functions.items():
            exported = jax_export.export(jax.jit(function), platforms=platforms)
            file.writestr(name, exported(*arguments).serialize())
    write_atomically(path, content.getvalue())


def _needs_brackets(model: Any) -> bool:
    return model.calculus == "ito" and getattr(model, "brackets", None) is None


def _predict(model: Any, times: int, dtype: Any, marks: Any) -> tuple[Callable, tuple]:
    """Outputs of a batch, and the shapes of the arguments."""
    (batch,) = jax_export.symbolic_shape("batch")
    d, array = model.channels, jax.ShapeDtypeStruct
    arguments = (array((times,), dtype), array((batch, times, d), dtype))
    if _needs_brackets(model):
        arguments += (array((batch, times - 1, d, d), dtype),)

    def predict(ts, xs, brackets=None):
        def one(x, bracket):
            return model(SampledPath(ts, x, brackets=bracket, **marks, check=False))

        return jax.vmap(one)(xs, brackets)

    return predict, arguments


def _stream(model: Any, dtype: Any, marks: Any) -> dict[str, tuple[Callable, tuple]]:
    """The first sample and any later one, with the state as a list of arrays."""
    if not isinstance(model, AbstractCausalModel):
        raise TypeError(f"{type(model).__name__} does not run on a stream.")
    d, array = model.channels, jax.ShapeDtypeStruct
    sample = (array((), dtype), array((d,), dtype))
    state, _ = jax.eval_shape(lambda *x: model.start(*x, **marks), *sample)
    leaves, structure = jax.tree.flatten(state)

    def start(t, x):
        state, y = model.start(t, x, **marks)
        return jax.tree.leaves(state), y

    def update(leaves, t, x, *bracket):
        state, y = model.update(jax.tree.unflatten(structure, leaves), t, x, *bracket)
        return jax.tree.leaves(state), y

    bracket = (array((d, d), dtype),) if _needs_brackets(model) else ()
    return {"start": (start, sample), "update": (update, (leaves, *sample, *bracket))}
