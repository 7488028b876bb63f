"""Generated paths: their law, their beginnings, scores, and what is refused."""

import pickle

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest


pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402

import arborax as abx  # noqa: E402
from arborax.estimators import PathGenerator  # noqa: E402
from arborax.training import metrics  # noqa: E402


# Two steps teach nothing, and the estimators say so.
pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")
SMALL = dict(hidden=6, width=8, window=4)
QUICK = dict(
    steps=2, batch_size=16, options=SMALL, random_state=0, features=8, cylinders=24
)


class Whole(abx.models.AbstractModel):
    """Reads the whole path at once."""

    def __call__(self, path):
        return jnp.mean(path.xs, axis=0, keepdims=True)


@pytest.fixture(scope="module")
def walks():
    """Brownian motion with volatility 2 and drift 1 on 17 times."""
    noise = abx.brownian(np.linspace(0, 1, 17), 1, 400, key=jr.key(0))
    return np.asarray(2 * noise) + np.linspace(0, 1, 17)[:, None]


def test_learns_the_scale_of_a_random_walk(walks):
    generator = PathGenerator(
        "bnrde",
        noise=1,
        steps=60,
        batch_size=64,
        options=SMALL,
        features=16,
        cylinders=48,
        learning_rate=1e-2,
        random_state=0,
    ).fit(walks)
    first, *_, last = (r["metric"] for r in generator.result_.history.validation)
    assert generator.result_.best_metric < first
    paths = generator.sample(400, random_state=1)
    assert paths.shape == (400, 17, 1)
    np.testing.assert_array_equal(paths[:, 0], 0)
    scores = generator.compare(walks)
    assert scores["realised variance"]["ks"] < 0.6
    assert set(scores) >= {"tails", "leverage", "autocorrelation of squares", "mmd"}
    assert generator.score(walks) < 0
    again = generator.sample(400, random_state=1)
    np.testing.assert_array_equal(again, paths)


@pytest.fixture(scope="module")
def simple(walks):
    return PathGenerator("gru", **QUICK | dict(options={})).fit(walks)


@pytest.fixture(scope="module")
def shifted(walks):
    """Paths that start at different values."""
    return walks + np.linspace(-1, 1, 400)[:, None, None]


@pytest.fixture(scope="module")
def conditional(shifted):
    return PathGenerator(prefix=5, noise=1, **QUICK).fit(shifted)


def test_times_and_blocks(simple):
    assert simple.sample(1100).shape == (1100, 17, 1)
    finer = simple.sample(2, times=np.linspace(0, 32, 65))
    assert finer.shape == (2, 65, 1)


def test_continues_a_beginning(shifted, conditional):
    """The beginning comes back as it was, the rest goes on from there, and a longer
    beginning than in `fit` is refused."""
    X, generator = shifted, conditional
    given = X[7, :5]
    paths = generator.sample(3, prefix=given, random_state=0)
    np.testing.assert_allclose(paths[:, :5], np.broadcast_to(given, (3, 5, 1)))
    assert np.abs(np.diff(paths[:, 5:, 0], axis=0)).min() > 0
    each = generator.sample(3, prefix=X[:3, :2])
    np.testing.assert_allclose(each[:, :2], X[:3, :2])
    other = generator.sample(3, prefix=given + 1.0, random_state=0)
    assert np.abs((other - paths)[:, 5:] - 1.0).max() > 1e-9  # it depends on levels
    free = generator.sample(500, random_state=0)
    np.testing.assert_array_equal(np.isin(free[:, 0, 0], X[:, 0, 0]), True)
    with pytest.raises(ValueError, match="fitted for 5 at most"):
        generator.sample(3, prefix=X[7, :6])
    with pytest.raises(ValueError, match="2 beginnings for n = 3"):
        generator.sample(3, prefix=X[:2, :5])


@pytest.mark.slow
def test_learns_how_beginnings_go_on(rng):
    """The first steps tell an upward drift from a downward one. Ends of continued paths
    have the mean and the spread that either drift has from there."""
    side = np.where(np.arange(300) % 2, 1.0, -1.0)[:, None]
    steps = side / 8 + 0.05 * rng.normal(size=(300, 8))
    x = np.cumsum(np.concatenate([np.zeros((300, 1)), steps], axis=1), axis=1)[
        ..., None
    ]
    generator = PathGenerator(
        prefix=4,
        noise=1,
        steps=150,
        batch_size=64,
        options=SMALL | dict(window=2),
        features=16,
        cylinders=48,
        learning_rate=1e-2,
        validation=None,
        average=None,
        random_state=0,
    ).fit(x)
    for given in x[:2, :4]:
        ends = generator.sample(200, prefix=given, random_state=0)[:, -1, 0]
        expected = given[-1, 0] + 5 / 8 * np.sign(given[-1, 0])
        assert abs(ends.mean() - expected) < 0.2
        assert 0.5 < ends.std() / (0.05 * 5**0.5) < 2


def test_joint_law_uses_the_driver_of_the_beginning(walks):
    """Itô drivers carry the brackets of the beginning and of fresh noise after it."""
    generator = PathGenerator(prefix=4, noise=1, **QUICK).fit(
        walks + 1e-3 * walks[::-1]
    )
    seen = {}

    class Spy(type(generator.model_.model)):
        def predict(self, path):
            seen["path"] = path
            return super().predict(path)

    inner = generator.model_.model
    spy = object.__new__(Spy)
    for name, value in vars(inner).items():
        object.__setattr__(spy, name, value)
    import equinox as eqx

    replaced = eqx.tree_at(lambda g: g.model, generator.model_, spy)
    ts = jnp.linspace(0, 1, 17)
    prefix = jnp.asarray(walks[:2])
    replaced.sample(ts, 2, prefix, jnp.asarray(4), key=jr.key(0))
    path = seen["path"]
    steps = np.diff(path.xs, axis=1)
    np.testing.assert_array_equal(steps[:, 3:, 1], 0)
    np.testing.assert_array_equal(steps[:, :3, 2], 0)
    np.testing.assert_allclose(path.brackets[:, :, 1, 1], steps[..., 1] ** 2)
    expected = np.where(np.arange(16) >= 3, 1 / 16, 0)
    np.testing.assert_allclose(path.brackets[0, :, 2, 2], expected)
    assert path.finite_variation == (0,)


def test_states_on_a_manifold(rng):
    geometry = abx.SPD(2)
    X = np.exp(0.1 * rng.normal(size=(20, 9, 1, 1))) * np.eye(2)
    options = dict(options=dict(width=8, window=4), noise=1)
    generator = PathGenerator(geometry=geometry, **QUICK | options).fit(X)
    paths = generator.sample(4)
    assert paths.shape == (4, 9, 2, 2)
    assert np.linalg.eigvalsh(paths).min() > 0
    assert "leverage" in generator.compare(X)


def test_saved_pickled_and_cloned(simple, walks, tmp_path):
    """Copies draw the same bits; a clone has the parameters, and learns anew."""
    simple.save(tmp_path / "g.abx")
    expected = simple.sample(3, random_state=0)
    copies = PathGenerator.load(tmp_path / "g.abx"), pickle.loads(pickle.dumps(simple))
    for again in copies:
        np.testing.assert_array_equal(again.sample(3, random_state=0), expected)
    blank = clone(simple)
    assert blank.get_params() == simple.get_params()
    assert not hasattr(blank, "model_")
    found = blank.fit(walks).sample(3, random_state=0)
    np.testing.assert_array_equal(found, expected)


def test_values_far_from_zero(walks):
    """The law of paths near zero, in the units of the data, also after a beginning."""
    options = QUICK | dict(options={}, prefix=3)
    with jax.enable_x64(False):
        start = np.linspace(0, 1, 400)[:, None, None]
        near = PathGenerator("gru", **options).fit(walks + start)
        far = PathGenerator("gru", **options).fit(walks + start + 1e9)
        for given in (None, walks[:2, :3] + 0.5):
            there = None if given is None else given + 1e9
            found = far.sample(2, prefix=there, random_state=0) - 1e9
            expected = near.sample(2, prefix=given, random_state=0)
            np.testing.assert_allclose(found, expected, atol=1e-2)
        ks = [
            g.compare(x)["end"]["ks"]
            for g, x in ((near, walks + start), (far, walks + start + 1e9))
        ]
        assert ks[0] == pytest.approx(ks[1], abs=0.02)


def test_gaps_are_refused(walks, simple):
    """Filled in values move too little, so half the volatility would be learned."""
    gappy = np.array(walks[:40])
    gappy[7, 5] = np.nan
    for call in (PathGenerator("gru", **QUICK | dict(options={})).fit, simple.compare):
        with pytest.raises(ValueError, match="complete paths: series 7 .* sample 5"):
            call(gappy)


def test_points_off_the_manifold():
    X = np.tile(np.eye(2), (20, 9, 1, 1))
    X[3, 4] = np.diag([1.0, -1.0])
    with pytest.raises(ValueError, match="series 3 at sample 4 is not a point of SPD"):
        PathGenerator(geometry=abx.SPD(2), **QUICK).fit(X)


def test_refusals(walks):
    quick = QUICK | dict(options={})
    with pytest.raises(ValueError, match="paths on one grid"):
        PathGenerator("gru", **quick).fit([w[: 8 + k % 3] for k, w in enumerate(walks)])
    with pytest.raises(ValueError, match="at least 8 paths"):
        PathGenerator("gru", **quick).fit(walks[:5])
    with pytest.raises(ValueError, match="never moves"):
        PathGenerator("gru", **quick).fit(np.ones_like(walks))
    with pytest.raises(ValueError, match="shorter than the paths"):
        PathGenerator("gru", prefix=17, **quick).fit(walks)
    with pytest.raises(TypeError, match="causal model"):
        PathGenerator(Whole(), **quick).fit(walks)


def test_samples_that_are_refused(walks, simple):
    generator = simple
    with pytest.raises(ValueError, match="before the training times"):
        generator.sample(2, times=[-1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="increasing"):
        generator.sample(2, times=[1.0, 0.0])
    with pytest.raises(ValueError, match="fitted for 0 at most"):
        generator.sample(2, prefix=walks[0, :2])
    with pytest.raises(ValueError, match="training grid of 17"):
        generator.compare(walks[:, :9])


def test_statistics_of_paths(rng):
    """Leverage and tails of laws where they are known."""
    normal = rng.normal(size=(500, 400))
    flat = np.cumsum(normal, axis=1)
    assert abs(metrics.excess_kurtosis(flat).mean()) < 0.1
    assert abs(metrics.leverage(flat).mean()) < 0.01
    heavy = np.cumsum(rng.standard_t(5, size=(500, 400)), axis=1)
    assert metrics.excess_kurtosis(heavy).mean() > 1
    # Volatility doubles after a fall.
    size = np.where(normal[:, :-1] < 0, 2.0, 1.0)
    falls = np.cumsum(np.sign(normal[:, 1:]) * size, axis=1)
    assert metrics.leverage(falls).mean() < -0.5
    assert metrics.leverage(-falls).mean() > 0.5
    same = metrics.compare_paths(flat[:250, :, None], flat[250:, :, None])
    for scores in same.values():
        assert scores["ks"] < 3 * scores["floor"]
