"""What kernels and random features must not see, in single and double precision.

Points lie on a coarse grid of powers of two, so that offsets leave their differences as
they are, to the last bit: what changes is the library's doing.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


KINDS = ("geometric", "ito", "branched", "planar")
STATIC = ("linear", "rbf", "rational-quadratic")
# Complete and truncated, recursion and features; one row for each combination that
# takes another way through the code.
KERNELS = [
    ("geometric", None, "linear", {}),
    ("geometric", None, "rbf", {"solver": "series"}),
    ("geometric", 3, "rational-quadratic", {"scale": 0.3}),
    ("geometric", 2, "linear", {"method": "features", "scale": 0.3}),
    ("ito", None, "rbf", {"scale": 0.3}),
    ("ito", 2, "linear", {"method": "recursion", "scale": 0.3}),
    ("branched", None, "rational-quadratic", {"scale": 0.3}),
    ("branched", 2, "linear", {"method": "features"}),
    ("branched", 3, "rbf", {"normalise": True}),
    ("planar", 2, "rbf", {"add_time": True}),
    ("planar", None, "linear", {"scale": 0.05, "lead_lag": True}),
]
OFFSETS = {"float32": (1024.0, 2.0**20), "float64": (1024.0, 2.0**40)}
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])


def _cases():
    """Each kernel in one precision; in the other one nightly."""
    for i, kernel in enumerate(KERNELS):
        for j, dtype in enumerate(("float32", "float64")):
            marks = [] if (i + j) % 2 else [pytest.mark.slow]
            name = "-".join([*map(str, kernel[:3]), *kernel[3], dtype])
            yield pytest.param(*kernel, dtype, marks=marks, id=name)


ALL = pytest.mark.parametrize("kind, depth, static, options, dtype", list(_cases()))


def _paths(rng, n, times, dtype, d=2):
    """Random walks on a grid of step 1/8."""
    steps = rng.integers(-3, 4, (n, times, d)) / 8
    return jnp.asarray(np.cumsum(steps, axis=1), dtype)


def _kernel(kind, depth, static, options):
    return abx.SignatureKernel(kind, depth, static_kernel=static, **options)


def _close(got, expected, dtype, factor=1.0):
    tolerance = factor * TOLERANCE[dtype]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@ALL
def test_translation(kind, depth, static, options, dtype, rng):
    """A common offset of all paths changes nothing, gradients included."""
    x, y = _paths(rng, 3, 6, dtype), _paths(rng, 2, 5, dtype)
    kernel = _kernel(kind, depth, static, options)

    @jax.jit
    def run(x, y):
        gram, back = jax.vjp(kernel.gram, x, y)
        return gram, kernel(x[:2], y), back(jnp.cos(gram))

    expected = run(x, y)
    for offset in OFFSETS[dtype]:
        shift = jnp.asarray([offset, -offset], dtype)[None, None]
        got = run(x + shift, y + shift)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            _close(a, b, dtype)
    # Gram matrix and pairs take different ways.
    _close(jnp.diag(expected[0][:2]), expected[1], dtype)


def test_basepoint_sees_translation(rng):
    x = _paths(rng, 2, 5, "float64")
    for static in STATIC:
        kernel = abx.SignatureKernel(
            "geometric", 2, static_kernel=static, add_basepoint=True
        )
        gap = jnp.max(jnp.abs(kernel.gram(x + 1) - kernel.gram(x)))
        assert float(gap) > 1e-3


@ALL
def test_batch_composition(kind, depth, static, options, dtype, rng):
    """An entry does not depend on its neighbours: far away, many, in another order."""
    x = _paths(rng, 5, 6, dtype)
    far = _paths(rng, 1, 6, dtype) + jnp.asarray(2.0**20, dtype)
    kernel = _kernel(kind, depth, static, options)
    gram = kernel.gram(x)
    with_far = jnp.concatenate([far, x, far])
    _close(kernel.gram(with_far)[1:-1, 1:-1], gram, dtype)
    _close(kernel.gram(with_far, x)[1:-1], gram, dtype)
    _close(kernel.gram(with_far, block=2)[1:-1, 1:-1], gram, dtype)
    order = jnp.asarray([3, 0, 4, 1, 2])
    _close(kernel.gram(x[order]), gram[order][:, order], dtype)
    pairs = jnp.stack([kernel(x[i], x[i]) for i in range(2)])
    _close(pairs, jnp.diag(gram)[:2], dtype)


@pytest.mark.parametrize("mode", ["auto", "bounded"])
def test_data_scale_is_pooled(mode, rng):
    """One scale from all paths of a call; the same as fixing it first."""
    x, y = _paths(rng, 4, 6, "float64"), 5 * _paths(rng, 3, 5, "float64")
    for kind, depth, static in (
        ("branched", None, "linear"),
        ("ito", 2, "linear"),
        ("geometric", None, "rbf"),
    ):
        options = {"static_kernel": static, "add_time": True}
        kernel = abx.SignatureKernel(kind, depth, scale=mode, **options)
        fixed = kernel.fit(x, y)
        same = abx.SignatureKernel(kind, depth, scale=fixed.scale, **options)
        np.testing.assert_allclose(kernel.gram(x, y), same.gram(x, y), rtol=1e-12)
        np.testing.assert_allclose(
            kernel(x[:3, :5], y), kernel.fit(x[:3, :5], y)(x[:3, :5], y), rtol=1e-12
        )
        own = kernel.gram(x)
        np.testing.assert_allclose(own, kernel.gram(x, x), rtol=1e-12)
        np.testing.assert_allclose(own, kernel.fit(x).gram(x), rtol=1e-12)
        # Objectives: all terms with the pooled scale.
        terms = [same.gram(x), same.gram(x, y), same.gram(y)]
        score = jnp.mean(terms[0]) - 2 * jnp.mean(terms[1])
        whole = score + jnp.mean(terms[2])
        got = abx.signature_score(x, y, kernel, unbiased=False)
        np.testing.assert_allclose(got, score, rtol=1e-10)
        np.testing.assert_allclose(abx.mmd(x, y, kernel), whole, rtol=1e-9)
        test = abx.two_sample_test(x, y, kernel, key=jr.key(0), permutations=5)
        expected = abx.mmd(x, y, same, unbiased=True)
        np.testing.assert_allclose(test.statistic, expected, rtol=1e-9)
    plain = abx.SignatureKernel("branched", scale=mode)
    np.testing.assert_allclose(plain.fit(x, y).scale, plain.fit(y, x).scale)
    # Neither too large nor too small numbers for squares.
    for size in (1e-30, 1e30):
        z = jnp.asarray(size, jnp.float32) * x.astype(jnp.float32)
        np.testing.assert_allclose(
            plain.fit(z).scale * size, plain.fit(x).scale, rtol=1e-5
        )


@pytest.mark.parametrize("unbiased", [True, False])
def test_score_of_linear_kernels_has_the_constant(unbiased, rng):
    """Mean features and Gram matrices give the same score."""
    x, y = _paths(rng, 4, 5, "float64"), _paths(rng, 3, 5, "float64")
    for kind in KINDS:
        kernel = abx.SignatureKernel(kind, 2, scale=0.5)
        assert kernel.linear

        def within(gram):
            n = len(gram)
            if not unbiased:
                return jnp.mean(gram)
            return (jnp.sum(gram) - jnp.trace(gram)) / (n * (n - 1))

        recursion = abx.SignatureKernel(kind, 2, scale=0.5, method="recursion")
        score = within(recursion.gram(x)) - 2 * jnp.mean(recursion.gram(x, y))
        got = abx.signature_score(x, y, kernel, unbiased=unbiased)
        np.testing.assert_allclose(got, score, rtol=1e-12)
        cached = abx.signature_score(x, abx.embed(y, kernel), kernel, unbiased=unbiased)
        np.testing.assert_allclose(cached, score, rtol=1e-12)


@ALL
def test_channel_order(kind, depth, static, options, dtype, rng):
    x, y = _paths(rng, 2, 6, dtype, 3), _paths(rng, 2, 5, dtype, 3)
    kernel = _kernel(kind, depth, static, options)
    order = jnp.asarray([2, 0, 1])
    _close(kernel.gram(x[..., order], y[..., order]), kernel.gram(x, y), dtype)


@ALL
def test_padding_and_repetition(kind, depth, static, options, dtype, rng):
    """Padding is not seen; a point that is repeated is not seen either."""
    x, y = _paths(rng, 2, 6, dtype), _paths(rng, 2, 5, dtype)
    kernel = _kernel(kind, depth, static, options)
    expected = kernel.gram(x, y)
    junk = jnp.full((2, 3, 2), 7.0, dtype)
    padded = jnp.concatenate([x, junk], axis=1)
    if not kernel.add_time:
        repeated = jnp.repeat(x, 2, axis=1)
        _close(kernel.gram(repeated, y), expected, dtype)
    ts = jnp.asarray(np.r_[np.linspace(0, 1, 6), 5, 6, 7], dtype)
    path = abx.SampledPath(ts, padded, lengths=jnp.asarray([6, 6]))
    _close(kernel.gram(path, y), expected, dtype)


@BOTH
@pytest.mark.parametrize(
    "kind, depth", [("geometric", None), ("geometric", 3), ("ito", 3), ("branched", 2)]
)
def test_reparametrisation(kind, depth, dtype, rng):
    """Points on the segments of a path: nothing for the piecewise linear path.

    That is the geometric kernel, and the others with zero brackets. Left-point sums
    depend on the grid by definition.
    """
    x, y = _paths(rng, 2, 5, dtype), _paths(rng, 2, 4, dtype)
    fine = jnp.stack([x[:, :-1], (x[:, :-1] + x[:, 1:]) / 2], axis=2)
    fine = jnp.concatenate([fine.reshape(2, -1, 2), x[:, -1:]], axis=1)
    kernel = abx.SignatureKernel(kind, depth, solver="series")
    flat = {} if kind == "geometric" else {"brackets_x": "canonical"}
    other = {} if kind == "geometric" else {"brackets_y": "canonical"}
    got = kernel.gram(fine, y, **flat, **other)
    _close(got, kernel.gram(x, y, **flat, **other), dtype)


@BOTH
@pytest.mark.parametrize("kind", ["geometric", "ito", "branched"])
def test_random_features(kind, dtype, rng):
    """Fitted maps: translation, batch, order of samples, padding; single precision
    agrees with double at any offset."""
    data = _paths(rng, 12, 6, dtype)
    maps = abx.RandomFourierSignature(
        2, key=jr.key(1), kind=kind, levels=3, features=8, dtype=np.dtype(dtype)
    )
    fitted = maps.fit(data)
    values = fitted.features(data)
    # The cosine itself is good to 1e-6; frequencies up to 25 multiply errors.
    tolerance = {"rtol": 1e-4, "atol": 3e-5} if dtype == "float32" else {"atol": 1e-10}
    for offset in OFFSETS[dtype]:
        shift = jnp.asarray([offset, -offset], dtype)[None, None]
        moved = maps.fit(data + shift)
        np.testing.assert_allclose(moved.features(data + shift), values, **tolerance)
    alone = jnp.stack([fitted.features(path) for path in data[:3]])
    np.testing.assert_allclose(alone, values[:3], **tolerance)
    order = jnp.asarray(rng.permutation(12))
    np.testing.assert_allclose(fitted.features(data[order]), values[order], **tolerance)
    np.testing.assert_allclose(
        maps.fit(data[order]).features(data), values, **tolerance
    )
    ts = jnp.asarray(np.r_[np.linspace(0, 1, 6), 5, 6], dtype)
    padded = jnp.concatenate([data, jnp.full((12, 2, 2), 7.0, dtype)], axis=1)
    path = abx.SampledPath(ts, padded, lengths=jnp.full((12,), 6))
    np.testing.assert_allclose(fitted.features(path), values, **tolerance)


def test_random_features_keep_their_digits(rng):
    """Single precision at an offset against double precision, the same frequencies."""
    data = _paths(rng, 12, 6, "float64") + 1024
    maps = abx.RandomFourierSignature(2, key=jr.key(1), features=8).fit(data)
    single = maps.features(data.astype(jnp.float32))
    np.testing.assert_allclose(single, maps.features(data), rtol=1e-3, atol=3e-5)
