"""Bad input of every public function: a short, plain error that says what to do."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.kernels import permutation_test


KERNEL = abx.SignatureKernel("ito", 2)
COMPLETE = abx.SignatureKernel()
MAPS = abx.RandomFourierSignature(2, key=jr.key(0), levels=1, features=2)
GOOD = jnp.asarray(np.random.default_rng(0).standard_normal((3, 4, 2)))


class _Frame:
    """What is asked of a data frame."""

    def to_numpy(self):
        return np.asarray(GOOD)


def _test(x, y, kernel):
    return abx.two_sample_test(x, y, kernel, key=jr.key(0), permutations=3)


# Functions of one path or sample, the good one on the other side.
ONE_PATH = {
    "kernel, left": lambda x: abx.signature_kernel(x, GOOD),
    "kernel, right": lambda x: abx.signature_kernel(GOOD, x, "branched", 2),
    "features": KERNEL.features,
    "random features": MAPS.features,
}
SAMPLES = {
    "gram": abx.signature_gram,
    "gram, right": lambda x: abx.signature_gram(GOOD, x, static_kernel="rbf"),
    "mmd": lambda x: abx.mmd(x, GOOD, KERNEL),
    "mmd, complete": lambda x: abx.mmd(GOOD, x, COMPLETE),
    "mmd, random": lambda x: abx.mmd(x, GOOD, MAPS),
    "score": lambda x: abx.signature_score(x, GOOD),
    "test": lambda x: _test(x, GOOD, KERNEL),
    "test, complete": lambda x: _test(GOOD, x, COMPLETE),
    "embed": lambda x: abx.embed(x, KERNEL),
    "expected": lambda x: abx.expected_signature(x, 2),
    "fit of features": MAPS.fit,
    "fit of a scale": lambda x: abx.SignatureKernel(scale="auto").fit(x).gram(x),
}
BAD = {
    "NaN": GOOD.at[1, 2, 0].set(jnp.nan),
    "infinite": GOOD.at[0, 0, 1].set(jnp.inf),
    "integers": np.ones((3, 4, 2), int),
    "booleans": np.ones((3, 4, 2), bool),
    "complex": GOOD.astype(complex),
    "dates": np.zeros((3, 4, 2), "datetime64[s]"),
    "unequal lengths": [GOOD[0], GOOD[1, :3]],
    "unequal lists": [[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0]]],
    "one axis": GOOD[0, 0],
    "scalar": 1.0,
    "nothing": None,
    "frame": _Frame(),
    "text": "path",
    "no channel": np.ones((3, 4, 0)),
    "no time": np.ones((3, 0, 2)),
    "channels": np.ones((3, 4, 3)),
}


def _refused(function, *arguments, match=None, **options):
    with pytest.raises((ValueError, TypeError), match=match) as caught:
        jax.block_until_ready(function(*arguments, **options))
    assert len(str(caught.value)) < 300
    assert type(caught.value) in (ValueError, TypeError)


# The tests' own checks of types would come first.
@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", [*ONE_PATH, *SAMPLES])
def test_paths(name, bad):
    alone = ("gram", "features", "embed", "expected", "fit of a scale")
    if (bad == "channels" and name in alone) or (name, bad) == (
        "gram, right",
        "nothing",
    ):
        pytest.skip("legal")
    _refused({**ONE_PATH, **SAMPLES}[name], BAD[bad])


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_without_channel_axis(name):
    _refused(SAMPLES[name], GOOD[..., 0], match=r"\[\.\.\., None\]")
    _refused(SAMPLES[name], GOOD[:0], match="no path")
    _refused(SAMPLES[name], GOOD[None], match="leading axes")


def test_dtypes_and_batches():
    single = GOOD.astype(jnp.float32)
    for kernel in (KERNEL, COMPLETE, MAPS):
        for run in (abx.mmd, abx.signature_score, _test):
            _refused(run, single, GOOD, kernel, match="dtype")
    _refused(abx.signature_kernel, single, GOOD, match="dtype")
    _refused(abx.signature_kernel, GOOD, GOOD[:2], match="signature_gram")
    _refused(KERNEL.gram, GOOD, brackets_x=jnp.ones((3, 4, 2, 2)), match="brackets")
    _refused(KERNEL.gram, GOOD, brackets_x="realized", match="realised")


def test_few_paths():
    one = GOOD[:1]
    for kernel in (KERNEL, COMPLETE, MAPS):
        _refused(_test, one, GOOD, kernel, match="two paths")
        _refused(_test, GOOD, one, kernel, match="two paths")
        _refused(abx.mmd, one, GOOD, kernel, unbiased=True, match="two paths")
        _refused(abx.signature_score, one, GOOD, kernel, match="two paths")
    _refused(MAPS.fit, one, match="standardise")


@pytest.mark.parametrize("key", [0, None, jnp.asarray(0), "key", jr.split(jr.key(0))])
def test_keys(key):
    expected = r"jax\.random\.key\(0\)"
    test = abx.two_sample_test
    _refused(test, GOOD, GOOD, KERNEL, key=key, match=expected)
    options = {"key": key, "permutations": 9}
    _refused(permutation_test, jnp.eye(4), 2, **options, match=expected)
    _refused(abx.RandomFourierSignature, 2, key=key, match=expected)


def test_options():
    test = abx.two_sample_test
    for wrong in (0, 2.5, None):
        options = {"key": jr.PRNGKey(0), "permutations": wrong}
        _refused(test, GOOD, GOOD, KERNEL, **options, match="permutations")
    for kernel in ("geometric", 3, abx.RBFKernel()):
        for run in (abx.mmd, abx.signature_score, _test):
            _refused(run, GOOD, GOOD, kernel, match="SignatureKernel")
        _refused(abx.embed, GOOD, kernel, match="SignatureKernel")
    for scale in (jnp.nan, jnp.ones(2), "automatic"):
        _refused(abx.SignatureKernel, scale=scale, match="scale")
    for length in (0.0, -1.0, jnp.nan, jnp.ones(2)):
        _refused(abx.RBFKernel, length, match="lengthscale")
        _refused(abx.RationalQuadraticKernel, 1.0, length, match="alpha")
    automatic = abx.SignatureKernel("ito", 2, scale="auto")
    _refused(abx.embed, GOOD, automatic, match="fit")
    _refused(automatic.features, GOOD, match="fit")
    target = abx.embed(GOOD, KERNEL)
    _refused(abx.mmd, GOOD, target, automatic, match="fit")
    _refused(abx.mmd, GOOD, target, COMPLETE, match="features")
    _refused(abx.mmd, GOOD, target, abx.SignatureKernel("ito", 3), match="not made")
    _refused(abx.embed, GOOD, KERNEL, batch=0, match="batch")
    _refused(abx.RandomFourierSignature, 0, key=jr.key(0), match="dim")
    _refused(abx.expected_signature, GOOD, 0, match="depth")
    weights = np.ones(3, int)
    _refused(abx.robust_normalisation, jnp.ones((2, 4)), weights, match="weights")


@pytest.mark.parametrize("scale", [None, 2.0, "auto"])
def test_fit_reads_all_its_arguments(scale):
    kernel = abx.SignatureKernel("ito", 2, scale=scale)
    _refused(kernel.fit, GOOD, GOOD, brackets_y="typo", match="typo")
    _refused(kernel.fit, GOOD, brackets_y="realised", match="`y`")
    _refused(kernel.gram, GOOD, brackets_y="realised", match="`y`")
    _refused(kernel.fit, GOOD, GOOD[..., :1], match="channels")
    _refused(kernel.fit, GOOD[0], match="sample")


def test_no_option_is_passed_over():
    target = abx.embed(GOOD, KERNEL)
    options = {"brackets_y": "realised"}
    _refused(abx.mmd, GOOD, target, KERNEL, **options, match="embed")
    _refused(abx.mmd, GOOD, GOOD, KERNEL, unbiased="no", match="unbiased")
    _refused(abx.signature_score, GOOD, GOOD, data_term="no", match="data_term")
    _refused(KERNEL.features, GOOD, robust="no", match="robust")
    _refused(KERNEL.features, GOOD, bound=0.0, match="bound")
    _refused(abx.expected_signature, GOOD, 2, martingale="no", match="martingale")
    plain = abx.SignatureKernel("geometric", 2)
    _refused(plain.features, GOOD, brackets="realised", match="brackets")


@pytest.mark.parametrize("kernel", [COMPLETE, KERNEL, abx.SignatureKernel("branched")])
def test_overflow(kernel):
    """An infinite Gram matrix would give the smallest p-value there is."""
    huge = (1e30 * GOOD).astype(jnp.float32)
    _refused(_test, huge, huge, kernel)
    _refused(kernel.gram, huge)
    run = jax.jit(lambda x: _test(x, x, kernel))
    assert all(np.all(np.isnan(part)) for part in run(huge))
    with abx.debug_checks(), pytest.raises(Exception, match="not finite|blew up"):
        jax.block_until_ready(run(huge))


def test_traced_values_turn_to_nan():
    bad = GOOD.at[1, 2, 0].set(jnp.inf)  # far away: an RBF kernel would answer zero
    kernel = abx.SignatureKernel(static_kernel="rbf")
    value, slope = jax.jit(jax.value_and_grad(lambda x: abx.mmd(x, GOOD, kernel)))(bad)
    assert np.isnan(value) and np.all(np.isnan(slope))


def test_what_is_accepted():
    expected = abx.signature_gram(GOOD, None, "ito", 2)
    for same in (np.asarray(GOOD), list(GOOD), GOOD.tolist(), tuple(np.asarray(GOOD))):
        np.testing.assert_allclose(abx.signature_gram(same, None, "ito", 2), expected)
    shared = jnp.broadcast_to(0.1 * jnp.eye(2), (3, 2, 2))
    wide = jnp.broadcast_to(shared, (3, 3, 2, 2))
    got = abx.embed(GOOD, KERNEL, brackets=shared, batch=2)
    full = abx.embed(GOOD, KERNEL, brackets=wide, batch=2)
    np.testing.assert_allclose(got.mean, full.mean)
