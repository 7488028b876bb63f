"""Times of signatures, kernels, log-ODEs and training steps on one device."""

import datetime
import html
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx

from ..plots import html_page


PACKAGES = ("arborax", "jax", "jaxlib", "equinox", "diffrax", "numpy")
# A program and its arguments, made when the cell is timed.
Cell = Callable[[], tuple[Callable, tuple]]


def _walk(*shape: int) -> Any:
    steps = np.random.default_rng(0).standard_normal(shape) / np.sqrt(shape[-2])
    return jnp.asarray(np.cumsum(steps, axis=-2), jnp.float32)


def _signature(alg: Any, gradient: bool) -> Cell:
    """128 paths of 256 samples."""
    brackets = None if alg.calculus == "stratonovich" else "realised"

    def build():
        value = lambda x: abx.log_signature(x, alg, brackets)  # noqa: E731
        loss = jax.value_and_grad(lambda x: jnp.sum(jnp.sin(value(x))))
        return (loss if gradient else value), (_walk(128, 256, alg.dim),)

    return build


def _gram(kind: Any, depth: int | None) -> Cell:
    """Value and gradient, 32 x 32 paths of 64 samples."""

    def build():
        gram = lambda x: abx.signature_gram(x, None, kind, depth)  # noqa: E731
        loss = jax.value_and_grad(lambda x: jnp.sum(jnp.sin(gram(x))))
        return loss, (0.3 * _walk(32, 64, 3),)

    return build


def _solve(geometry: Any, alg: Any) -> Cell:
    """Value and gradient of 64 log-ODEs of 32 windows with MLP fields."""

    def build():
        y0 = geometry.base_point(jnp.float32)
        size = sum(leaf.size for leaf in jax.tree.leaves(y0))
        outputs = alg.dim * geometry.dim
        mlp = abx.models.MLP(size, outputs, 32, 2, dtype=jnp.float32, key=jr.key(0))
        fields = abx.models.VectorField(mlp, alg.dim, geometry.dim)
        ts = jnp.linspace(0.0, 1.0, 129, dtype=jnp.float32)

        def loss(fields, x):
            control = abx.rough_path(ts, x, alg, window=4, brackets="realised")
            ys = abx.solve(fields, y0, control, geometry=geometry, throw=False).ys
            return jnp.mean(ys**2)

        def mean(fields, xs):
            return jnp.mean(jax.vmap(lambda x: loss(fields, x))(xs))

        return eqx.filter_value_and_grad(mean), (fields, _walk(64, 129, alg.dim))

    return build


def _simulate() -> tuple[Callable, tuple]:
    """20,000 paths of geometric Brownian motions that do not commute, 16 windows."""
    columns = [[[0.0, 0.4], [0.1, 0.0]], [[0.3, 0.0], [0.2, -0.3]]]
    a, b = jnp.asarray(columns, jnp.float32)

    def run(key):
        sol = abx.solve_sde(
            lambda y: -0.1 * y,
            lambda y: jnp.stack([a @ y, b @ y], axis=1),
            jnp.ones(2, jnp.float32),
            jnp.array([0.0, 1.0], jnp.float32),
            key=key,
            paths=20_000,
            windows=16,
            throw=False,
        )
        return jnp.mean(sol.ys, axis=0)

    return run, (jr.key(0),)


def _training_step(make: Callable[..., Any]) -> Cell:
    """A step of gradient descent on 32 paths of 128 samples."""

    def build():
        model = make(key=jr.key(0), dtype=jnp.float32)
        channels = getattr(model, "channels", 2)
        ts = jnp.linspace(0.0, 1.0, 128, dtype=jnp.float32)
        brackets = getattr(model, "calculus", None) == "ito"
        paths = abx.models.brownian_driver(
            ts, channels - 1, (32,), key=jr.key(1), brackets=brackets
        )

        def loss(model, paths):
            outputs = jax.tree.leaves(model.predict(paths))
            return sum(jnp.mean((x - 0.5) ** 2) for x in outputs)

        def step(model, paths):
            value, slopes = eqx.filter_value_and_grad(loss)(model, paths)
            change = jax.tree.map(lambda x: -0.01 * x, slopes)
            return value, eqx.apply_updates(model, change)

        return step, (model, paths)

    return build


def _models() -> dict[str, Callable[..., Any]]:
    models = abx.models
    windowed = dict(hidden=16, width=32, window=8)
    return {
        "BNRDE Ito(3,2)": lambda **kw: models.BNRDE(abx.Ito(3, 2), 1, **windowed, **kw),
        "BNRDE SO(3)": lambda **kw: models.BNRDE(
            abx.MuntheKaasWright(3, 2), geometry=abx.SO(3), **windowed, **kw
        ),
        "LinearBNRDE": lambda **kw: models.LinearBNRDE(
            abx.Ito(3, 2), 1, hidden=32, window=8, **kw
        ),
        "LogNCDE": lambda **kw: models.LogNCDE(3, 1, **windowed, **kw),
        "NRDE": lambda **kw: models.NRDE(3, 1, **windowed, **kw),
        "NCDE": lambda **kw: models.NCDE(3, 1, hidden=16, width=32, **kw),
        "NCDEpp": lambda **kw: models.NCDEpp(3, 1, hidden=16, width=32, **kw),
        "MNODE SO(3)": lambda **kw: models.MNODE(abx.SO(3), **kw),
        "GRU": lambda **kw: models.GRU(3, 1, hidden=32, width=32, **kw),
        "XLSTM": lambda **kw: models.XLSTM(3, 1, size=32, heads=2, **kw),
    }


def device_cells() -> dict[str, dict[str, Cell]]:
    """All cells by group and name."""
    algebras = [abx.Shuffle(4, 3), abx.Ito(3, 2), abx.GrossmanLarson(2, 3)]
    spaces = [abx.Euclidean(32), abx.SO(3), abx.SPD(3)]
    kinds: list[tuple[str, int | None]] = [("geometric", None), ("ito", None)]
    return {
        "log-signature, 128 x 256": {
            _title(alg) + (", gradient" if gradient else ""): _signature(alg, gradient)
            for alg in algebras
            for gradient in (False, True)
        },
        "kernel, 32 x 32 x 64, gradient": {
            kind: _gram(kind, depth) for kind, depth in [*kinds, ("branched", 3)]
        },
        "log-ODE, 64 x 32 windows, gradient": {
            f"{_title(space)}, Ito(3,2)": _solve(space, abx.Ito(3, 2))
            for space in spaces
        },
        "stochastic equation, 20,000 x 16 windows": {"solve_sde": _simulate},
        "training step, 32 x 128": {
            name: _training_step(make) for name, make in _models().items()
        },
    }


def _title(thing: Any) -> str:
    if hasattr(thing, "depth"):
        return f"{type(thing).__name__}({thing.dim},{thing.depth})"
    return f"{type(thing).__name__}({thing.n})"


def find_device(name: str) -> Any:
    """The first device of a platform; the error names the platforms there are."""
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        there = sorted({device.platform for device in jax.devices()})
        message = (
            f"JAX finds no {name} here, only {', '.join(there)}. Install the build "
            f"of JAX for it (`jax[cuda12]` or `jax[tpu]`), or choose --device "
            f"{there[0]}."
        )
        raise ValueError(message) from None


def time_cell(cell: Cell, seconds: float) -> dict[str, float]:
    """Wall seconds of the first call, and of the calls after it."""
    function, arguments = cell()
    program = eqx.filter_jit(function)

    def once() -> float:
        start = time.perf_counter()
        jax.block_until_ready(
            jax.tree.leaves(eqx.filter(program(*arguments), eqx.is_array))
        )
        return time.perf_counter() - start

    first, times = once(), []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(once())
    return {
        "first_s": first,
        "best_s": min(times),
        "median_s": statistics.median(times),
        "calls": len(times),
    }


def time_device(
    name: str, seconds: float = 1.0, only: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """The content of the file of a device: the machine first, then a row per cell. The
    row of a cell that fails holds the reason."""
    device = find_device(name)
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    now = datetime.datetime.now(datetime.UTC)
    yield {
        "date": now.isoformat(timespec="seconds"),
        "platform": device.platform,
        "device": device.device_kind,
        "devices": len(jax.devices(name)),
        "host": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }
    with jax.default_device(device):
        for group, cells in device_cells().items():
            for title, cell in cells.items():
                if only and not any(part in f"{group} {title}" for part in only):
                    continue
                try:
                    found = time_cell(cell, seconds)
                except Exception as error:
                    found = {"error": f"{type(error).__name__}: {error}"[:300]}
                yield {"group": group, "cell": title, **found}


def read_times(file: pathlib.Path) -> dict[str, Any]:
    """Reads a file written by `arborax bench --device`."""
    try:
        found = json.loads(file.read_text())
        if not {"device", "versions", "cells"} <= set(found):
            raise KeyError
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        message = f"{file} was not written by `arborax bench --device`."
        raise ValueError(message) from None
    return found


def device_page(documents: Sequence[dict], file: pathlib.Path) -> pathlib.Path:
    """One page with a column per document; bars compare the devices in each row."""
    head = "".join(f"<th>{html.escape(device_name(d))}</th>" for d in documents)
    rows: dict[tuple[str, str], list[dict | None]] = {}
    for k, document in enumerate(documents):
        for row in document["cells"]:
            key = row["group"], row["cell"]
            rows.setdefault(key, [None] * len(documents))[k] = row
    body = ["<h1>arborax on " + " and ".join(_kinds(documents)) + "</h1>", NOTE]
    body.append(f"<style>{BARS}</style>")
    for group in dict.fromkeys(group for group, _ in rows):
        body.append(f"<h2>{html.escape(group)}</h2><div class='scroll'><table>")
        body.append(f"<tr><th></th>{head}</tr>")
        for (own, name), found in rows.items():
            if own == group:
                cells = "".join(_bar(row, found) for row in found)
                body.append(f"<tr><td>{html.escape(name)}</td>{cells}</tr>")
        body.append("</table></div>")
    body.append("<h2>Machines</h2><div class='scroll'><table>")
    for document in documents:
        versions = ", ".join(f"{k} {v}" for k, v in document["versions"].items())
        cells = [device_name(document), document["date"], document["host"], versions]
        cells.append(f"Python {document['python']}")
        line = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        body.append(f"<tr>{line}</tr>")
    body.append("</table></div>")
    return html_page("times by device", body, file)


NOTE = (
    "<p>Milliseconds of wall time per call, the best; in parentheses seconds of the "
    "first call, which compiles. Shorter bars are faster; each row has its own "
    "scale.</p>"
)
BARS = (
    ".bar{background:#1b6b58;height:.4em;min-width:1px;display:block}"
    "td,th{min-width:8em;text-align:left;vertical-align:top}"
)


def device_name(document: dict) -> str:
    """The device, and its platform unless that is its name."""
    device, kind = document["device"], document["platform"]
    return device if device == kind else f"{device} ({kind})"


def _kinds(documents: Sequence[dict]) -> list[str]:
    return [html.escape(name) for name in dict.fromkeys(map(device_name, documents))]


def _bar(row: dict | None, found: Sequence[dict | None]) -> str:
    if row is None:
        return "<td>not timed</td>"
    if "error" in row:
        return f"<td>failed: {html.escape(row['error'][:80])}</td>"
    most = max(r["best_s"] for r in found if r is not None and "error" not in r)
    width = 7 * row["best_s"] / most
    text = f"{1e3 * row['best_s']:.3g} ({row['first_s']:.1f})"
    return f"<td>{text}<span class='bar' style='width:{width:.2f}em'></span></td>"
