"""Processes that are killed while they train or write; a script for `test_faults`.

    python faults.py training|writer FOLDER KILLS SEED

Forks a child per kill, which costs no imports: this process never computes with JAX, so
it has no threads that a fork would lose. Prints counts as JSON.
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from arborax.training import FileCheckpoints, fit, load, read_log, save


MOST = 1_000_000  # more steps than all children together can take


def train(folder: Path, steps: int, began=lambda: None):
    """A small run that saves at every step, with noise, momentum and validation."""
    jax.config.update("jax_compilation_cache_dir", str(folder.parent / "programs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(16, 3)

    def objective(model, batch, key):
        noise = jr.normal(key, batch.shape, batch.dtype)
        return jnp.mean((batch @ model + 0.1 * (noise @ model) - batch[:, 0]) ** 2)

    def metric(model, validation, key):
        return float(np.abs(np.asarray(model)).sum())

    return fit(
        jnp.ones(3, jnp.float32),
        x,
        objective,
        steps=steps,
        batch_size=4,
        optimiser=optax.sgd(0.01, momentum=0.9),
        metric=metric,
        validate_every=3,
        checkpoint=folder,
        checkpoint_every=1,
        hooks=[lambda event: began() if event.kind == "start" else None],
        progress=False,
        key=jr.PRNGKey(0),
    )


def fork(function) -> int:
    """A child that calls the function and ends, without cleaning up after us."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """How a child ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def restored(folder: Path):
    """The newest checkpoint; a damaged one on the way would be an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return FileCheckpoints(folder).restore()


def training(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """SIGKILL at random moments; in the end the weights of a run without kills."""
    rng = random.Random(seed)
    place = folder / "killed"
    early = torn = last = 0
    for _ in range(kills):
        reader, writer = os.pipe()

        def child():
            os.close(reader)
            train(place, MOST, lambda: os.write(writer, b"x"))

        process = fork(child)
        os.close(writer)
        if rng.random() < 0.1:  # while it starts, restores or compiles
            time.sleep(rng.uniform(0, 1))
            early += 1
        else:
            assert os.read(reader, 1) == b"x", "the child failed to begin"
            time.sleep(rng.uniform(0, 0.05))
        os.kill(process, signal.SIGKILL)
        assert ended(process) == -signal.SIGKILL
        os.close(reader)
        torn += bool(list(place.glob(".checkpoint-*.tmp")))
        found = restored(place)
        step = 0 if found is None else found[0]
        assert step >= last, f"step {last} was lost, the newest is {step}"
        last = step
        print(f"killed at step {step}", file=sys.stderr, flush=True)
    total = last + 5

    def finish(name: str):
        result = train(folder / name, total)
        content = {"model": result.model, "last": result.last}
        save(folder / f"{name}.abx", content | {"losses": result.history.loss})

    for name in ("killed", "quiet"):
        assert ended(fork(lambda: finish(name))) == 0
    files = [(folder / f"{name}.abx").read_bytes() for name in ("killed", "quiet")]
    assert files[0] == files[1], "killed and quiet runs differ"
    steps = [r["step"] for r in read_log(place / "log.jsonl", "step")]
    assert steps == list(range(1, total + 1)), "the log lacks or repeats steps"
    return {"kills": kills, "early": early, "torn": torn, "steps": total}


def writer(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """SIGKILL before or after a random call of the system within `save`, of checkpoints
    and of models: the old or the new file is there, whole."""
    rng = random.Random(seed)
    place, model = folder / "writer", folder / "model.abx"

    def content(step: int) -> np.ndarray:
        return np.full(500, step, np.float32)

    def write(step: int):
        FileCheckpoints(place).save(step, {"x": content(step)}, {"step": step})
        save(model, {"x": content(step)})

    def after(count: int, function):
        """Runs the function, and dies at the `count`-th call of the system, or
        return from one, within it."""

        def profile(frame, event, argument):
            nonlocal count
            if event in ("c_call", "c_return") and _is_of_the_system(argument):
                count -= 1
                if count == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(profile)
        function()
        sys.setprofile(None)
        return count

    write(1)
    events = -after(0, lambda: write(2))
    step, old, killed, whole = 2, 0, 0, 0
    while killed < kills:
        place_of_death = rng.randint(1, events)
        result = ended(fork(lambda: after(place_of_death, lambda: write(step + 1))))
        if result == 0:
            whole += 1  # the call came to its end before that many events
        else:
            assert result == -signal.SIGKILL, result
            killed += 1
        found = restored(place)
        assert found is not None
        now, arrays, meta = found
        assert now in (step, step + 1) and meta == {"step": now}
        np.testing.assert_array_equal(arrays["x"], content(now))
        x = load(model)["x"]
        assert x[0] in (step, now)
        np.testing.assert_array_equal(x, content(int(x[0])))
        old += now == step
        if x[0] != now:
            save(model, {"x": content(now)})
        step = now
    write(step + 1)
    assert not list(place.glob("*.tmp")), "torn files stay in the folder"
    return {"kills": killed, "old": old, "finished": whole, "places": events}


def _is_of_the_system(function) -> bool:
    modules = (function.__module__, type(function.__self__).__module__)
    return any(name in ("posix", "_io", "fcntl") for name in modules)


if __name__ == "__main__":
    what, folder, kills, seed = sys.argv[1:]
    run = {"training": training, "writer": writer}[what]
    start = time.perf_counter()
    counts = run(Path(folder), int(kills), int(seed))
    print(json.dumps(counts | {"seconds": round(time.perf_counter() - start, 1)}))
