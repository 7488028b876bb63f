"""Wrong requests are refused with a message; off-manifold points are caught."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import arborax as abx
from arborax.geometry._checks import METHODS


@pytest.mark.parametrize(
    "build, error, text",
    [
        (lambda: abx.SO(1), ValueError, "n >= 2"),
        (lambda: abx.SE(2), ValueError, r"Only SE\(3\)"),
        (lambda: abx.SO(3, connection="flat"), ValueError, "connection='flat'"),
        (lambda: abx.Sphere(2, connection="frame"), ValueError, "levi-civita"),
        (lambda: abx.SPD(3, "qr"), ValueError, "frame='qr'"),
        (lambda: abx.Product(), ValueError, "at least one"),
        (lambda: abx.Euclidean(0), ValueError, "n >= 1"),
    ],
)
def test_refused(build, error, text):
    with pytest.raises(error, match=text):
        build()


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: abx.SO(3.0), "integer"),
        (lambda: abx.Product([abx.SO(3)]), "separate arguments"),
    ],
)
def test_wrong_types(build, text):
    # The run-time type checks of the test suite speak first, users see ours.
    with pytest.raises(TypeError, match=f"{text}|Type-check error"):
        build()


@pytest.mark.parametrize(
    "g, y",
    [
        (abx.SO(3), -np.eye(3)),
        (abx.SO(3), 1.01 * np.eye(3)),
        (abx.SE(3), np.diag([1.0, 1.0, 1.0, 2.0])),
        (abx.SPD(2), np.asarray([[1.0, 2.0], [2.0, 1.0]])),
        (abx.SPD(2), np.asarray([[1.0, 0.1], [0.0, 1.0]])),
        (abx.SPD(2), np.asarray([[1.0, 0.0], [0.0, 0.0]])),
        (abx.Sphere(2), np.asarray([1.0, 1.0, 0.0])),
        (abx.Hyperbolic(2), np.asarray([-1.0, 0.0, 0.0])),
        (abx.Hyperbolic(2), np.asarray([1.0, 1.0, 0.0])),
        (abx.Euclidean(2), np.asarray([np.inf, 0.0])),
    ],
)
def test_off_the_manifold(g, y):
    y = jnp.asarray(y)
    assert not g.belongs(y)
    with pytest.raises(ValueError, match="not on"):
        g.check_point(y)
    compiled = jax.jit(g.check_point)
    assert bool(jnp.all(jnp.isnan(compiled(y))))
    assert "callback" not in compiled.lower(y).as_text()
    with abx.debug_checks(), pytest.raises(Exception, match="not on"):
        jax.block_until_ready(compiled(y))


def test_shape():
    with pytest.raises(ValueError, match=r"shape \(3, 3\), got \(2, 2\)"):
        abx.SO(3).check_point(jnp.eye(2))


# One geometry for each form of a generator, and a nested product.
CHECKED = [
    abx.Euclidean(2),
    abx.SO(3),
    abx.SPD(2),
    abx.Hyperbolic(2),
    abx.Product(abx.SO(3), abx.Product(abx.Euclidean(2), abx.Sphere(1))),
]


@pytest.mark.parametrize("g", CHECKED, ids=lambda g: type(g).__name__)
def test_every_method_refuses_wrong_arguments(g):
    """By name, in a short message, before JAX meets the shapes."""
    y = g.random_point(key=jax.random.key(0))
    u = 0.1 * jnp.ones(g.dim)
    good = {
        "point": y,
        "tangent": y,
        "coordinates": u,
        "generator": g.generator(y, u),
        "matrix": jnp.ones((g.dim, g.dim)),
        "key": jax.random.key(1),
    }
    for method, kinds in METHODS.items():
        call = getattr(g, method)
        if method == "random_point":
            call = lambda key, draw=call: draw(key=key)  # noqa: E731
        for place, kind in enumerate(kinds):
            batch = jax.tree.map(lambda x: x[None], good[kind])
            whole = jax.tree.map(lambda x: jnp.zeros(x.shape, int), good[kind])
            for wrong in (batch, whole, jnp.ones((2, 5)), [1.0, 2.0], 0, None, "north"):
                args = [good[kind] for kind in kinds]
                args[place] = wrong
                with pytest.raises((ValueError, TypeError)) as caught:
                    call(*args)
                assert len(str(caught.value)) < 300
                assert "`" in str(caught.value)


def test_what_the_messages_say():
    g = abx.SO(3)
    with pytest.raises(TypeError, match=r"jax.random.key\(0\)"):
        g.random_point(key=0)
    with pytest.raises(ValueError, match=r"`u`.*\(3,\), got \(4, 3\).*jax.vmap"):
        g.exp(jnp.eye(3), u=jnp.ones((4, 3)))
    with pytest.raises(TypeError, match="astype"):
        g.belongs(jnp.eye(3, dtype=int))


@pytest.mark.parametrize(
    "call, wrong",
    [
        (abx.vech, jnp.ones((2, 3))),
        (abx.vech, jnp.ones(())),
        (abx.unvech, jnp.ones((2, 3))),
        (abx.unvech, jnp.ones(4)),
        (abx.gram_schmidt_6d, jnp.ones(5)),
        (abx.project_rotation, jnp.ones(3)),
        (abx.project_rotation, [1.0]),
        (abx.spd_from_vech, jnp.ones(4)),
    ],
)
def test_heads_refuse_wrong_shapes(call, wrong):
    # As users have it, without the run-time type checks of the test suite.
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises((ValueError, TypeError), match="got") as caught:
            call(wrong)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    assert len(str(caught.value)) < 300


def test_root_frame_has_no_flat_geodesics():
    g = abx.SPD(2, "root", connection="frame")
    with pytest.raises(NotImplementedError, match="cholesky"):
        g.exp(jnp.eye(2), jnp.ones(3))


def test_frames_agree_on_the_metric():
    """The two SPD frames differ by a rotation of coordinates."""
    a, b = abx.SPD(3), abx.SPD(3, "root")
    y = a.random_point(key=jax.random.PRNGKey(0), dtype=jnp.float64)
    u = jnp.arange(6.0)
    v = b.coordinates(y, a.frame(y, u))
    np.testing.assert_allclose(jnp.sum(v**2), jnp.sum(u**2), rtol=1e-12)


def test_product_connection_name():
    assert abx.Product(abx.SO(3), abx.SE(3)).connection == "frame"
    assert abx.Product(abx.SO(3), abx.SPD(2)).connection == "mixed"
