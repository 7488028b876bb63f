"""Checkpoints: stopped runs resume to the bit-same result; damage is survived."""

import json

import jax.random as jr
import numpy as np
import optax
import pytest

from arborax.training import FileCheckpoints, FileFormatError, fit, read_log
from arborax.training._checkpoints import unpack

from .helpers import leaves_equal, mlp, noisy_objective, regression


KEY = jr.PRNGKey(3)
RULE = optax.sgd(0.05, momentum=0.9)


def train(steps, folder=None, **options):
    x, y = regression(32)
    arguments = dict(
        steps=steps,
        batch_size=8,
        optimiser=RULE,
        validation=(x[:8], y[:8]),
        validate_every=3,
        checkpoint=folder,
        checkpoint_every=2,
        key=KEY,
        progress=False,
    )
    return fit(mlp(), (x, y), noisy_objective, **(arguments | options))


def test_stop_and_continue_is_bit_the_same(tmp_path):
    whole = train(12)
    first = train(6, tmp_path)
    assert first.steps == 6
    paths = FileCheckpoints(tmp_path).paths()
    assert [p.name for p in paths] == [f"checkpoint-{s:09d}.abx" for s in (4, 6)]
    second = train(12, tmp_path)
    assert leaves_equal(second.model, whole.model)
    assert leaves_equal(second.last, whole.last)
    assert second.history.loss == whole.history.loss
    assert second.history.aux == whole.history.aux
    assert [v["metric"] for v in second.history.validation] == [
        v["metric"] for v in whole.history.validation
    ]
    # A finished run is not run again.
    third = train(12, tmp_path)
    assert third.timings.compile == 0 and leaves_equal(third.model, whole.model)
    records = read_log(tmp_path / "log.jsonl")
    steps = [r["step"] for r in records if r["kind"] == "step"]
    assert steps == list(range(1, 13))
    assert [r["loss"] for r in records if r["kind"] == "step"] == whole.history.loss

    # Another run does not mix in, and a fresh start removes the old one.
    with pytest.raises(ValueError, match="another run.*key"):
        train(12, tmp_path, key=jr.PRNGKey(4))
    with pytest.raises(FileFormatError, match="does not fit"):
        train(14, tmp_path, optimiser=optax.sgd(0.1))
    fresh = train(2, tmp_path, resume=False)
    assert fresh.steps == 2 and len(FileCheckpoints(tmp_path).paths()) == 1


def test_damaged_checkpoints_are_passed_over(tmp_path):
    train(6, tmp_path)
    older, newest = FileCheckpoints(tmp_path).paths()
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="passing over a checkpoint.*truncated"):
        step, _, _ = FileCheckpoints(tmp_path).restore()
    assert step == 4
    older.write_bytes(b"")
    with pytest.warns(UserWarning), pytest.raises(FileFormatError, match="no check"):
        FileCheckpoints(tmp_path).restore()


@pytest.mark.parametrize("call", ["fsync", "replace", "unlink"])
def test_death_within_a_save_leaves_a_whole_checkpoint(tmp_path, monkeypatch, call):
    class Killed(BaseException):
        pass

    store = FileCheckpoints(tmp_path)
    for step in (1, 2):
        store.save(step, {"x": np.full(3, step)}, {"a": step})

    def die(*args, **kwargs):
        raise Killed

    target = "pathlib.Path.unlink" if call == "unlink" else f"os.{call}"
    monkeypatch.setattr(target, die)
    with pytest.raises(Killed):
        store.save(3, {"x": np.full(3, 3)}, {"a": 3})
    monkeypatch.undo()
    (tmp_path / ".checkpoint-000000003.abx.1.tmp").write_bytes(b"torn")
    step, arrays, meta = FileCheckpoints(tmp_path).restore()
    assert step == (3 if call == "unlink" else 2)
    assert meta["a"] == step and (arrays["x"] == step).all()
    store.save(4, {"x": np.zeros(1)}, {})
    assert len(store.paths()) == 2
    assert [path.name for path in tmp_path.glob(".*")] == [".lock"]


def test_a_checkpoint_is_plain_data(tmp_path):
    train(2, tmp_path)
    raw = FileCheckpoints(tmp_path).paths()[-1].read_bytes()
    step, arrays, meta = unpack(raw)
    assert step == 2 and "history/loss" in arrays
    assert any("opt_state" in name for name in arrays)
    json.dumps(meta)


def test_orbax_checkpoints(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    from arborax.training import OrbaxCheckpoints

    whole = train(6)
    store = OrbaxCheckpoints(tmp_path / "orbax")
    assert train(4, store).steps == 4
    store.close()
    store = OrbaxCheckpoints(tmp_path / "orbax")
    second = train(6, store)
    assert leaves_equal(second.model, whole.model)
    assert second.history.loss == whole.history.loss
    store.clear()
    assert store.restore() is None
    store.close()
