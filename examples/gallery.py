"""All pictures of `arborax.plots`, each by a function of a few lines.

Run it with `python examples/gallery.py`; the pictures go to `demo-output/gallery`. The
documentation shows each function beside its picture.
"""

import pathlib
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt

import arborax as abx


def fan_chart():
    """Quantile bands: log-prices under rough volatility."""
    law = abx.datasets.RoughBergomi()
    data = law.sample(2000, key=jr.key(0))
    ax = abx.plots.fan_chart(data.values[..., :1], data.ts, show=8)
    ax.set(title="Rough Bergomi", ylabel="log-price")
    return ax


def sample_paths():
    """Data against generated paths: a rough path beside a smooth one."""
    ts = jnp.linspace(0.0, 1.0, 201)
    rough = abx.fractional_brownian(200, 0.2, shape=(10,), key=jr.key(1))
    smooth = abx.fractional_brownian(200, 0.7, shape=(10,), key=jr.key(2))
    ax = abx.plots.sample_paths(rough, smooth, ts, names=("H = 0.2", "H = 0.7"))
    ax.set(title="Fractional Brownian motion")
    return ax


def permutation_histogram():
    """Two-sample test: Brownian motion against fractional Brownian motion, H = 0.3."""
    ts = jnp.linspace(0.0, 1.0, 33)
    x = abx.brownian(ts, dim=1, shape=(60,), key=jr.key(3))
    y = abx.fractional_brownian(32, 0.3, shape=(60,), key=jr.key(4))
    kernel = abx.SignatureKernel("ito", 3, add_time=True)
    result = abx.two_sample_test(x, y, kernel, key=jr.key(5))
    ax = abx.plots.permutation_histogram(result)
    ax.set(title="H = 0.5 against H = 0.3, 60 paths each")
    return ax


def signature_bars():
    """Signature features with trees as labels: the planar forests of Itô calculus."""
    path = abx.brownian(jnp.linspace(0.0, 1.0, 401), dim=2, key=jr.key(7))
    alg = abx.MuntheKaasWright(dim=2, depth=3)
    stratonovich = abx.signature(path, alg)
    ito = abx.signature(path, alg, brackets="realised")
    values = {"Itô": ito, "Stratonovich": stratonovich}
    ax = abx.plots.signature_bars(values, alg, largest=26)
    ax.set(title="Largest coordinates of a Brownian path")
    return ax


def log_signature_bars():
    """A log-signature in the compressed Itô basis: words with bracket letters."""
    path = abx.brownian(jnp.linspace(0.0, 1.0, 401), dim=2, key=jr.key(7))
    alg = abx.Ito(dim=2, depth=3)
    values = abx.log_signature(path, alg, brackets="realised")
    ax = abx.plots.signature_bars(values, alg)
    ax.set(title="Itô log-signature")
    return ax


def draw_forest():
    """A forest of two trees."""
    tree = (0, ((1, ()), (2, ((0, ()), (1, ())))))
    return abx.plots.draw_forest((tree, (1, ((0, ()),))))


def rotations():
    """A rotating body: a rough differential equation on SO(3)."""
    ts = jnp.linspace(0.0, 1.0, 2001)
    driver = abx.fractional_brownian(2000, 0.6, dim=2, key=jr.key(8))
    control = abx.rough_path(ts, driver, abx.Shuffle(2, 2), window=5)
    axes = 1.6 * jnp.array([[1.0, 0.0, 0.3], [0.0, 1.0, 0.3]])
    sol = abx.solve(lambda y: axes, jnp.eye(3), control, geometry=abx.SO(3))
    return abx.plots.rotations(sol.ys)


def on_sphere():
    """Five solutions on the sphere, from one point, with five drivers."""
    ts = jnp.linspace(0.0, 1.0, 1001)
    drivers = abx.fractional_brownian(1000, 0.7, dim=2, shape=(5,), key=jr.key(9))
    fields = jnp.array([[0.0, 0.0, 1.5], [1.5, 0.5, 0.0]])

    def state(driver):
        control = abx.rough_path(ts, driver, abx.Shuffle(2, 2), window=5)
        sol = abx.solve(lambda y: fields, jnp.eye(3), control, geometry=abx.SO(3))
        return sol.ys @ jnp.array([0.8, 0.6, 0.0])

    return abx.plots.on_sphere(jax.vmap(state)(drivers))


def covariance_ellipses():
    """Covariance matrices that diffuse on SPD(2): three samples."""
    ts = jnp.linspace(0.0, 1.0, 257)
    drivers = abx.brownian(ts, dim=3, shape=(3,), key=jr.key(10))

    def state(driver):
        control = abx.rough_path(ts, driver, abx.Shuffle(3, 2), window=8)
        fields = 0.9 * jnp.eye(3)
        return abx.solve(lambda y: fields, jnp.eye(2), control, geometry=abx.SPD(2)).ys

    ax = abx.plots.covariance_ellipses(jax.vmap(state)(drivers), ts[::8])
    ax.set(title="Diffusion on SPD(2)")
    return ax


def training_curve():
    """The loss of a run of `fit`, and its validations."""
    alg = abx.Shuffle(2, 3)
    ts = jnp.linspace(0.0, 1.0, 17)
    x = abx.brownian(ts, dim=2, shape=(192,), key=jr.key(11))
    features = abx.signature(x, alg)
    y = jnp.tanh(3 * x[:, -1, 0] * x[:, -1, 1])

    def objective(model, batch, key):
        features, targets = batch
        return jnp.mean((jax.vmap(model)(features) - targets) ** 2)

    model = eqx.nn.MLP(alg.size, "scalar", 32, 2, key=jr.key(12))
    result = abx.fit(
        model,
        (features[:128], y[:128]),
        objective,
        validation=(features[128:], y[128:]),
        steps=600,
        validate_every=50,
        batch_size=32,
        learning_rate=3e-3,
        progress=False,
        key=jr.key(13),
    )
    ax = abx.plots.training_curve(result, label="training")
    abx.plots.training_curve(result, "metric", label="validation", ax=ax)
    ax.set(title="Regression on signature features", ylabel="mean squared error")
    return ax


PICTURES = (
    fan_chart,
    sample_paths,
    permutation_histogram,
    signature_bars,
    log_signature_bars,
    draw_forest,
    rotations,
    on_sphere,
    covariance_ellipses,
    training_curve,
)


def main(folder="demo-output/gallery"):
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    plt.style.use("arborax.arborax")  # titles, too
    for picture in PICTURES:
        figure = picture().figure
        figure.savefig(target / f"{picture.__name__}.png")
        plt.close(figure)
        print(target / f"{picture.__name__}.png")


if __name__ == "__main__":
    main(*sys.argv[1:2])
