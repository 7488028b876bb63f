"""B-NRDE against the solvers, the log-NCDE and its own expansions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .cases import driver, KEY, SMALL, WINDOWED


M = abx.models


@eqx.filter_jit
def _call(model, path):
    return model(path)


@pytest.mark.parametrize("interpolation", ["taylor", "log-ode"])
def test_shuffle_on_vectors_is_log_ncde(interpolation):
    options = dict(
        hidden=6, width=7, window=4, basepoint=True, interpolation=interpolation
    )
    rival = M.LogNCDE(2, 2, **options, key=KEY)
    model = M.BNRDE(
        abx.Shuffle(2, 2), 2, activation=jax.nn.softplus, **options, key=jr.PRNGKey(9)
    )
    where = lambda m: (m.initial, m.vector_field, m.readout)  # noqa: E731
    model = eqx.tree_at(where, model, where(rival))
    path = driver(model, 18)
    np.testing.assert_allclose(
        _call(model, path), _call(rival, path), rtol=1e-6, atol=1e-9
    )


GEOMETRIES = {
    "vectors": (abx.Ito(2, 2), abx.Euclidean(4)),
    "trees": (abx.GrossmanLarson(2, 2), abx.Euclidean(4)),
    "rotations": (abx.MuntheKaasWright(2, 2), abx.SO(3)),
    "spd": (abx.Ito(2, 2), abx.SPD(2)),
}


def _geometric(name, **kw):
    alg, geometry = GEOMETRIES[name]
    small = {k: v for k, v in SMALL.items() if k != "hidden"}
    return M.BNRDE(alg, geometry=geometry, window=4, **small, **kw)


@pytest.mark.parametrize("name", ["trees", "rotations"])
def test_knots_are_those_of_solve(name):
    model = _geometric(name, solver=abx.CFEES25(), interpolation="log-ode")
    path = driver(model, 10)
    whole = abx.add_basepoint(path)

    @eqx.filter_jit
    def reference(model, whole, ts):
        control = abx.rough_path(None, whole, model.alg, window=4)
        y0 = model.initial_state(jnp.zeros(2))
        sol = abx.solve(
            model.vector_field,
            y0,
            control,
            geometry=model.geometry,
            solver=model.solver,
            ts=ts,
        )
        return sol.ys, model(control), control

    ys, at_knots, control = reference(model, whole, path.ts)
    out = _call(model, path)
    np.testing.assert_allclose(out, ys, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(at_knots[1:3], out[3:8:4], rtol=1e-9, atol=1e-12)
    prepared = _call(model, model.prepare(path))
    np.testing.assert_allclose(prepared, out, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_taylor_is_the_log_ode_to_third_order(name):
    """On a driver scaled by `e` the two outputs inside a window differ by `e^3`."""
    fine = dict(solver=abx.CF4(), basepoint=False)
    taylor = _geometric(name, **fine)
    exact = _geometric(name, interpolation="log-ode", **fine)
    assert taylor.interpolation == "taylor"
    ts = jnp.linspace(0.0, 1.0, 5)
    path = M.brownian_driver(ts, 1, brackets=True, key=jr.PRNGKey(2))

    def gap(e):
        scaled = abx.SampledPath(ts, e * path.xs, brackets=e**2 * path.brackets)
        both = [m.prepare(scaled) for m in (taylor, exact)]
        # The same initial state: the first sample is at zero for every scale.
        return jnp.max(jnp.abs((taylor(both[0]) - exact(both[1]))[1:4]))

    gap = jax.jit(gap)
    assert gap(1.0) < 0.3
    rate = jnp.log2(gap(0.1) / gap(0.05))
    assert rate > 2.7


def test_manifold_states_and_single_precision():
    model = _geometric("spd", dtype=jnp.float32)
    out = _call(model, driver(model, 11, jnp.float32))
    assert out.dtype == jnp.float32
    assert jnp.all(jax.vmap(lambda y: model.geometry.belongs(y, 1e-4))(out))


def test_initial_level_is_visible_with_and_without_basepoint():
    for basepoint in (True, False):
        model = M.BNRDE(abx.Shuffle(2, 2), 1, basepoint=basepoint, **WINDOWED)
        path = driver(model)
        lifted = abx.SampledPath(path.ts, path.xs + jnp.asarray([[0.0, 1.0]]))
        out = _call(model, path) - _call(model, lifted)
        assert jnp.min(jnp.abs(out)) > 1e-4


def test_realised_brackets_skip_the_basepoint():
    options = dict(brackets="realised", **WINDOWED)
    model = M.BNRDE(abx.Ito(2, 2), 1, **options)
    path = driver(model)
    steps = jnp.diff(path.xs, axis=0)
    given = abx.SampledPath(
        path.ts, path.xs, brackets=steps[:, :, None] * steps[:, None, :]
    )
    bare = abx.SampledPath(path.ts, path.xs)
    np.testing.assert_allclose(_call(model, bare), _call(model, given), rtol=1e-12)


def test_ito_and_stratonovich_differ_by_the_bracket_drift():
    """Without brackets the tree model is the Shuffle model; with them it is another."""
    trees = M.BNRDE(abx.GrossmanLarson(2, 2), 1, calculus="stratonovich", **WINDOWED)
    words = M.BNRDE(abx.Shuffle(2, 2), 1, **WINDOWED)
    ito = M.BNRDE(abx.GrossmanLarson(2, 2), 1, **WINDOWED)
    path = driver(ito)
    bare = abx.SampledPath(path.ts, path.xs)
    out = _call(words, bare)
    np.testing.assert_allclose(_call(trees, bare), out, rtol=1e-9, atol=1e-12)
    assert jnp.max(jnp.abs(_call(ito, path) - out)) > 1e-5


def test_one_sample_and_deeper_algebras():
    model = M.BNRDE(abx.Ito(2, 3), 1, **WINDOWED)
    assert model.interpolation == "log-ode"
    one = abx.SampledPath(jnp.zeros(1), jnp.ones((1, 2)), brackets=jnp.zeros((0, 2, 2)))
    assert eqx.filter_eval_shape(model, one).shape == (1, 1)
    plain = M.BNRDE(abx.Shuffle(2, 2), 1, basepoint=False, **WINDOWED)
    one = abx.SampledPath(jnp.zeros(1), jnp.ones((1, 2)))
    assert _call(plain, one).shape == (1, 1)


def test_calculus_must_fit():
    ito = M.BNRDE(abx.Ito(2, 2), 1, **WINDOWED)
    words = M.BNRDE(abx.Shuffle(2, 2), 1, **WINDOWED)
    path = driver(ito)
    bare = abx.SampledPath(path.ts, path.xs)
    shapes = eqx.filter_eval_shape  # refused before anything is computed

    def control(path, alg):
        return abx.rough_path(None, path, alg, window=4)

    with pytest.raises(ValueError, match="carries brackets"):
        shapes(words, path)
    with pytest.raises(ValueError, match="needs brackets"):
        shapes(ito, bare)
    trees = M.BNRDE(abx.GrossmanLarson(2, 2), 1, **WINDOWED)
    with pytest.raises(ValueError, match="calculus of the control"):
        shapes(trees, shapes(control, bare, trees.alg))
    with pytest.raises(ValueError, match="built for"):
        shapes(trees, shapes(control, path, ito.alg))
    with pytest.raises(ValueError, match="Stratonovich|stratonovich"):
        M.BNRDE(abx.Shuffle(2, 2), 1, calculus="ito", **WINDOWED)
    with pytest.raises(ValueError, match="GrossmanLarson"):
        M.BNRDE(abx.GrossmanLarson(2, 2), geometry=abx.SO(3), **WINDOWED)
    state, _ = shapes(ito.start, 0.0, jnp.zeros(2))
    with pytest.raises(ValueError, match="bracket"):
        shapes(ito.update, state, 0.1, jnp.ones(2))


@pytest.mark.parametrize(
    "options, match",
    [
        (dict(window=0), "window"),
        (dict(interpolation="cubic"), "interpolation"),
        (dict(geometry=abx.SO(3)), "either"),
        (dict(brackets="guess"), "brackets"),
        (dict(calculus="malliavin"), "calculus"),
    ],
)
def test_bad_options(options, match):
    # Values outside the annotated literals are refused without type checks as well.
    with pytest.raises(Exception, match=match):
        M.BNRDE(abx.GrossmanLarson(2, 2), 1, **options, key=KEY)


def test_linear_interpolation_is_for_vectors_and_not_for_streams():
    with pytest.raises(ValueError, match="leaves"):
        M.BNRDE(abx.Ito(2, 2), geometry=abx.SO(3), interpolation="linear", key=KEY)
    model = M.BNRDE(abx.Shuffle(2, 2), 1, interpolation="linear", **WINDOWED)
    with pytest.raises(ValueError, match="stream"):
        model.start(0.0, jnp.zeros(2))
