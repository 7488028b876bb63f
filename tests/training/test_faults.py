"""Kills, damaged files, a full disk, a read-only folder, two processes in one folder.

A few of each in every run; the counts of `docs/faults.md` with `-m slow`.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest

from arborax.training import FileCheckpoints, FileFormatError, load, read_log, save

from .test_checkpoints import train


HERE = pathlib.Path(__file__).parent
slow = pytest.mark.slow


def environment():
    """No threads besides the children that fork, and the compiler as it is."""
    path = os.pathsep.join([str(HERE.parents[1] / "src"), *sys.path])
    flags = "--xla_cpu_multi_thread_eigen=false"
    return os.environ | {"PYTHONPATH": path, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1"}


def run(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(),
    )


@pytest.mark.parametrize(
    "what, kills, seed",
    [
        ("training", 10, 0),
        ("writer", 50, 0),
        *(pytest.param("training", 200, seed, marks=slow) for seed in range(1, 6)),
        pytest.param("writer", 1000, 1, marks=slow),
    ],
)
def test_killed_again_and_again(tmp_path, what, kills, seed):
    """SIGKILL; every step that was safe stays safe, and the weights in the end are bit
    for bit those of a run without kills."""
    result = run(HERE / "faults.py", what, tmp_path, kills, seed)
    assert result.returncode == 0, result.stderr
    counts = json.loads(result.stdout)
    print(what, counts)
    assert counts["kills"] == kills


def damaged(raw: bytes, rng) -> tuple[str, bytes]:
    """The bytes of a file after a random fault of a disk or a transfer."""
    kind = str(rng.choice(["flip", "truncate", "zeroes", "swap", "append"]))
    out = bytearray(raw)
    place = int(rng.integers(len(raw)))
    size = int(2 ** rng.integers(13))
    if kind == "flip":
        out[place] ^= 1 << int(rng.integers(8))
    elif kind == "truncate":
        del out[place:]
    elif kind == "zeroes":
        out[place : place + size] = bytes(len(out[place : place + size]))
    elif kind == "swap":
        other = int(rng.integers(len(raw)))
        block, second = out[place : place + size], out[other : other + size]
        width = min(len(block), len(second))
        out[place : place + width], out[other : other + width] = (
            second[:width],
            block[:width],
        )
    else:
        out += rng.bytes(size)
    return kind, bytes(out)


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=slow)])
def test_damaged_files_are_refused(tmp_path, count):
    """A damaged model raises; of checkpoints the one before is taken, with a warning;
    a resumed run then ends as one that met no damage."""
    rng = np.random.default_rng(count)
    whole = train(8, tmp_path / "whole")
    model = {"x": np.arange(300.0), "y": np.zeros(1000, np.float32)}
    file = tmp_path / "model.abx"
    save(file, model)
    train(6, tmp_path / "run")
    older, newest = FileCheckpoints(tmp_path / "run").paths()
    raws = {file: file.read_bytes(), newest: newest.read_bytes()}
    kinds = {}
    while sum(kinds.values()) < count:
        path = file if sum(kinds.values()) % 2 else newest
        kind, content = damaged(raws[path], rng)
        if content == raws[path]:
            continue  # zeroes over zeroes
        kinds[kind] = kinds.get(kind, 0) + 1
        path.write_bytes(content)
        if path is file:
            with pytest.raises(FileFormatError):
                load(file)
        else:
            with pytest.warns(UserWarning, match="passing over"):
                step, _, _ = FileCheckpoints(tmp_path / "run").restore()
            assert step == 4
    print(kinds)
    path.write_bytes(raws[path])
    newest.write_bytes(raws[newest][:-1])
    log = tmp_path / "run" / "log.jsonl"
    log.write_bytes(log.read_bytes() + b"\xff\x00 no JSON\n[1]\n")
    with pytest.warns(UserWarning, match="passing over"):
        resumed = train(8, tmp_path / "run")
    assert resumed.history.loss == whole.history.loss
    assert [r["step"] for r in read_log(log, "step")] == list(range(1, 9))


SMALL = textwrap.dedent(
    """
    import os, pathlib, resource, signal, sys
    import jax.numpy as jnp, jax.random as jr, numpy as np, optax
    from arborax.training import FileCheckpoints, fit, save

    def run(folder, steps, **options):
        return fit(
            jnp.ones(3, jnp.float32), np.ones((4, 3), np.float32),
            lambda model, batch, key: jnp.mean((batch @ model) ** 2), steps=steps,
            optimiser=optax.sgd(0.1), checkpoint=folder, checkpoint_every=1,
            progress=False, key=jr.PRNGKey(0), **options,
        )

    folder = pathlib.Path(sys.argv[1])
    """
)


def script(text, *arguments):
    result = run("-c", SMALL + textwrap.dedent(text), *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


FULL = """
    run(folder, 3)
    before = {p.name: p.read_bytes() for p in folder.glob("*.abx")}
    save(folder / "model.abx", {"x": np.arange(4.0)})
    model = (folder / "model.abx").read_bytes()

    def refused(call):
        try:
            call()
        except OSError as error:
            assert error.errno == number, error
            assert str(folder) in str(error.filename), error.filename
        else:
            raise AssertionError("a full disk went unnoticed")

    fill()
    refused(lambda: save(folder / "model.abx", {"x": np.arange(40_000.0)}))
    refused(lambda: run(folder, 6))
    empty()
    assert (folder / "model.abx").read_bytes() == model
    after = {p.name: p.read_bytes() for p in folder.glob("checkpoint-*.abx")}
    assert after == before, (sorted(after), sorted(before))
    assert not list(folder.glob(".*.tmp"))
    continued, whole = run(folder, 6), run(folder / "other", 6)
    assert continued.history.loss == whole.history.loss
    assert np.array_equal(continued.model, whole.model)
    print("right")
    """


def test_files_that_may_not_grow(tmp_path):
    """The system refuses the write in the middle of a file."""
    text = """
        import errno
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        number = errno.EFBIG

        def fill():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))

        def empty():
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        """
    assert "right" in script(textwrap.dedent(text) + textwrap.dedent(FULL), tmp_path)


@slow
def test_full_disk(tmp_path):
    """A file system of its own, with no room left."""
    text = """
        import ctypes, errno
        libc = ctypes.CDLL(None, use_errno=True)
        new_namespace, private = 0x00020000, 0x40000 | 0x4000
        if (
            libc.unshare(new_namespace)
            or libc.mount(None, b"/", None, private, None)
            or libc.mount(b"none", bytes(folder), b"tmpfs", 0, b"size=256k")
        ):
            print("not permitted")
            sys.exit()
        number = errno.ENOSPC
        ballast = folder / "ballast"

        def fill():
            try:
                with open(ballast, "wb", buffering=0) as file:
                    while True:
                        file.write(bytes(64))
            except OSError:
                pass

        def empty():
            ballast.unlink()
        """
    out = script(textwrap.dedent(text) + textwrap.dedent(FULL), tmp_path)
    if "not permitted" in out:
        pytest.skip("may not mount a file system")
    assert "right" in out


def test_read_only_folder():
    """Noticed before the first step, and what is there stays."""
    text = """
        run(folder, 3)
        save(folder / "model.abx", {"x": np.arange(4.0)})
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        folder.chmod(0o555)
        for file in folder.iterdir():
            file.chmod(0o444)
        if os.getuid() == 0:
            os.setuid(65534)  # root may write anywhere

        steps = []
        for call in (
            lambda: run(folder, 6, hooks=[lambda event: steps.append(event)]),
            lambda: run(folder / "new", 6, hooks=[lambda event: steps.append(event)]),
            lambda: save(folder / "model.abx", {"x": np.arange(4.0)}),
        ):
            try:
                call()
            except PermissionError as error:
                assert str(folder) in str(error.filename)
            else:
                raise AssertionError("wrote to a read-only folder")
        assert not steps
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
        assert FileCheckpoints(folder).restore()[0] == 3
        print("right")
        """
    # Not below pytest's own folder, which others may not enter.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder = pathlib.Path(place, "folder")
        folder.mkdir()
        assert "right" in script(text, folder)
        folder.chmod(0o755)


def test_two_processes_in_one_folder(tmp_path):
    """The second one is refused, and the first is not disturbed."""
    text = """
        def hook(event):
            if event.kind == "step" and event.step == 4:
                print("four steps", flush=True)
                sys.stdin.readline()

        run(folder, 8, hooks=[hook])
        """
    first = subprocess.Popen(
        [sys.executable, "-c", SMALL + textwrap.dedent(text), tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert first.stdout is not None
    assert "four" in first.stdout.readline()
    with pytest.raises(ValueError, match=f"in use by process {first.pid}.*another fol"):
        train(3, tmp_path)
    with pytest.raises(ValueError, match="in use by process"):
        train(3, tmp_path, resume=False)
    with pytest.raises(ValueError, match="in use by process"):
        FileCheckpoints(tmp_path).save(1, {"x": np.zeros(2)}, {})
    assert FileCheckpoints(tmp_path).restore()[0] == 3
    _, errors = first.communicate("go on\n")
    assert first.returncode == 0, errors
    assert FileCheckpoints(tmp_path).restore()[0] == 8
    with pytest.raises(ValueError, match="another run"):
        train(3, tmp_path)
