"""Data-parallel `fit`: eight virtual devices, and two processes over loopback."""

import os
import socket
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from arborax.training import data_mesh, fit, load

from .helpers import curve, leaves_close, mlp, noisy_objective, regression


KEY = jr.PRNGKey(0)


def global_objective(model, batch, key):
    """Not a mean over samples: couples the whole batch, as an MMD does."""
    x, y = batch
    noise = jr.normal(key, x.shape, x.dtype)
    out = jax.vmap(model)(x + 0.1 * noise)
    return jnp.mean((out - y) ** 2) + (jnp.mean(out) - jnp.mean(y)) ** 2


def run(mesh, **options):
    x, y = regression(64)
    arguments = dict(
        steps=10,
        batch_size=32,
        optimiser=optax.adam(1e-2),
        validation=(x[:20], y[:20]),
        validate_every=4,
        key=KEY,
        progress=False,
        mesh=mesh,
    )
    return fit(mlp(), (x, y), global_objective, **(arguments | options))


@pytest.mark.skipif(len(jax.devices()) < 8, reason="needs eight (virtual) devices")
def test_eight_devices_equal_one(tmp_path):
    one = run(None)
    traces = []

    def counted(model, batch, key):
        traces.append(batch[0].shape)
        return global_objective(model, batch, key)

    x, y = regression(64)
    eight = fit(
        mlp(),
        (x, y),
        counted,
        steps=10,
        batch_size=32,
        optimiser=optax.adam(1e-2),
        metric=lambda m, v, k: float(global_objective(m, v, k)),
        validation=(jnp.asarray(x[:20]), jnp.asarray(y[:20])),
        validate_every=4,
        key=KEY,
        progress=False,
        mesh=data_mesh(8),
        checkpoint=tmp_path,
    )
    assert traces == [(32, 3)]
    leaves_close(one.model, eight.model, 1e-5)
    np.testing.assert_allclose(one.history.loss, eight.history.loss, rtol=1e-5)
    np.testing.assert_allclose(one.best_metric, eight.best_metric, rtol=1e-5)
    # The result lives on one device again, and on one device the run goes on.
    assert len(eight.model.layers[0].weight.devices()) == 1
    assert run(None, steps=12, checkpoint=tmp_path).steps == 12


@pytest.mark.skipif(len(jax.devices()) < 8, reason="needs eight (virtual) devices")
def test_any_mesh_with_default_metric():
    one = run(None)
    mesh = jax.make_mesh((2, 2), ("a", "b"), devices=jax.devices()[:4])
    four = run(mesh, key=jr.key(0))
    leaves_close(one.model, four.model, 1e-5)
    np.testing.assert_allclose(curve(one)[1], curve(four)[1], rtol=1e-5)
    with pytest.raises(ValueError, match="multiple of the 8 devices"):
        run(data_mesh(8), batch_size=12)
    with pytest.raises(ValueError, match="asked for 99 devices"):
        data_mesh(99)


SCRIPT = textwrap.dedent(
    """
    import sys
    import arborax.training as training
    here, port, index, folder = sys.argv[1:5]
    mesh = training.initialise_distributed(f"127.0.0.1:{port}", 2, int(index))
    import jax, jax.random as jr, optax
    sys.path.insert(0, here)
    from helpers import mlp, noisy_objective, regression
    assert jax.process_count() == 2 and mesh.size == 4
    x, y = regression(64)

    def run(steps, **options):
        return training.fit(
            mlp(), (x, y), noisy_objective, steps=steps, batch_size=32,
            optimiser=optax.adam(1e-2), validation=(x[:20], y[:20]), validate_every=4,
            key=jr.PRNGKey(0), progress=False, mesh=mesh,
            # Only the folder of process 0 is used.
            checkpoint=f"{folder}/{index}", **options,
        )

    first = run(6)
    second = run(20, hooks=[lambda e: index == "1" and e.step >= 11])
    assert second.stop == "hook" and second.steps == 12, second.message
    assert len(second.history.loss) == 12
    content = {"model": second.model, "losses": second.history.loss}
    training.save(f"{folder}/model-{index}.abx", content)
    """
)


def test_two_processes_equal_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
    }
    here = os.path.dirname(__file__)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, here, port, str(i), str(tmp_path)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for i in range(2)
    ]
    try:
        outputs = [p.communicate(timeout=300)[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
    for p, output in zip(processes, outputs, strict=True):
        assert p.returncode == 0, output
    assert (tmp_path / "0").is_dir() and not (tmp_path / "1").exists()

    x, y = regression(64)
    one = fit(
        mlp(),
        (x, y),
        noisy_objective,
        steps=12,
        batch_size=32,
        optimiser=optax.adam(1e-2),
        validation=(x[:20], y[:20]),
        validate_every=4,
        key=KEY,
        progress=False,
    )
    a, b = (load(tmp_path / f"model-{i}.abx")["model"] for i in range(2))
    assert (tmp_path / "model-0.abx").read_bytes() == (
        tmp_path / "model-1.abx"
    ).read_bytes()
    leaves_close(one.model, a, 1e-4)
    leaves_close(a, b, 0)
