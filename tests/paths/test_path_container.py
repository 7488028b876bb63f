"""The container: exact masks and padding, validation, transformations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arborax as abx


def make(rng, batch=(), times=7, dim=2, dtype=np.float64):
    ts = np.cumsum(rng.uniform(0.1, 1.0, times)).astype(dtype)
    xs = rng.normal(size=(*batch, times, dim)).astype(dtype)
    half = rng.normal(size=(*batch, times - 1, dim, dim)).astype(dtype)
    return ts, xs, half @ np.swapaxes(half, -1, -2)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("batch", ((), (3,), (2, 3)))
def test_plain(rng, dtype, batch):
    ts, xs, brackets = make(rng, batch, dtype=dtype)
    path = abx.SampledPath(ts, xs, brackets=brackets)
    assert (path.num_times, path.dim, path.batch_shape) == (7, 2, batch)
    assert path.increments().dtype == path.dt.dtype == dtype
    np.testing.assert_array_equal(path.increments(), np.diff(xs, axis=-2))
    np.testing.assert_array_equal(path.dt, np.diff(ts))
    assert path.filled() is path
    part = path.slice(2, 5)
    np.testing.assert_array_equal(part.xs, xs[..., 2:5, :])
    np.testing.assert_array_equal(part.brackets, brackets[..., 2:4, :, :])


def test_one_point_path_is_legal():
    path = abx.SampledPath(np.zeros(1), np.ones((1, 3)), brackets=np.zeros((0, 3, 3)))
    assert path.increments().shape == (0, 3)
    assert path.dt.shape == (0,)


def test_dtypes_of_times_and_values_are_independent(rng):
    ts, xs, _ = make(rng)
    mask = np.array([1, 1, 0, 1, 0, 1, 1], bool)
    path = abx.SampledPath(ts, xs.astype(np.float32), mask)
    assert path.filled().xs.dtype == np.float32
    assert path.dt.dtype == np.float64
    assert abx.add_time(path).xs.dtype == np.float32


@pytest.mark.parametrize("whole", (True, False))
def test_mask_against_np_interp(rng, whole):
    ts, xs, _ = make(rng, (4,), times=12)
    mask = rng.uniform(size=(4, 12) if whole else (4, 12, 2)) < 0.5
    mask[:, 5] = True
    full = np.broadcast_to(mask[..., None] if whole else mask, xs.shape)
    dirty = np.where(full, xs, np.nan)
    filled = abx.SampledPath(ts, dirty, mask).filled().xs
    for b in range(4):
        for c in range(2):
            seen = full[b, :, c]
            expected = np.interp(ts, ts[seen], xs[b, seen, c])
            np.testing.assert_allclose(filled[b, :, c], expected, rtol=1e-13)
    np.testing.assert_array_equal(np.asarray(filled)[full], xs[full])
    if not whole:
        np.testing.assert_array_equal(abx.fill_missing(ts, dirty), filled)


def test_fill_forward_and_empty_channel():
    nan = np.nan
    xs = np.array([[nan, nan], [1.0, nan], [nan, nan], [3.0, nan], [nan, nan]])
    ts = np.arange(5.0)
    forward = abx.fill_missing(ts, xs, method="forward")
    np.testing.assert_array_equal(forward[:, 0], [1, 1, 1, 3, 3])
    np.testing.assert_array_equal(forward[:, 1], np.zeros(5))
    linear = abx.fill_missing(ts, xs)
    np.testing.assert_array_equal(linear[:, 0], [1, 1, 2, 3, 3])


@pytest.mark.parametrize("with_mask", (True, False))
def test_padding_is_exact(rng, with_mask):
    ts, xs, brackets = make(rng, (3,))
    lengths = np.array([7, 4, 1])
    mask = np.ones((3, 7), bool)
    mask[:, 2] = False
    junk = np.arange(7) >= lengths[:, None]
    xs[junk] = np.nan
    times = np.where(junk, np.nan, ts)
    brackets[junk[:, 1:]] = np.nan
    mask = mask if with_mask else None
    path = abx.SampledPath(times, xs, mask, lengths, brackets)
    filled = path.filled()
    for b, n in enumerate(lengths):
        short = abx.SampledPath(
            ts[:n],
            xs[b, :n],
            mask[b, :n] if with_mask else None,
            brackets=brackets[b, : n - 1],
        ).filled()
        np.testing.assert_array_equal(filled.xs[b, :n], short.xs)
        np.testing.assert_array_equal(filled.brackets[b, : n - 1], short.brackets)
        assert not np.any(path.increments()[b, n - 1 :])
        assert not np.any(path.dt[b, n - 1 :])
        assert not np.any(filled.brackets[b, n - 1 :])


def test_padding_shared_times_and_scalar_length(rng):
    ts, xs, brackets = make(rng, (3,))
    path = abx.SampledPath(ts, xs, lengths=5, brackets=brackets[0])
    assert path.filled().ts.shape == (7,)
    assert path.filled().brackets.shape == (6, 2, 2)
    full = path.broadcast()
    assert full.ts.shape == (3, 7) and full.lengths.shape == (3,)
    mapped = jax.vmap(lambda p: p.increments())(full)
    np.testing.assert_array_equal(mapped, path.increments())


def test_removing_a_masked_point_leaves_the_path(rng):
    """A point missing in all channels lies on the chord of its neighbours."""
    ts, xs, _ = make(rng, times=5)
    filled = abx.SampledPath(ts, xs, np.array([1, 1, 0, 1, 1], bool)).filled().xs
    chord = np.array(filled[3] - filled[1])
    piece = np.array(filled[2] - filled[1])
    np.testing.assert_allclose(chord[0] * piece[1], chord[1] * piece[0], rtol=1e-12)


def test_transformations(rng):
    ts, xs, brackets = make(rng, (3,))
    mask = rng.uniform(size=xs.shape) < 0.7
    lengths = np.array([7, 5, 3])

    def run(ts, xs, brackets, check=True):
        path = abx.SampledPath(ts, xs, mask, lengths, brackets, check=check)
        return path.increments(), path.filled().brackets

    eager = run(ts, xs, brackets)
    jitted = jax.jit(run)(ts, xs, brackets)
    for a, b in zip(eager, jitted):
        np.testing.assert_allclose(a, b, rtol=1e-12)

    def loss(xs, brackets):
        steps, dA = run(ts, xs, brackets, check=False)
        return jnp.sum(steps**3) + jnp.sum(dA**2)

    check_grads(jax.jit(loss), (xs, brackets), order=2, atol=1e-4, rtol=1e-4)
    dirty = jnp.where(mask, xs, jnp.nan)
    gx, gb = jax.grad(loss, argnums=(0, 1))(dirty, jnp.asarray(brackets))
    assert np.all(np.isfinite(gx)) and not np.any(np.asarray(gx)[~mask])
    assert not np.any(np.asarray(gb)[2, 2:])


def test_is_a_pytree(rng):
    ts, xs, brackets = make(rng)
    path = abx.SampledPath(ts, xs, brackets=brackets)
    out = eqx.filter_jit(lambda p: p)(path)
    assert eqx.tree_equal(path, out)
    assert len(jax.tree.leaves(path)) == 3


SHAPE_ERRORS = {
    "one axis": (dict(xs=np.zeros(4)), ValueError, "xs\\[..., None\\]"),
    "empty": (dict(ts=np.zeros(0), xs=np.zeros((0, 2))), ValueError, "at least one"),
    "no channel": (dict(xs=np.zeros((4, 0))), ValueError, "at least one"),
    "times": (dict(ts=np.arange(5.0)), ValueError, "`ts` must have shape"),
    "integer xs": (dict(xs=np.zeros((4, 2), int)), TypeError, "floating"),
    "integer ts": (dict(ts=np.arange(4)), TypeError, "floating"),
    "complex": (dict(xs=np.zeros((4, 2), complex)), TypeError, "floating"),
    "mask shape": (dict(mask=np.ones(3, bool)), ValueError, "`mask` must have"),
    "mask dtype": (dict(mask=np.ones(4)), TypeError, "boolean"),
    "lengths shape": (dict(lengths=np.array([2, 2])), ValueError, "batch shape"),
    "lengths dtype": (dict(lengths=2.0), TypeError, "integers"),
    "brackets": (dict(brackets=np.zeros((4, 2, 2))), ValueError, "one entry for each"),
    "brackets rank": (dict(brackets=np.zeros((2, 2))), ValueError, "one entry"),
    "brackets dtype": (
        dict(brackets=np.zeros((3, 2, 2), np.float32)),
        TypeError,
        "dtype",
    ),
}


@pytest.mark.parametrize("case", SHAPE_ERRORS)
def test_static_errors(case):
    change, error, match = SHAPE_ERRORS[case]
    arguments = dict(ts=np.arange(4.0), xs=np.zeros((4, 2))) | change
    with pytest.raises(error, match=match):
        abx.SampledPath(**arguments)


def with_entry(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


VALUE_ERRORS = {
    "nan": (dict(xs=with_entry(np.zeros((4, 2)), (1, 1), np.nan)), "`mask`"),
    "inf": (dict(xs=with_entry(np.zeros((4, 2)), (1, 1), np.inf)), "`mask`"),
    "unsorted": (dict(ts=np.array([0.0, 2.0, 1.0, 3.0])), "strictly increasing"),
    "repeated": (dict(ts=np.array([0.0, 1.0, 1.0, 3.0])), "strictly increasing"),
    "nan time": (dict(ts=np.array([0.0, 1.0, np.nan, 3.0])), "strictly increasing"),
    "inf time": (dict(ts=np.array([0.0, 1.0, 2.0, np.inf])), "strictly increasing"),
    "inf valid time": (
        dict(ts=np.array([0.0, 1.0, np.inf, np.inf]), lengths=3),
        "strictly increasing",
    ),
    "zero length": (dict(lengths=0), "between 1"),
    "long length": (dict(lengths=5), "between 1"),
    "asymmetric": (
        dict(brackets=with_entry(np.zeros((3, 2, 2)), (1, 0, 1), 1.0)),
        "symmetric",
    ),
    "inf bracket": (dict(brackets=np.full((3, 2, 2), np.inf)), "symmetric"),
}


TRACED = ("nan", "unsorted", "zero length", "asymmetric")


@pytest.mark.parametrize(
    "case, jit", [(c, False) for c in VALUE_ERRORS] + [(c, True) for c in TRACED]
)
def test_value_errors(case, jit):
    change, match = VALUE_ERRORS[case]
    arguments = dict(ts=np.arange(4.0), xs=np.zeros((4, 2))) | change

    def build(kw):
        return abx.SampledPath(**kw).increments()

    arguments = jax.tree.map(jnp.asarray, arguments)
    if jit:
        assert np.all(np.isnan(eqx.filter_jit(build)(arguments)))
        return
    with pytest.raises(ValueError, match=match):
        build(arguments)


def test_one_bad_path_of_a_batch_leaves_the_others_alone():
    xs = jnp.ones((3, 4, 2)).at[1, 2, 0].set(jnp.nan)
    out = jax.jit(lambda xs: abx.SampledPath(jnp.arange(4.0), xs).xs)(xs)
    assert np.all(np.isnan(out[1]))
    np.testing.assert_array_equal(out[jnp.array([0, 2])], 1.0)
    text = jax.jit(lambda xs: abx.SampledPath(jnp.arange(4.0), xs).xs).lower(xs)
    assert "callback" not in text.as_text()


def test_bad_slices_and_methods(rng):
    ts, xs, _ = make(rng)
    path = abx.SampledPath(ts, xs)
    for start, stop in ((3, 3), (0, 8), (5, 2)):
        with pytest.raises(ValueError, match="start < stop"):
            path.slice(start, stop)
