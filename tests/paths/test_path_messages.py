"""Messages that say what to do, for input that real users pass. Run-time type checks
are off, so that users' own errors are seen."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import arborax as abx


@pytest.fixture(autouse=True)
def without_type_checks():
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


TS = np.arange(50.0)
XS = np.zeros((50, 3))
ALG = abx.Shuffle(3, 2)
STAMPS = np.arange("2024-01-01", "2024-01-01T00:00:50", dtype="datetime64[s]")


def frame():
    return pytest.importorskip("pandas").DataFrame(XS)


CASES = {
    "channels first": (lambda: abx.signature(XS.T, ALG), "swapaxes"),
    "channels first in a batch": (
        lambda: abx.log_signature(np.zeros((4, 3, 50)), ALG),
        "swapaxes",
    ),
    "channels first with times": (lambda: abx.rough_path(TS, XS.T, ALG), "swapaxes"),
    "another dim": (lambda: abx.signature(np.zeros((9, 4)), ALG), "dim=4"),
    "unequal lists": (
        lambda: abx.signature([np.zeros((5, 3)), np.zeros((4, 3))], ALG),
        "lengths",
    ),
    "unequal nested lists": (
        lambda: abx.SampledPath(TS, [[[0.0]], [[0.0], [1.0]]]),
        "lengths",
    ),
    "dates": (lambda: abx.SampledPath(STAMPS, XS), "timedelta64"),
    "dates of a driver": (
        lambda: abx.brownian(STAMPS, 1, key=jax.random.key(0)),
        "timedelta",
    ),
    "dates as knots": (
        lambda: abx.windows_by_time(abx.SampledPath(TS, TS[:, None]), STAMPS),
        "timedelta64",
    ),
    "epoch": (
        lambda: abx.SampledPath((1.7e9 + TS).astype(np.float32), XS),
        "subtract the first stamp",
    ),
    "epoch of a driver": (
        lambda: abx.brownian((1.7e9 + TS).astype(np.float32), 1, key=jax.random.key(0)),
        "subtract the first stamp",
    ),
    "unsorted": (lambda: abx.SampledPath(TS[::-1], XS), "Sort the samples"),
    "repeated": (lambda: abx.SampledPath(np.zeros(50), XS), "Sort the samples"),
    "integer key": (lambda: abx.brownian(TS, 1, key=0), r"jax.random.key\(0\)"),
    "integer key, fractional": (
        lambda: abx.fractional_brownian(4, 0.3, key=0),
        r"jax.random.key\(0\)",
    ),
    "integer key, Volterra": (
        lambda: abx.riemann_liouville(4, 0.3, key=0),
        r"jax.random.key\(0\)",
    ),
    "frame": (lambda: abx.signature(frame(), ALG), "to_numpy"),
    "frame in a path": (lambda: abx.SampledPath(TS, frame()), "to_numpy"),
    "text": (lambda: abx.SampledPath(TS, XS.astype(str)), "numbers"),
}


@pytest.mark.parametrize("name", CASES)
def test_messages(name):
    call, match = CASES[name]
    with pytest.raises((ValueError, TypeError), match=match) as caught:
        call()
    assert len(str(caught.value)) < 300


def test_stamps_in_double_precision_with_values_in_single():
    """Times keep their own dtype through cuts, interpolation and time channels."""
    ts = 1.7e9 + np.linspace(0.0, 10.0, 21)
    xs = np.random.default_rng(0).normal(size=(21, 2)).astype(np.float32)
    path, shifted = abx.SampledPath(ts, xs), abx.SampledPath(ts - ts[0], xs)
    knots = 1.7e9 + np.array([0.25, 3.1, 9.9])
    for late, early in (
        (abx.add_time(path).xs, abx.add_time(shifted).xs),
        (abx.rectilinear(path).xs, abx.rectilinear(shifted).xs),
        (
            abx.windows_by_time(path, knots).xs,
            abx.windows_by_time(shifted, knots - 1.7e9).xs,
        ),
        (
            abx.interpolate(path, "hermite").evaluate(knots),
            abx.interpolate(shifted, "hermite").evaluate(knots - 1.7e9),
        ),
        (
            abx.rough_path(ts, xs, abx.Shuffle(2, 2), knots).log_signatures,
            abx.rough_path(
                ts - ts[0], xs, abx.Shuffle(2, 2), knots - 1.7e9
            ).log_signatures,
        ),
    ):
        assert late.dtype == np.float32
        np.testing.assert_allclose(late, early, rtol=1e-5, atol=1e-5)
    control = abx.rough_path(ts, xs, abx.Shuffle(2, 2), knots)
    assert control.knots.dtype == control.times.dtype == np.float64
    np.testing.assert_array_equal(control.knots, knots)


@pytest.mark.parametrize("kind", ["linear", "rectilinear", "hermite"])
def test_the_last_time_of_a_padded_path(kind):
    """There the segment has no extent; values and gradients are those of a path that
    stops."""
    xs = np.random.default_rng(1).normal(size=(6, 2))
    ts = np.array([0.0, 1.0, 2.0, 3.0, 3.5, 4.0])
    query = jnp.array([1.5, 2.0, 2.0 + 1e-9, 3.0])

    def evaluate(xs, ts):
        path = abx.SampledPath(ts, xs, lengths=3)
        curve = abx.interpolate(path, kind)
        return curve.evaluate(query), curve.derivative(query)

    values, slopes = evaluate(jnp.asarray(xs), jnp.asarray(ts))
    np.testing.assert_allclose(values[1:, -2:], np.tile(xs[2], (3, 1)), 1e-7, 1e-7)
    assert np.all(np.isfinite(slopes))
    for k in range(2):
        grads = jax.grad(lambda *a: evaluate(*a)[k].sum(), (0, 1))(
            jnp.asarray(xs), jnp.asarray(ts)
        )
        assert all(np.all(np.isfinite(g)) for g in grads)
