"""Augmentations, padding, static kernels, messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


def _paths(rng, n, times, d=2, size=0.3):
    return jnp.asarray(np.cumsum(size * rng.standard_normal((n, times, d)), axis=1))


@pytest.mark.parametrize(
    "kind, depth", [("geometric", None), ("ito", 2), ("branched", 2), ("planar", None)]
)
def test_padding_is_exact(kind, depth, rng):
    x, y = _paths(rng, 2, 6), _paths(rng, 2, 5)
    junk = jnp.full((2, 3, 2), 7.0)
    padded = jnp.concatenate([x, junk], axis=1)
    path = abx.SampledPath(jnp.linspace(0, 1, 9), padded, lengths=jnp.asarray([6, 6]))
    got = abx.signature_gram(path, y, kind, depth)
    np.testing.assert_allclose(got, abx.signature_gram(x, y, kind, depth), rtol=1e-12)


def test_padding_with_brackets(rng):
    x, y = _paths(rng, 2, 4), _paths(rng, 2, 3)
    a = jnp.asarray(np.abs(rng.standard_normal((2, 3, 1, 1))) * np.eye(2))
    padded = jnp.concatenate([x, x[:, -1:] + 1], axis=1)
    wide = jnp.concatenate([a, jnp.ones((2, 1, 2, 2))], axis=1)
    path = abx.SampledPath(jnp.linspace(0, 1, 5), padded, lengths=jnp.asarray([4, 4]))
    options = {"kind": "branched", "depth": 3}
    got = abx.signature_gram(path, y, brackets_x=wide, **options)
    expected = abx.signature_gram(x, y, brackets_x=a, **options)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_augmentations(rng):
    x, y = _paths(rng, 2, 5), _paths(rng, 2, 4)

    def augmented(z):
        path = abx.SampledPath(jnp.linspace(0, 1, z.shape[1]), z)
        return abx.add_basepoint(abx.add_time(abx.lead_lag(path))).xs

    flags = {"add_time": True, "add_basepoint": True, "lead_lag": True}
    got = abx.signature_kernel(x, y, "ito", **flags)
    expected = abx.signature_kernel(augmented(x), augmented(y), "ito")
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_sampled_path_brings_brackets_and_mask(rng):
    x, y = _paths(rng, 2, 5), _paths(rng, 2, 4)
    a = jnp.broadcast_to(0.1 * jnp.eye(2), (2, 4, 2, 2))
    path = abx.SampledPath(jnp.linspace(0, 1, 5), x, brackets=a)
    got = abx.signature_kernel(path, y, "ito", 2)
    expected = abx.signature_kernel(x, y, "ito", 2, brackets_x=a)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    mask = jnp.asarray([True, False, True, True, True])
    filled = x.at[:, 1].set((x[:, 0] + x[:, 2]) / 2)
    holes = abx.SampledPath(path.ts, x, mask=jnp.broadcast_to(mask, (2, 5)))
    got = abx.signature_kernel(holes, y)
    np.testing.assert_allclose(got, abx.signature_kernel(filled, y), rtol=1e-10)


def test_realised_brackets_are_left_point_at_depth_two(rng):
    x, y = _paths(rng, 2, 6), _paths(rng, 2, 5)
    left = abx.signature_gram(x, y, "branched", 2, method="recursion")
    options = {"brackets_x": "realised", "brackets_y": "realised"}
    real = abx.signature_gram(x, y, "branched", 2, method="recursion", **options)
    np.testing.assert_allclose(left, real, rtol=1e-11)


@pytest.mark.parametrize("kind", ["ito", "branched", "planar"])
def test_missing_points_are_no_increments(kind, rng):
    """Left-point sums and realised brackets as if missing points were not there."""
    x, y = _paths(rng, 2, 9), _paths(rng, 2, 5)
    keep = np.array([0, 2, 3, 6, 8])
    mask = jnp.zeros((2, 9), bool).at[:, keep].set(True)
    values = jnp.where(mask[..., None], x, jnp.nan)
    holes = abx.SampledPath(jnp.linspace(0, 1, 9), values, mask=mask)
    kernel = abx.SignatureKernel(kind, 3, method="recursion")
    for brackets in ("left-point", "realised"):
        got = kernel.gram(holes, y, brackets_x=brackets)
        # Interpolation splits an increment, but not its bracket.
        if brackets == "left-point":
            expected = kernel.gram(x[:, keep], y, brackets_x=brackets)
            np.testing.assert_allclose(got, expected, rtol=1e-11)
        _, full = kernel.prepared(x[:, keep], brackets)
        _, split = kernel.prepared(holes, brackets)
        if full is not None:
            np.testing.assert_allclose(split.sum(1), full.sum(1), rtol=1e-11)


@pytest.mark.parametrize("kind", ["ito", "branched", "planar"])
def test_left_point_sums_are_of_observed_values(kind, rng):
    """A value filled in by interpolation is not an observation (MATH.md, section 6)."""
    x = _paths(rng, 2, 6)
    mask = np.ones((2, 6, 2), bool)
    mask[:, 2, 0] = mask[:, 3, 1] = False
    path = abx.SampledPath(jnp.linspace(0, 1, 6), x, mask)
    held = abx.signature_gram(path.filled("forward"), x, kind, 2)
    np.testing.assert_allclose(abx.signature_gram(path, x, kind, 2), held, rtol=1e-12)
    with pytest.raises(ValueError, match="forward"):
        abx.signature_gram(path.filled(), x, kind, 2)


def test_brackets_of_marked_channels_are_refused(rng):
    x = _paths(rng, 2, 4)
    path = abx.SampledPath(jnp.linspace(0, 1, 4), x, finite_variation=(0,))
    full = jnp.broadcast_to(jnp.eye(2), (2, 3, 2, 2))
    with pytest.raises(ValueError, match="finite_variation"):
        abx.signature_gram(path, x, "ito", 2, brackets_x=full)


def test_time_has_no_bracket(rng):
    x = _paths(rng, 2, 6)
    path = abx.add_time(abx.SampledPath(jnp.linspace(0, 3, 6), x))
    for kernel, given in (
        (abx.SignatureKernel("branched", 2), path),
        (abx.SignatureKernel("branched", 2, add_time=True), x),
    ):
        _, brackets = kernel.prepared(given, "realised")
        dx = jnp.diff(x, axis=1)
        np.testing.assert_allclose(brackets[..., 0, :], 0)
        np.testing.assert_allclose(brackets[..., :, 0], 0)
        outer = dx[..., :, None] * dx[..., None, :]
        np.testing.assert_allclose(brackets[..., 1:, 1:], outer)


def test_user_kernel_and_normalisation(rng):
    x, y = _paths(rng, 2, 6), _paths(rng, 3, 5)

    def rbf(a, b):
        return jnp.exp(-jnp.sum((a - b) ** 2) / 2)

    own = abx.signature_gram(x, y, "ito", static_kernel=rbf)
    named = abx.signature_gram(x, y, "ito", static_kernel="rbf")
    np.testing.assert_allclose(own, named, rtol=1e-10)
    gram = abx.signature_gram(x, None, static_kernel="rbf", normalise=True)
    np.testing.assert_allclose(jnp.diag(gram), 1, rtol=1e-12)


def test_scale(rng):
    x, y = _paths(rng, 2, 6), _paths(rng, 2, 5)
    got = abx.signature_kernel(x, y, "branched", 3, scale=0.5)
    expected = abx.signature_kernel(0.5 * x, 0.5 * y, "branched", 3)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_single_points_have_kernel_one():
    x = jnp.ones((3, 1, 2))
    for kind in ("geometric", "ito", "branched", "planar"):
        np.testing.assert_allclose(abx.signature_kernel(x, x, kind), 1)


def test_robust_normalisation(rng):
    x = _paths(rng, 5, 6)
    kernel = abx.SignatureKernel("geometric", 3)
    for size in (0.1, 30.0):
        plain = kernel.features(size * x)
        robust = kernel.features(size * x, robust=True)
        square = 1 + jnp.sum(robust**2, axis=-1)
        assert float(jnp.max(square)) <= 8 + 1e-6
        if size < 1:
            np.testing.assert_allclose(robust, plain)
        else:  # the norm is psi(norm), by a dilation
            r = 1 + jnp.sum(plain**2, axis=-1)
            np.testing.assert_allclose(square, 4 + 16 * (1 / 4 - 1 / r), rtol=1e-9)
            ratio = robust / plain
            np.testing.assert_allclose(ratio[:, 2], ratio[:, 0] ** 2, rtol=1e-9)

    def loss(s):
        return jnp.sum(jnp.cos(kernel.features(s * x, robust=True)))

    at, h = jnp.asarray(4.0), 1e-5
    slope = (loss(at + h) - loss(at - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(loss)(at), slope, rtol=1e-6)
    first = jax.grad(loss)
    curve = (first(at + h) - first(at - h)) / (2 * h)
    np.testing.assert_allclose(jax.hessian(loss)(at), curve, rtol=1e-6)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"depth": 0}, "at least 1"),
        ({"method": "features"}, "finite `depth`"),
        ({"static_kernel": "quartic"}, "Unknown static kernel"),
        ({"inner_product": "trees", "depth": 2}, "branched"),
        ({"brackets_x": "realised"}, "knows no brackets"),
        (
            {"kind": "ito", "brackets_x": "realised", "static_kernel": "rbf"},
            "RandomFourierSignature",
        ),
    ],
)
def test_messages(options, message):
    x = jnp.zeros((3, 2))
    with pytest.raises(ValueError, match=message):
        abx.signature_kernel(x, x, **options)
    with pytest.raises(ValueError, match="channels"):
        abx.signature_kernel(x, jnp.zeros((3, 4)))
