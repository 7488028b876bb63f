"""The diffusion of covariance matrices. Keys are fixed."""

import jax.random as jr
import numpy as np
import pytest
import scipy.linalg

from arborax.datasets import dataset, SPDDiffusion
from arborax.training import metrics


PLACE = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
TRIANGLE = np.tril_indices(3)
HORIZONS = (128, 256, 384, 512)


def _near(samples, expected, slack=0.0):
    """Means over the first axis lie within 4 standard errors."""
    error = samples.std(0) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(0) - expected), 4 * error + slack)


def eigenvalue_gap(a, b):
    """Mean Wasserstein distance of the sorted eigenvalues of two samples."""
    a, b = np.linalg.eigvalsh(a), np.linalg.eigvalsh(b)
    return float(np.mean(metrics.wasserstein1(a, b)))


@pytest.fixture(scope="module")
def data():
    return SPDDiffusion().sample(2048, key=jr.PRNGKey(3))


def test_shapes_and_start(data):
    assert data.values.shape == (2048, 1025, 6) and data.values.dtype == np.float32
    assert data.brackets is None
    np.testing.assert_array_equal(data.values[:, 0], [[1, 0, 1, 0, 0, 1]] * 2048)
    assert np.linalg.eigvalsh(data.values[:, ::8][..., PLACE]).min() > 0


def test_drift_between_the_readings():
    r"""Without pull the ambient reading is a martingale, and the manifold reading grows
    by $\sigma^2 (n + 1) / 4 = 0.16$."""
    for reading, growth in (("manifold", 0.16), ("ambient", 0.0)):
        law = SPDDiffusion(eta=0.0, reading=reading, steps=64)
        values = law.sample(8192, key=jr.PRNGKey(1)).values[:, [32, 64]]
        clock = np.exp(growth * np.array([[0.5], [1.0]]))
        _near(values, clock * np.array([1, 0, 1, 0, 0, 1.0]))


def test_one_step_is_the_geodesic_one():
    """The second moment of $L^{-1} (X_1 - X_0) L^{-T}$, and the drift, after one step
    from the identity, against a matrix exponential of the same noise in NumPy."""
    law = SPDDiffusion(steps=8)
    values = law.sample(16384, dtype=np.float64, key=jr.PRNGKey(2)).values[:, 1]
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((4096, 3, 3))
    symmetric = (noise + np.swapaxes(noise, 1, 2)) / 2  # variance 1 and 1/2
    pull = scipy.linalg.logm(np.asarray(law.centre)[PLACE])
    move = law.eta / 8 * pull + law.sigma / np.sqrt(8) * symmetric
    expected = scipy.linalg.expm(move)[:, *TRIANGLE]
    for power in (1, 2):
        spread = (expected**power).std(0) * (1 / 64 + 1 / 128)
        gap = np.abs((values**power).mean(0) - (expected**power).mean(0))
        np.testing.assert_array_less(gap, 4 * spread)


def test_ambient_reading_is_the_ambient_equation():
    """Against plain Euler-Maruyama of the printed equation, with square roots."""
    rng = np.random.default_rng(1)
    steps, paths = 64, 2048
    centre = np.asarray(SPDDiffusion().centre)[PLACE]
    x = np.broadcast_to(np.eye(3), (paths, 3, 3))
    for _ in range(steps):
        w, u = np.linalg.eigh(x)
        assert w.min() > 0
        root = (u * np.sqrt(w)[:, None]) @ np.swapaxes(u, 1, 2)
        inverse = (u / np.sqrt(w)[:, None]) @ np.swapaxes(u, 1, 2)
        lw, lu = np.linalg.eigh(inverse @ centre @ inverse)
        log = (lu * np.log(lw)[:, None]) @ np.swapaxes(lu, 1, 2)
        noise = rng.standard_normal((paths, 3, 3))
        noise = (noise + np.swapaxes(noise, 1, 2)) / 2
        x = x + root @ (0.25 / steps * log + 0.4 / np.sqrt(steps) * noise) @ root
    law = SPDDiffusion(steps=steps, reading="ambient")
    ours = law.sample(4096, key=jr.PRNGKey(5)).values[:, -1][:, PLACE]
    gap = eigenvalue_gap(ours.astype(float), x)
    assert gap < 0.025  # the other reading is at 0.099


def test_regression_values(data):
    """Measured independently before: means, and distances from the identity."""
    x = data.values[..., PLACE]
    assert abs(x[:, -1, 0, 0].mean() - 0.76) < 0.02
    still = np.broadcast_to(np.eye(3, dtype=np.float32), x.shape)
    found = [eigenvalue_gap(still[:, t], x[:, t]) for t in HORIZONS]
    np.testing.assert_allclose(found, [0.162, 0.224, 0.268, 0.304], rtol=0.04)


def test_brackets(data):
    """They are what squared steps sum to, in both coordinates, and thinning keeps the
    sum."""
    law = SPDDiffusion()
    values = data.values[:512].astype(np.float64)
    w, u = np.linalg.eigh(values[..., PLACE])
    logs = ((u * np.log(w)[..., None, :]) @ np.swapaxes(u, -1, -2))[..., *TRIANGLE]
    for coordinates, path in (("vech", values), ("log", logs)):
        coarse = law.brackets(values, coordinates=coordinates, stride=64)
        assert coarse.shape == (512, 16, 6, 6)
        steps = np.diff(path, axis=1)
        realised = np.einsum("pti,ptj->pij", steps, steps)
        _near(realised - coarse.sum(1), 0.0, 2e-4)
        assert np.linalg.eigvalsh(coarse).min() > 0
    fine = law.brackets(values[:4])
    np.testing.assert_allclose(
        fine.sum(1), law.brackets(values[:4], stride=128).sum(1), rtol=1e-6
    )


def test_log_brackets_are_the_transformed_ones():
    """Against the derivative of the logarithm by finite differences."""
    law = SPDDiffusion(steps=8)
    values = law.sample(8, dtype=np.float64, key=jr.PRNGKey(4)).values
    plain, logs = (law.brackets(values, coordinates=c) for c in ("vech", "log"))
    point = values[3, 2]

    def log(v):
        return scipy.linalg.logm(v[PLACE])[TRIANGLE]

    unit = 1e-5 * np.eye(6)
    jacobian = np.stack([(log(point + e) - log(point - e)) / 2e-5 for e in unit], 1)
    np.testing.assert_allclose(
        logs[3, 2], jacobian @ plain[3, 2] @ jacobian.T, rtol=1e-6, atol=1e-10
    )


def test_cache(tmp_path):
    law = SPDDiffusion(steps=8)
    first, second = (
        dataset(law, 5, folder=tmp_path, dtype=np.float64) for _ in range(2)
    )
    np.testing.assert_array_equal(first.values, second.values)
    assert first.values.shape == (5, 9, 6) and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(sigma=0.0), "sigma"),
        (dict(centre=(1.0,)), "centre"),
        (dict(centre=(1.0, 2.0, 1.0, 0.0, 0.0, 1.0)), "positive definite"),
    ],
)
def test_bad_parameters(changes, message):
    with pytest.raises(ValueError, match=message):
        SPDDiffusion(**changes).sample(2, key=jr.PRNGKey(0))
