"""Fuzz of the kernels and of what is built on them; see `tests/test_fuzz.py`.

Each input is a good call, of which up to two arguments are replaced.
"""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_fuzz import (
    arrays,
    as_users_have_it as as_users_have_it,
    counts,
    fuzz,
    keys,
    MASK,
    replaced,
    SPOIL,
    spoilt,
)

import arborax as abx


SHORT, LONG = 8, 150
K = abx.kernels
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 2))
Y = RNG.normal(size=(3, 4, 2)) + 0.1
TS = np.linspace(0, 1, 4)
PATH = abx.SampledPath(TS, X, finite_variation=(0,))
GAPS = abx.SampledPath(TS, X, np.broadcast_to(MASK, (3, 4, 2)), np.array([4, 2, 1]))
ITO = abx.SampledPath(TS, X, brackets=np.broadcast_to(np.eye(2) / 4, (3, 3, 2, 2)))
KEY = jax.random.key(0)

paths = st.one_of(
    spoilt(st.sampled_from([X, Y])),
    st.sampled_from(sorted(SPOIL)).map(lambda kind: SPOIL[kind](X)),
    st.sampled_from(
        [(3, 4, 2), (3, 1, 2), (1, 4, 2), (3, 4, 3), (4, 2), (0, 4, 2)]
    ).flatmap(lambda shape: arrays(*shape)),
    st.sampled_from([PATH, GAPS, ITO]),
)
kinds = st.sampled_from(["geometric", "ito", "branched", "planar", "typo", None, 2])
depths = st.sampled_from([None, 1, 2, 3, 0, -1, 2.0, "2", True])
brackets = st.one_of(
    st.sampled_from(["left-point", "realised", "canonical", "typo", 3.0, [1.0]]),
    spoilt(st.just(np.broadcast_to(np.eye(2) / 4, (3, 3, 2, 2)).copy())),
)
static_kernels = st.sampled_from(
    ["linear", "rbf", "rational-quadratic", "typo", 3, K.RBFKernel(0.5), K.RBFKernel]
    + [lambda x, y: x @ y, lambda x: x, lambda x, y: x, lambda x, y: None]
)
scales = st.sampled_from(
    ["auto", "median", 0.5, 0.0, -1.0, 1e-30, 1e30, np.nan, np.inf, "typo", [1.0, 2.0]]
    + [np.float32(0.5), 1, True, 1j]
)
flags = st.sampled_from([True, False, None, 1, "yes", np.True_])
numbers = st.sampled_from([0.5, 1, 0.0, -1.0, np.nan, np.inf, 1e30, "1", None, [1.0]])
dtypes = st.sampled_from([None, np.float32, np.float16, np.int32, "typo", complex])

# The cosine of infinity is NaN, as the docstring says.
ANGLES = {kind: f for kind, f in SPOIL.items() if kind not in ("nan", "inf")}
turns = spoilt(st.just(X), ANGLES)

CHOICES = dict(
    kind=kinds,
    depth=depths,
    static_kernel=static_kernels,
    scale=scales,
    add_time=flags,
    add_basepoint=flags,
    lead_lag=flags,
    solver=st.sampled_from(["goursat", "series", "typo", None]),
    method=st.sampled_from(["auto", "recursion", "features", "typo", None]),
    inner_product=st.sampled_from(["hopf", "trees", "typo", None]),
    normalise=flags,
)
SIDES = dict(x=paths, y=paths, brackets_x=brackets, brackets_y=brackets)
GOOD = [
    dict(x=X, y=Y),
    dict(x=X, y=Y, kind="ito", depth=2),
    dict(x=X, y=Y, kind="branched", depth=2, scale="auto"),
    dict(x=X, y=Y, kind="planar", depth=2, brackets_x="realised"),
    dict(x=X, y=Y, depth=2, static_kernel="rbf"),
]


def calls(good, wild, most=2):
    return st.sampled_from(good).flatmap(lambda one: replaced(one, wild, most))


KERNELS = [
    K.SignatureKernel("geometric", 2),
    K.SignatureKernel("branched", 2, scale="auto"),
    K.SignatureKernel("ito", 2, static_kernel="rbf"),
    K.SignatureKernel("geometric", 2, normalise=True),
    K.RandomFourierSignature(2, key=KEY, features=4, levels=2),
]
FOURIER = K.RandomFourierSignature(2, key=KEY, features=4, levels=2)
EMBEDDED = K.embed(X, KERNELS[0])
kernels = st.sampled_from([*KERNELS, None, K.SignatureKernel, "ito", EMBEDDED])
laws = st.one_of(paths, st.sampled_from([EMBEDDED, K.embed(X, KERNELS[4])]))
OBJECTIVE = [dict(x=X, y=Y, kernel=kernel) for kernel in KERNELS]
OBJECTIVE_WILD = dict(
    x=laws, y=laws, kernel=kernels, brackets_x=brackets, brackets_y=brackets
)
FITTED = dict(x=paths, brackets=brackets)
GRAM = np.asarray(K.signature_gram(np.concatenate([X, Y]), depth=2))

CASES = [
    ("signature_kernel", K.signature_kernel, calls(GOOD, CHOICES | SIDES)),
    (
        "signature_gram",
        K.signature_gram,
        calls(
            [*GOOD, dict(x=X), dict(x=X, kind="ito", depth=2, normalise=True)],
            CHOICES | SIDES | dict(block=counts),
        ),
    ),
    (
        "SignatureKernel.fit",
        lambda x, scale="auto", **rest: K.SignatureKernel(scale=scale).fit(x, **rest),
        calls([dict(x=X), dict(x=X, y=Y)], SIDES | dict(scale=scales)),
    ),
    (
        "SignatureKernel.features",
        lambda kind, depth, **rest: K.SignatureKernel(kind, depth).features(**rest),
        calls(
            [
                dict(x=X, kind=kind, depth=2)
                for kind in ("geometric", "ito", "branched")
            ],
            FITTED | dict(kind=kinds, depth=depths, robust=flags, bound=numbers),
        ),
    ),
    ("mmd", K.mmd, calls(OBJECTIVE, OBJECTIVE_WILD | dict(unbiased=flags))),
    (
        "signature_score",
        K.signature_score,
        calls(OBJECTIVE, OBJECTIVE_WILD | dict(unbiased=flags, data_term=flags)),
    ),
    (
        "two_sample_test",
        K.two_sample_test,
        calls(
            [dict(one, key=KEY, permutations=3) for one in OBJECTIVE],
            OBJECTIVE_WILD | dict(key=keys, permutations=counts),
        ),
    ),
    (
        "permutation_test",
        K.permutation_test,
        calls(
            [dict(gram=GRAM, first=3, key=KEY, permutations=3)],
            dict(gram=spoilt(st.just(GRAM)), first=counts, key=keys)
            | dict(permutations=counts),
        ),
    ),
    (
        "embed",
        K.embed,
        calls(
            [dict(y=X, kernel=KERNELS[0]), dict(y=X, kernel=FOURIER)],
            dict(y=paths, kernel=kernels, brackets=brackets, batch=counts),
        ),
    ),
    (
        "expected_signature",
        K.expected_signature,
        calls(
            [dict(x=X, depth=2), dict(x=X, depth=2, martingale=True)],
            dict(x=paths, depth=depths)
            | dict(martingale=st.sampled_from([True, (True, False), (True,), 1, "a"])),
        ),
    ),
    (
        "RandomFourierSignature",
        lambda x, **rest: K.RandomFourierSignature(**rest).features(x),
        calls(
            [dict(x=X, dim=2, key=KEY, features=4, levels=2)],
            dict(x=paths, dim=counts, key=keys, kind=kinds, levels=counts)
            | dict(features=counts, add_time=flags, time_scale=numbers, dtype=dtypes)
            | dict(
                scales=st.sampled_from([(1.0,), (), (np.nan,), 1.0, "a", (-1.0, 0)])
            ),
        ),
    ),
    (
        "RandomFourierSignature.fit",
        lambda x, **rest: FOURIER.fit(x, **rest).features(X),
        calls([dict(x=X)], FITTED),
    ),
    ("RandomFourierSignature.features", FOURIER.features, calls([dict(x=X)], FITTED)),
    ("cosine", K.cosine, calls([dict(turns=X)], dict(turns=turns))),
    (
        "robust_normalisation",
        K.robust_normalisation,
        calls(
            [dict(features=X[:, 0], weights=np.array([1, 2]))],
            dict(
                features=spoilt(st.just(X[:, 0])),
                weights=st.sampled_from(
                    [np.array([1, 1]), np.array([0, -1]), [1.5, 2.0], None, "12", [1]]
                ),
                bound=numbers,
                power=numbers,
            ),
        ),
    ),
    (
        "static kernels",
        lambda x, y, lengthscale, alpha: [
            (k(x, y), k.gram(x, y))
            for k in (
                K.RBFKernel(lengthscale),
                K.RationalQuadraticKernel(lengthscale, alpha),
                K.LinearKernel(),
            )
        ],
        calls(
            [
                dict(
                    x=jnp.asarray(X),
                    y=jnp.asarray(Y),
                    lengthscale=1.0,
                    alpha=1.0,
                )
            ],
            dict(lengthscale=numbers, alpha=numbers),
        ),
    ),
]
names = pytest.mark.parametrize(
    "name, function, strategies", CASES, ids=[c[0] for c in CASES]
)


@names
def test_a_right_answer_or_a_clear_refusal(name, function, strategies):
    fuzz(name, function, strategies, SHORT)


@pytest.mark.slow
@names
def test_many_inputs(name, function, strategies):
    fuzz(name, function, strategies, LONG)
