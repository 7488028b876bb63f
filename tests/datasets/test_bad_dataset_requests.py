"""Bad input to laws, readers and windows: a plain error that says what to give."""

import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax import datasets as ds


KEY = jr.PRNGKey(0)
LAW = ds.RoughBergomi(steps=4)
NAN = float("nan")


def plainly(function, *args, **kwargs):
    """The function as users have it, without the type checks of the tests."""
    return inspect.unwrap(function)(*args, **kwargs)


def sample(law, count, **options):
    return plainly(type(law).sample, law, count, **options)


@pytest.mark.parametrize(
    "key",
    [0, None, "a", jnp.zeros(2), np.arange(2), jr.split(KEY, 3), jr.split(jr.key(0))],
)
def test_a_seed_is_not_a_key(key):
    with pytest.raises(TypeError, match="one JAX random key.*jax.random.key") as error:
        sample(LAW, 2, key=key)
    assert len(str(error.value)) < 300


def test_keys_of_both_kinds():
    raw, typed = (sample(LAW, 2, key=key).values for key in (KEY, jr.key(0)))
    np.testing.assert_array_equal(raw, typed)
    np.testing.assert_array_equal(raw, sample(LAW, 2, key=np.asarray(KEY)).values)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: sample(LAW, 2.0, key=KEY),
            TypeError,
            "`paths` must be a whole number",
        ),
        (lambda: sample(LAW, 0, key=KEY), ValueError, "`paths` must be at least 1"),
        (
            lambda: sample(ds.RoughBergomi(eta=NAN), 2, key=KEY),
            ValueError,
            "`eta` must be",
        ),
        (
            lambda: sample(ds.RoughBergomi(xi=-1.0), 2, key=KEY),
            ValueError,
            "posit",
        ),
        (
            lambda: sample(ds.OrnsteinUhlenbeck(mean=NAN), 2, key=KEY),
            ValueError,
            "`mean`",
        ),
        (
            lambda: plainly(ds.dataset, ds.RoughBergomi, 2),
            TypeError,
            "`law` must be a law",
        ),
        (lambda: plainly(ds.dataset, LAW, 2, seed=KEY), TypeError, "`seed` must be a"),
        (lambda: plainly(ds.dataset, LAW, "a"), TypeError, "`paths` must be a whole"),
        (lambda: LAW.sample(3, key=KEY).split(), ValueError, "3 paths are too few"),
        (lambda: sample(ds.FreeRotation(), 0), ValueError, "`trajectories` must be"),
        (lambda: sample(ds.FreeRotation(), 2, seed=KEY), TypeError, "`seed` must be a"),
        (lambda: sample(ds.FreeRotation(), 2.0), TypeError, "`trajectories` must"),
        (lambda: ds.FreeRotation(step=NAN), ValueError, "`step` must be"),
        (
            lambda: ds.recorded_windows([np.zeros((5, 3, 3))], 3, 0),
            ValueError,
            "`stride` must be at least 1",
        ),
        (
            lambda: plainly(ds.rolling_covariances, np.zeros(5), 3),
            ValueError,
            r"x\[:, None\]",
        ),
        (
            lambda: ds.rolling_covariances(np.array([[1.0], [NAN], [2.0]]), 2),
            ValueError,
            "1 of 3 observations have NaN.*first at 1",
        ),
        (lambda: ds.covariance_windows([], 3), ValueError, "at least one series"),
    ],
)
def test_clear_errors(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert len(str(raised.value)) < 300


def test_double_precision_needs_the_mode():
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match="float64 need the 64-bit mode"):
            LAW.sample(2, dtype=np.float64, key=KEY)
        assert LAW.sample(2, key=KEY).values.dtype == np.float32


def test_whole_numbers_of_numpy_name_the_same_file(tmp_path):
    a = ds.dataset(LAW, 2, folder=tmp_path)
    b = plainly(ds.dataset, LAW, np.int64(2), seed=np.int32(42), folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    np.testing.assert_array_equal(a.values, b.values)


@pytest.mark.parametrize("cell", ["", "x", "-1", "nan"])
def test_tables_with_holes(tmp_path, cell):
    file = tmp_path / "prices.csv"
    file.write_text(f"date,A\n1,1.0\n2,{cell}\n3,1.0\n")
    with pytest.raises(ValueError, match=r"prices.csv, line 3"):
        ds.stock_covariances(("A",), 2, file)
