"""`fit`: one compiled step, best model, early stop, failures, interrupts, dtypes."""

import inspect
import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from arborax.training import first_nonfinite, fit, read_log

from .helpers import (
    curve,
    leaves_close,
    leaves_equal,
    mlp,
    noisy_objective,
    objective,
    regression,
)


KEY = jr.PRNGKey(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_learns_with_one_trace(dtype):
    x, y = regression(96, dtype=dtype)
    counted = eqx.debug.assert_max_traces(objective, max_traces=1)
    model = mlp(dtype=dtype)
    result = fit(
        model,
        (x, y),
        counted,
        epochs=30,
        batch_size=32,
        learning_rate=3e-2,
        metric=lambda model, data, key: objective(model, data, key),
        validation=(x[:32], y[:32]),
        key=KEY,
        progress=False,
    )
    assert result.stop == "steps" and result.steps == 90 == len(result.history.loss)
    steps, values = curve(result)
    assert list(steps) == list(range(0, 91, 3))
    assert result.best_metric == values.min() < 0.05 * values[0]
    assert result.best_step == steps[values.argmin()]
    assert result.model.layers[0].weight.dtype == dtype
    again = objective(result.model, (jnp.asarray(x[:32]), jnp.asarray(y[:32])), KEY)
    np.testing.assert_allclose(float(again), result.best_metric, rtol=1e-5)
    timings = result.timings
    assert timings.compile > 0 and 0 < timings.step < 1 and timings.to_best > 0
    # The caller's model was not donated.
    assert np.isfinite(np.asarray(model.layers[0].weight)).all()


def test_matches_a_plain_loop():
    x, y = regression(32)
    model = mlp()
    result = fit(
        model,
        (x, y),
        objective,
        steps=5,
        optimiser=optax.sgd(1e-2),
        clip=None,
        key=KEY,
        progress=False,
    )
    params, static = eqx.partition(model, eqx.is_array)

    @jax.jit
    def step(params):
        def loss(p):
            return objective(
                eqx.combine(p, static), (jnp.asarray(x), jnp.asarray(y)), 0
            )

        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, jax.grad(loss)(params))

    for _ in range(5):
        params = step(params)
    leaves_close(result.model, params, 1e-5)
    assert result.best_metric is None and result.best_step == 5


def test_each_epoch_is_a_new_permutation():
    seen = []

    def data_objective(model, batch, key):
        jax.debug.callback(lambda b: seen.append(np.asarray(b)), batch, ordered=True)
        return jnp.mean(model**2)

    fit(
        jnp.ones(2),
        np.arange(10),
        data_objective,
        epochs=3,
        batch_size=4,
        key=KEY,
        progress=False,
    )
    jax.effects_barrier()
    epochs = [np.concatenate(seen[i : i + 2]) for i in (0, 2, 4)]
    assert all(len(set(e)) == 8 for e in epochs)
    assert not np.array_equal(epochs[0], epochs[1])


def test_streams_and_device_arrays():
    x, y = regression(64)

    @jax.jit
    def data(key, step):
        rows = jr.randint(key, (16,), 0, 64)
        return jnp.asarray(x)[rows], jnp.asarray(y)[rows]

    kwargs = dict(steps=20, key=KEY, progress=False, optimiser=optax.sgd(0.1))
    result = fit(mlp(), data, noisy_objective, **kwargs)
    assert len(result.history.aux["mean"]) == 20
    assert result.history.loss[-1] < result.history.loss[0]
    host = fit(mlp(), (x, y), noisy_objective, batch_size=16, **kwargs)
    device = (jnp.asarray(x), jnp.asarray(y))
    device = fit(mlp(), device, noisy_objective, batch_size=16, **kwargs)
    assert leaves_equal(host.model, device.model)


def test_changing_batch_shape_is_an_error():
    def data(key, step):
        return np.ones((3 if step == 2 else 4, 2), np.float32)

    def loss(model, batch, key):
        return jnp.mean((batch @ model) ** 2)

    with pytest.raises(ValueError, match=r"float32\[4, 2\], got float32\[3, 2\]"):
        fit(jnp.ones(2, jnp.float32), data, loss, steps=5, key=KEY, progress=False)


def test_patience_and_mode():
    calls = []

    def metric(model, validation, key):
        calls.append(np.asarray(key))
        return [0.0, 2.0, 1.0, 1.5, np.nan, 9.0][len(calls) - 1], {"calls": len(calls)}

    x, y = regression(16)
    result = fit(
        mlp(),
        (x, y),
        objective,
        steps=100,
        metric=metric,
        mode="max",
        validate_every=2,
        patience=3,
        key=KEY,
        progress=False,
    )
    assert result.stop == "patience" and result.steps == 8
    assert result.best_metric == 2.0 and result.best_step == 2
    assert result.history.validation[2]["calls"] == 3
    assert all(np.array_equal(k, calls[0]) for k in calls)
    assert not leaves_equal(result.model, result.last)


def test_initial_model_can_be_the_best():
    x, y = regression(16)
    model = mlp()
    result = fit(
        model,
        (x, y),
        objective,
        steps=4,
        metric=lambda m, v, k: float(not leaves_equal(m, model)),
        validate_every=2,
        key=KEY,
        progress=False,
    )
    assert result.best_step == 0 and leaves_equal(result.model, model)


def test_default_metric_is_the_mean_objective():
    x, y = regression(50)
    result = fit(
        mlp(),
        (x, y),
        objective,
        steps=1,
        batch_size=20,
        validation=(x, y),
        key=KEY,
        progress=False,
    )
    full = objective(mlp(), (jnp.asarray(x), jnp.asarray(y)), KEY)
    _, values = curve(result)
    np.testing.assert_allclose(values[0], float(full), rtol=1e-5)


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_non_finite_keeps_the_last_good_weights(where, tmp_path):
    def data(key, step):
        return np.asarray(step, np.float32)

    def loss(model, step, key):
        bad = step == 4
        if where == "loss":
            value = jnp.sum(model**2) + jnp.where(bad, jnp.nan, 0.0)
        else:
            value = jnp.sum(model**2) + jnp.sqrt(jnp.where(bad, 0.0 * model[0] ** 2, 1))
        return value, {"window": jnp.asarray([1, 7])}

    record = []
    log = tmp_path / "log.jsonl"
    result = fit(
        jnp.ones(2, jnp.float32),
        data,
        loss,
        steps=50,
        optimiser=optax.sgd(0.1),
        hooks=[
            lambda e: record.append(e.model()) if e.kind in ("start", "step") else None
        ],
        checkpoint=tmp_path / "run",
        checkpoint_every=1,
        log=log,
        key=KEY,
        progress=False,
    )
    assert result.stop == "non-finite" and result.steps == 4
    assert result.failure["step"] == 4
    assert "step 4" in result.message and "[1, 7]" in result.message
    assert np.isfinite(result.model).all()
    # record[k] are the weights after k steps; those at step 4 gave a nan loss.
    good = record[3] if where == "loss" else record[4]
    assert leaves_equal(result.model, good)
    assert len(result.history.loss) == 5
    (stop,) = read_log(log, "stop")
    assert stop["stop"] == "non-finite" and stop["failure"]["aux"]["window"] == [1, 7]
    newest = sorted((tmp_path / "run").glob("checkpoint-*"))[-1]
    assert newest.name == "checkpoint-000000004.abx"


def test_first_nonfinite():
    values = np.zeros((4, 6, 2), np.float32)
    assert first_nonfinite(jnp.asarray(values), 1) == -1
    values[2, 5, 0], values[3, 3, 1] = np.nan, -np.inf
    assert jax.jit(first_nonfinite, static_argnums=1)(jnp.asarray(values), 1) == 3
    assert first_nonfinite(jnp.asarray(values)) == 2


def test_modules_with_static_fields_as_data():
    class Control(eqx.Module):
        """Stands for a batch of prepared controls."""

        increments: jax.Array
        depth: int = eqx.field(static=True)

    def loss(model, batch, key):
        control, y = batch
        out = jax.vmap(lambda c: jnp.sum(c.increments * model) * c.depth)(control)
        return jnp.mean((out - y) ** 2)

    x, y = regression(32)
    result = fit(
        jnp.zeros(3, jnp.float32),
        (Control(jnp.asarray(x), 2), y),
        loss,
        steps=60,
        batch_size=16,
        optimiser=optax.sgd(0.05),
        clip=None,
        validation=(Control(jnp.asarray(x), 2), y),
        key=KEY,
        progress=False,
    )
    np.testing.assert_allclose(result.model, [0.5, 1.0, 1.5], atol=0.1)


def test_late_discovery_without_hooks():
    def loss(model, step, key):
        return jnp.sum(model) * jnp.where(step == 2, jnp.inf, 1.0).astype(model.dtype)

    result = fit(
        jnp.ones(2, jnp.float32),
        lambda key, step: np.asarray(step, np.float32),
        loss,
        steps=10,
        optimiser=optax.sgd(0.1),
        key=KEY,
        progress=False,
    )
    assert result.stop == "non-finite" and result.failure["step"] == 2
    np.testing.assert_allclose(result.last, 1 - 0.1 * 0.7071068, rtol=1e-5)


@pytest.fixture
def listening():
    """A shell may have started the tests with Ctrl-C ignored, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("how", ["signal", "raise"])
def test_interrupt_saves_and_resumes(how, tmp_path, listening):
    x, y = regression(32)
    kwargs = dict(steps=12, batch_size=8, key=KEY, progress=False)
    kwargs |= dict(checkpoint_every=5, optimiser=optax.sgd(0.1, momentum=0.9))

    def interrupt(event):
        if event.kind == "step" and event.step == 3:
            if how == "raise":
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    first = fit(
        mlp(),
        (x, y),
        noisy_objective,
        hooks=[interrupt],
        checkpoint=tmp_path,
        **kwargs,
    )
    assert signal.getsignal(signal.SIGINT) is before
    assert first.stop == "interrupted" and first.steps == 3
    second = fit(mlp(), (x, y), noisy_objective, checkpoint=tmp_path, **kwargs)
    whole = fit(mlp(), (x, y), noisy_objective, **kwargs)
    assert second.stop == "steps" and leaves_equal(second.model, whole.model)
    assert second.history.loss == whole.history.loss


def test_hook_stops_and_progress_protocol():
    class Bar:
        seen, closed = [], False

        def update(self, step, info):
            self.seen.append((step, info["loss"]))

        def close(self):
            self.closed = True

    bar, kinds = Bar(), []

    def hook(event):
        kinds.append(event.kind)
        return event.step == 2

    x, y = regression(16)
    result = fit(
        mlp(),
        (x, y),
        objective,
        steps=9,
        validation=(x, y),
        validate_every=2,
        hooks=[hook],
        progress=lambda total, initial: bar,
        key=KEY,
    )
    assert result.stop == "hook" and result.steps == 2 and bar.closed
    assert [s for s, _ in bar.seen] == [1, 2]
    assert kinds == ["start", "validation", "step", "step", "validation", "stop"]


def test_tqdm_shows_the_time_left(capsys):
    x, y = regression(16)
    fit(mlp(), (x, y), objective, steps=3, key=KEY)
    text = capsys.readouterr().err
    assert "3/3" in text and "loss=" in text and "<" in text


def test_trainable_subtree_and_frozen_integers():
    class Model(eqx.Module):
        mlp: eqx.nn.MLP
        table: jax.Array
        scale: float

        def __call__(self, x):
            return self.mlp(x) * self.scale + self.table[0].astype(x.dtype)

    model = Model(mlp(), jnp.arange(3), 2.0)
    x, y = regression(16)
    spec = jax.tree.map(lambda _: False, model)
    spec = eqx.tree_at(lambda m: m.mlp.layers[1], spec, replace=True)
    result = fit(
        model, (x, y), objective, steps=3, trainable=spec, key=KEY, progress=False
    )
    assert leaves_equal(result.model.mlp.layers[0], model.mlp.layers[0])
    assert not leaves_equal(result.model.mlp.layers[1], model.mlp.layers[1])
    assert leaves_equal(result.model.table, model.table)


def test_typed_keys_and_schedules():
    x, y = regression(16)
    kwargs = dict(steps=3, progress=False, optimiser=optax.sgd(0.1))
    a = fit(mlp(), (x, y), noisy_objective, key=jr.key(0), **kwargs)
    b = fit(mlp(), (x, y), noisy_objective, key=jr.PRNGKey(0), **kwargs)
    assert leaves_equal(a.model, b.model)
    schedule = optax.constant_schedule(0.1)
    kwargs["optimiser"] = optax.sgd(schedule)
    c = fit(mlp(), (x, y), noisy_objective, key=KEY, **kwargs)
    leaves_close(a.model, c.model, 1e-6)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(steps=None), "exactly one of"),
        (dict(epochs=2), "exactly one of"),
        (dict(batch_size=99), "batch_size must be between 1 and"),
        (dict(patience=2), "patience needs"),
        (dict(optimiser="lion"), "optimiser. must be one of"),
        (dict(optimiser=optax.sgd(0.1), learning_rate=0.1), "brings its own"),
        (dict(clip=0.0), "clip must be positive"),
        (dict(average=1.0), "average must be in"),
        (dict(steps=0), "`steps` must be at least 1"),
        (dict(trainable=lambda _: False), "no trainable arrays"),
        (dict(data=(np.zeros(3), np.zeros(4))), "share the length"),
        (dict(data=(np.zeros(()), np.zeros(4))), "a scalar"),
        (dict(data=()), "holds no arrays"),
        (dict(data=lambda key, step: 0, steps=None, epochs=1), "has no epochs"),
        (dict(objective=lambda m, b, k: b[0][0]), "real scalar"),
        (dict(objective=lambda m, b, k: None), "got a NoneType"),
        (dict(objective=lambda m, b, k: (objective(m, b, k), 1, 2)), "got a tuple"),
        (dict(data=([1.0, 2.0], [1.0, 2.0])), "a list of numbers"),
        (dict(data=np.asarray(["a", "b"])), "dtype <U1; give numbers"),
        (dict(data=(np.zeros((0, 3)), np.zeros(0))), "data is empty"),
        (dict(learning_rate=-0.1), "learning_rate must be a number"),
        (dict(weight_decay=float("nan")), "weight_decay must be a number"),
        (dict(clip=float("nan")), "clip must be positive"),
        (dict(checkpoint=__file__), "need a folder.*is a file"),
        (dict(metric=lambda m, v, k: np.ones(2)), "metric must return a scalar"),
    ],
)
def test_clear_errors(change, message):
    args = dict(
        model=mlp(),
        data=regression(8),
        objective=objective,
        steps=1,
        key=KEY,
        progress=False,
    )
    with pytest.raises(ValueError, match=message):
        fit(**(args | change))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(key=0), "one JAX random key, got 0.*jax.random.key"),
        (dict(key=None), "one JAX random key"),
        (dict(key=jr.split(KEY, 2)), r"uint32\[2, 2\]"),
        (dict(steps=2.0), "`steps` must be a whole number, got 2.0"),
        (dict(batch_size=4.0), "`batch_size` must be a whole number"),
        (dict(model=eqx.nn.MLP), "the class MLP: build one"),
        (dict(objective=None), "`objective` must be a function"),
        (dict(objective=lambda m, b: 0.0), "called as .*but takes `.m, b.`"),
        (dict(data=lambda key: 0), "called as `data.key, step.`"),
        (dict(checkpoint=3), "`checkpoint` must be a folder"),
        (dict(hooks=print), "`hooks` must be a list of functions"),
        (dict(trackers=[3]), "`trackers` must be a list"),
    ],
)
def test_arguments_of_the_wrong_kind(change, message):
    args = dict(model=mlp(), data=regression(8), objective=objective, steps=1, key=KEY)
    plain = inspect.unwrap(fit)  # without the type checks of the tests
    with pytest.raises(TypeError, match=message) as error:
        plain(**(args | change), progress=False)
    assert len(str(error.value)) < 300


def test_bad_data_are_named():
    x, y = regression(16)
    x[3, 1], x[5] = np.nan, np.inf
    result = fit(
        mlp(), {"x": x, "y": y}, named_objective, steps=1, key=KEY, progress=False
    )
    assert result.stop == "non-finite"
    assert "the batch has NaN or infinity in ['x'] (4 of 48 numbers)" in result.message
    assert "learning rate" not in result.message
    x, y = regression(16)
    result = fit(
        mlp(),
        (x, y),
        objective,
        steps=1,
        validation=(x * np.nan, y),
        key=KEY,
        progress=False,
    )
    assert result.stop == "steps" and "metric was never finite" in result.message


def named_objective(model, batch, key):
    return objective(model, (batch["x"], batch["y"]), key)


def test_average_of_weights(tmp_path):
    """The average is validated and returned, and survives an interruption."""
    data, start = regression(), mlp()
    run = dict(steps=8, batch_size=16, key=KEY, progress=False)
    iterates, seen = [], []

    def collect(event):
        if event.kind == "step":
            iterates.append(event.model())

    def metric(model, validation, key):
        seen.append(model)
        return float(-len(seen))

    def numbers(model):
        arrays = jax.tree.leaves(eqx.filter(model, eqx.is_array))
        return [np.asarray(x) for x in arrays]

    fit(start, data, noisy_objective, hooks=[collect], **run)
    wanted = numbers(start)
    for n, model in enumerate(iterates):
        decay = min(0.4, (1 + n) / (10 + n))
        pairs = zip(wanted, numbers(model), strict=True)
        wanted = [decay * a + (1 - decay) * x for a, x in pairs]
    folder = dict(checkpoint=tmp_path, average=0.4)
    fit(start, data, noisy_objective, **folder, **{**run, "steps": 3})
    resumed = fit(start, data, noisy_objective, **folder, **run)
    whole = fit(start, data, noisy_objective, average=0.4, metric=metric, **run)
    assert leaves_equal(whole.model, seen[-1]) and leaves_equal(whole.last, seen[-1])
    assert leaves_equal(resumed.model, whole.model)
    for a, b in zip(wanted, numbers(whole.model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert not leaves_equal(whole.model, iterates[-1])


def test_average_leaves_out_weights_whose_loss_is_not_finite():
    def loss(w, batch, key):
        return jnp.where(w < 0.5, jnp.nan, w)

    run = dict(optimiser=optax.sgd(0.15), clip=None, average=0.5, key=KEY)
    data = np.zeros((4, 1), np.float32)
    start = jnp.ones((), jnp.float32)
    whole = fit(start, data, loss, steps=50, progress=False, **run)
    assert whole.stop == "non-finite" and whole.failure["step"] == 4
    short = fit(start, data, loss, steps=3, progress=False, **run)
    np.testing.assert_array_equal(whole.last, short.last)
    np.testing.assert_array_equal(whole.model, short.model)
