"""B-NRDE against the solvers, the log-NCDE, its own expansions; parts of one's own."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from user_defined import BackwardTrees, Quaternions

import arborax as abx

from .cases import driver, KEY, SMALL, WINDOWED


M = abx.models


@eqx.filter_jit
def _call(model, path):
    return model(path)


class Brackets(eqx.Module):
    """The log-NCDE as its paper has it: Lie brackets of the fields, one Jacobian-vector
    product per pair of channels, integrated by Heun's method."""

    model: M.LogNCDE

    def __call__(self, path):
        model = self.model
        d, f = model.channels, model.vector_field
        words = [word for word in model.alg.primitive_basis if len(word) == 2]
        lams = abx.windowed_log_signature(path, model.alg, model.window)

        def field(h, lam):
            v = f(h)
            out = lam[:d] @ v
            for (i, j), weight in zip(words, lam[d:]):
                along = lambda u: jax.jvp(f, (h,), (u,))[1]  # noqa: E731
                out = out + weight * (along(v[i])[j] - along(v[j])[i])
            return out

        def step(h, lam):
            first = field(h, lam)
            h = h + (first + field(h + first, lam)) / 2
            return h, h

        h = model.initial(path.xs[0])
        _, hs = jax.lax.scan(step, h, lams)
        return jax.vmap(model.readout)(jnp.concatenate([h[None], hs]))


def test_log_ncde_is_its_formula():
    """In value and gradient, at the knots."""
    model = M.LogNCDE(3, 2, hidden=6, width=7, window=4, key=KEY)
    path = driver(model, 17)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def loss(model, by_hand):
        out = Brackets(model)(path) if by_hand else model.at_knots(path)
        return jnp.sum(jnp.sin(out)), out

    (_, ours), gradient = loss(model, False)
    (_, theirs), expected = loss(model, True)
    assert ours.shape == (5, 2)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11)
    out = _call(model, path)
    np.testing.assert_allclose(out[::4], theirs, rtol=1e-10, atol=1e-12)


def test_log_ncde_is_the_shuffle_case():
    """With its defaults, and at any depth."""
    ncde = M.LogNCDE(2, 1, log_depth=3, **WINDOWED)
    defaults = dict(activation=jax.nn.softplus, basepoint=False)
    model = M.BNRDE(abx.Shuffle(2, 3), 1, **defaults, **WINDOWED)
    path = driver(model)
    np.testing.assert_array_equal(_call(ncde, path), _call(model, path))


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
            saveat=diffrax.SaveAt(ts=ts),
        )
        by_time = abx.rough_path(
            None, whole, model.alg, knots=control.knots, max_points=6
        )
        return sol.ys, model.at_knots(control), model(by_time), model(control)

    ys, at_knots, by_time, by_hand = reference(model, whole, path.ts)
    out = _call(model, path)
    np.testing.assert_allclose(out, ys, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(at_knots[1:3], out[3:8:4], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(at_knots[-1], out[-1], rtol=1e-9, atol=1e-12)
    # A control of one's own: at its knots if cut by time, otherwise at all points,
    # here one of them a basepoint of which the control knows nothing.
    np.testing.assert_allclose(by_time, at_knots, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(by_hand[1:], out, rtol=1e-9, atol=1e-12)
    control = model.prepare(path)
    assert isinstance(control, abx.RoughPath) and control.basepoint
    np.testing.assert_allclose(_call(model, control), out, rtol=1e-9, atol=1e-12)


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
    with pytest.raises(ValueError, match="the control has none"):
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


@pytest.mark.parametrize("interpolation", ["linear", "geodesic"])
def test_joined_outputs_end_at_the_last_state(interpolation):
    """In the last window too, which may be short; between knots in proportion to
    time."""
    options = dict(interpolation=interpolation, basepoint=False, **WINDOWED)
    model = M.BNRDE(abx.Shuffle(2, 2), 1, **options)
    path = driver(model, 11)
    out, knots = _call(model, path), model.at_knots(path)
    np.testing.assert_allclose(out[jnp.array([0, 4, 8, 10])], knots, rtol=1e-12)
    theta = (path.ts[9] - path.ts[8]) / (path.ts[10] - path.ts[8])
    expected = (1 - theta) * knots[2] + theta * knots[3]
    np.testing.assert_allclose(out[9], expected, rtol=1e-12)


def test_linear_interpolation_is_for_vectors_and_not_for_streams():
    with pytest.raises(ValueError, match="leaves"):
        M.BNRDE(abx.Ito(2, 2), geometry=abx.SO(3), interpolation="linear", key=KEY)
    model = M.BNRDE(abx.Shuffle(2, 2), 1, interpolation="linear", **WINDOWED)
    with pytest.raises(ValueError, match="stream"):
        model.start(0.0, jnp.zeros(2))


# Parts and manifolds of one's own.


class Drift(eqx.Module):
    """Fields with one learned number, and time if it is wanted."""

    rate: jax.Array

    def __call__(self, y):
        return jnp.stack([-self.rate * y, jnp.sin(y)])


def test_any_module_is_a_field_and_any_callable_an_initial_state():
    geometry = abx.Euclidean(3)
    model = M.BNRDE(
        abx.Ito(2, 2),
        geometry=geometry,
        vector_field=Drift(jnp.asarray(0.7)),
        initial=lambda x: jnp.arange(3.0) + x[1],
        window=4,
        basepoint=False,
    )
    path = driver(model)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def loss(model, path):
        out = model(path)
        return jnp.mean(out**2), out

    (_, out), gradient = loss(model, path)
    assert jnp.all(jax.vmap(geometry.belongs)(out))
    assert jnp.abs(gradient.vector_field.rate) > 1e-4
    start = geometry.point_from_vector(jnp.arange(3.0) + path.xs[0, 1])
    np.testing.assert_allclose(out[0], start)
    control = abx.rough_path(None, path, abx.Ito(2, 2), window=4)
    sol = abx.solve(model.vector_field, start, control, geometry=geometry)
    np.testing.assert_allclose(model.at_knots(path), sol.ys, rtol=1e-10)


def test_fields_may_depend_on_time():
    """As those of `solve` do, in a stream as well."""
    model = M.BNRDE(
        abx.Shuffle(2, 2),
        geometry=abx.Euclidean(2),
        vector_field=lambda t, y, args: jnp.stack([jnp.cos(3 * t) * y, jnp.sin(y)]),
        initial=lambda x: x,
        window=4,
        basepoint=False,
        interpolation="log-ode",
    )
    path = driver(model)
    control = model.prepare(path)
    out = _call(model, path)
    y0 = model.initial_state(path.xs[0])
    sol = abx.solve(model.vector_field, y0, control, saveat=diffrax.SaveAt(ts=path.ts))
    np.testing.assert_allclose(out, sol.ys, rtol=1e-10)
    state, first = model.start(path.ts[0], path.xs[0])
    stream, update = [first], eqx.filter_jit(model.update)
    for t, x in zip(path.ts[1:], path.xs[1:]):
        state, y = update(state, t, x)
        stream.append(y)
    np.testing.assert_allclose(jnp.stack(stream), out, rtol=1e-9)


def test_parts_that_do_not_fit():
    options = dict(geometry=abx.SO(3), key=KEY)
    with pytest.raises(ValueError, match="one row for each"):
        M.BNRDE(abx.Ito(2, 2), vector_field=lambda y: jnp.ones((3, 3)), **options)
    with pytest.raises(ValueError, match="6 numbers"):
        M.BNRDE(abx.Ito(2, 2), initial=lambda x: jnp.ones(2), **options)
    with pytest.raises(ValueError, match="key"):
        M.BNRDE(abx.Ito(2, 2), geometry=abx.SO(3))


EVERY = [
    abx.SE(3),
    abx.Hyperbolic(2),
    abx.Sphere(2),
    abx.Product(abx.SO(3), abx.Euclidean(2)),
    Quaternions(),
]


@pytest.mark.parametrize("geometry", EVERY, ids=lambda g: type(g).__name__)
def test_every_geometry_as_state_and_as_output(geometry):
    state = M.BNRDE(abx.Ito(2, 2), geometry=geometry, width=4, window=4, key=KEY)
    small = dict(hidden=3, width=4, key=KEY)
    path = driver(state, 7)
    inside = jax.vmap(lambda y: geometry.belongs(y, 1e-6))
    assert jnp.all(inside(_call(state, path)))
    assert jnp.all(inside(_call(M.GRU(2, geometry, **small), path)))
    bare = abx.SampledPath(path.ts, path.xs)
    read_out = M.NRDE(2, geometry, window=4, depth=1, **small)
    assert jnp.all(inside(_call(read_out, bare)))
    point = geometry.random_point(key=KEY, dtype=jnp.float64)
    entries = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(point)])
    xs = jnp.tile(entries, (7, 1))
    chart = M.MNODE(geometry, width=4, depth=1, solver=abx.Heun(), key=KEY)
    out = _call(chart, abx.add_time(abx.SampledPath(path.ts, xs)))
    assert jnp.all(inside(out))


def test_an_algebra_in_another_order_is_the_same_model():
    """The same weights, of an algebra that the library does not know."""
    options = dict(geometry=Quaternions(), width=4, window=4, key=KEY)
    alg = BackwardTrees(2, 2)
    one, other = M.BNRDE(alg, **options), M.BNRDE(alg.other, **options)
    path = driver(one, 7)
    np.testing.assert_allclose(_call(one, path), _call(other, path), atol=1e-11)
