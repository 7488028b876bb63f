"""Failures: a plain error where they are known, NaN and a result in compiled code."""

import diffrax
import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .harness import Control


FLAT = abx.Euclidean(2)
KNOTS = jnp.linspace(0.0, 1.0, 5)
ALG = abx.Shuffle(1, 1)
STEPS = jnp.full((4, 1), 0.25)
CONTROL = Control(ALG, KNOTS, STEPS)


def explosive(y):
    """Reaches infinity in finite time, from large states only."""
    return 1e3 * y[None] ** 3


def solve(y0, control=CONTROL, **options):
    return abx.solve(explosive, y0, control, solver=abx.Heun(), **options)


CASES = {
    "nonfinite": (jnp.array([1e9, 0.0]), None, "NaN or infinite"),
    "off_manifold": (jnp.array([jnp.nan, 0.0]), None, "initial state is not on"),
    "times_outside": (
        jnp.array([1e-3, 0.0]),
        jnp.array([0.5, 1.5]),
        "within the knots",
    ),
}


def at(ts):
    return None if ts is None else diffrax.SaveAt(ts=ts)


@pytest.mark.parametrize("name", CASES)
def test_one_rule(name):
    y0, ts, text = CASES[name]
    options = {"interpolation": "linear"}
    with pytest.raises(ValueError, match=text) as caught:
        solve(y0, saveat=at(ts), **options)
    assert len(str(caught.value)) < 300
    assert not isinstance(caught.value, RuntimeError)

    compiled = jax.jit(lambda y, t: solve(y, saveat=at(t), **options))
    sol = compiled(y0, ts)
    assert bool(jnp.all(jnp.isnan(sol.ys)))
    assert sol.result == getattr(abx.RESULTS, name)
    assert text in str(sol.result) and repr(sol.result) == f"RESULTS.{name}"
    assert name in repr(sol)

    grad = jax.jit(jax.grad(lambda y, t: jnp.sum(solve(y, saveat=at(t), **options).ys)))
    assert bool(jnp.all(jnp.isnan(grad(y0, ts))))

    with abx.debug_checks(), pytest.raises(Exception, match=text):
        jax.block_until_ready(compiled(y0, ts).ys)

    if name != "times_outside":  # a request like any other: refused at once
        sol = solve(y0, saveat=at(ts), throw=False, **options)
        assert sol.result == getattr(abx.RESULTS, name)
    sol = jax.jit(lambda y, t: solve(y, saveat=at(t), throw=False, **options))(y0, ts)
    assert sol.result == getattr(abx.RESULTS, name)
    assert bool(jnp.any(jnp.isfinite(sol.ys)))


def test_success_is_untouched():
    y0 = jnp.array([1e-3, -2e-3])
    sol, eager = jax.jit(solve)(y0), solve(y0)
    assert sol.result == eager.result == abx.RESULTS.successful
    assert str(sol.result) == "The solve was successful."
    np.testing.assert_allclose(sol.ys, eager.ys, rtol=1e-14)


def test_results_of_a_batch():
    """One failing solve does not spoil the others, and the result counts both."""
    y0 = jnp.array([[1e-3, 0.0], [1e9, 0.0], [2e-3, 0.0]])
    sol = jax.vmap(solve)(y0)
    failed = np.array([False, True, False])
    np.testing.assert_array_equal(np.isnan(sol.ys).all(axis=(1, 2)), failed)
    np.testing.assert_array_equal(sol.result != abx.RESULTS.successful, failed)
    assert repr(sol.result) == "RESULTS[successful, nonfinite, successful]"
    assert "2 of 3: The solve was successful." in str(sol.result)
    assert "1 of 3: A state became NaN" in str(sol.result)
    many = jax.vmap(solve)(jnp.zeros((9, 2)))
    assert repr(many.result).endswith("successful, ...]")


def test_results_compare_with_members_only():
    with pytest.raises(TypeError, match="member of"):
        abx.RESULTS.successful == 0
    with pytest.raises(TypeError, match="member of"):
        abx.RESULTS.successful != diffrax.RESULTS.successful


@pytest.mark.parametrize(
    "adjoint", [abx.CheckpointedAdjoint(), abx.ReversibleAdjoint()]
)
def test_compiled_solves_call_nothing_on_the_host(adjoint):
    """So they can be exported as they are, for every platform."""
    geometry = abx.SO(3)

    def loss(y0, lams):
        control = Control(abx.Shuffle(2, 2), KNOTS, lams)
        field = lambda y: jnp.sin(y[:2])  # noqa: E731
        options = {"geometry": geometry, "adjoint": adjoint}
        sol = abx.solve(field, y0, control, **options)
        return jnp.sum(sol.ys[-1] ** 2 * jnp.arange(9.0).reshape(3, 3)), sol.result.code

    args = (jnp.eye(3), 0.1 * jr.normal(jr.PRNGKey(0), (4, 3), jnp.float64))
    step = jax.jit(jax.value_and_grad(loss, has_aux=True))
    text = step.lower(*args).as_text()
    assert "callback" not in text
    exported = jax.export.export(step, platforms=["cpu", "cuda", "tpu"])(*args)
    got, want = (jax.tree.leaves(f(*args)) for f in (exported.call, step))
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_debug_checks_are_callbacks():
    """The context changes the program, so the two never share one."""
    y0 = jnp.array([1e-3, 0.0])
    assert "callback" not in jax.jit(solve).lower(y0).as_text()
    with abx.debug_checks():
        assert "callback" in jax.jit(solve).lower(y0).as_text()


class Brownian(eqx.Module):
    """Geometric Brownian motion in the sense of Itô, on nested partitions."""

    xs: jax.Array

    def error(self, windows, solver):
        steps = (self.xs.shape[1] - 1) // windows

        def one(x):
            ts = jnp.linspace(0.0, 1.0, x.shape[0])
            alg = abx.Ito(1, 2)
            control = abx.rough_path(ts, x, alg, window=steps, brackets="realised")
            sol = abx.solve(
                lambda y: y[None],
                jnp.ones(1),
                control,
                solver=solver,
                saveat=diffrax.SaveAt(t1=True),
            )
            exact = jnp.exp(x[-1] - jnp.sum(jnp.diff(x, axis=0) ** 2) / 2)
            return jnp.sum((sol.ys[0] - exact) ** 2)

        return float(jnp.sqrt(jnp.mean(jax.jit(jax.vmap(one))(self.xs))))


class Forced(abx.LieEuler):
    """Claims an order it does not have, to get past the check."""

    @property
    def order(self):
        return 2


def test_order_one_converges_to_another_equation():
    """Why Itô controls are refused: the error stays where it is."""
    dx = jr.normal(jr.PRNGKey(1), (64, 256, 1), jnp.float64) / 16 / 2
    case = Brownian(jnp.cumsum(jnp.pad(dx, ((0, 0), (1, 0), (0, 0))), axis=1))
    wrong = [case.error(windows, Forced()) for windows in (16, 256)]
    right = [case.error(windows, abx.Heun()) for windows in (16, 256)]
    assert wrong[1] > 0.8 * wrong[0] > 0.05
    assert right[1] < right[0] / 4 and right[1] < wrong[1] / 50


def test_order_one_refuses_ito():
    ts = jnp.linspace(0.0, 1.0, 9)
    xs = jnp.sin(jnp.stack([ts, 2 * ts], axis=1))
    alg = abx.Ito(2, 2)
    control = abx.rough_path(ts, xs, alg, window=4, brackets="realised")
    fields = lambda y: jnp.stack([y, -y])  # noqa: E731
    y0 = jnp.ones(2)
    text = "Itô equations need order 2.*CFEES25.*Heun"
    weak = (abx.LieEuler(), abx.EuclideanRK(diffrax.Heun().tableau, order=1))
    for solver in weak:
        with pytest.raises(ValueError, match=text):
            abx.solve(fields, y0, control, solver=solver)
    dyadic = abx.dyadic_control(ts, xs, alg, "realised")
    with pytest.raises(ValueError, match=text):
        abx.solve_adaptive(
            fields, y0, dyadic, geometry=FLAT, solver=abx.LieEuler(), atol=0.1
        )
    for base in weak:
        with pytest.raises(ValueError, match=text):
            diffrax.diffeqsolve(
                abx.RoughTerm(fields, control, FLAT),
                abx.LogODE(base),
                *(control.knots[0], control.knots[-1], None, y0),
                stepsize_controller=diffrax.StepTo(control.knots),
            )
    with pytest.raises(TypeError, match="LieEuler"):
        abx.LogODE(diffrax.Euler())
    with pytest.raises(ValueError, match=text):
        abx.models.BNRDE(alg, 1, solver=abx.LieEuler(), key=jr.PRNGKey(0))
    # A driver of bounded variation, without brackets, is what it is for.
    smooth = abx.rough_path(ts, xs, abx.Shuffle(2, 2), window=4)
    assert abx.solve(fields, y0, smooth, solver=abx.LieEuler()).ys.shape == (3, 2)
