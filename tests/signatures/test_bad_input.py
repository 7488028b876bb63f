"""Bad input: each case has its message, or a documented meaning that is tested."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


SHUFFLE, GL = abx.Shuffle(2, 2), abx.GrossmanLarson(2, 2)
MKW, ITO = abx.MuntheKaasWright(2, 2), abx.Ito(2, 2)
XS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)))
SYMMETRIC = jnp.broadcast_to(jnp.eye(2), (3, 2, 2))
both = pytest.mark.parametrize("name", ["signature", "log_signature"])


@both
def test_empty_path(name):
    with pytest.raises(ValueError, match="(?i)empty|no point|at least one"):
        getattr(abx, name)(jnp.zeros((0, 2)), SHUFFLE)


@both
@pytest.mark.parametrize(
    "alg, brackets",
    [(SHUFFLE, None), (GL, "left-point"), (MKW, "realised"), (ITO, "realised")],
    ids=str,
)
def test_one_point_has_the_unit_signature(name, alg, brackets):
    size = alg.size if name == "signature" else alg.primitive_size
    out = getattr(abx, name)(XS[:1], alg, brackets)
    assert out.shape == (size,)
    assert not np.any(out)
    batch = getattr(abx, name)(jnp.ones((3, 1, 2)), alg, brackets)
    assert batch.shape == (3, size)
    assert not np.any(batch)


def test_one_point_with_an_empty_bracket_array():
    out = abx.signature(XS[:1], GL, jnp.zeros((0, 2, 2)))
    assert out.shape == (GL.size,)
    assert not np.any(out)


@both
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(name, value):
    with pytest.raises(Exception, match="(?i)nan|finite"):
        jax.block_until_ready(getattr(abx, name)(XS.at[2, 1].set(value), SHUFFLE))


@both
def test_wrong_number_of_channels(name):
    with pytest.raises(ValueError, match="3.*2|2.*3"):
        getattr(abx, name)(jnp.zeros((4, 3)), SHUFFLE)


@both
def test_missing_time_axis(name):
    with pytest.raises((ValueError, TypeError), match="times"):
        getattr(abx, name)(jnp.zeros(2), SHUFFLE)


@both
@pytest.mark.parametrize("dtype", [jnp.int32, jnp.bool_, jnp.complex64])
def test_dtype_is_not_floating(name, dtype):
    with pytest.raises((TypeError, ValueError), match="(?i)float"):
        getattr(abx, name)(jnp.ones((4, 2), dtype), SHUFFLE)


@both
def test_bracket_dtype_differs(name):
    with pytest.raises((TypeError, ValueError), match="(?i)dtype|float"):
        getattr(abx, name)(XS, GL, SYMMETRIC.astype(jnp.int32))


@both
@pytest.mark.parametrize("shape", [(4, 2, 2), (3, 2), (3, 3, 3), (2, 2)])
def test_brackets_of_the_wrong_shape(name, shape):
    with pytest.raises(ValueError, match=re.escape("(..., 3, 2, 2)")):
        getattr(abx, name)(XS, GL, jnp.zeros(shape))


@both
@pytest.mark.parametrize("alg", [GL, MKW, ITO], ids=str)
def test_brackets_that_are_not_symmetric(name, alg):
    with pytest.raises(Exception, match="(?i)symmetric"):
        jax.block_until_ready(
            getattr(abx, name)(XS, alg, SYMMETRIC.at[1, 0, 1].set(0.5))
        )


@both
def test_brackets_that_are_not_finite(name):
    with pytest.raises(Exception, match="(?i)nan|finite"):
        jax.block_until_ready(getattr(abx, name)(XS, GL, SYMMETRIC.at[1].set(jnp.nan)))


@both
def test_unknown_bracket_mode(name):
    with pytest.raises(ValueError, match="realised.*left-point|left-point.*realised"):
        getattr(abx, name)(XS, GL, "realized-typo")


@both
@pytest.mark.parametrize("brackets", ["realised", "left-point", SYMMETRIC], ids=str)
def test_shuffle_refuses_brackets(name, brackets):
    with pytest.raises(ValueError, match="Shuffle"):
        getattr(abx, name)(XS, SHUFFLE, brackets)


@both
def test_ito_requires_brackets(name):
    with pytest.raises(ValueError, match="(?i)brackets"):
        getattr(abx, name)(XS, ITO)


@both
def test_ito_has_no_left_point_sums_beyond_depth_two(name):
    with pytest.raises(ValueError, match="left-point"):
        getattr(abx, name)(XS, abx.Ito(2, 3), "left-point")


FUNCTIONS = {
    "signature": abx.signature,
    "log_signature": abx.log_signature,
    "expanding_signature": abx.expanding_signature,
    "windowed_signature": lambda x, alg, mode: abx.windowed_signature(x, alg, 2, mode),
    "extend_signature": lambda x, alg, mode: abx.extend_signature(
        jnp.zeros((2, alg.size)), x, alg, mode
    ),
}


BAD_PATHS = [
    ("signature", abx.Shuffle(1, 2), None, np.inf),
    ("signature", abx.Shuffle(3, 3), None, np.inf),
    ("signature", abx.Shuffle(3, 2), None, np.nan),
    ("signature", abx.Shuffle(2, 1), None, np.nan),
    ("signature", ITO, "realised", np.nan),
    ("signature", GL, "left-point", np.inf),
    ("log_signature", MKW, "realised", np.nan),
    ("expanding_signature", SHUFFLE, None, np.nan),
    ("windowed_signature", ITO, "realised", np.inf),
    ("extend_signature", SHUFFLE, None, np.inf),
]


@pytest.mark.parametrize("name, alg, mode, value", BAD_PATHS, ids=str)
def test_compiled_code_answers_a_bad_path_with_nan_throughout(name, alg, mode, value):
    """Even where the value cancels, as inside a path of one channel; and only that
    path of a batch."""
    f = jax.jit(lambda x: FUNCTIONS[name](x, alg, mode))
    xs = jnp.ones((2, 5, alg.dim)).at[1, 2, 0].set(value)
    out = f(xs)
    assert np.all(np.isnan(out[1]))
    assert np.all(np.isfinite(out[0]))
    grads = jax.jit(jax.grad(lambda x: f(x)[1].sum()))(xs)
    assert np.all(np.isnan(grads[1, -1]))
    assert "callback" not in f.lower(xs).as_text()


def test_compiled_code_raises_within_debug_checks():
    f = jax.jit(lambda x: abx.signature(x, SHUFFLE))
    with abx.debug_checks(), pytest.raises(Exception, match="(?i)nan|finite"):
        jax.block_until_ready(f(XS.at[0, 0].set(jnp.nan)))


def test_compiled_code_answers_bad_brackets_with_nan_throughout():
    f = jax.jit(lambda x, b: abx.signature(x, ITO, b))
    bad = SYMMETRIC.at[1, 0, 1].set(0.5)
    assert np.all(np.isnan(f(XS, bad)))
    out = f(jnp.stack([XS, XS]), jnp.stack([SYMMETRIC, bad]))
    assert np.all(np.isfinite(out[0]))
    assert np.all(np.isnan(out[1]))


def test_constants_of_compiled_code_are_checked_at_once():
    bad = np.array(XS.at[0, 0].set(jnp.nan))
    with pytest.raises(ValueError, match="NaN"):
        jax.jit(lambda: abx.signature(bad, SHUFFLE))()


@pytest.mark.parametrize(
    "ts, what",
    [([0.0, 2.0, 1.0, 3.0], "increas"), ([0.0, 1.0, 1.0, 2.0], "increas|repeat")],
)
def test_times_unsorted_or_repeated(ts, what):
    with pytest.raises(Exception, match=f"(?i){what}"):
        control = abx.rough_path(jnp.array(ts), XS, SHUFFLE)
        jax.block_until_ready(control.log_signatures)


def test_times_that_are_not_finite():
    with pytest.raises(Exception, match="(?i)finite|nan|increas"):
        ts = jnp.array([0.0, 1.0, jnp.nan, 2.0])
        jax.block_until_ready(abx.rough_path(ts, XS, SHUFFLE).log_signatures)


@pytest.mark.parametrize(
    "knots", [[0.0, 2.0, 1.0], [0.0, 1.0, 1.0], [-1.0, 1.0], [0.0, 9.0]]
)
def test_bad_knots(knots):
    with pytest.raises(Exception, match="(?i)knot"):
        control = abx.rough_path(jnp.arange(4.0), XS, SHUFFLE, knots=jnp.array(knots))
        jax.block_until_ready(control.log_signatures)


def test_a_window_without_a_sample_is_the_piece_of_its_segment():
    """Documented: a window strictly inside one step is linear there."""
    ts = jnp.arange(4.0)
    control = abx.rough_path(ts, XS, SHUFFLE, knots=jnp.array([1.25, 1.5, 1.75]))
    expected = np.concatenate([(XS[2] - XS[1]) / 4, np.zeros(1)])
    np.testing.assert_allclose(control.log_signatures[0], expected, 1e-13, 1e-13)
    np.testing.assert_allclose(control.log_signatures[1], expected, 1e-13, 1e-13)


@pytest.mark.parametrize("window", [0, -2])
def test_window_of_no_steps(window):
    with pytest.raises(ValueError, match="window"):
        abx.windowed_signature(XS, SHUFFLE, window)
    with pytest.raises(ValueError, match="window"):
        abx.rough_path(jnp.arange(4.0), XS, SHUFFLE, window=window)


def test_two_sets_of_times():
    path = abx.SampledPath(jnp.arange(4.0), XS)
    with pytest.raises(ValueError, match="ts=None"):
        abx.rough_path(2 * jnp.arange(4.0), path, SHUFFLE)


def test_increments_of_the_wrong_size():
    with pytest.raises(ValueError, match=str(GL.primitive_size)):
        abx.signature_from_increments(jnp.zeros((3, GL.primitive_size + 1)), GL)


def test_combining_arrays_of_the_wrong_size():
    with pytest.raises(ValueError, match=str(GL.size)):
        abx.combine(jnp.zeros(GL.size), jnp.zeros(GL.size + 1), GL)
