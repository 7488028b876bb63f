"""`save` and `load`: exact round trips, and refusal of everything else."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax.training import FileFormatError, load, read_header, save
from arborax.training._container import decode, encode, FORMAT_VERSION, write_atomically

from .helpers import leaves_equal, mlp


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
    rate: float
    inner: dict
    label: str = eqx.field(static=True)


def everything(label="a"):
    return Everything(
        weight=jr.normal(jr.PRNGKey(1), (3, 2), jnp.float64),
        half=jnp.arange(4, dtype=jnp.bfloat16),
        count=jnp.asarray(7, jnp.int8),
        flag=jnp.asarray([True, False]),
        spin=jnp.asarray([1 + 2j], jnp.complex64),
        empty=jnp.zeros((0, 3), jnp.float32),
        key=jr.key(3),
        table=np.arange(3.0),
        rate=0.1,
        inner={"f": jax.nn.relu, "n": None, "xs": [jnp.ones(2, jnp.float32)]},
        label=label,
    )


def zeroed(model):
    def zero(x):
        if eqx.is_array(x) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return jr.key(0)
        return x * 0 if isinstance(x, jax.Array | np.ndarray | float) else x

    return jax.tree.map(
        lambda x: ~x if getattr(x, "dtype", None) == np.bool_ else zero(x), model
    )


def test_round_trip_of_every_kind(tmp_path):
    model = everything()
    save(tmp_path / "m.abx", model)
    like = zeroed(model)
    back = load(tmp_path / "m.abx", like)
    assert back.rate == 0.1 and isinstance(back.table, np.ndarray)
    assert np.array_equal(back.table, model.table)
    assert np.array_equal(jr.key_data(back.key), jr.key_data(model.key))
    for name in ("weight", "half", "count", "flag", "spin", "empty"):
        a, b = getattr(model, name), getattr(back, name)
        assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    assert jax.tree.structure(back) == jax.tree.structure(model)
    save(tmp_path / "n.abx", back)
    assert (tmp_path / "m.abx").read_bytes() == (tmp_path / "n.abx").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_make_function_registry_and_header(tmp_path):
    def make(width, sizes, key):
        assert isinstance(sizes, tuple)
        return eqx.nn.MLP(3, "scalar", width, 1, dtype=jnp.float32, key=key)

    path = tmp_path / "m.abx"
    model = mlp(key=4)
    hyper = {"width": 8, "sizes": (1, (2, 3))}
    save(path, model, hyper)
    assert leaves_equal(load(path, make), model)
    assert leaves_equal(load(path, registry={"MLP": make}), model)
    shapes = eqx.filter_eval_shape(make, **hyper, key=jr.PRNGKey(0))
    assert leaves_equal(load(path, shapes), model)
    header = read_header(path)
    assert header["class"] == "MLP" and header["hyperparameters"] == hyper
    assert header["arrays"][".layers[0].weight"] == ((8, 3), "float32")
    with pytest.raises(ValueError, match="'MLP' with hyperparameters"):
        load(path)
    with pytest.raises(ValueError, match="registry knows only"):
        load(path, registry={"GRU": make})
    with pytest.raises(TypeError, match=r"hyperparameters\['f'\] is a"):
        save(path, model, {"f": jax.nn.relu})


@pytest.mark.parametrize(
    "other, message",
    [
        (lambda: eqx.nn.MLP(3, 1, 9, 1, dtype=jnp.float32, key=jr.PRNGKey(0)), "fit"),
        (lambda: eqx.nn.MLP(3, "scalar", 8, 2, key=jr.PRNGKey(0)), "lacks the leaves"),
        (lambda: mlp(dtype=jnp.float64), "float32.* in the file and float64"),
        (
            lambda: eqx.nn.MLP(
                3, "scalar", 8, 1, jnp.tanh, dtype=jnp.float32, key=jr.PRNGKey(0)
            ),
            "activation",
        ),
        (lambda: eqx.nn.Linear(3, 8, key=jr.PRNGKey(0)), "lacks the leaves"),
    ],
)
def test_another_model_is_refused(tmp_path, other, message):
    save(tmp_path / "m.abx", mlp())
    with pytest.raises(FileFormatError, match=message):
        load(tmp_path / "m.abx", other())


def test_static_fields_are_compared(tmp_path):
    save(tmp_path / "m.abx", everything("a"))
    with pytest.raises(FileFormatError, match=r"label: file \['str', 'a'\], model"):
        load(tmp_path / "m.abx", everything("b"))


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "m.abx"
    save(path, mlp(), {"width": 8})
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
            load(path, mlp())
    path.write_bytes(raw + b"x")
    with pytest.raises(FileFormatError, match="damaged"):
        load(path, mlp())


def test_foreign_newer_and_other_files_are_refused(tmp_path):
    path = tmp_path / "m.abx"
    np.savez(tmp_path / "z.npz", np.zeros(3))
    with pytest.raises(FileFormatError, match="not an arborax file"):
        load(tmp_path / "z.npz", mlp())
    raw = bytearray(encode({}, {"kind": "model"}))
    raw[8] = FORMAT_VERSION + 1
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match="newer arborax"):
        load(path, mlp())
    path.write_bytes(encode({"x": np.zeros(2)}, {"kind": "checkpoint", "step": 1}))
    with pytest.raises(FileFormatError, match="holds no model"):
        load(path, mlp())
    with pytest.raises(TypeError, match="dtype object"):
        encode({"x": np.asarray([None])}, {})
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing", mlp())


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
