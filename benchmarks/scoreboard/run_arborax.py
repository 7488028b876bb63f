"""The column of arborax in pySigLib-Benchmarks; see `README.md` beside this file.

    python adapters/python/run_arborax.py '{"N": 64, "d": 2, "m": 3, ...}'

Each operation is a function of arrays that the suite times: compiled and run once
before, paths on the device, and every call waits for its result. Backward operations
time the pullback alone, applied to the cotangent of the suite.
"""

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import arborax as abx


sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src"))
from common import BenchmarkAdapter  # noqa: E402


ALGEBRAS = {
    "signature": abx.Shuffle,
    "sig": abx.Shuffle,
    "logsignature": abx.Shuffle,
    "branchedsignature_nonplanar": abx.GrossmanLarson,
    "branchedsignature_planar": abx.MuntheKaasWright,
    "branchedlogsignature_nonplanar": abx.GrossmanLarson,
    "branchedlogsignature_planar": abx.MuntheKaasWright,
}


def refined(x: jax.Array, pieces: int) -> jax.Array:
    """The same paths with each step cut into pieces."""
    n, times, d = x.shape
    share = jnp.arange(pieces, dtype=x.dtype) / pieces
    steps = (x[:, 1:] - x[:, :-1])[:, :, None]
    inner = x[:, :-1, None] + share[None, None, :, None] * steps
    inner = inner.reshape(n, (times - 1) * pieces, d)
    return jnp.concatenate([inner, x[:, -1:]], axis=1)


class ArboraxAdapter(BenchmarkAdapter):
    """Signatures, log-signatures, branched ones, Gram matrices, and their pullbacks."""

    def _run_benchmark(self) -> dict[str, Any] | None:
        what = self.operation.removesuffix("_backprop")
        made = self._kernel() if what == "signaturekernel" else self._signature(what)
        if made is None:
            return None
        function, paths, method = made
        if self.operation.endswith("_backprop"):
            run, method = self._pullback(function, *paths), f"vjp({method})"
        else:
            program = jax.jit(function)
            run = lambda: program(*paths).block_until_ready()  # noqa: E731
        summary, allocated, samples = self.manual_timing_loop(run)
        return self.output_result(
            t_ms=summary,
            alloc_bytes=allocated,
            samples_ms=samples,
            library="arborax",
            method=method,
            path_type="jax.Array",
        )

    def _signature(self, what: str) -> tuple[Callable, tuple, str] | None:
        if what not in ALGEBRAS:
            return None
        alg = ALGEBRAS[what](self.d, self.m)
        name = "log_signature" if "log" in what else "signature"
        compute = getattr(abx, name)
        paths = (self._array(self.make_path_input()),)
        return (lambda x: compute(x, alg)), paths, f"{name}({type(alg).__name__})"

    def _kernel(self) -> tuple[Callable, tuple, str] | None:
        """Finite differences on the grid of the paths, refined as the suite asks."""
        if self.config.get("sig_kernel_method", "finite_difference") != (
            "finite_difference"
        ):
            return None
        order = int(self.config.get("sig_kernel_dyadic_order", self.m))
        paths = tuple(self._array(self.make_path_input()) for _ in range(2))
        paths = tuple(x[None] if x.ndim == 2 else x for x in paths)

        def gram(x, y):
            return abx.signature_gram(refined(x, 2**order), refined(y, 2**order))

        return gram, paths, f"signature_gram(dyadic_order={order})"

    def _array(self, path: np.ndarray) -> jax.Array:
        """On the device, in the precision that the suite asks for."""
        dtype = np.dtype(self.config.get("dtype", "float32"))
        if dtype == np.float64:
            jax.config.update("jax_enable_x64", True)
        make = lambda: jnp.asarray(np.ascontiguousarray(path, dtype))  # noqa: E731
        return self.cached_prepared_input(f"arborax.{dtype.name}", path, make)

    def _pullback(self, function: Callable, x, *others) -> Callable:
        """Of the first path, at a random cotangent."""
        out, back = jax.vjp(lambda z: function(z, *others), x)
        cotangent = jnp.asarray(self.random_cotangent(out.shape), out.dtype)
        program = jax.jit(lambda c: back(c)[0])
        return lambda: program(cotangent).block_until_ready()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: run_arborax.py '<configuration as JSON>'")
    ArboraxAdapter(json.loads(sys.argv[1])).run()
