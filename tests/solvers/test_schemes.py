"""Orders of the schemes on every geometry, round trips, constraints."""

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .harness import bounded_fields, Control


GEOMETRIES = [
    abx.Euclidean(3),
    abx.SO(3),
    abx.SO(4),
    abx.SE(3),
    abx.SPD(2),
    abx.SPD(2, "root"),
    abx.Sphere(2),
    abx.Hyperbolic(2),
]
FINE = abx.RKMK(diffrax.Dopri5())
SCHEMES = [
    abx.LieEuler(),
    abx.CFEES25(),
    abx.CFEES27(),
    abx.CF4(),
    abx.RKMK(),
    FINE,
    abx.Heun(),
    abx.EuclideanRK(diffrax.Tsit5()),
]


def final_states(fields, y0, geometry, solver, lams):
    """One driver of speed one: a row of `lams` holds the steps of one solve."""
    knots = jnp.linspace(0.0, 1.0, lams.shape[1] + 1)

    def one(lam):
        control = Control(abx.Shuffle(1, 1), knots, lam[:, None])
        return abx.solve(
            fields,
            y0,
            control,
            geometry=geometry,
            solver=solver,
            saveat=diffrax.SaveAt(t1=True),
            throw=False,
        ).ys[0]

    return jax.jit(jax.vmap(one))(lams)


def steps(count, total, back=False):
    """`count` steps over unit time (and back), padded with empty steps."""
    row = np.zeros(total)
    row[:count] = 1 / count
    if back:
        row[count : 2 * count] = -1 / count
    return row


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_orders(geometry):
    fields = bounded_fields(1, geometry, seed=2, scale=0.9)
    y0 = geometry.random_point(key=jr.PRNGKey(1), dtype=jnp.float64)
    # The reference is one more row of the most accurate scheme, which comes first.
    total, reference = 64, None
    for solver in sorted(SCHEMES, key=lambda solver: solver != FINE):
        if solver.euclidean and not isinstance(geometry, abx.Euclidean):
            continue
        rows = [(6, False), (12, False), (3, True), (6, True)]
        rows += [(64, False)] if solver == FINE else []
        lams = np.stack([steps(count, total, back) for count, back in rows])
        out = final_states(fields, y0, geometry, solver, jnp.asarray(lams))
        total, reference = 12, out[4:] if solver == FINE else reference
        gap = jnp.abs(out[:2] - reference).reshape(2, -1).max(axis=1)
        order = float(jnp.log2(gap[0] / gap[1]))
        # At order 5 twelve steps are within 1e-8, where two step sizes may flatter.
        above = 0.6 if solver.order < 5 else 1.3
        good = -0.6 < order - solver.order < above
        assert good or gap[1] < 1e-9, (solver, order, gap)
        if solver.reversible:
            defect = jnp.abs(out[2:4] - y0[None]).reshape(2, -1).max(axis=1)
            rate = float(jnp.log2(defect[0] / defect[1]))
            want = 5 if isinstance(solver, abx.CFEES25) else 7
            assert abs(rate - want) < 0.7 or defect[1] < 1e-11, (solver, rate, defect)


def test_butcher_form_of_cfees25():
    """In flat space the two-register form is the stated Runge-Kutta scheme."""
    fields, y = bounded_fields(1, abx.Euclidean(2)), jnp.array([0.3, -0.7])
    f = lambda z: fields(z)[0]  # noqa: E731
    h = 0.5
    k1 = f(y)
    k2 = f(y + h * k1 / 3)
    k3 = f(y + h * (-5 / 48 * k1 + 15 / 16 * k2))
    want = y + h * (k1 / 10 + k2 / 2 + 2 / 5 * k3)
    embedded = y + h * k2
    got, error = abx.CFEES25().step_with_error(
        lambda s, z: f(z), abx.Euclidean(2), jnp.asarray(0.0), y, jnp.asarray(h)
    )
    np.testing.assert_allclose(got, want, atol=1e-14)
    np.testing.assert_allclose(error, want - embedded, atol=1e-14)


def test_runge_kutta_is_diffrax():
    """EuclideanRK takes the steps Diffrax takes."""
    fields, y0 = bounded_fields(1, abx.Euclidean(2)), jnp.array([0.3, -0.7])
    term = diffrax.ODETerm(lambda t, y, args: fields(y)[0])
    sol = diffrax.diffeqsolve(term, diffrax.Dopri5(), 0.0, 1.0, 0.25, y0)
    lams = jnp.full((1, 4), 0.25)
    solver = abx.EuclideanRK(diffrax.Dopri5())
    got = final_states(fields, y0, abx.Euclidean(2), solver, lams)
    np.testing.assert_allclose(got[0], sol.ys[0], atol=1e-14)


@pytest.mark.parametrize(
    "geometry,defect",
    [
        (abx.SO(3), lambda y: y.T @ y - jnp.eye(3, dtype=y.dtype)),
        (abx.SPD(2), lambda y: y - y.T),
    ],
    ids=["so3", "spd"],
)
@pytest.mark.parametrize("dtype,tol", [(jnp.float64, 1e-12), (jnp.float32, 1e-5)])
def test_constraints_after_many_steps(geometry, defect, dtype, tol):
    """10^5 steps without projection; all actions: tests/geometry/test_drift.py."""
    fields = bounded_fields(1, geometry, seed=3)
    y0 = geometry.random_point(key=jr.PRNGKey(0), dtype=dtype)
    # To and fro, so that noncompact states stay bounded.
    lams = 0.01 * jnp.where(jnp.arange(100_000) % 200 < 100, 1.0, -1.0)
    last = final_states(fields, y0, geometry, abx.CFEES25(), lams[None].astype(dtype))[
        0
    ]
    assert last.dtype == dtype
    assert float(jnp.abs(defect(last)).max()) <= tol
    assert bool(geometry.belongs(last))


def test_rkmk_needs_an_explicit_tableau():
    with pytest.raises(ValueError, match="implicit"):
        abx.RKMK(diffrax.Kvaerno3())
    with pytest.raises(TypeError, match="Runge-Kutta"):
        abx.RKMK("dopri5")
    with pytest.raises(ValueError, match="order"):
        abx.RKMK(diffrax.Bosh3.tableau)
    assert abx.RKMK(diffrax.Bosh3.tableau, order=3).order == 3
