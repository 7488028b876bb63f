"""Scores, MMD, permutation test, expected signature, and the two propositions."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.kernels import permutation_test


def _paths(rng, n, times, d=2, size=0.3):
    return jnp.asarray(np.cumsum(size * rng.standard_normal((n, times, d)), axis=1))


@pytest.mark.parametrize("unbiased", [True, False])
def test_features_and_gram_agree(unbiased, rng):
    """The linear path never builds a Gram matrix, and gives the same numbers."""
    x, y = _paths(rng, 5, 6), _paths(rng, 4, 6)
    kernel = abx.SignatureKernel("branched", 2)
    gram = [kernel.gram(x), kernel.gram(x, y), kernel.gram(y)]

    def within(g):
        n = len(g)
        return (g.sum() - jnp.trace(g)) / (n * (n - 1)) if unbiased else g.mean()

    score = within(gram[0]) - 2 * gram[1].mean()
    full = score + within(gram[2])
    options = {"unbiased": unbiased}
    got = abx.signature_score(x, y, kernel, **options)
    np.testing.assert_allclose(got, score, rtol=1e-10)
    got = abx.signature_score(x, y, kernel, data_term=True, **options)
    np.testing.assert_allclose(got, full, rtol=1e-9)
    np.testing.assert_allclose(abx.mmd(x, y, kernel, **options), full, rtol=1e-9)
    cached = abx.embed(y, kernel, batch=3)
    np.testing.assert_allclose(abx.mmd(x, cached, kernel, **options), full, rtol=1e-9)
    rbf = abx.SignatureKernel("ito", static_kernel="rbf")
    assert jnp.isfinite(abx.mmd(x, y, rbf, **options))


def test_unbiased_is_unbiased(rng):
    """Mean over many pairs of small samples of one law is zero; biased is not."""
    x, y = _paths(rng, 800, 5), _paths(rng, 800, 5)
    kernel = abx.SignatureKernel("ito", 2)
    fx, fy = (kernel.features(z).reshape(200, 4, -1) for z in (x, y))
    mx, my = fx.mean(1), fy.mean(1)

    def within(f, m):
        return (16 * (m**2).sum(-1) - (f**2).sum((1, 2))) / 12

    values = within(fx, mx) + within(fy, my) - 2 * (mx * my).sum(-1)
    direct = abx.mmd(x[:4], y[:4], kernel, unbiased=True)
    np.testing.assert_allclose(values[0], direct, rtol=1e-9)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values)) < 3 * error
    assert np.mean(((mx - my) ** 2).sum(-1)) > 5 * error


def test_training_objective_has_gradients(rng):
    data = _paths(rng, 64, 9, 1)
    maps = abx.RandomFourierSignature(1, key=jr.key(0), features=64).fit(data)
    target = abx.embed(data, maps)
    noise = _paths(rng, 64, 9, 1)

    @jax.jit
    def loss(scale):
        return abx.mmd(scale * noise, target, maps, unbiased=True)

    values = [float(loss(jnp.asarray(s))) for s in (0.5, 1.0, 2.0)]
    assert values[1] < min(values[0], values[2])
    assert float(jax.grad(loss)(jnp.asarray(2.0))) > 0
    assert float(jax.grad(loss)(jnp.asarray(0.5))) < 0


def test_bracket_proposition(rng):
    """Same path law, other brackets: geometric MMD zero, branched MMD bounded below.

    The coordinate of `[j]_i` is a path functional minus half the bracket, so
    `MMD^2 >= |E A - E A'|^2 / 4` for every depth >= 2 and for both inner products.
    """
    x = _paths(rng, 300, 9, 2, 0.2)
    one = jnp.broadcast_to(0.04 * jnp.eye(2), (300, 8, 2, 2))
    other = one * jnp.asarray(rng.uniform(1.0, 2.0, (300, 1, 1, 1)))
    gap = jnp.sum(jnp.mean(other - one, axis=0), axis=0)
    bound = float(jnp.sum(gap**2)) / 4
    geometric = abx.SignatureKernel("geometric", 3)
    assert float(abx.mmd(x, x, geometric)) == 0
    for options in ({}, {"inner_product": "trees"}):
        for depth in (2, 3):
            kernel = abx.SignatureKernel("branched", depth, **options)
            value = abx.mmd(x, x, kernel, brackets_x=one, brackets_y=other)
            assert float(value) >= bound * (1 - 1e-9)
    two = abx.SignatureKernel("branched", 2, inner_product="trees")
    value = abx.mmd(x, x, two, brackets_x=one, brackets_y=other)
    np.testing.assert_allclose(value, bound, rtol=1e-9)


def test_reconstruction_cost_is_square_root_of_mesh(rng):
    """Features with realised instead of true brackets: root-mean-square slope 1/2."""
    levels, n = (8, 32, 128), 200
    steps = rng.standard_normal((n, levels[-1], 2)) / np.sqrt(levels[-1])
    kernel = abx.SignatureKernel("branched", 2)
    errors = []
    for m in levels:
        dx = steps.reshape(n, m, -1, 2).sum(2)
        x = jnp.asarray(np.concatenate([np.zeros((n, 1, 2)), dx.cumsum(1)], axis=1))
        exact = jnp.broadcast_to(jnp.eye(2) / m, (n, m, 2, 2))
        gap = kernel.features(x, brackets="realised") - kernel.features(
            x, brackets=exact
        )
        errors.append(float(jnp.sqrt(jnp.mean(jnp.sum(gap**2, axis=-1)))))
    slope = np.polyfit(np.log(levels), np.log(errors), 1)[0]
    assert -0.58 < slope < -0.42


def _p_values(fx, fy, key):
    """p-values of many tests at once: features `(tests, n, size)` on each side."""
    both = jnp.concatenate([fx, fy], axis=1)
    both = both - jnp.mean(both, axis=1, keepdims=True)
    gram = jnp.einsum("tif,tjf->tij", both, both)
    keys = jr.split(key, gram.shape[0])
    one = lambda g, k: permutation_test(g, fx.shape[1], key=k, permutations=99).p_value  # noqa: E731
    return np.asarray(jax.jit(jax.vmap(one))(gram, keys))


def test_level_and_power(rng):
    """5 % level under the null; power for brackets and for Itô against Stratonovich."""
    tests, n, m = 300, 30, 8
    kernel = abx.SignatureKernel("branched", 2, add_time=True)
    x = _paths(rng, 2 * tests * n, m + 1, 1, 1 / np.sqrt(m))
    true = jnp.broadcast_to(
        jnp.asarray(1 / m).reshape(1, 1, 1, 1), (tests * n, m, 1, 1)
    )
    split = lambda f: f.reshape(tests, n, -1)  # noqa: E731
    first, second = x[: tests * n], x[tests * n :]
    fx = split(kernel.features(first, brackets=true))
    null = _p_values(fx, split(kernel.features(second, brackets=true)), jr.key(0))
    level = np.mean(null <= 0.05)
    assert abs(level - 0.05) < 3 * np.sqrt(0.05 * 0.95 / tests)
    # Wrong volatility between the samples, equal law of the samples on the grid: only
    # the bracket tells.
    wrong = kernel.features(second, brackets=3 * true)
    power = np.mean(_p_values(fx, split(wrong), jr.key(1)) <= 0.05)
    assert power > 0.7
    blind = abx.SignatureKernel("geometric", 2, add_time=True)
    same = _p_values(
        split(blind.features(first)), split(blind.features(second)), jr.key(2)
    )
    assert np.mean(same <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / tests)


def test_power_against_stratonovich_drift(rng):
    """`dX = X dW` read as Itô or as Stratonovich: the drift differs by `X/2`."""
    tests, n, m = 30, 120, 8
    dw = rng.standard_normal((2, tests * n, m)) / np.sqrt(m)
    w = np.cumsum(dw, axis=-1)
    t = np.arange(1, m + 1) / m
    ito, stratonovich = np.exp(w[0] - t / 2), np.exp(w[1])
    start = np.ones((tests * n, 1))
    paths = [
        jnp.asarray(np.concatenate([start, z], axis=1))[..., None]
        for z in (ito, stratonovich)
    ]
    maps = abx.RandomFourierSignature(1, key=jr.key(0), levels=2, features=48)
    maps = maps.fit(paths[0])
    fx, fy = (maps.features(p).reshape(tests, n, -1) for p in paths)
    assert np.mean(_p_values(fx, fy, jr.key(3)) <= 0.05) > 0.8


def test_two_sample_interface(rng):
    x, y = _paths(rng, 12, 6), _paths(rng, 10, 6)
    y = y + jnp.linspace(0, 2, 6)[None, :, None]
    for kernel in (abx.SignatureKernel(), abx.SignatureKernel("ito", 2)):
        result = abx.two_sample_test(x, y, kernel, key=jr.key(0), permutations=200)
        assert float(result.p_value) < 0.05
        expected = abx.mmd(x, y, kernel, unbiased=True)
        np.testing.assert_allclose(result.statistic, expected, rtol=1e-8)
        assert result.permuted.shape == (200,)


def test_expected_signature(rng):
    """The corrected estimator: same limit (closed form), smaller error."""
    m, n, repeats = 16, 64, 60
    exact = np.zeros(14)
    exact[[2, 5]] = 0.5  # E S(B)_1 = exp(I/2): words ii at level two, none at three
    errors = {False: [], True: []}
    run = jax.jit(
        lambda z, flag: abx.expected_signature(z, 3, martingale=flag),
        static_argnums=1,
    )
    for _ in range(repeats):
        steps = rng.standard_normal((n, m, 2)) / np.sqrt(m)
        x = jnp.asarray(np.concatenate([np.zeros((n, 1, 2)), steps.cumsum(1)], axis=1))
        for flag in errors:
            errors[flag].append(np.asarray(run(x, flag)) - exact)
    plain, corrected = (np.mean(np.square(errors[f])) for f in (False, True))
    assert corrected < 0.5 * plain
    bias = np.mean(errors[True], axis=0)
    assert np.max(np.abs(bias)) < 0.06
    signature = abx.signature(x, abx.Shuffle(2, 3))
    np.testing.assert_allclose(run(x, False), signature.mean(0), atol=1e-12)
