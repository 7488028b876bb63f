"""Strong convergence on shared noise."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .harness import (
    bounded_fields,
    brownian_paths,
    errors,
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
    y0 = geometry.random_point(jr.PRNGKey(1), jnp.float64)
    if isinstance(geometry, abx.SPD):  # noncompact: keep to moderate states
        y0, scale = jnp.eye(geometry.n), scale / 2
    fields = bounded_fields(d, geometry, scale=scale)
    return fields, y0, brownian_paths(jr.PRNGKey(0), paths, steps, d)


@pytest.mark.parametrize(
    "geometry",
    [abx.SO(3), abx.SPD(3), abx.Sphere(2)],
    ids=["so3", "spd3", "sphere"],
)
def test_ito_depth_two(geometry):
    """Order 1 against geodesic Euler-Maruyama on the fine grid."""
    fields, y0, xs = case(geometry)
    reference = geodesic_euler(fields, y0, xs, geometry)
    for alg in (abx.MuntheKaasWright(2, 2), abx.Ito(2, 2)):
        lams = pad(window_log_signatures(xs, alg, SIZES, "realised"))
        error = errors(log_ode(fields, y0, lams, alg, geometry), reference)
        assert abs(slope(SIZES, error) - 1) < 0.15, error


def test_trees_alone_lose_half_an_order():
    """On SO(3) with the frame connection the Lyndon words over trees matter."""
    geometry, alg = abx.SO(3), abx.MuntheKaasWright(2, 2)
    fields, y0, xs = case(geometry)
    reference = geodesic_euler(fields, y0, xs, geometry)
    lams = pad(window_log_signatures(xs, alg, SIZES, "realised"))
    trees = jnp.array([float(len(key) == 1) for key in alg.primitive_basis])
    both = jnp.concatenate([lams, lams * jnp.broadcast_to(trees, lams.shape)])
    error = errors(log_ode(fields, y0, both, alg, geometry), reference)
    whole, alone = error[: len(SIZES)], error[len(SIZES) :]
    assert abs(slope(SIZES, whole) - 1) < 0.15
    assert abs(slope(SIZES, alone) - 0.5) < 0.15
    assert alone[-1] > 3 * whole[-1]


@pytest.mark.parametrize(
    "geometry,alg",
    [
        (abx.SO(3), abx.MuntheKaasWright(2, 3)),
        (abx.SPD(3), abx.Ito(2, 3)),
    ],
    ids=["so3", "spd3"],
)
def test_ito_depth_three(geometry, alg):
    """Random errors of order 3/2. The reference is the Itô equation in Stratonovich
    form.

    Weight 4, which depth 3 leaves out, has a mean: h^2/12 for [i, [i, (jj)]]. This adds
    a small bias of order 1, so slopes lie between 1 and 3/2, with errors far below
    those of depth 2.
    """
    fields, y0, xs = case(geometry)
    time = jnp.broadcast_to(
        jnp.linspace(0.0, 1.0, xs.shape[1])[None, :, None], (*xs.shape[:2], 1)
    )
    extended = with_ito_drift(fields, geometry)
    driver = jnp.concatenate([xs, time], axis=-1)
    reference = flow_reference(extended, y0, driver, geometry)
    lams = pad(window_log_signatures(xs, alg, SIZES, "time"))
    weights = jnp.asarray(alg.primitive_weights <= 2, lams.dtype)
    both = jnp.concatenate([lams, lams * jnp.broadcast_to(weights, lams.shape)])
    error = errors(log_ode(fields, y0, both, alg, geometry), reference)
    three, two = error[: len(SIZES)], error[len(SIZES) :]
    assert 1.1 < slope(SIZES, three) < 1.8, three
    assert abs(slope(SIZES, two) - 1) < 0.25, two
    assert three[-1] < two[-1] / 3, error


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
    error = errors(log_ode(fields, y0, lams, alg, geometry), reference)
    assert abs(slope(SIZES, error) - order) < 0.3, error


def test_stratonovich_fractional():
    """Hurst 0.4, depth 2 and 3: pathwise rates of at least (N + 1)H - 1."""
    geometry, hurst = abx.SO(3), 0.4
    fields, y0, _ = case(geometry)
    xs = abx.fractional_brownian(
        jr.PRNGKey(3), 512, hurst, dim=2, shape=(32,), dtype=jnp.float64
    )
    reference = flow_reference(fields, y0, xs, geometry)
    for depth, floor in ((2, 0.2), (3, 0.6)):
        alg = abx.Shuffle(2, depth)
        lams = pad(window_log_signatures(xs, alg, SIZES))
        error = errors(log_ode(fields, y0, lams, alg, geometry), reference)
        assert slope(SIZES, error) > floor, error


@pytest.mark.parametrize("depth,order", [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)])
def test_euclidean_ito_trees(depth, order):
    """Grossman-Larson, depths 1 to 4: order N/2 for the Itô equation, up to the bias of
    depth 3 (see above)."""
    geometry, alg = abx.Euclidean(2), abx.GrossmanLarson(2, depth)
    fields, y0, xs = case(geometry, scale=0.5)
    extended = with_ito_drift(fields, geometry)
    time = jnp.broadcast_to(
        jnp.linspace(0.0, 1.0, xs.shape[1])[None, :, None], (*xs.shape[:2], 1)
    )
    if depth == 1:  # Brackets are seen from depth 2 on.
        extended, driver = fields, xs
    else:
        driver = jnp.concatenate([xs, time], axis=-1)
    reference = flow_reference(extended, y0, driver, geometry)
    brackets = "time" if depth > 1 else None
    lams = pad(window_log_signatures(xs, alg, SIZES, brackets))
    error = errors(log_ode(fields, y0, lams, alg, geometry), reference)
    slack = 0.55 if depth == 3 else 0.3
    assert abs(slope(SIZES, error) - order) < slack, error
    assert np.all(np.isfinite(error))
