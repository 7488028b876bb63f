"""Linear branched equations: order, modes, structures, stability, bad input."""

import dataclasses
import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
import scipy.linalg
from jax.extend.core import jaxprs_in_params
from jax.test_util import check_grads

import arborax as abx
from arborax.lifts import Blocks
from arborax.solvers import run_flows
from arborax.training import read_log

from .cases import driver


M = abx.models
KEY = jr.key(0)
SMALL = dict(hidden=4, window=4, key=KEY)


def fine_paths(paths=64, steps=2048, dim=2):
    noise = np.random.default_rng(0).normal(size=(paths, steps, dim)) / steps**0.5
    xs = np.concatenate([np.zeros((paths, 1, dim)), np.cumsum(noise, axis=1)], axis=1)
    return noise, jnp.asarray(xs)


def strong_errors(change=lambda alg, lams: lams, depth=2):
    """Root mean square errors at 8, 16, .. windows against the fine grid: an Itô
    equation at depth two and Itô-Taylor steps of order 3/2 (with all iterated sums, the
    drift corrected), or a Stratonovich one at depth three and exponentials of the
    steps."""
    rng = np.random.default_rng(1)
    matrices = 0.6 * rng.normal(size=(2, 4, 4)) / 2
    noise, xs = fine_paths()
    y = np.broadcast_to(np.ones(4), (len(noise), 4))
    h = 1 / noise.shape[1]
    for step in np.moveaxis(noise, 1, 0):
        a = np.einsum("pd,dij->pij", step, matrices)
        # (dX)^2 - h instead of its root, on the diagonal of the double sums.
        square = a @ a - h * np.einsum("dij,djk->ik", matrices, matrices)
        flow = a + square / 2
        if depth > 2:
            flow = a + a @ a / 2 + a @ a @ a / 6
        y = y + np.einsum("pij,pj->pi", flow, y)
    alg = abx.Ito(2, 2) if depth == 2 else abx.Shuffle(2, depth)
    steps = jnp.diff(xs, axis=1)
    brackets = jnp.broadcast_to(h * jnp.eye(2), (*steps.shape, 2))
    fields = abx.LinearFields(jnp.asarray(matrices)).prepare(alg)
    blocks = fields.blocks
    errors = []
    for windows in (8, 16, 32, 64):
        path = abx.SampledPath(
            jnp.linspace(0.0, 1.0, xs.shape[1]),
            xs,
            brackets=brackets if depth == 2 else None,
        )
        size = noise.shape[1] // windows
        lams = abx.windowed_log_signature(path, alg, size)
        lams = change(alg, lams)
        omega = jnp.einsum("pwl,lijn->pwijn", lams, fields.lifted)
        flows = blocks.exponential(omega)
        run = lambda f: run_flows(blocks, f, jnp.ones((4, 1)))[-1, :, 0]  # noqa: E731
        errors.append(np.sqrt(np.mean((jax.vmap(run)(flows) - y) ** 2)))
    return np.array(errors)


def slope(errors):
    return np.polyfit(np.log2([8, 16, 32, 64]), np.log2(errors), 1)[0]


def test_strong_order_one_and_what_it_takes():
    def without(weight_two):
        def change(alg, lams):
            keys = alg.primitive_basis
            drop = [weight_two(key) for key in keys]
            return jnp.where(jnp.asarray(drop), 0.0, lams)

        return change

    alg = abx.Ito(2, 2)
    letters = len(alg.letters)
    full = strong_errors()
    assert -1.15 < slope(full) < -0.85, full
    area = {key for key in alg.primitive_basis if len(key) == 2}
    brackets = set(alg.primitive_basis[2:]) - area
    assert len(area) == 1 and len(brackets) == 3 and letters == 5
    no_area = strong_errors(without(lambda key: key in area))
    assert -0.65 < slope(no_area) < -0.3, no_area
    no_bracket = strong_errors(without(lambda key: key in brackets))
    assert slope(no_bracket) > -0.1 and no_bracket[-1] > 10 * full[-1], no_bracket


def test_strong_order_three_halves_at_depth_three():
    full = strong_errors(depth=3)
    assert -1.65 < slope(full) < -1.35, full
    pairs = [len(key) < 3 for key in abx.Shuffle(2, 3).primitive_basis]
    kept = jnp.asarray(pairs)
    less = strong_errors(lambda alg, lams: jnp.where(kept, lams, 0.0), depth=3)
    assert -1.25 < slope(less) < -0.8 and less[-1] > 4 * full[-1], less


@pytest.mark.parametrize("structure", ["dense", "block", "diagonal"])
@pytest.mark.parametrize(
    "alg", [abx.Ito(2, 2), abx.MuntheKaasWright(2, 3)], ids=lambda a: type(a).__name__
)
def test_modes_agree_with_solve(alg, structure):
    options = dict(structure=structure, block=2, damped=False, **SMALL)
    model = M.LinearBNRDE(alg, 1, **options)
    path = driver(model, 14)
    other = M.LinearBNRDE(alg, 1, mode="associative", **options)
    np.testing.assert_allclose(other(path), model(path), rtol=1e-12, atol=1e-13)
    # The state as the solution of an equation with these fields.
    layer = model.layers[0]
    blocks = layer.blocks
    full = blocks.matrix(layer.matrices)
    full = jnp.concatenate([full, layer.matrices[:, :, -1:]], axis=2)
    full = jnp.moveaxis(full, -1, 1)  # (channels, blocks, k, k + 1)
    fields = abx.LinearFields(full[..., :-1], full[..., -1].reshape(2, 4))
    control = model.prepare(path)
    states = model.states(control)
    np.testing.assert_allclose(
        abx.solve(fields, states[0], control).ys, states, rtol=1e-11, atol=1e-12
    )


def test_outputs_at_windows_and_last():
    make = ft.partial(M.LinearBNRDE, abx.Shuffle(2, 2), 1, layers=2, **SMALL)
    model = make()
    path = driver(model, 12)
    at_samples = model(path)
    at_knots = make(outputs="windows")(path)
    # The basepoint is the first knot; samples are points 1, 2, .. of the control.
    np.testing.assert_allclose(at_knots[1:], at_samples[3::4], rtol=1e-10, atol=1e-12)
    last = make(outputs="last")(path)
    np.testing.assert_allclose(last, at_samples[-1], rtol=1e-10, atol=1e-12)


def test_windows_by_time():
    """Knots at every fourth sample are windows of four samples; at knots between
    samples the states are products of exponentials of the piecewise linear path."""
    model = M.LinearBNRDE(abx.Shuffle(2, 1), 1, basepoint=False, **SMALL)
    path = driver(model, 13)
    control = abx.rough_path(None, path, model.alg, knots=path.ts[::4])
    np.testing.assert_allclose(model(control), model.at_knots(path), rtol=1e-10)
    knots = np.array([0.1, 0.35, 0.77, 1.1])
    control = abx.rough_path(None, path, model.alg, knots=jnp.asarray(knots))
    assert model(control).shape == (4, 1)
    layer = model.layers[0]
    a = np.asarray(layer.matrices)[..., 0]  # (channels, 4, 5), offsets last
    square = np.concatenate([a, np.zeros((2, 1, 5))], axis=1)
    steps = np.diff([np.interp(knots, path.ts, x) for x in np.asarray(path.xs).T]).T
    y = np.append(np.asarray(layer.start(path.xs[0])), 1.0)
    for step, state in zip(steps, np.asarray(model.states(control))[1:]):
        y = scipy.linalg.expm(np.einsum("d,dij->ij", step, square)) @ y
        np.testing.assert_allclose(state, y[:4], rtol=1e-9)


def test_padding_is_exact():
    model = M.LinearBNRDE(abx.Ito(2, 2), 1, layers=2, brackets="realised", **SMALL)
    path = driver(model, 8)
    xs = jnp.concatenate([path.xs, jnp.full((3, 2), jnp.nan)])
    ts = jnp.concatenate([path.ts, path.ts[-1] + jnp.arange(1.0, 4.0)])
    padded = abx.SampledPath(ts, xs, lengths=jnp.asarray(8))
    plain = abx.SampledPath(path.ts, path.xs)
    np.testing.assert_allclose(model(padded)[:8], model(plain), rtol=1e-10, atol=1e-12)


def test_diagonal_plus_low_rank():
    options = dict(structure="low-rank", rank=1, **SMALL)
    model = M.LinearBNRDE(abx.Ito(2, 2), 1, **options)
    layer = model.layers[0]
    full = np.asarray(layer.full_matrices())[..., 0]
    left, right = layer.factors
    for i in range(2):
        rest = full[i, :, :4] - np.asarray(left[i] @ right[i].T)
        np.testing.assert_allclose(
            rest, np.diag(layer.matrices[i, :, 0, 0]), atol=1e-15
        )
    path = driver(model, 9)
    dense = M.LinearBNRDE(abx.Ito(2, 2), 1, **options | dict(structure="dense"))
    dense = eqx.tree_at(
        lambda m: (m.layers[0].matrices, m.layers[0].initial, m.layers[0].gate),
        dense,
        (layer.full_matrices(), layer.initial, layer.gate),
    )
    dense = eqx.tree_at(lambda m: m.readout, dense, model.readout)
    np.testing.assert_allclose(model(path), dense(path), rtol=1e-12)
    with pytest.raises(ValueError, match="not of this form"):
        M.LinearBNRDE(abx.Ito(2, 2), 1, mode="associative", **options)


@pytest.mark.parametrize("structure", ["dense", "block", "diagonal", "low-rank"])
def test_every_structure_has_every_depth(structure):
    """One letter: whatever the depth, a Stratonovich flow is the exponential of its
    increment, and an Itô flow that of increment and bracket."""
    make = ft.partial(M.LinearBNRDE, structure=structure, block=2, rank=1)
    ts, xs = jnp.arange(9.0), jnp.asarray(np.random.default_rng(0).normal(size=(9, 1)))
    path = abx.SampledPath(ts, xs)
    outs = [make(abx.Shuffle(1, n), 1, **SMALL)(path) for n in (1, 2, 4)]
    np.testing.assert_allclose(outs, np.broadcast_to(outs[0], (3, 9, 1)), rtol=1e-12)
    realised = dict(brackets="realised", **SMALL)
    ito = [make(abx.Ito(1, n), 1, **realised)(path) for n in (2, 4)]
    np.testing.assert_allclose(ito[1], ito[0], rtol=1e-12)
    assert np.abs(ito[0] - outs[0]).max() > 1e-3


@pytest.mark.parametrize("structure", ["dense", "block", "diagonal", "low-rank"])
def test_gradients(structure):
    model = M.LinearBNRDE(
        abx.Ito(2, 2), 1, structure=structure, block=2, contractive=True, **SMALL
    )
    path = driver(model, 7)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    # Off the rotations of the start, where contractions have a kink.
    noise = np.random.default_rng(0)
    arrays = jax.tree.map(lambda x: x + 0.2 * noise.normal(size=x.shape), arrays)

    def loss(arrays, xs):
        moved = dataclasses.replace(path, xs=xs, check=False)
        return jnp.sum(eqx.combine(arrays, static)(moved) ** 2)

    args = (arrays, path.xs)
    check_grads(jax.jit(loss), args, order=1, modes=["rev"], rtol=1e-4, eps=1e-6)


def count_primitives(function, *args, name="arborax_einsum"):
    def count(jaxpr):
        total = 0
        for eqn in jaxpr.eqns:
            total += eqn.primitive.name == name
            total += sum(count(sub) for sub in jaxprs_in_params(eqn.params))
        return total

    return count(jax.make_jaxpr(function)(*args).jaxpr)


def test_associative_mode_has_logarithmic_depth():
    blocks = Blocks(2, 3)
    y = jnp.ones((2, 3))

    def products(windows, mode):
        flows = jnp.ones((windows, 2, 2, 3))
        return count_primitives(lambda f: run_flows(blocks, f, y, mode), flows)

    # Two products per level: one on the way down, one on the way up.
    counts = [products(2**k, "associative") for k in range(4, 9)]
    assert np.diff(counts).tolist() == [2, 2, 2, 2]
    assert products(16, "scan") == products(256, "scan")


def test_associative_models_have_logarithmic_depth():
    """The whole model, from samples to the last output."""

    def products(windows, mode):
        model = M.LinearBNRDE(
            abx.Shuffle(2, 2), 1, outputs="last", mode=mode, **SMALL | dict(window=2)
        )
        xs = jnp.ones((2 * windows, 2))
        ts = jnp.arange(2.0 * windows)
        return count_primitives(lambda x: model(abx.SampledPath(ts, x)), xs)

    counts = [products(2**k, "associative") for k in range(3, 8)]
    assert np.diff(counts).tolist() == [2, 2, 2, 2]
    assert products(8, "scan") == products(128, "scan")


@pytest.mark.parametrize("mode", ["scan", "associative"])
def test_lowers_for_accelerators(mode):
    model = M.LinearBNRDE(abx.Ito(2, 2), 1, mode=mode, layers=2, **SMALL)
    path = driver(model, 9)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)

    def step(arrays, xs):
        moved = dataclasses.replace(path, xs=xs, check=False)
        return jax.grad(lambda a: jnp.sum(eqx.combine(a, static)(moved)))(arrays)

    for platform in ("cuda", "tpu"):
        shapes = jax.tree.map(jnp.asarray, (arrays, path.xs))
        exported = jax.export.export(jax.jit(step), platforms=[platform])(*shapes)
        assert exported.platforms == (platform,)


@pytest.mark.parametrize("structure", ["dense", "block", "diagonal", "low-rank"])
def test_damped_equation(structure):
    """Against Itô-Taylor steps of dY = (A_i Y + b_i) dX^i - k A_i^T (A_j Y + b_j)
    d[X]^ij on a Brownian path, with k from 1 to 1/2 over the blocks."""
    options = dict(structure=structure, block=2, rank=1, **SMALL | dict(window=64))
    make = ft.partial(M.LinearBNRDE, abx.Ito(2, 2), 1, basepoint=False, **options)
    model = make()
    # Matrices that are not skew, with a transpose that matters.
    model = eqx.tree_at(
        lambda m: m.layers[0].matrices,
        model,
        replace_fn=lambda a: 6 * a + 0.3 * jnp.cos(jnp.arange(a.size)).reshape(a.shape),
    )
    steps = 2**13
    _, xs = fine_paths(1, steps)
    brackets = jnp.broadcast_to(jnp.eye(2) / steps, (steps, 2, 2))
    path = abx.SampledPath(jnp.linspace(0, 1, steps + 1), xs[0], brackets=brackets)
    layer, states = model.layers[0], np.asarray(model.states(path))
    full = layer.full_matrices()
    a = np.moveaxis(np.asarray(layer.blocks.matrix(full)), -1, 1)
    b = np.moveaxis(np.asarray(full[:, :, -1]), -1, 1)
    y = np.asarray(layer.start(xs[0, 0])).T  # (blocks, size)
    strengths = np.linspace(1, 0.5, len(y))
    for dx in np.diff(xs[0], axis=0):
        fields = np.einsum("dnij,nj->dni", a, y) + b
        step = np.einsum("d,dni->ni", dx, fields)
        square = np.einsum("d,dnij,nj->ni", dx, a, step)
        square = square - np.einsum("dnij,dnj->ni", a, fields) / steps
        drift = strengths[:, None] * np.einsum("dnij,dni->nj", a, fields) / steps
        y = y + step + square / 2 - drift
    error = np.abs(states[-1] - y.reshape(-1)).max()
    assert error < 0.005 * np.abs(y).max(), error
    other = make(damped=False)
    other = eqx.tree_at(lambda m: m.layers[0].matrices, other, layer.matrices)
    assert np.abs(other.states(path)[-1] - y.reshape(-1)).max() > 10 * error
    # In every algebra with brackets.
    for alg in (abx.GrossmanLarson(2, 2), abx.MuntheKaasWright(2, 2)):
        same = M.LinearBNRDE(alg, 1, basepoint=False, **options)
        same = eqx.tree_at(lambda m: m.layers[0].matrices, same, layer.matrices)
        np.testing.assert_allclose(same.states(path), states, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("damped", [True, False])
def test_lengths_under_quadratic_variation(damped):
    """A rotation of speed a changes lengths by e^(a^2 [X] / 2). Damped, the first block
    has the inverse and the last one keeps them. A Stratonovich model does not know of
    damping."""
    options = dict(affine=False, damped=damped, **SMALL)
    model = M.LinearBNRDE(abx.Ito(1, 2), 1, structure="diagonal", **options)
    noise = np.random.default_rng(0).normal(size=(40, 1))
    path = abx.SampledPath(np.arange(40.0), noise)
    path = dataclasses.replace(path, brackets=jnp.diff(path.xs, axis=0)[..., None] ** 2)
    states = model.states(path).reshape(-1, 2, 2)  # a basepoint comes first
    total = jnp.sum(path.brackets)
    lengths = jnp.linalg.norm(states, axis=-1)
    speeds = model.layers[0].matrices[0, 1, 0]
    signs = np.array([-1.0, 0.0]) if damped else 1.0
    np.testing.assert_allclose(
        lengths[-1] / lengths[0], np.exp(signs * speeds**2 * total / 2), rtol=1e-9
    )
    path = abx.SampledPath(path.ts, path.xs)
    first, second = (
        M.LinearBNRDE(abx.Shuffle(1, 3), 1, **SMALL, damped=d)(path)
        for d in (damped, False)
    )
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize("kind", ["white noise", "random walk"])
def test_many_steps_stay_finite(kind):
    """A hundred thousand steps with a quadratic variation as large as their number: the
    start, other weights, and contractions of an equation that is not damped."""
    steps = 100_000
    xs = jr.normal(jr.key(1), (steps, 2), jnp.float32)
    xs = jnp.cumsum(xs, axis=0) if kind == "random walk" else xs
    path = abx.SampledPath(jnp.linspace(0, 1, steps, dtype=jnp.float32), xs)
    run = eqx.filter_jit(
        eqx.filter_value_and_grad(lambda m, path: jnp.sum(m(path) ** 2))
    )
    for options, noise in (({}, 0.0), ({}, 0.3), (dict(damped=False), 0.0)):
        model = M.LinearBNRDE(
            abx.Ito(2, 2),
            1,
            hidden=8,
            outputs="last",
            contractive=bool(options),
            brackets="realised",
            dtype=jnp.float32,
            key=KEY,
            **options,
        )
        shape = model.layers[0].matrices.shape
        model = eqx.tree_at(
            lambda m: m.layers[0].matrices,
            model,
            replace_fn=lambda a: a + noise * jr.normal(KEY, shape, a.dtype),  # noqa: B023
        )
        value, grads = run(model, path)
        assert jnp.isfinite(value)
        assert all(jnp.all(jnp.abs(g) < 1e3) for g in jax.tree.leaves(grads))


def test_contractions():
    rng = np.random.default_rng(0)
    for blocks in (Blocks(4, 3, True), Blocks(1, 3), Blocks(2, 3, True, rotation=True)):
        shape = (20, blocks.size, blocks.columns, 3)
        x = blocks.contract(jnp.asarray(rng.normal(size=shape)))
        flow = np.moveaxis(np.asarray(blocks.matrix(blocks.exponential(x))), -1, 1)
        norms = np.linalg.norm(flow + np.eye(blocks.size), 2, axis=(-2, -1))
        assert 0.8 < norms.max() < 1 + 1e-12
        np.testing.assert_allclose(blocks.contract(x), x, atol=1e-14)


@pytest.mark.parametrize(
    "options",
    [dict(structure="sparse"), dict(mode="parallel"), dict(outputs="all")],
    ids=str,
)
def test_unknown_choices(options):
    """Types are checked in this suite, by name before the model sees them."""
    (name,) = options
    with pytest.raises((ValueError, TypeError), match=name):
        M.LinearBNRDE(abx.Ito(2, 2), 1, key=KEY, **options)


def test_exploding_states_are_named():
    model = M.LinearBNRDE(abx.Shuffle(2, 2), 1, layers=2, **SMALL)
    path = driver(model, 18)
    grow = lambda k, by: eqx.tree_at(  # noqa: E731
        lambda m: m.layers[k].matrices, model, replace_fn=lambda a: a + by
    )
    wild = grow(1, 1e5)
    with pytest.raises(ValueError, match="layer 1 is not finite from window"):
        wild(path)
    compiled = eqx.filter_jit(lambda m, p: m(p))
    assert jnp.any(jnp.isnan(compiled(wild, path)))
    # From the third window on, where the driver of the first layer jumps.
    far = dataclasses.replace(path, xs=path.xs.at[10:].add(1e200), check=False)
    with abx.debug_checks(), pytest.raises(Exception, match="layer 0 .* window 2 on"):
        jax.block_until_ready(compiled(grow(0, 1.0), far))
    with pytest.raises(ValueError, match="layer 0 is not finite from window"):
        grow(0, 1e5).states(path)
    state, _ = wild.start(path.ts[0], path.xs[0])
    with pytest.raises(ValueError, match="layer 1 is not finite after this sample"):
        for t, x in zip(path.ts[1:], path.xs[1:]):
            state, _ = wild.update(state, t, x)
    assert jnp.all(jnp.isfinite(compiled(model, path)))


def test_training_names_what_explodes(tmp_path):
    """The weights of the second layer grow until its states overflow."""
    model = M.LinearBNRDE(abx.Shuffle(2, 2), 1, layers=2, **SMALL)
    paths = M.brownian_driver(jnp.linspace(0.0, 1.0, 18), 1, (6,), key=KEY)

    def loss(model, xs, key):
        one = lambda x: jnp.sum(model(abx.SampledPath(paths.ts, x, check=False)))  # noqa: E731
        return jnp.mean(jax.vmap(one)(xs))

    only = eqx.tree_at(
        lambda m: m.layers[1].matrices, jax.tree.map(lambda _: False, model), True
    )
    result = abx.fit(
        model,
        paths.xs,
        loss,
        steps=9,
        optimiser=optax.sgd(1e8),
        trainable=only,
        clip=None,
        key=KEY,
        log=tmp_path / "log.jsonl",
        progress=False,
    )
    assert result.stop == "non-finite" and result.failure["step"] > 0
    named = "the state of layer 1 is not finite from window"
    assert named in result.failure["cause"] and named in result.message
    jax.effects_barrier()  # no failed callback is left behind
    (stop,) = read_log(tmp_path / "log.jsonl", "stop")
    assert named in stop["failure"]["cause"]
    # A user's own NaN has no such name.
    result = abx.fit(
        model,
        paths.xs,
        lambda m, xs, key: loss(m, xs, key) * jnp.nan,
        steps=1,
        key=KEY,
        progress=False,
    )
    assert "cause" not in result.failure and "learning rate" in result.message


def test_bad_requests():
    alg = abx.Ito(2, 2)
    with pytest.raises(ValueError, match="multiple"):
        M.LinearBNRDE(alg, 1, hidden=6, key=KEY)
    with pytest.raises(ValueError, match="`rank` must be at most"):
        M.LinearBNRDE(alg, 1, structure="low-rank", rank=5, **SMALL)
    with pytest.raises(ValueError, match="in which order"):
        M.LinearBNRDE(abx.MultiIndex(1, 2), 1, **SMALL)
    model = M.LinearBNRDE(alg, 1, **SMALL)
    path = abx.SampledPath(jnp.arange(3.0), jnp.ones((3, 2)))
    with pytest.raises(ValueError, match="brackets"):
        model(path)
    # A window that is longer than the path holds all of it.
    path = driver(model, 6)
    long, exact = (M.LinearBNRDE(alg, 1, **SMALL | dict(window=w)) for w in (100, 6))
    np.testing.assert_allclose(long(path), exact(path), rtol=1e-10, atol=1e-12)
    # Windows without length are refused, by points and by knots.
    with pytest.raises(ValueError, match="`window` must be"):
        M.LinearBNRDE(alg, 1, **SMALL | dict(window=0))
    with pytest.raises(ValueError, match="increas"):
        abx.rough_path(None, path, alg, knots=jnp.asarray([0.1, 0.5, 0.5, 1.0]))
