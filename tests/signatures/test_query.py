"""Log-signatures over any interval, and channels that arrive at different times."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arborax as abx
from arborax.signatures._rough_path import as_time


RNG = np.random.default_rng(5)
TS = np.sort(RNG.uniform(size=14))
XS = RNG.normal(size=(14, 2))


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("alg", [abx.Shuffle(2, 3), abx.GrossmanLarson(2, 2)], ids=str)
def test_queries_agree_with_the_path_cut_out(alg, window):
    brackets = None if alg.calculus == "stratonovich" else "realised"
    control = abx.rough_path(TS, XS, alg, window=window, brackets=brackets)
    tree = abx.signature_tree(control)
    times = np.sort(RNG.uniform(TS[0], TS[-1], size=(20, 2)), axis=1)
    times[0] = TS[0], TS[-1]
    times[1] = TS[3], TS[9]
    times[2] = TS[4], TS[4]
    got = jax.jit(jax.vmap(tree.log_signature))(*times.T)
    for (s, t), lam in zip(times, got):
        if s == t:
            np.testing.assert_allclose(lam, 0, atol=1e-12)
            continue
        # One window from `s` to `t`: knots cut the path anywhere.
        knots = jnp.asarray([s, t])
        want = abx.rough_path(TS, XS, alg, knots=knots, brackets=brackets)
        np.testing.assert_allclose(lam, want.log_signatures[0], rtol=1e-9, atol=1e-11)


def test_depth_and_derivatives():
    """Two products per level, however many windows; derivatives in time and data."""

    def products(steps):
        control = abx.rough_path(
            jnp.arange(steps + 1.0), jnp.ones((steps + 1, 2)), abx.Shuffle(2, 2)
        )
        tree = abx.signature_tree(control)
        return len(jax.make_jaxpr(tree.signature)(0.5, 1.5).eqns)

    assert products(128) - products(64) == products(256) - products(128)

    def value(xs, t):
        tree = abx.signature_tree(abx.rough_path(TS, xs, abx.Shuffle(2, 2)))
        return jnp.sum(tree.log_signature(TS[1] + 0.01, t) ** 2)

    check_grads(
        jax.jit(value), (jnp.asarray(XS), TS[9] + 0.003), order=1, modes=["rev"]
    )


def test_queries_outside_are_refused():
    tree = abx.signature_tree(abx.rough_path(TS, XS, abx.Shuffle(2, 2)))
    for s, t in ((TS[0] - 1, TS[3]), (TS[0], TS[-1] + 1), (TS[3], TS[1])):
        with pytest.raises(ValueError, match="query interval"):
            tree.log_signature(s, t)
        assert np.isnan(jax.jit(lambda s, t: tree.log_signature(s, t))(s, t)).all()
    many = np.array([0.1, 0.2])
    for query in (tree.log_signature, tree.signature, tree.control.log_signature):
        with pytest.raises(TypeError, match="`t` must be one time.*jax.vmap"):
            query(0.1, many)
    for name, value in (("s", "a"), ("t", None), ("s", [0.1, 0.2])):
        with pytest.raises(TypeError, match=f"`{name}` must be one number"):
            as_time(name, value)  # types are checked in this suite before it runs
    with pytest.raises(TypeError, match="rough_path"):
        abx.signature_tree(XS)
    control = abx.rough_path(TS, XS, abx.Shuffle(2, 2), window=3)
    for s, t in ((TS[0] - 1, TS[1]), (TS[12], TS[-1] + 1), (TS[1], TS[4])):
        with pytest.raises(ValueError, match="one window of the control"):
            control.log_signature(s, t)
    assert np.isfinite(control.log_signature(TS[1], TS[3])).all()


def test_channels_that_arrive_at_different_times():
    times = [np.array([0.0, 1.0, 2.5]), np.array([0.0, 0.7, 2.0, 2.5])]
    values = [np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, -1.0, 0.5])]
    path = abx.merge_channels(times, values)
    np.testing.assert_array_equal(path.ts, [0.0, 0.7, 1.0, 2.0, 2.5])
    steps = np.array([[0, 2.0], [1.0, 0], [0, -3.0], [2.0, 1.5]])
    np.testing.assert_array_equal(np.diff(path.xs, axis=0), steps)
    alg = abx.Ito(2, 2)
    # Chen, event by event: one letter at a time, both at once at the end.
    group = jnp.zeros(alg.size)
    for step in steps:
        ell = np.zeros(alg.primitive_size)
        ell[:2] = step
        square = -0.5 * np.outer(step, step)
        for i, j in ((0, 0), (0, 1), (1, 1)):
            ell = ell + (1 + (i != j)) * square[i, j] * alg.elementary_step((i, j))
        group = abx.combine(group, alg.exp(alg.from_primitive(jnp.asarray(ell))), alg)
    want = alg.to_primitive(alg.log(group))
    got = abx.log_signature(path, alg, brackets="realised")
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_quadratic_variation_of_asynchronous_channels():
    """As large as if all samples were there; interpolation would lose half of it."""
    steps = 4000
    noise = RNG.normal(size=(steps, 2)) / steps**0.5
    xs = np.concatenate([np.zeros((1, 2)), np.cumsum(noise, axis=0)])
    ts = np.linspace(0, 1, steps + 1)
    seen = RNG.uniform(size=xs.shape) < 0.5
    seen[0] = True
    path = abx.merge_channels(
        [ts[seen[:, k]] for k in range(2)], [xs[seen[:, k], k] for k in range(2)]
    )
    brackets = path.realised_brackets().sum(0)
    np.testing.assert_allclose(np.diag(brackets), 1.0, atol=0.1)


@pytest.mark.parametrize(
    "times, values, match",
    [
        ([[0.0, 1.0]], [[0.0]], "one value per time"),
        ([[1.0, 0.0]], [[0.0, 1.0]], "Sort the rows"),
        ([[0.0, 1.0]], [[0.0, np.inf]], "infinity in row 1"),
        ([[0.0, 1.0]], [], "per channel"),
    ],
)
def test_bad_channels(times, values, match):
    with pytest.raises(ValueError, match=match):
        abx.merge_channels(times, values)
