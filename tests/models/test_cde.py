"""Neural CDEs: controls, a fine solve by Diffrax, and the rough special case."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx

from .cases import driver, KEY, SMALL


M = abx.models


@eqx.filter_jit
def _call(model, path):
    return model(path)


@pytest.mark.parametrize("kind", [M.NCDE, M.NCDEpp])
def test_against_diffrax(kind):
    """One step per sample is close to a solve with small tolerances."""
    model = kind(2, 1, **SMALL)
    path = driver(model, 6)
    grid = jnp.arange(6.0)
    control = {M.NCDE: abx.LinearInterpolation, M.NCDEpp: abx.HermiteInterpolation}
    curve = control[kind](grid, path.xs)
    states = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda s, h, _: curve.derivative(s) @ model.vector_field(h)),
        diffrax.Tsit5(),
        *(grid[0], grid[-1], None, model.initial(path.xs[0])),
        saveat=diffrax.SaveAt(ts=grid),
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
    ).ys
    wanted = jax.vmap(model.readout)(states)
    np.testing.assert_allclose(_call(model, path), wanted, atol=5e-4)


def test_linear_ncde_is_the_log_ode_of_depth_one():
    ncde = M.NCDE(2, 1, **SMALL)
    rough = M.BNRDE(
        abx.Shuffle(2, 1),
        1,
        window=1,
        basepoint=False,
        activation=jax.nn.softplus,
        solver=abx.EuclideanRK(diffrax.Tsit5()),
        **SMALL,
    )
    where = lambda m: (m.initial, m.vector_field, m.readout)  # noqa: E731
    rough = eqx.tree_at(where, rough, where(ncde))
    path = driver(ncde)
    np.testing.assert_allclose(_call(ncde, path), _call(rough, path), rtol=1e-9)


def test_hermite_control_is_that_of_paths(rng):
    xs = jnp.asarray(rng.normal(size=(5, 2)))
    curve = abx.HermiteInterpolation(jnp.arange(5.0), xs)
    model = M.NCDEpp(2, 1, **SMALL)
    steps = jnp.diff(xs, axis=0)
    for k in range(4):
        piece = steps[max(k - 1, 0)], steps[k]
        for s in (0.0, 0.3, 0.9):
            velocity = model.velocity(jnp.asarray(s), piece)
            np.testing.assert_allclose(velocity, curve.derivative(k + s), atol=1e-12)


def test_nrde_expansion_is_of_first_order():
    taylor = M.NRDE(2, 1, window=4, **SMALL)
    exact = M.NRDE(2, 1, window=4, interpolation="log-ode", **SMALL)
    path = driver(taylor, 5)

    @jax.jit
    def gap(e):
        base, move = path.xs[:1], path.xs - path.xs[:1]
        scaled = abx.SampledPath(path.ts, base + e * move, check=False)
        return jnp.max(jnp.abs((taylor(scaled) - exact(scaled))[1:4]))

    assert jnp.log2(gap(0.1) / gap(0.05)) > 1.7
    np.testing.assert_allclose(taylor(path)[-1], exact(path)[-1], rtol=1e-10)


def test_unknown_options_are_refused():
    for kind in (M.NCDE, M.LogNCDE, M.XLSTM):
        with pytest.raises(TypeError, match="windows"):
            kind(2, 1, windows=3, key=KEY)
