"""Exported models run, and give the same numbers, where JAX is installed alone."""

import subprocess
import sys
import textwrap
import zipfile

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from models.cases import CAUSAL, driver, rotation_path, WINDOWED

import arborax as abx


MODELS = {name: CAUSAL[name] for name in ("bnrde", "ncdepp", "xlstm")} | {
    "realised": lambda: abx.models.BNRDE(
        abx.Ito(2, 2), 1, brackets="realised", **WINDOWED
    ),
    "mnode": lambda: abx.models.MNODE(width=4, depth=1, key=jr.PRNGKey(0)),
}
BATCH, TIMES = 3, 6
MARKS = {"realised": dict(finite_variation=(0,))}

ALONE = """
    import sys
    import zipfile
    import jax
    jax.config.update("jax_enable_x64", True)
    import numpy as np

    for name in sys.argv[2:]:
        data = np.load(f"{sys.argv[1]}/{name}.npz")
        with zipfile.ZipFile(f"{sys.argv[1]}/{name}.stablehlo") as file:
            read = lambda part: jax.export.deserialize(bytearray(file.read(part)))
            parts = {part: read(part).call for part in file.namelist()}
        ts, xs, *brackets = (data[k] for k in ("ts", "xs", "brackets") if k in data)
        for size in (1, len(xs)):
            batch = [x[:size] for x in (xs, *brackets)]
            out = parts["predict"](ts, *batch)
            np.testing.assert_allclose(out, data["out"][:size], rtol=1e-12, atol=1e-14)
        if "start" in parts:
            state, y = parts["start"](ts[0], xs[0, 0])
            ys = [y]
            for k in range(1, len(ts)):
                bracket = [b[0, k - 1] for b in brackets]
                state, y = parts["update"](state, ts[k], xs[0, k], *bracket)
                ys.append(y)
            np.testing.assert_allclose(ys, data["out"][0], rtol=1e-9, atol=1e-12)
        print(name, *parts)
    assert not {"arborax", "equinox", "diffrax"} & set(sys.modules)
"""


def batch_for(name, model):
    """A batch of paths with brackets of their own, where the model takes them."""
    if name == "mnode":
        path = rotation_path(TIMES)[0]
        return abx.SampledPath(path.ts, jnp.stack([path.xs] * BATCH))
    paths = [driver(model, TIMES, seed=k) for k in range(BATCH)]
    xs = jnp.stack([path.xs for path in paths])
    if name == "realised":
        return abx.SampledPath(paths[0].ts, xs, **MARKS[name])
    if paths[0].brackets is None:
        return abx.SampledPath(paths[0].ts, xs)
    factors = 1 + jnp.arange(BATCH, dtype=xs.dtype)
    brackets = factors[:, None, None, None] * paths[0].brackets[None]
    return abx.SampledPath(paths[0].ts, xs, brackets=brackets)


def test_exported_models_need_jax_alone(tmp_path):
    for name, make in MODELS.items():
        model = make()
        paths = batch_for(name, model)
        stream = name != "mnode"
        options = dict(times=TIMES, stream=stream, **MARKS.get(name, {}))
        abx.export(model, tmp_path / f"{name}.stablehlo", **options)
        arrays = {"ts": paths.ts, "xs": paths.xs, "out": model.predict(paths)}
        if paths.brackets is not None:
            arrays["brackets"] = paths.brackets
        np.savez(tmp_path / f"{name}.npz", **arrays)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ALONE), str(tmp_path), *MODELS],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    streams = [f"{name} predict start update" for name in list(MODELS)[:-1]]
    assert done.stdout.splitlines() == [*streams, "mnode predict"]


def test_platforms_and_refusals(tmp_path):
    file = tmp_path / "m.stablehlo"
    gru = CAUSAL["gru"](dtype=jnp.float32)
    abx.export(gru, file, times=3, platforms=("cpu", "tpu"))
    with zipfile.ZipFile(file) as content:
        exported = jax.export.deserialize(bytearray(content.read("predict")))
    assert exported.platforms == ("cpu", "tpu")
    ts, xs = exported.in_avals
    assert ts.dtype == xs.dtype == jnp.float32 and str(xs.shape) == "(batch, 3, 2)"
    with pytest.raises(ValueError, match="say what to export"):
        abx.export(gru, file)
    with pytest.raises(TypeError, match="does not run on a stream"):
        abx.export(MODELS["mnode"](), file, stream=True)
    with pytest.raises(TypeError, match="Type-check error|channels"):
        abx.export(jnp.tanh, file, times=3)
    joined = CAUSAL["nrde"](interpolation="linear")
    with pytest.raises(ValueError, match="streams"):
        abx.export(joined, file, stream=True)
