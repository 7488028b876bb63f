"""`save` and `load`: exact round trips without a template, refusal of all else."""

import dataclasses
import functools as ft
import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from models.cases import CAUSAL, driver, rotation_path
from user_defined import BackwardWords

import arborax as abx
from arborax.training import FileFormatError, load, register, save
from arborax.training._container import decode, encode, FORMAT_VERSION, write_atomically
from arborax.training._registry import _registered, known

from .helpers import leaves_equal, mlp


MODELS = CAUSAL | {
    "mnode": lambda: abx.models.MNODE(width=4, depth=1, key=jr.PRNGKey(0)),
    "bnrde-product": lambda: abx.models.BNRDE(
        abx.Shuffle(2, 3),
        geometry=abx.Product(abx.SPD(2), abx.Euclidean(1), abx.SO(3)),
        solver=abx.RKMK(),
        width=4,
        depth=1,
        key=jr.PRNGKey(0),
    ),
}

CALLED = ("bnrde", "ncde", "gru")  # the others would only take longer to compile


@register
class Everything(eqx.Module):
    """One leaf of each kind."""

    weight: jax.Array
    half: jax.Array
    count: jax.Array
    flag: jax.Array
    spin: jax.Array
    empty: jax.Array
    key: jax.Array
    table: np.ndarray
    number: np.float32
    rate: float
    inner: dict
    sizes: tuple = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)
    act: ft.partial = eqx.field(static=True)


def everything():
    return Everything(
        weight=jr.normal(jr.PRNGKey(1), (3, 2), jnp.float64),
        half=jnp.arange(4, dtype=jnp.bfloat16),
        count=jnp.asarray(7, jnp.int8),
        flag=jnp.asarray([True, False]),
        spin=jnp.asarray([1 + 2j], jnp.complex64),
        empty=jnp.zeros((0, 3), jnp.float32),
        key=jr.key(3),
        table=np.arange(3.0),
        number=np.float32(0.1),
        rate=0.1,
        inner={
            "f": jax.nn.relu,
            "n": None,
            "xs": [jnp.ones(2, jnp.float32), (True, 2, "a", -0.0, 1j)],
            "p": abx.SampledPath(jnp.arange(2.0), jnp.ones((2, 1))),
        },
        sizes=(1, (2, 3), float("inf")),
        dtype=np.dtype("float32"),
        act=ft.partial(jax.nn.leaky_relu, negative_slope=0.2),
    )


def test_round_trip_of_every_kind(tmp_path):
    model = everything()
    save(tmp_path / "m.abx", model)
    back = load(tmp_path / "m.abx")
    assert back.rate == 0.1 and type(back.number) is np.float32
    assert isinstance(back.table, np.ndarray) and back.table.flags.writeable
    assert np.array_equal(jr.key_data(back.key), jr.key_data(model.key))
    for name in ("weight", "half", "count", "flag", "spin", "empty", "table"):
        a, b = getattr(model, name), getattr(back, name)
        assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    assert str(back.inner) == str(model.inner) and list(back.inner) == list(model.inner)
    assert (back.sizes, back.dtype) == (model.sizes, model.dtype)
    assert (back.act.func, back.act.keywords) == (model.act.func, model.act.keywords)
    save(tmp_path / "n.abx", back)
    assert (tmp_path / "m.abx").read_bytes() == (tmp_path / "n.abx").read_bytes()
    assert not list(tmp_path.glob(".*"))
    arrays, meta = decode((tmp_path / "m.abx").read_bytes())
    assert meta["class"] == "Everything" and arrays[".inner['xs'][0]"].shape == (2,)


FRESH = """
    import sys
    import jax
    jax.config.update("jax_enable_x64", True)
    import numpy as np
    import arborax as abx

    for file in sys.argv[1:]:
        model, path, outputs = abx.load(file)
        abx.save(f"{file}.again", (model, path, outputs))
        if outputs is not None:
            assert np.array_equal(model(path), outputs), file
    print(len(sys.argv) - 1, "models")
"""


def in_fresh_process(program, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_model_in_a_fresh_process(tmp_path):
    """A file gives the same model in another process, and that one the same bits: in
    its file, and for some models in its outputs."""
    files = []
    for name, make in MODELS.items():
        model = make()
        path = rotation_path(4)[0] if name == "mnode" else driver(model, 6)
        files.append(tmp_path / f"{name}.abx")
        save(files[-1], (model, path, model(path) if name in CALLED else None))
        back = load(files[-1])[0]
        assert jax.tree.structure(back) == jax.tree.structure(model)
        assert leaves_equal(back, model)
    assert in_fresh_process(FRESH, *files) == f"{len(files)} models\n"
    for file in files:
        again = file.with_name(f"{file.name}.again")
        assert again.read_bytes() == file.read_bytes()


def test_registered_classes_and_functions(tmp_path, monkeypatch):
    monkeypatch.setattr("arborax.training._registry._registered", dict(_registered))

    class Mine(eqx.Module):
        f: object
        alg: object = eqx.field(static=True)

    def double(x):
        return 2 * x

    file = tmp_path / "m.abx"
    model = {"mine": Mine(double, BackwardWords(2, 2)), "net": mlp()}
    for target, name in ((Mine, "Mine"), (double, "double"), (BackwardWords, None)):
        with pytest.raises(TypeError, match="Register it|register"):
            save(file, model)
        assert register(target, name) is target
    save(file, model)
    back = load(file)
    assert back["mine"] == model["mine"] and leaves_equal(back["net"], mlp())
    with pytest.raises(ValueError, match="already"):
        register(Everything, "Mine")
    with pytest.raises(TypeError, match="eqx.Module"):
        register(type("Bare", (), {}))
    with pytest.raises(TypeError, match="class, a function"):
        register(3)
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match="needs 'Mine', which is not known"):
        load(file)


def test_no_two_classes_of_the_library_share_a_name():
    names, classes = known(), set()
    for place, module in list(sys.modules.items()):
        if place.startswith("arborax."):
            found = (x for x in vars(module).values() if isinstance(x, type))
            classes |= {x for x in found if x.__module__ == place}
    modules = {x for x in classes if issubclass(x, eqx.Module)}
    assert len(modules) > 40 and modules <= set(names.values())


def test_a_class_may_gain_a_field_with_a_default(tmp_path, monkeypatch):
    monkeypatch.setattr("arborax.training._registry._registered", dict(_registered))
    file = tmp_path / "m.abx"

    def versions(*fields):
        kind = dataclasses.make_dataclass("Versioned", fields, frozen=True)
        kind.__module__ = __name__
        return register(kind, "Versioned")

    save(file, versions("a", "b")(1, 2))
    more = versions("a", "b", ("c", int, dataclasses.field(default=3)))
    assert load(file) == more(1, 2, 3)
    versions("a", "z")
    with pytest.raises(FileFormatError, match=r"lacks the fields \['z'\] and has"):
        load(file)


def test_double_precision_is_not_lost(tmp_path):
    save(tmp_path / "m.abx", {"x": jnp.ones(2, jnp.float64)})
    with jax.enable_x64(False):
        with pytest.raises(FileFormatError, match="jax_enable_x64"):
            load(tmp_path / "m.abx")


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "m.abx"
    save(path, mlp())
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    places = [*range(64), *rng.integers(0, len(raw), 200), len(raw) - 1]
    for place in places:
        damaged = bytearray(raw)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(FileFormatError):
            decode(bytes(damaged))
    for size in [0, 5, 20, 70, 500, len(raw) // 2, len(raw) - 1]:
        path.write_bytes(raw[:size])
        with pytest.raises(FileFormatError, match="not an arborax file|truncated"):
            load(path)
    path.write_bytes(raw + b"x")
    with pytest.raises(FileFormatError, match="damaged"):
        load(path)


def test_foreign_older_newer_and_other_files_are_refused(tmp_path):
    path = tmp_path / "m.abx"
    np.savez(tmp_path / "z.npz", np.zeros(3))
    with pytest.raises(FileFormatError, match="not an arborax file"):
        load(tmp_path / "z.npz")
    raw = bytearray(encode({}, {"kind": "model"}))
    raw[8] = FORMAT_VERSION + 1
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match="by a newer arborax; this one reads"):
        load(path)
    path.write_bytes(encode({}, {"kind": "model", "class": "GRU"}))
    with pytest.raises(FileFormatError, match="format 1.*GRU"):
        load(path)
    path.write_bytes(encode({"x": np.zeros(2)}, {"kind": "checkpoint", "step": 1}))
    with pytest.raises(FileFormatError, match="holds no model"):
        load(path)
    for tree in ({"magic": 1}, {"class": ["os.system", {}]}, {"array": "x"}, {}):
        path.write_bytes(encode({}, {"kind": "model", "tree": tree}))
        with pytest.raises(FileFormatError):
            load(path)
    with pytest.raises(TypeError, match="dtype object"):
        encode({"x": np.asarray([None])}, {})
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("stage", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, stage):
    path = tmp_path / "m.abx"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    if stage == "write":
        monkeypatch.setattr("builtins.open", fail)
    else:
        monkeypatch.setattr(f"os.{stage}", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
