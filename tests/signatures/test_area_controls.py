"""Controls from increments and areas."""

import itertools as it

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


TS = np.linspace(0.0, 1.0, 5)


def pieces(dim, brackets):
    """The windows of a sampled path, by `rough_path` and by increments and areas."""
    xs = np.asarray(jr.normal(jr.key(0), (17, dim)))
    ts = np.linspace(0.0, 1.0, 17)
    i, j = np.triu_indices(dim, 1)
    increments, areas, squares = [], [], []
    for k in range(0, 16, 4):
        dx = np.diff(xs[k : k + 5], axis=0)
        double = (np.cumsum(dx, axis=0) - dx).T @ dx
        increments.append(dx.sum(axis=0))
        areas.append((double - double.T)[i, j] / 2)
        squares.append(dx.T @ dx)
    given = np.stack(squares) if brackets else None
    return ts, xs, np.stack(increments), np.stack(areas), given


@pytest.mark.parametrize(
    "alg",
    [abx.Shuffle(3, 2), abx.Ito(3, 2), abx.GrossmanLarson(3, 2)]
    + [abx.MuntheKaasWright(3, 2)],
    ids=str,
)
def test_depth_two_is_that_of_the_path(alg):
    """Increment, area and bracket are all there is at depth two."""
    ito = alg.calculus != "stratonovich"
    ts, xs, increments, areas, brackets = pieces(3, ito)
    mode = "realised" if ito else None
    expected = abx.rough_path(ts, xs, alg, window=4, brackets=mode)
    control = abx.rough_path_from_areas(TS, increments, areas, alg, brackets)
    assert control.calculus == expected.calculus
    np.testing.assert_allclose(
        control.log_signatures, expected.log_signatures, atol=1e-12
    )
    np.testing.assert_allclose(control.knots, expected.knots)


def test_pieces_of_a_window():
    alg = abx.Ito(2, 3)
    _, _, increments, areas, brackets = pieces(2, True)
    control = abx.rough_path_from_areas(TS, increments, areas, alg, brackets)
    first, second = control.log_signature(0.25, 0.3), control.log_signature(0.3, 0.5)
    group = alg.product(*(alg.exp(alg.from_primitive(x)) for x in (first, second)))
    whole = alg.exp(alg.from_primitive(control.log_signatures[1]))
    np.testing.assert_allclose(group, whole, atol=1e-12)


def test_expected_signature_to_weight_five():
    """Over Brownian increments and areas, the mean signature of a window with
    `variances` is `exp(h (e_0 + sum_i e_i^2 / 2))`, time `e_0` having weight two.

    Increments take the three Gauss-Hermite points, which are exact to degree five, and
    areas the two points of their variance.
    """
    h, alg = 0.7, abx.Shuffle(3, 5)
    points = np.sqrt(3 * h) * np.array([-1.0, 0.0, 1.0])
    weights = np.array([1 / 6, 2 / 3, 1 / 6])
    rows, probabilities = [], []
    for (i, j), sign in it.product(it.product(range(3), repeat=2), (-1, 1)):
        rows.append((h, points[i], points[j], 0.0, 0.0, sign * h / 2))
        probabilities.append(weights[i] * weights[j] / 2)
    rows, probabilities = np.array(rows), np.array(probabilities)

    def mean(variances):
        control = abx.rough_path_from_areas(
            np.arange(19.0), rows[:, :3], rows[:, 3:], alg, variances=variances
        )
        group = alg.exp(alg.from_primitive(np.asarray(control.log_signatures)))
        return probabilities @ group

    generator = np.zeros(alg.size)
    generator[alg.index[(0,)]] = h
    for i in (1, 2):
        generator[alg.index[(i, i)]] = h / 2
    expected = alg.exp(generator)
    weight = np.array([len(word) + word.count(0) for word in alg.basis])
    low = weight <= 5
    variances = np.broadcast_to([0.0, h, h], (18, 3))
    np.testing.assert_allclose(mean(variances)[low], expected[low], atol=1e-14)
    # Without them weight four is wrong.
    assert np.max(np.abs(mean(None) - expected)[weight == 4]) > 0.01


def test_transforms_and_dtypes():
    _, _, increments, areas, brackets = pieces(2, True)
    alg = abx.Ito(2, 2)

    @jax.jit
    def lams(x):
        return abx.rough_path_from_areas(TS, x, areas, alg, brackets).log_signatures

    assert not np.any(np.isnan(lams(increments)))
    assert np.all(np.isnan(lams(jnp.asarray(increments).at[0].set(jnp.nan))))
    small = abx.rough_path_from_areas(
        TS.astype(np.float32), increments.astype(np.float32), areas, alg, brackets
    )
    assert small.log_signatures.dtype == np.float32
    slopes = jax.jit(jax.vmap(jax.jacfwd(lams)))(jnp.stack([increments, increments]))
    assert slopes.shape == (2, 4, alg.primitive_size, 4, 2)


def test_errors():
    _, _, increments, areas, brackets = pieces(3, True)
    make = abx.rough_path_from_areas
    alg = abx.Shuffle(3, 2)
    with pytest.raises(ValueError, match=r"`areas` must have shape \(4, 3\)"):
        make(TS, increments, areas[:, :2], alg)
    with pytest.raises(ValueError, match="jax.vmap"):
        make(TS, increments[None], areas, alg)
    with pytest.raises(ValueError, match="depth 2 or more"):
        make(TS, increments, areas, abx.Shuffle(3, 1))
    with pytest.raises(ValueError, match="needs brackets"):
        make(TS, increments, areas, abx.Ito(3, 2))
    with pytest.raises(ValueError, match="cannot carry brackets"):
        make(TS, increments, areas, alg, brackets)
    with pytest.raises(ValueError, match="areas do not say"):
        make(TS, increments, areas, abx.Ito(3, 2), "realised")
    with pytest.raises(ValueError, match="`variances` must have shape"):
        make(TS, increments, areas, alg, variances=np.ones(3))
    with pytest.raises(ValueError, match="increasing"):
        make(TS[::-1], increments, areas, alg)
