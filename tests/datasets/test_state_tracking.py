"""Words in finite groups, and paths that differ in quadratic variation alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import arborax as abx
from arborax.datasets import VolatilityRegimes, WordProblem


def test_groups():
    problem = WordProblem("A5")
    elements = problem.elements()
    assert len(elements) == 60 and elements[0] == (0, 1, 2, 3, 4)
    signs = [np.linalg.det(np.eye(5)[list(e)]) for e in elements]
    np.testing.assert_allclose(signs, 1)
    assert len(WordProblem("parity").elements()) == 2
    assert len(WordProblem(7).elements()) == 7
    with pytest.raises(ValueError, match="group"):
        WordProblem("B7").elements()


@pytest.mark.parametrize("group", ["A5", "parity", 5])
def test_words(group):
    problem = WordProblem(group)
    words = problem.sample(4, 30, seed=0)
    letters, elements = problem.generators(), problem.elements()
    # By permutation matrices.
    matrix = lambda p: np.eye(len(p))[:, list(p)]  # noqa: E731
    for row, states in zip(words.letters, words.states):
        total = np.eye(len(letters[0]))
        for letter, state in zip(row, states):
            total = matrix(letters[letter]) @ total
            np.testing.assert_array_equal(total, matrix(elements[state]))
    if group == "parity":
        np.testing.assert_array_equal(words.states, np.cumsum(words.letters, 1) % 2)
    values = words.values()
    assert values.shape == (4, 31, len(letters))
    np.testing.assert_array_equal(values[:, -1].sum(-1), 30)


def test_regimes_have_the_same_marginals():
    series = VolatilityRegimes(steps=64).sample(4000, seed=0)
    for k, name in enumerate(series.classes):
        x = series.values[series.labels == k, :, 0]
        # Some 2,000 paths: standard errors 0.02 and 0.03.
        np.testing.assert_allclose(x.mean(0), 0, atol=0.1)
        np.testing.assert_allclose(x.var(0), 1, atol=0.15)
        speed = getattr(VolatilityRegimes(), name)
        variation = np.mean(np.sum(np.diff(x, axis=1) ** 2, axis=1))
        exact = 64 * 2 * (1 - np.exp(-speed / 64))
        np.testing.assert_allclose(variation, exact, rtol=0.03)


def accuracy(alg, **options):
    """Of a linear equation on unseen paths, after a few hundred steps."""
    regimes = VolatilityRegimes(steps=64)
    train, test = regimes.sample(512, seed=1), regimes.sample(1000, seed=2)
    model = abx.models.LinearBNRDE(
        alg, 1, hidden=16, window=8, outputs="last", key=jr.key(0), **options
    )
    ts = jnp.linspace(0.0, 1.0, 65)
    prepare = jax.jit(
        jax.vmap(lambda x: model.prepare(abx.SampledPath(ts, x, check=False)))
    )
    controls, others = prepare(train.values), prepare(test.values)
    signs = jnp.asarray(2.0 * train.labels - 1)
    optimiser = optax.adam(1e-2)
    state = optimiser.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        def loss(model):
            return jnp.mean(jax.nn.softplus(-signs * jax.vmap(model)(controls)[:, 0]))

        grads = eqx.filter_grad(loss)(model)
        updates, state = optimiser.update(grads, state)
        return eqx.apply_updates(model, updates), state

    with jax.numpy_dtype_promotion("standard"):  # for the optimiser
        for _ in range(200):
            model, state = step(model, state)
    out = np.asarray(jax.vmap(model)(others))[:, 0]
    return np.mean((out > 0) == (test.labels == 1))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_last_state_of_a_stratonovich_equation_knows_the_last_value_only(depth):
    model = abx.models.LinearBNRDE(
        abx.Shuffle(1, depth), 1, hidden=8, window=4, outputs="last", key=jr.key(0)
    )
    ts = jnp.linspace(0.0, 1.0, 10)
    xs = np.random.default_rng(0).normal(size=(3, 10, 1))
    xs[:, -1] = 0.7
    outs = [model(abx.SampledPath(ts, jnp.asarray(x))) for x in xs]
    np.testing.assert_allclose(outs, np.broadcast_to(outs[0], (3, 1)), rtol=1e-10)


def test_the_length_of_an_ito_state_is_the_quadratic_variation():
    x = VolatilityRegimes(steps=20).sample(1, seed=0).values[0]
    control = abx.rough_path(
        jnp.linspace(0.0, 1.0, 21), x, abx.Ito(1, 2), window=6, brackets="realised"
    )
    a = 0.4
    fields = abx.LinearFields(a * jnp.asarray([[[0.0, -1.0], [1.0, 0.0]]]))
    y = abx.solve(fields, jnp.asarray([3.0, 4.0]), control).ys[-1]
    variation = np.sum(np.diff(x[:, 0]) ** 2)
    np.testing.assert_allclose(
        np.linalg.norm(y), 5 * np.exp(a**2 * variation / 2), rtol=1e-11
    )


@pytest.mark.slow
def test_only_the_ito_equation_sees_quadratic_variation():
    assert accuracy(abx.Ito(1, 2), brackets="realised") > 0.9
    # Chance is 0.5; three standard errors of 1,000 paths are 0.05.
    assert abs(accuracy(abx.Shuffle(1, 2)) - 0.5) < 0.06
