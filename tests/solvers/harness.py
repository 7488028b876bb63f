"""Shared noise, reference solutions and slopes for convergence tests.

Window counts of one test are padded with empty windows (zero log-signatures) to the
largest, so that each equation is compiled once.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx


class Control(eqx.Module):
    """Log-signatures given by hand."""

    alg: object = eqx.field(static=True)
    knots: jax.Array
    log_signatures: jax.Array
    calculus: str = eqx.field(static=True, default="stratonovich")


def bounded_fields(d, geometry, seed=0, scale=0.6):
    """Smooth bounded fields without symmetry."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(geometry.point_shape))
    weight = rng.normal(size=(d, geometry.dim, size)) / np.sqrt(size)
    bias = rng.normal(size=(d, geometry.dim))

    def fields(y):
        flat = jnp.ravel(y)
        a, b = (jnp.asarray(x, flat.dtype) for x in (weight, bias))
        return scale * jnp.sin(a @ flat + b)

    return fields


def fields_bounded_in_the_metric(d, geometry, seed=0, scale=0.6):
    """On SPD(n): fields whose derivatives are bounded in the affine-invariant metric.

    The fields above are bounded, but not their derivatives: along a frame field of unit
    length the matrix itself moves by as much as its size, without bound.
    """
    fields = bounded_fields(d, geometry, seed, scale)
    return lambda y: fields(y / (1 + jnp.trace(y)))


def brownian_paths(key, paths, steps, d):
    """Sample paths `(paths, steps + 1, d)` on a fine uniform grid of [0, 1]."""
    dx = jr.normal(key, (paths, steps, d), jnp.float64) / np.sqrt(steps)
    zero = jnp.zeros((paths, 1, d))
    return jnp.concatenate([zero, jnp.cumsum(dx, axis=1)], axis=1)


def geodesic_euler(fields, y0, xs, geometry):
    """Final states of the geodesic Euler-Maruyama scheme, one for each path."""

    def one(x):
        def body(y, dx):
            return geometry.exp(y, dx @ fields(y)), None

        return jax.lax.scan(body, y0, jnp.diff(x, axis=0))[0]

    return jax.jit(jax.vmap(one))(xs)


def flow_reference(fields, y0, xs, geometry):
    """Final states of the equation driven by the piecewise-linear paths."""
    d = xs.shape[-1]
    alg = abx.Shuffle(d, 1)
    knots = jnp.linspace(0.0, 1.0, xs.shape[1])

    def one(x):
        control = Control(alg, knots, jnp.diff(x, axis=0))
        return abx.solve(
            fields,
            y0,
            control,
            geometry=geometry,
            solver=abx.CF4(),
            saveat=diffrax.SaveAt(t1=True),
            throw=False,
        ).ys[0]

    return jax.jit(jax.vmap(one))(xs)


def with_ito_drift(fields, geometry):
    """Fields `(V_1, .., V_d, V_0)` with V_0 = -1/2 sum nabla_{V_i} V_i, to be driven
    by a Brownian motion and time: the Itô equation as a Stratonovich one."""

    def extended(y):
        v = fields(y)
        drift = sum(
            geometry.covariant_derivative(lambda z, i=i: fields(z)[i], y, v[i])
            for i in range(v.shape[0])
        )
        return jnp.concatenate([v, -drift[None] / 2])

    return extended


def window_log_signatures(xs, alg, sizes, brackets=None):
    """`{n: (paths, n, primitives)}` for window counts halving from the largest."""
    largest = max(sizes)
    steps = (xs.shape[1] - 1) // largest
    pieces = jnp.stack(
        [xs[:, k * steps : (k + 1) * steps + 1] for k in range(largest)], axis=1
    )
    if isinstance(brackets, str) and brackets == "time":  # identity, per unit time
        share = jnp.eye(alg.dim) / (xs.shape[1] - 1)
        shape = (*pieces.shape[:2], steps, alg.dim, alg.dim)
        brackets = jnp.broadcast_to(share, shape)
    log = jax.jit(lambda p: abx.log_signature(p, alg, brackets=brackets))
    lams = np.asarray(log(pieces))
    out, size = {largest: lams}, largest
    group = alg.exp(alg.from_primitive(lams))
    while size > min(sizes):
        group = alg.product(group[:, 0::2], group[:, 1::2])
        size //= 2
        out[size] = alg.to_primitive(alg.log(group))
    return {n: out[n] for n in sizes}


def pad(lams):
    """Stack window counts, filled up with empty windows: `(sizes, .., windows, p)`."""
    largest = max(lams)
    rows = []
    for lam in lams.values():
        width = [(0, 0)] * lam.ndim
        width[-2] = (0, largest - lam.shape[-2])
        rows.append(np.pad(lam, width))
    return jnp.asarray(np.stack(rows))


def log_ode(fields, y0, lams, alg, geometry, *, solver=None, substeps=2):
    """Final states `(sizes, paths, ..)` for padded log-signatures."""
    knots = jnp.linspace(0.0, 1.0, lams.shape[-2] + 1)
    solver = abx.CF4() if solver is None else solver

    def one(lam):
        return abx.solve(
            fields,
            y0,
            Control(alg, knots, lam),
            geometry=geometry,
            solver=solver,
            substeps=substeps,
            saveat=diffrax.SaveAt(t1=True),
            throw=False,
        ).ys[0]

    return jax.jit(jax.vmap(jax.vmap(one)))(lams)


def distances(states, reference, geometry):
    """Riemannian distances from the reference, `(sizes, paths)`."""
    row = jax.vmap(geometry.distance)
    return np.asarray(jax.jit(jax.vmap(row, in_axes=(0, None)))(states, reference))


def errors(states, reference, geometry):
    """Root mean square over paths of the distance, for each size."""
    return np.sqrt(np.mean(distances(states, reference, geometry) ** 2, axis=1))


def slope(sizes, errors):
    """Least-squares slope of log error against log of the window length."""
    return -float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def slope_and_error(sizes, squares, seed=0):
    """The slope of root mean squares over paths, from squared errors `(sizes, paths)`,
    and its standard error by bootstrap over the paths."""
    rng = np.random.default_rng(seed)
    count = squares.shape[1]
    fit = lambda rows: slope(sizes, np.sqrt(rows.mean(axis=1)))  # noqa: E731
    draws = [fit(squares[:, rng.integers(count, size=count)]) for _ in range(400)]
    return fit(squares), float(np.std(draws))
