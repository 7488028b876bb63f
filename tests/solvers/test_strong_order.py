"""Strong convergence on shared noise."""

import diffrax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.algebra import primitive_conversion

from .harness import (
    bounded_fields,
    brownian_paths,
    distances,
    errors,
    fields_bounded_in_the_metric,
    flow_reference,
    geodesic_euler,
    log_ode,
    pad,
    slope,
    window_log_signatures,
    with_ito_drift,
)


SIZES = (4, 8, 16, 32)


def case(geometry, d=2, paths=32, steps=512, scale=0.6):
    y0 = geometry.random_point(key=jr.PRNGKey(1), dtype=jnp.float64)
    make = bounded_fields
    if isinstance(geometry, abx.SPD):
        # Else the mean square has heavy tails; see `test_ito_on_spd_path_by_path`.
        make = fields_bounded_in_the_metric
    fields = make(d, geometry, scale=scale)
    return fields, y0, brownian_paths(jr.PRNGKey(0), paths, steps, d)


@pytest.mark.parametrize(
    "geometry",
    [abx.SO(3), abx.SPD(3), abx.Sphere(2)],
    ids=["so3", "spd3", "sphere"],
)
def test_ito_depth_two(geometry):
    """Order 1 against geodesic Euler-Maruyama on the fine grid. Without the Lyndon
    words over trees half an order is lost on SO(3) with the frame connection."""
    fields, y0, xs = case(geometry)
    reference = geodesic_euler(fields, y0, xs, geometry)
    for alg in (abx.MuntheKaasWright(2, 2), abx.Ito(2, 2)):
        lams = pad(window_log_signatures(xs, alg, SIZES, "realised"))
        trees = jnp.array([float(len(key) == 1) for key in alg.primitive_basis])
        both = jnp.concatenate([lams, lams * jnp.broadcast_to(trees, lams.shape)])
        error = errors(log_ode(fields, y0, both, alg, geometry), reference, geometry)
        whole, alone = np.split(error, 2)
        assert abs(slope(SIZES, whole) - 1) < 0.15, whole
        if isinstance(geometry, abx.SO) and isinstance(alg, abx.MuntheKaasWright):
            assert abs(slope(SIZES, alone) - 0.5) < 0.15, alone
            assert alone[-1] > 3 * whole[-1]


def test_ito_on_spd_path_by_path():
    """Order 1 on SPD(3) with fields that are smooth functions of the matrix entries.

    Their derivatives grow with the matrix, without bound, and order 1 in mean square is
    a theorem for bounded derivatives only. The few paths along which the matrix grows
    most, for which these windows are still long, then dominate the mean square: the
    slope is theirs, and differs from one sample to the next. Path by path the order is
    1 whatever the growth, so the test takes the median over paths.
    """
    geometry, alg, sizes = abx.SPD(3), abx.Ito(2, 2), (8, 16, 32, 64)
    _, y0, xs = case(geometry, paths=128)
    fields = bounded_fields(2, geometry)
    reference = geodesic_euler(fields, y0, xs, geometry)
    lams = pad(window_log_signatures(xs, alg, sizes, "realised"))
    gaps = distances(log_ode(fields, y0, lams, alg, geometry), reference, geometry)
    error = np.median(gaps, axis=1)
    assert abs(slope(sizes, error) - 1) < 0.15, error
    # Six of the 128 paths make up most of the mean square.
    squares = np.sort(gaps**2, axis=1)
    assert np.all(squares[:, -6:].sum(axis=1) > squares[:, :-6].sum(axis=1))


def up_to_weight(lams, alg, weight):
    keep = jnp.asarray(alg.primitive_weights <= weight, lams.dtype)
    return lams * jnp.broadcast_to(keep, lams.shape)


def with_mean_of_weight_four(lams, alg):
    """Depth 3, and the expectation of what it leaves out at weight 4.

    In the compressed basis this is -h^2/24 for each bracket [i, [i, (jj)]]: the mean
    h^2/12 of the coordinate [W, [W, t]] times the letter -dt/2. Other brackets of
    weight 4 have mean zero.
    """
    ito = abx.Ito(alg.dim, 4)
    mean = np.zeros(ito.primitive_size)
    for i in range(alg.dim):
        for j in range(alg.dim):
            mean[ito.primitive_basis.index(((i,), (i,), (j, j)))] = -1 / 24
    if not isinstance(alg, abx.Ito):
        mean = primitive_conversion(ito, alg)(mean)
    rows = []
    for n, row in zip(SIZES, np.array(up_to_weight(lams, alg, 3))):
        row[:, :n] += mean / n**2
        rows.append(row)
    return jnp.asarray(np.stack(rows))


def time_of(xs):
    times = jnp.linspace(0.0, 1.0, xs.shape[1])[None, :, None]
    return jnp.broadcast_to(times, (*xs.shape[:2], 1))


@pytest.mark.parametrize(
    "geometry",
    [
        pytest.param(abx.SO(3), id="so3"),
        pytest.param(abx.SPD(3), id="spd3", marks=pytest.mark.slow),
    ],
)
def test_ito_depth_three(geometry):
    """Order 3/2, once the mean of weight 4 is there.

    As for the Itô-Taylor schemes of order 3/2: brackets of weight 4 are of size h^2,
    and those with a mean add up to a bias of order 1. Depth 3 alone lies in between.
    The reference is the Itô equation in Stratonovich form.
    """
    fields, y0, xs = case(geometry)
    alg = abx.Ito(2, 4)
    driver = jnp.concatenate([xs, time_of(xs)], axis=-1)
    reference = flow_reference(with_ito_drift(fields, geometry), y0, driver, geometry)
    lams = pad(window_log_signatures(xs, alg, SIZES, "time"))
    three = up_to_weight(lams, alg, 3)
    cases = [three, with_mean_of_weight_four(lams, alg), lams]
    # Stages are scanned: the field of weight 4 is compiled once.
    solver = abx.RKMK(diffrax.Dopri5())
    ends = log_ode(
        fields, y0, jnp.concatenate(cases), alg, geometry, solver=solver, substeps=1
    )
    three, corrected, four = np.split(errors(ends, reference, geometry), len(cases))
    assert 1 < slope(SIZES, three) < 1.6, three
    assert abs(slope(SIZES, corrected) - 1.5) < 0.2, corrected
    assert abs(slope(SIZES, four) - 2) < 0.3, four
    assert four[-1] < corrected[-1] / 2 < three[-1] / 2


@pytest.mark.parametrize(
    "geometry,depth,order",
    [
        (abx.SO(3), 2, 1.0),
        (abx.SO(3), 3, 1.5),
        (abx.SPD(3), 3, 1.5),
        (abx.Euclidean(3), 3, 1.5),
    ],
    ids=["so3-2", "so3-3", "spd3-3", "euclidean-3"],
)
def test_stratonovich_brownian(geometry, depth, order):
    """Depth N against Brownian drivers: order N/2."""
    fields, y0, xs = case(geometry)
    alg = abx.Shuffle(2, depth)
    reference = flow_reference(fields, y0, xs, geometry)
    lams = pad(window_log_signatures(xs, alg, SIZES))
    error = errors(log_ode(fields, y0, lams, alg, geometry), reference, geometry)
    assert abs(slope(SIZES, error) - order) < 0.3, error


def test_stratonovich_fractional():
    """Hurst 0.4, depth 2 and 3: pathwise rates of at least (N + 1)H - 1."""
    geometry, hurst = abx.SO(3), 0.4
    fields, y0, _ = case(geometry)
    xs = abx.fractional_brownian(
        512, hurst, dim=2, shape=(32,), dtype=jnp.float64, key=jr.PRNGKey(3)
    )
    reference = flow_reference(fields, y0, xs, geometry)
    for depth, floor in ((2, 0.2), (3, 0.6)):
        alg = abx.Shuffle(2, depth)
        lams = pad(window_log_signatures(xs, alg, SIZES))
        error = errors(log_ode(fields, y0, lams, alg, geometry), reference, geometry)
        assert slope(SIZES, error) > floor, error


@pytest.mark.parametrize("depth,order", [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)])
def test_euclidean_ito_trees(depth, order):
    """Grossman-Larson, depths 1 to 4: order N/2 for the Itô equation, at depth 3 with
    the mean of weight 4 (see above)."""
    geometry = abx.Euclidean(2)
    alg = abx.GrossmanLarson(2, 4 if depth == 3 else depth)
    fields, y0, xs = case(geometry, scale=0.5)
    if depth == 1:  # Brackets are seen from depth 2 on.
        extended, driver = fields, xs
    else:
        extended = with_ito_drift(fields, geometry)
        driver = jnp.concatenate([xs, time_of(xs)], axis=-1)
    reference = flow_reference(extended, y0, driver, geometry)
    brackets = "time" if depth > 1 else None
    lams = pad(window_log_signatures(xs, alg, SIZES, brackets))
    if depth == 3:
        lams = with_mean_of_weight_four(lams, alg)
    error = errors(log_ode(fields, y0, lams, alg, geometry), reference, geometry)
    assert abs(slope(SIZES, error) - order) < 0.2, error
