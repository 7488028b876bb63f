"""Level of the two-sample test under the null hypothesis, for all choices of a kernel.

Both samples come from one law, so the p-value is uniform on a grid. A share of
`REPEATS` tests that should be `q` has the standard error `sqrt(q (1 - q) / REPEATS)`:
0.013 for `q = 0.05` and 0.029 for `q = 0.5`. Four of them are allowed; one of the
shares below then fails by chance about once in 30,000.
"""

import functools as ft
import itertools as it

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


KINDS = ("geometric", "ito", "branched", "planar")
SCALES = (None, 0.5, "auto", "bounded")
STATIC = ("linear", "rbf", "rational-quadratic")
AUGMENTATIONS = ({}, {"add_time": True}, {"add_basepoint": True}, {"lead_lag": True})
TAILS = ("light", "heavy")
REPEATS, PERMUTATIONS = 300, 59
N, M, TIMES = 8, 7, 4


@ft.cache
def _samples(tails: str) -> tuple[jax.Array, jax.Array]:
    """Many pairs of samples of one law: random walks with drift.

    Heavy: their amplitudes are absolute values of Student's law with one and a half
    degrees of freedom.
    """
    rng = np.random.default_rng(20)
    steps = rng.standard_normal((REPEATS, N + M, TIMES, 1)) + 0.5
    paths = np.cumsum(steps / np.sqrt(TIMES), axis=2)
    if tails == "heavy":
        paths = paths * np.abs(rng.standard_t(1.5, (REPEATS, N + M, 1, 1)))
    return jnp.asarray(paths[:, :N]), jnp.asarray(paths[:, N:])


def _check_levels(p_value) -> None:
    """`p_value(x, y, key)` of one pair of samples; both tails in one program."""
    program = jax.jit(jax.vmap(p_value))
    keys = jr.split(jr.key(7), REPEATS)
    for tails in TAILS:
        p = np.asarray(program(*_samples(tails), keys))
        assert np.all(np.isfinite(p)), tails
        for level in (0.05, 0.5):
            error = np.sqrt(level * (1 - level) / REPEATS)
            share = np.mean(p <= level + 1e-9)
            assert share <= level + 4 * error, (tails, level, share)
        # At one half the test is not timid either.
        assert share >= level - 4 * error, (tails, level, share)


def _kernel_level(kind, scale, static, augmentation) -> None:
    # Complete kernels only where the scale keeps heavy tails finite.
    depth = None if isinstance(scale, str) else 2
    kernel = abx.SignatureKernel(
        kind, depth, scale=scale, static_kernel=static, **augmentation
    )

    def p_value(x, y, key):
        result = abx.two_sample_test(x, y, kernel, key=key, permutations=PERMUTATIONS)
        return result.p_value

    _check_levels(p_value)


def _name(value) -> str:
    return "-".join(value) or "plain" if isinstance(value, dict) else str(value)


# All pairs of kind and scale; statics and augmentations in turn, so that each of them
# meets each kind and each scale.
_COVER = [
    (kind, scale, STATIC[(i + 2 * j) % 3], AUGMENTATIONS[(i + j) % 4])
    for (i, kind), (j, scale) in it.product(enumerate(KINDS), enumerate(SCALES))
]


@pytest.mark.parametrize("kind, scale, static, augmentation", _COVER, ids=_name)
def test_level(kind, scale, static, augmentation):
    _kernel_level(kind, scale, static, augmentation)


@pytest.mark.slow
@pytest.mark.parametrize("augmentation", AUGMENTATIONS, ids=_name)
@pytest.mark.parametrize("static", STATIC)
@pytest.mark.parametrize("scale", SCALES, ids=_name)
@pytest.mark.parametrize("kind", KINDS)
def test_level_of_all(kind, scale, static, augmentation):
    _kernel_level(kind, scale, static, augmentation)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("geometric", marks=pytest.mark.slow),
        "ito",
        pytest.param("branched", marks=pytest.mark.slow),
    ],
)
def test_level_of_random_features(kind):
    """Random features fitted to the pooled sample, which does not know the labels."""
    maps = abx.RandomFourierSignature(
        1, key=jr.key(3), kind=kind, levels=2, features=6, scales=(1.0,)
    )

    def p_value(x, y, key):
        fitted = maps.fit(jnp.concatenate([x, y]))
        result = abx.two_sample_test(x, y, fitted, key=key, permutations=PERMUTATIONS)
        return result.p_value

    _check_levels(p_value)
