"""The public functions compiled once for each algebra, mode and shape: fast tests."""

import functools as ft

import equinox as eqx
import jax

import arborax as abx


def _call(name):
    @ft.partial(jax.jit, static_argnums=(1, 3))
    def run(path, alg, supplied, mode):
        brackets = supplied if mode == "supplied" else mode
        function = getattr(abx, name) if isinstance(name, str) else name
        return function(path, alg, brackets)

    @ft.wraps(run)
    def call(path, alg, brackets=None):
        if brackets is None or isinstance(brackets, str):
            return run(path, alg, None, brackets)
        return run(path, alg, brackets, "supplied")

    return call


def _both(path, alg, brackets):
    return abx.signature(path, alg, brackets), abx.log_signature(path, alg, brackets)


signature = _call("signature")
both = _call(_both)
log_signature = _call("log_signature")
expanding_signature = _call("expanding_signature")
combine = eqx.filter_jit(lambda s, t, alg: abx.combine(s, t, alg))
extend_signature = eqx.filter_jit(
    lambda s, path, alg, brackets=None: abx.extend_signature(s, path, alg, brackets)
)
windowed_signature = eqx.filter_jit(
    lambda path, alg, window, brackets=None: abx.windowed_signature(
        path, alg, window, brackets
    )
)
windowed_log_signature = eqx.filter_jit(
    lambda path, alg, window, brackets=None: abx.windowed_log_signature(
        path, alg, window, brackets
    )
)
signature_from_increments = eqx.filter_jit(
    lambda ell, alg: abx.signature_from_increments(ell, alg)
)
