"""Stochastic equations in one call: laws, orders, derivatives, refusals."""

import itertools as it
import subprocess
import sys

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from geometry.cases import GEOMETRIES, name

import arborax as abx

from .harness import bounded_fields, distances, log_ode, pad, slope_and_error


ENDS = jnp.array([0.0, 1.0])
KEY = jr.key(7)


def drift(t, y, args):
    """Of geometric Brownian motion and, beside it, the motion itself."""
    return jnp.stack([args["mu"] * y[0], jnp.zeros_like(y[1])])


def diffusion(t, y, args):
    return jnp.stack([args["sigma"] * y[0], jnp.ones_like(y[1])])[:, None]


def check_order(sizes, squares, expected):
    """The slope of squared errors `(sizes, paths)` within three standard errors."""
    order, error = slope_and_error(sizes, squares)
    print(f"order {order:.3f} +- {error:.3f}, expected {expected}")
    assert error < 0.06
    assert abs(order - expected) < 3 * error


@pytest.mark.parametrize("calculus", ("ito", "stratonovich"))
def test_strong_order_against_the_exact_solution(calculus):
    """The second state is the Brownian motion, from which the first is known."""
    args, sizes, found = {"mu": 0.3, "sigma": 0.5}, (8, 16, 32, 64), []
    for windows in sizes:
        sol = abx.solve_sde(
            drift,
            diffusion,
            jnp.array([1.0, 0.0]),
            jnp.linspace(0.0, 1.0, 3),
            key=KEY,
            calculus=calculus,
            args=args,
            paths=2000,
            windows=windows // 2,
        )
        assert sol.ys.shape == (2000, 3, 2) and sol.result.code.shape == (2000,)
        rate = args["mu"] - (calculus == "ito") * args["sigma"] ** 2 / 2
        exact = jnp.exp(rate * sol.ts[None] + args["sigma"] * sol.ys[..., 1])
        gap = np.asarray(sol.ys[..., 0] - exact)
        assert not np.any(gap[:, 0])
        found.append(gap[:, -1] ** 2)
    check_order(sizes, np.stack(found), 1)


@pytest.mark.parametrize(
    "geometry,method,d",
    [
        (abx.Euclidean(3), "foster", 2),
        (abx.Euclidean(3), "foster", 3),
        (abx.Euclidean(3), "foster", 5),
        (abx.Euclidean(3), "davie", 3),
        (abx.SO(3), "foster", 3),
        (abx.Sphere(2), "foster", 3),
    ],
    ids=("flat-2", "flat-3", "flat-5", "flat-davie", "so3", "sphere"),
)
def test_strong_order_with_drawn_areas(geometry, method, d):
    """Brownian motions that do not commute, Itô.

    Areas are drawn on 512 windows and joined by Chen's identity, so all sizes see one
    driver. With areas the order is 1, without them 1/2.
    """
    sizes, finest = (8, 16, 32, 64), 512
    alg = abx.Ito(d, 2)
    ts = jnp.linspace(0.0, 1.0, finest + 1)
    steps = abx.brownian_areas(ts, d, 128, key=KEY, method=method)
    brackets = abx.brownian_brackets(ts, d)
    make = lambda x, a: abx.rough_path_from_areas(ts, x, a, alg, brackets)  # noqa: E731
    lams = jax.vmap(make)(steps.increments, steps.areas).log_signatures
    group = alg.exp(alg.from_primitive(np.asarray(lams)))
    joined = {finest: np.asarray(lams)}
    size = finest
    while size > sizes[0]:
        group = alg.product(group[:, 0::2], group[:, 1::2])
        size //= 2
        joined[size] = alg.to_primitive(alg.log(group))
    fields = bounded_fields(d, geometry)
    y0 = geometry.random_point(key=jr.key(1), dtype=jnp.float64)
    chosen = pad({n: joined[n] for n in (*sizes, finest)})
    area = np.array([len(word) == 2 for word in alg.primitive_basis])
    without = chosen[:-1] * jnp.asarray(~area, chosen.dtype)[None, None, None]
    ends = log_ode(
        fields, y0, jnp.concatenate([chosen, without]), alg, geometry, substeps=1
    )
    reference = ends[len(sizes)]
    gaps = distances(ends, reference, geometry)
    check_order(sizes, gaps[: len(sizes)] ** 2, 1)
    check_order(sizes, gaps[len(sizes) + 1 :] ** 2, 0.5)


def expansion(fields, phi, y, h, geometry):
    """`E phi(Y_h)` up to order `h^2`, from the generator `V_0 + sum V_i V_i / 2` of the
    Stratonovich equation with the fields `(V_0, V_1, ..)`."""

    def apply(i, function):
        along = lambda z: geometry.frame(z, fields(z)[i])  # noqa: E731
        return lambda z: jax.jvp(function, (z,), (along(z),))[1]

    def generate(function):
        parts = [apply(0, function)]
        parts += [apply(i, apply(i, function)) for i in range(1, fields(y).shape[0])]
        return lambda z: parts[0](z) + sum(part(z) for part in parts[1:]) / 2

    once = generate(phi)
    return phi(y) + h * once(y) + h**2 / 2 * generate(once)(y)


@pytest.mark.parametrize(
    "geometry",
    [
        pytest.param(abx.Euclidean(2), id="flat"),
        pytest.param(abx.SO(3), id="so3", marks=pytest.mark.slow),
    ],
)
def test_weak_order_two(geometry):
    """The local error of the mean has order 3 with `variances`, order 2 without.

    There is no sampling: increments take the three Gauss-Hermite points, areas the two
    points of their variance, so the mean over the law is a finite sum.
    """
    fields = bounded_fields(3, geometry, seed=1, scale=0.8)
    y0 = geometry.random_point(key=jr.key(1), dtype=jnp.float64)
    weights = jnp.cos(jnp.arange(y0.size * 1.0)).reshape(y0.shape)
    phi = lambda y: jnp.sin(jnp.sum(weights * y))  # noqa: E731
    alg = abx.Shuffle(3, 3)
    points = np.array([-1.0, 0.0, 1.0]) * 3**0.5
    grid = np.array(list(it.product(points, points, (-0.5, 0.5))))
    weight = np.array([1 / 6, 2 / 3, 1 / 6])
    weight = np.repeat(np.outer(weight, weight).ravel(), 2) / 2

    @jax.jit
    def means(h):
        """With and without the conditional mean."""
        row = jnp.stack([jnp.zeros_like(h), h, h])[None]

        def one(x, y, a, v):
            root = jnp.sqrt(h)
            increments = jnp.stack([h, root * x, root * y])[None]
            areas = jnp.stack([0 * h, 0 * h, h * a])[None]
            control = abx.rough_path_from_areas(
                ENDS, increments, areas, alg, variances=v * row
            )
            end = diffrax.SaveAt(t1=True)
            options = dict(geometry=geometry, solver=abx.CF4(), saveat=end, throw=False)
            return phi(abx.solve(fields, y0, control, **options).ys[0])

        both = jax.vmap(one, in_axes=(None, None, None, 0))
        values = jax.vmap(both, in_axes=(0, 0, 0, None))(*grid.T, jnp.array([1.0, 0.0]))
        return weight @ values

    sizes = np.array([512.0, 1024.0, 2048.0])
    exact = jax.jit(lambda h: expansion(fields, phi, y0, h, geometry))
    gaps = np.abs([means(1 / n) - exact(1 / n) for n in sizes])
    # No sampling, so slopes have no standard error; they meet the order as `h` falls.
    for column, order in ((0, 3), (1, 2)):
        slopes = -np.diff(np.log(gaps[:, column])) / np.log(2)
        print(f"slopes {slopes}, expected {order}")
        assert abs(slopes[-1] - order) < 0.05, gaps
        assert abs(slopes[-1] - order) < abs(slopes[0] - order), gaps


def test_weak_order_two_by_simulation():
    """The mean of an Itô equation with matrix noise that does not commute, at four
    windows: within four standard errors with `weak_order=2`, far off without."""
    a = 0.9 * jnp.array([[0.0, 1.0], [0.3, 0.0]])
    b = 0.9 * jnp.array([[0.6, 0.0], [0.5, -0.7]])
    rates = jnp.array([[-0.5, 0.4], [0.2, -1.0]])
    y0 = jnp.array([1.0, 0.5])
    mean = jax.scipy.linalg.expm(rates) @ y0

    def score(order, paths):
        end = abx.solve_sde(
            lambda y: rates @ y,
            lambda y: jnp.stack([a @ y, b @ y], axis=1),
            y0,
            ENDS,
            key=KEY,
            paths=paths,
            windows=4,
            weak_order=order,
            antithetic=True,
        ).ys[:, -1]
        pairs = np.asarray(end).reshape(-1, 2, 2).mean(axis=1)
        error = pairs.std(axis=0) / np.sqrt(len(pairs))
        return np.max(np.abs(pairs.mean(axis=0) - mean) / error)

    assert score(2, 40_000) < 4
    assert score(1, 400_000) > 8


def test_brownian_motion_on_the_sphere():
    """`E Y_t = exp(-t) Y_0`, the eigenvalue of half the Laplacian."""
    sphere = abx.Sphere(2)
    y0 = jnp.array([0.0, 0.6, 0.8])
    sol = abx.solve_sde(
        lambda y: jnp.zeros(sphere.dim),
        lambda y: jnp.eye(sphere.dim),
        y0,
        jnp.array([0.0, 0.5, 1.0]),
        key=KEY,
        geometry=sphere,
        paths=4000,
        windows=16,
        antithetic=True,
    )
    np.testing.assert_allclose(jnp.linalg.norm(sol.ys, axis=-1), 1.0, atol=1e-12)
    for k, t in enumerate((0.5, 1.0), start=1):
        pairs = np.asarray(sol.ys[:, k]).reshape(-1, 2, 3).mean(axis=1)
        error = 4 * pairs.std(axis=0) / np.sqrt(len(pairs))
        assert np.all(np.abs(pairs.mean(axis=0) - np.exp(-t) * y0) < error)


def test_covariances_and_products_stay_where_they_belong():
    space = abx.Product(abx.SPD(2), abx.Euclidean(1))
    y0 = (jnp.eye(2), jnp.array([0.1]))
    sol = abx.solve_sde(
        lambda y: 0.1 * jnp.ones(4),
        lambda y: 0.4 * jnp.cos(y[1][0]) * jnp.ones((4, 2)),
        y0,
        ENDS,
        key=KEY,
        geometry=space,
        paths=3,
        windows=3,
    )
    assert sol.ys[0].shape == (3, 2, 2, 2) and sol.ys[1].shape == (3, 2, 1)
    assert np.all(np.linalg.eigvalsh(sol.ys[0]) > 0)


@pytest.mark.parametrize(
    "geometry",
    [
        pytest.param(g, marks=() if g == abx.Sphere(2) else pytest.mark.slow)
        for g in GEOMETRIES
    ],
    ids=name,
)
@pytest.mark.parametrize("calculus", ("ito", "stratonovich"))
def test_every_geometry(geometry, calculus):
    """States stay where they belong, and the derivative in a parameter is that of
    differences."""
    y0 = geometry.random_point(key=jr.key(2), dtype=jnp.float64)
    flat = lambda y: jnp.concatenate([x.ravel() for x in jax.tree.leaves(y)])  # noqa: E731
    frame = 0.3 * jnp.cos(jnp.arange(2.0 * geometry.dim)).reshape(-1, 2)
    count = flat(y0).size

    def drift(t, y, args):
        return args * jnp.full(geometry.dim, jnp.sin(jnp.sum(flat(y))) / count)

    def diffusion(t, y, args):
        return args * frame * jnp.cos(t + jnp.sum(flat(y)) / count)

    def run(args):
        options = dict(key=KEY, geometry=geometry, paths=3, windows=2, args=args)
        sol = abx.solve_sde(drift, diffusion, y0, ENDS, calculus=calculus, **options)
        total = sum(jnp.sum(jnp.sin(leaf[:, -1])) for leaf in jax.tree.leaves(sol.ys))
        return total, sol.ys

    at, step = jnp.array(0.8), 1e-5
    (_, ys), slope = jax.jit(jax.value_and_grad(run, has_aux=True))(at)
    value = jax.jit(lambda x: run(x)[0])
    assert np.all(jax.vmap(jax.vmap(geometry.belongs))(ys))
    differences = (value(at + step) - value(at - step)) / (2 * step)
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-9)


PEAK = """
import resource
import jax, jax.numpy as jnp
import arborax as abx

ends, y0 = jnp.array([0.0, 1.0]), jnp.array([0.0, -1.6])
drift = lambda t, y, args: -jnp.stack([jnp.exp(2 * y[1]), args**2]) / 2
def diffusion(t, y, args):
    vol = jnp.exp(y[1])
    rows = [jnp.stack([vol, jnp.zeros_like(vol)]), args * jnp.array([-0.5, 0.75**0.5])]
    return jnp.stack(rows)

@jax.jit
@jax.value_and_grad
def price(nu):
    sol = abx.solve_sde(
        drift, diffusion, y0, ends, key=jax.random.key(0), args=nu, paths=%d, windows=32
    )
    return jnp.mean(jnp.maximum(jnp.exp(sol.ys[:, -1, 0]) - 1, 0))

value, slope = price(jnp.array(0.4))
assert 0.07 < value < 0.09 and jnp.isfinite(slope)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_a_million_paths_fit_in_memory():
    """Value and gradient of a SABR price, 32 windows: a megabyte for a thousand paths
    more is enough, where log-signatures alone would take 1,100 of them."""
    small, large = (
        float(
            subprocess.run(
                [sys.executable, "-c", PEAK % paths],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for paths in (10_000, 1_000_000)
    )
    print(f"peak: {small:.0f} MB with 10,000 paths, {large:.0f} MB with a million")
    assert large - small < 300


def simulate(args, **options):
    default = dict(key=KEY, args=args, paths=40, windows=3)
    y0 = jnp.array([1.0, 0.0])
    return abx.solve_sde(drift, diffusion, y0, ENDS, **{**default, **options})


ARGS = {"mu": jnp.array(0.1), "sigma": jnp.array(0.3)}


def test_noise_depends_on_key_and_number_alone():
    whole = simulate(ARGS).ys
    np.testing.assert_allclose(simulate(ARGS, chunk=16).ys, whole, rtol=1e-12)
    np.testing.assert_allclose(simulate(ARGS, chunk=1).ys, whole, rtol=1e-12)
    np.testing.assert_allclose(simulate(ARGS, paths=7).ys, whole[:7], rtol=1e-12)
    other = simulate({"mu": 0.5, "sigma": 0.9}).ys
    np.testing.assert_array_equal(other[..., 1], whole[..., 1])
    assert np.any(simulate(ARGS, key=jr.key(0)).ys != whole)


def test_antithetic_pairs():
    ys = simulate(ARGS, antithetic=True).ys
    np.testing.assert_allclose(ys[::2, :, 1], -ys[1::2, :, 1], atol=1e-15)
    assert np.all(ys[::2, -1, 0] != ys[1::2, -1, 0])
    chunked = simulate(ARGS, antithetic=True, chunk=16).ys
    np.testing.assert_allclose(chunked, ys, rtol=1e-12)


def test_one_path_and_dtypes():
    sol = simulate(ARGS, paths=None)
    assert sol.ys.shape == (2, 2) and sol.result == abx.RESULTS.successful
    small = abx.solve_sde(
        lambda y: -y,
        lambda y: 0.1 * y,
        jnp.ones(3, jnp.float32),
        np.array([1.7e9, 1.7e9 + 1.0]),
        key=KEY,
        paths=2,
    )
    assert small.ys.dtype == np.float32 and small.ts.dtype == np.float64
    assert small.ys.shape == (2, 2, 3)


def test_noise_does_not_depend_on_the_origin_of_time():
    """Windows of length 1/512 in float32, which at times of 100,000 has steps of 1/128:
    knots are rounded, lengths of windows are not."""

    def run(start):
        ts = jnp.array([start, start + 0.125], jnp.float32)
        options = dict(key=KEY, paths=4, windows=64)
        return abx.solve_sde(lambda y: -y, lambda y: y, y0, ts, **options).ys

    y0 = jnp.ones(1, jnp.float32)
    np.testing.assert_array_equal(run(1e5), run(0.0))


def test_times_that_rounding_makes_equal(as_users):
    ts = np.array([1.7e9, 1.7e9 + 1.0], np.float64)
    with jax.enable_x64(False), pytest.raises(ValueError, match="subtract the first"):
        abx.solve_sde(lambda y: -y, lambda y: y, np.ones(1), ts, key=KEY)


def test_forms_of_noise_agree():
    """A diagonal and its matrix; one Brownian motion and its column."""
    y0 = jnp.array([1.0, 2.0])
    options = dict(key=KEY, paths=5, windows=2)
    run = lambda g: abx.solve_sde(lambda y: -y, g, y0, ENDS, **options).ys  # noqa: E731
    diagonal = run(lambda y: jnp.sin(y))
    np.testing.assert_allclose(diagonal, run(lambda y: jnp.diag(jnp.sin(y))))
    with_time = run(lambda t, y, args: jnp.diag(jnp.sin(y)))
    np.testing.assert_allclose(diagonal, with_time)


def test_a_drift_may_be_a_number():
    """One for all coordinates; a number as diffusion says too little."""
    options = dict(key=KEY, paths=5, windows=2)
    run = lambda f, g: abx.solve_sde(f, g, jnp.ones(2), ENDS, **options).ys  # noqa: E731
    found = run(lambda y: 0.5, lambda y: y)
    np.testing.assert_array_equal(found, run(lambda y: jnp.full(2, 0.5), lambda y: y))
    with pytest.raises(ValueError, match=r"jnp.full\(2, g\)"):
        run(lambda y: 0.5, lambda y: 0.2)


@pytest.mark.parametrize("weak_order", (1, 2))
def test_mixed_second_derivatives(weak_order):
    """Of matrix noise with drawn areas, in two parameters and the start: the Hessian is
    symmetric and that of differences of gradients."""

    def drift(t, y, args):
        return -args[0] * y

    def diffusion(t, y, args):
        rows = [[jnp.sin(y[1]), args[1] * y[0]], [args[0] * y[0], jnp.cos(y[0])]]
        return jnp.stack([jnp.stack(row) for row in rows])

    def mean(x):
        options = dict(key=KEY, args=x[:2], paths=4, windows=2, weak_order=weak_order)
        y0 = jnp.stack([x[2], jnp.ones_like(x[2])])
        ends = abx.solve_sde(drift, diffusion, y0, ENDS, **options).ys[:, -1]
        return jnp.mean(jnp.sin(ends).sum(axis=1))

    at, step = jnp.array([0.4, 0.3, 0.7]), 1e-5
    gradient = jax.jit(jax.grad(mean))
    hessian = jax.jit(jax.hessian(mean))(at)
    rows = [
        (gradient(at + step * e) - gradient(at - step * e)) / (2 * step)
        for e in jnp.eye(3)
    ]
    np.testing.assert_allclose(hessian, np.stack(rows), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-12)


def test_antithetic_paths_lower_the_variance():
    """Of the mean of a monotone function, at equal numbers of paths."""
    pairs = simulate(ARGS, paths=4000, antithetic=True).ys[:, -1, 0]
    alone = simulate(ARGS, paths=4000).ys[:, -1, 0]
    paired = np.asarray(pairs).reshape(-1, 2).mean(axis=1).var() / 2000
    assert paired < 0.2 * np.asarray(alone).var() / 4000


def test_chunks_have_one_size():
    """Nine blocks of sixteen paths in chunks of at most eight blocks: no chunk of
    seven empty ones."""
    whole = simulate(ARGS, paths=144)
    chunked = simulate(ARGS, paths=144, chunk=128)
    np.testing.assert_allclose(chunked.ys, whole.ys, rtol=1e-12)


def test_derivatives_along_fixed_noise():
    """First and second derivatives of a mean against differences, with chunks too."""

    def mean(sigma, chunk=None):
        ends = simulate({"mu": 0.1, "sigma": sigma}, chunk=chunk, windows=2).ys[:, -1]
        return jnp.mean(ends[:, 0] ** 2)

    step, at = 1e-4, jnp.array(0.3)
    around = np.array([jax.jit(mean)(at + k * step) for k in (-1, 0, 1)])
    first = (around[2] - around[0]) / (2 * step)
    second = (around[2] - 2 * around[1] + around[0]) / step**2
    np.testing.assert_allclose(jax.grad(mean)(at, 16), first, rtol=1e-6)
    np.testing.assert_allclose(jax.hessian(mean)(at), second, rtol=1e-5)
    twice = jax.grad(jax.grad(mean))
    np.testing.assert_allclose(twice(at, 16), second, rtol=1e-5)

    def closed(s):
        """Parameters may also be closed over."""
        field = lambda y: s * y  # noqa: E731
        ys = abx.solve_sde(field, field, jnp.ones(1), ENDS, key=KEY, paths=4).ys
        return jnp.sum(ys)

    assert np.isfinite(jax.grad(closed)(at))


def test_another_number_is_not_another_program():
    calls = []

    def counted(t, y, args):
        calls.append(1)
        return args * y

    def run(x):
        options = dict(key=KEY, args=x, paths=2)
        return abx.solve_sde(counted, counted, jnp.ones(1), ENDS, **options)

    first = run(0.1).ys
    before = len(calls)
    assert np.any(run(0.2).ys != first)
    assert len(calls) == before + 2  # shapes are looked up


def test_modules_as_coefficients():
    net = eqx.nn.Linear(2, 2, key=jr.key(0))
    run = lambda net: jnp.mean(  # noqa: E731
        abx.solve_sde(
            net, lambda y: jnp.ones((2, 1)), jnp.ones(2), ENDS, key=KEY, paths=3
        ).ys
    )
    grads = eqx.filter_grad(run)(net)
    assert np.all(np.isfinite(grads.weight)) and np.any(grads.weight != 0)


@pytest.mark.parametrize(
    "change,error,message",
    [
        (dict(key=None), TypeError, "jax.random.key"),
        (dict(calculus="itô"), ValueError, "`calculus` must be one of"),
        (dict(y0=jnp.array(1.0)), ValueError, r"jnp.array\(\[y0\]\)"),
        (dict(y0=jnp.array([1, 2])), TypeError, "floating"),
        (dict(ts=jnp.array([0.0, 0.5, 0.5])), ValueError, "strictly increasing"),
        (dict(ts=jnp.array([0.0])), ValueError, "two times at least"),
        (dict(ts=jnp.array([0.0, jnp.nan])), ValueError, "finite"),
        (dict(drift=lambda y: y[:1]), ValueError, r"`drift` must return shape \(2,\)"),
        (dict(drift=1.0), TypeError, "`drift` must be a callable"),
        (dict(diffusion=lambda y: y[:, None].T), ValueError, r"g\[:, None\]"),
        (dict(diffusion=lambda y: jnp.ones((2, 0))), ValueError, "one column"),
        (dict(diffusion=lambda y: [y, y]), TypeError, "jnp.stack"),
        (dict(diffusion=lambda y: 1j * y), TypeError, "real numbers, got complex"),
        (dict(drift=lambda t, y: y), TypeError, r"`drift\(t, y, args\)`; got one"),
        (dict(args=1.0), TypeError, "cannot see it"),
        (dict(paths=3, antithetic=True), ValueError, "must be even"),
        (dict(paths=0), ValueError, "at least 1"),
        (dict(weak_order=3), ValueError, "1 or 2"),
        (dict(levy_area="fine"), ValueError, "`levy_area` must be one of"),
        (dict(geometry=abx.SO(3)), ValueError, "SO"),
        (dict(solver=abx.LieEuler()), ValueError, "order 2"),
        (dict(weak_order=2, solver=abx.Heun()), ValueError, "scheme of order 4"),
        (dict(weak_order=2, solver=diffrax.Heun()), ValueError, "scheme of order 4"),
        (dict(weak_order=2, levy_area=None), ValueError, "areas of 2 Brownian"),
        (dict(ts=[0, 1]), TypeError, r"np.asarray\(ts, float\)"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_refusals(change, error, message, as_users):
    given = dict(drift=lambda y: -y, diffusion=lambda y: y, y0=jnp.ones(2), ts=ENDS)
    given |= dict(key=KEY) | change
    with pytest.raises(error, match=message) as caught:
        abx.solve_sde(
            given.pop("drift"),
            given.pop("diffusion"),
            given.pop("y0"),
            given.pop("ts"),
            **given,
        )
    assert len(str(caught.value)) < 300


def test_failure_is_told():
    blow = dict(key=KEY, paths=4, windows=4)
    field = lambda y: 1e200 * y**2  # noqa: E731
    with pytest.raises(ValueError, match="NaN or infinite"):
        abx.solve_sde(field, lambda y: y, jnp.ones(1), ENDS, **blow)
    sol = abx.solve_sde(field, lambda y: y, jnp.ones(1), ENDS, throw=False, **blow)
    assert np.all(sol.result == abx.RESULTS.nonfinite)


def test_geometric_gap_is_small_where_it_should_be():
    """Itô and Stratonovich equations on SO(3) with corrected drift have one law; here,
    with the same noise, one solution up to the order of the scheme."""
    group = abx.SO(3)
    fields = bounded_fields(3, group, scale=0.5)
    y0 = jnp.eye(3)

    def corrected(y):
        v = fields(y)[1:]
        total = sum(
            group.covariant_derivative(lambda z, i=i: fields(z)[1 + i], y, v[i])
            for i in range(2)
        )
        return fields(y)[0] - total / 2

    columns = lambda y: fields(y)[1:].T  # noqa: E731
    options = dict(key=KEY, geometry=group, paths=8, windows=32)
    ito = abx.solve_sde(lambda y: fields(y)[0], columns, y0, ENDS, **options)
    other = abx.solve_sde(
        corrected, columns, y0, ENDS, calculus="stratonovich", **options
    )
    assert np.max(distances(ito.ys[None, :, -1], other.ys[:, -1], group)) < 0.01
