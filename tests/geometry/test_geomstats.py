"""geomstats as an oracle: exponentials, logarithms, distances, parallel frames."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


@pytest.fixture(scope="module")
def oracle():
    """Metrics of geomstats, on its NumPy backend.

    geomstats 2.8 still imports `numpy.trapz`, which NumPy 2.4 removed in favour of
    `trapezoid`: lend it the old name for the import.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not hasattr(np, "trapz"):
            patch.setattr(np, "trapz", np.trapezoid, raising=False)
        from geomstats.geometry.hyperboloid import Hyperboloid
        from geomstats.geometry.hypersphere import Hypersphere
        from geomstats.geometry.spd_matrices import SPDMatrices
        from geomstats.geometry.special_euclidean import SpecialEuclidean
        from geomstats.geometry.special_orthogonal import SpecialOrthogonal
    return {
        "sphere": Hypersphere(3).metric,
        "hyperbolic": Hyperboloid(3).metric,
        "spd": SPDMatrices(3).metric,
        "so3": SpecialOrthogonal(3),
        "so4": SpecialOrthogonal(4),
        "se3": SpecialEuclidean(3),
    }


METRICS = {
    "sphere": [abx.Sphere(3)],
    "hyperbolic": [abx.Hyperbolic(3)],
    "spd": [abx.SPD(3), abx.SPD(3, "root")],
    "so3": [abx.SO(3), abx.SO(3, connection="levi-civita")],
    "so4": [abx.SO(4)],
    "se3": [abx.SE(3, connection="levi-civita")],
}
CASES = [(key, g) for key, values in METRICS.items() for g in values]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("key, g", CASES, ids=str)
def test_exp_log_distance(oracle, key, g):
    metric = oracle[key]
    metric = getattr(metric, "metric", metric)
    y = g.random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    u = 0.6 * jr.normal(jr.PRNGKey(1), (g.dim,), jnp.float64)
    tangent = np.asarray(g.frame(y, u))
    base = np.asarray(y)
    z = g.exp(y, u)
    end = metric.exp(tangent, base)
    np.testing.assert_allclose(z, end, rtol=1e-12, atol=1e-12)
    log = metric.log(end, base)
    np.testing.assert_allclose(g.frame(y, g.log(y, z)), log, rtol=1e-9, atol=1e-9)
    # geomstats measures rotations in the Frobenius norm, sqrt(2) times the angle.
    length = metric.norm(tangent, base) / metric.norm(
        np.asarray(g.frame(y, jnp.eye(g.dim)[0])), base
    )
    if g.dim == g.manifold_dim:
        ours = jnp.linalg.norm(u)
        if not key.startswith("se"):
            np.testing.assert_allclose(length, ours, rtol=1e-9)
    if key in ("sphere", "hyperbolic", "spd"):
        np.testing.assert_allclose(g.distance(y, z), metric.dist(base, end), rtol=1e-8)


def test_group_exponential_of_rigid_motions(oracle):
    g, group = abx.SE(3), oracle["se3"]
    y = g.random_point(key=jr.PRNGKey(2), dtype=jnp.float64)
    u = jr.normal(jr.PRNGKey(3), (6,), jnp.float64)
    end = group.exp(np.asarray(g.frame(y, u)), np.asarray(y))
    np.testing.assert_allclose(g.exp(y, u), end, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "key, g, origin",
    [
        ("hyperbolic", abx.Hyperbolic(3), jnp.asarray([1.0, 0.0, 0.0, 0.0])),
        ("spd", abx.SPD(3, "root"), jnp.eye(3)),
    ],
    ids=str,
)
def test_frame_is_parallel_from_the_origin(oracle, key, g, origin):
    """The hyperbolic frame and the root frame are transported along geodesics."""
    metric = oracle[key]
    y = g.random_point(key=jr.PRNGKey(4), dtype=jnp.float64)
    u = jr.normal(jr.PRNGKey(5), (g.dim,), jnp.float64)
    moved = metric.parallel_transport(
        np.asarray(g.frame(origin, u)),
        np.asarray(origin),
        end_point=np.asarray(y),
    )
    np.testing.assert_allclose(g.frame(y, u), moved, rtol=1e-10, atol=1e-10)
