"""Gradients: checkpointed and reversible, on manifolds as well."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import arborax as abx


class Fields(eqx.Module):
    """A one-layer field with parameters."""

    weight: jax.Array
    bias: jax.Array

    def __init__(self, d, geometry, dtype=jnp.float64):
        size = int(np.prod(geometry.point_shape))
        shape = (d, geometry.dim, size)
        self.weight = jr.normal(jr.PRNGKey(0), shape, dtype) / np.sqrt(size)
        self.bias = jr.normal(jr.PRNGKey(1), shape[:2], dtype)

    def __call__(self, y):
        return 0.5 * jnp.sin(self.weight @ jnp.ravel(y) + self.bias)


def setup(geometry, alg, windows=8, dtype=jnp.float64):
    steps = 8 * windows
    dx = jr.normal(jr.PRNGKey(2), (steps, alg.dim), dtype) / np.sqrt(steps)
    xs = jnp.concatenate([jnp.zeros((1, alg.dim), dtype), jnp.cumsum(dx, axis=0)])
    ts = jnp.linspace(0.0, 1.0, steps + 1, dtype=dtype)
    brackets = None if isinstance(alg, abx.Shuffle) else "realised"
    control = abx.rough_path(ts, xs, alg, window=8, brackets=brackets)
    return (
        Fields(alg.dim, geometry, dtype),
        geometry.random_point(key=jr.PRNGKey(3), dtype=dtype),
        control,
    )


CHECKPOINTED, REVERSIBLE = abx.CheckpointedAdjoint(), abx.ReversibleAdjoint()
LAST = diffrax.SaveAt(t1=True)


def gradients(fields, y0, control, geometry, adjoint, **options):
    def loss(model, y, lams):
        driven = eqx.tree_at(lambda c: c.log_signatures, control, lams)
        sol = abx.solve(model, y, driven, geometry=geometry, adjoint=adjoint, **options)
        weight = jnp.cos(jnp.arange(sol.ys.size, dtype=sol.ys.dtype))
        return jnp.sum(weight.reshape(sol.ys.shape) * sol.ys**2)

    grad = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    return grad(fields, y0, control.log_signatures)


def gap(x, y):
    sizes = [float(jnp.abs(b).max()) for b in jtu.tree_leaves(y)]
    gaps = jtu.tree_map(lambda a, b: float(jnp.abs(a - b).max()), x, y)
    return max(jtu.tree_leaves(gaps)) / max(sizes)


@pytest.mark.parametrize(
    "geometry,alg",
    [
        (abx.Euclidean(3), abx.GrossmanLarson(2, 2)),
        (abx.SO(3), abx.MuntheKaasWright(2, 2)),
        (abx.SPD(2), abx.Ito(2, 2)),
    ],
    ids=["euclidean", "so3", "spd"],
)
def test_adjoints_agree(geometry, alg):
    """Reversible gradients agree with checkpointed ones to the round-trip defect, which
    falls with the window length and with the order of the scheme."""
    fields, y0, control = setup(geometry, alg)
    args = (fields, y0, control, geometry)
    reversible = gap(gradients(*args, REVERSIBLE), gradients(*args, CHECKPOINTED))
    assert reversible < 1e-3
    fine = {"substeps": 4}
    finer = gap(
        gradients(*args, REVERSIBLE, **fine), gradients(*args, CHECKPOINTED, **fine)
    )
    assert finer < max(reversible / 50, 1e-9)


def test_reversible_seven_is_closer():
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = setup(geometry, alg)
    args = (fields, y0, control, geometry)
    gaps = [
        gap(
            gradients(*args, REVERSIBLE, saveat=LAST, solver=solver),
            gradients(*args, CHECKPOINTED, saveat=LAST, solver=solver),
        )
        for solver in (abx.CFEES25(), abx.CFEES27())
    ]
    assert gaps[1] < gaps[0] / 10 and gaps[1] < 1e-6


def test_closed_over_parameters_are_seen():
    """A plain function that closes over traced parameters is differentiated too."""
    geometry, alg = abx.SO(3), abx.Ito(2, 2)
    fields, y0, control = setup(geometry, alg, windows=4)

    def loss(model, adjoint):
        sol = abx.solve(
            lambda y: 0.5 * model(y),
            y0,
            control,
            geometry=geometry,
            adjoint=adjoint,
            saveat=diffrax.SaveAt(t1=True),
        )
        return jnp.sum(sol.ys[0, 0])

    grads = [
        jax.jit(jax.grad(lambda m, a=a: loss(m, a)))(fields)
        for a in (REVERSIBLE, CHECKPOINTED)
    ]
    assert gap(*grads) < 1e-4


@pytest.mark.parametrize("frame", ["cholesky", "root"])
def test_gradient_against_finite_differences(frame):
    """In the parameters and in the state, at the identity: repeated eigenvalues."""
    geometry, alg = abx.SPD(2, frame), abx.MuntheKaasWright(2, 2)
    fields, _, control = setup(geometry, alg, windows=2)

    @jax.jit
    def loss(bias, y0):
        model = eqx.tree_at(lambda m: m.bias, fields, bias)
        sol = abx.solve(
            model, y0, control, geometry=geometry, saveat=diffrax.SaveAt(t1=True)
        )
        return jnp.sum(jnp.sin(sol.ys))

    u = jr.normal(jr.PRNGKey(5), fields.bias.shape, jnp.float64)
    v = jnp.array([[0.3, -0.8], [-0.8, 0.5]])
    bias, y0 = fields.bias, jnp.eye(2)
    grad = jax.grad(loss, argnums=(0, 1))(bias, y0)
    eps = 1e-5
    for db, dy in ((u, 0 * v), (0 * u, v)):
        got = jnp.sum(grad[0] * db) + jnp.sum(grad[1] * dy)
        up = loss(bias + eps * db, y0 + eps * dy)
        down = loss(bias - eps * db, y0 - eps * dy)
        np.testing.assert_allclose(got, (up - down) / (2 * eps), rtol=1e-6)


def test_vmap_and_forward_mode():
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = setup(geometry, alg, windows=4)
    batch = jtu.tree_map(lambda leaf: jnp.stack([leaf, leaf]), control)
    run = lambda c, y: abx.solve(fields, y, c, geometry=geometry).ys[-1]  # noqa: E731
    out = jax.jit(jax.vmap(run, in_axes=(0, None)))(batch, y0)
    np.testing.assert_allclose(out[0], out[1], atol=1e-14)
    tangent = geometry.frame(y0, jnp.array([1.0, 0.0, 0.0]))
    _, dot = jax.jvp(lambda y: run(control, y), (y0,), (tangent,))
    assert bool(jnp.all(jnp.isfinite(dot)))


def test_memory_does_not_grow_with_windows():
    """Temporary memory of the compiled gradient of a batch, from 16 to 4096 windows:
    nothing as large as the log-signatures is made, not even a copy of them."""
    geometry, alg, batch = abx.SO(3), abx.Shuffle(2, 2), 4
    fields, y0, _ = setup(geometry, alg, windows=1)

    def temporary(windows, adjoint):
        knots = jnp.linspace(0.0, 1.0, windows + 1)

        def loss(model, lams):
            def run(lam):
                return abx.solve(
                    model,
                    y0,
                    Given(alg, knots, lam),
                    geometry=geometry,
                    adjoint=adjoint,
                    saveat=diffrax.SaveAt(t1=True),
                    throw=False,
                ).ys

            return jnp.sum(jax.vmap(run)(lams))

        shape = (batch, windows, alg.primitive_size)
        lams = jax.ShapeDtypeStruct(shape, jnp.float64)
        compiled = jax.jit(jax.grad(loss)).lower(fields, lams).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    few, many = temporary(16, REVERSIBLE), temporary(4096, REVERSIBLE)
    copy = 8 * batch * alg.primitive_size * (4096 - 16)
    assert many - few < copy / 4  # the indices of windows, at most
    assert temporary(4096, CHECKPOINTED) > many + copy


class Given(eqx.Module):
    alg: object = eqx.field(static=True)
    knots: jax.Array
    log_signatures: jax.Array
    calculus: str = eqx.field(static=True, default="stratonovich")


def test_scheme_must_be_reversible():
    geometry, alg = abx.SO(3), abx.Shuffle(2, 2)
    fields, y0, control = setup(geometry, alg, windows=2)
    options = {"solver": abx.CF4(), "adjoint": REVERSIBLE}
    with pytest.raises(ValueError, match="effectively symmetric"):
        abx.solve(fields, y0, control, geometry=geometry, **options)
