"""Log-signatures over any interval, from a tree of products over dyadic ones."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_kind
from .._values import refuse
from ._rough_path import as_time, RoughPath
from ._signature import product_levels


class SignatureTree(eqx.Module):
    """The signatures of a control over `2^l` windows at a time, for all levels `l`.

    Built once by [`arborax.signature_tree`][]; an interval then takes two products per
    level and at most two windows that it cuts. Brackets are part of the signatures.
    """

    control: RoughPath
    levels: tuple[Float[Array, "_ size"], ...]

    def signature(self, s: ArrayLike, t: ArrayLike) -> Float[Array, " size"]:
        """The signature over `[s, t]`; the times may be traced, and `jax.vmap` gives
        many intervals at once.

        **Arguments:**

        - `s`, `t`: times within the control, `s <= t`. Others are refused.

        Cost: `2 log2(windows)` products and two log-signatures of a window.
        """
        control, alg = self.control, self.control.alg
        dtype = control.knots.dtype
        s, t = (jnp.asarray(as_time(n, x), dtype) for n, x in (("s", s), ("t", t)))
        first, last = control.window(s), control.window(t)
        inside = (control.t0 <= s) & (s <= t) & (t <= control.t1)

        def part(window, start, stop):
            lam = control.log_signature(start, stop, window=window)
            return alg.exp(alg.from_primitive(lam))

        # From the ends inwards: what is left of the interval, what is right of it, and
        # whole nodes low, .., high - 1 between them.
        left = part(first, s, jnp.minimum(t, control.knots[first + 1]))
        right = part(last, jnp.maximum(s, control.knots[last]), t)
        right = jnp.where(first < last, right, jnp.zeros_like(right))
        low, high = first + 1, jnp.maximum(last, first + 1)
        for nodes in self.levels:
            take = lambda k: nodes[jnp.clip(k, 0, nodes.shape[0] - 1)]  # noqa: B023, E731
            odd = (low < high) & (low % 2 == 1)
            left = jnp.where(odd, alg.product(left, take(low)), left)
            low = jnp.where(odd, low + 1, low)
            odd = (low < high) & (high % 2 == 1)
            right = jnp.where(odd, alg.product(take(high - 1), right), right)
            high = jnp.where(odd, high - 1, high)
            low, high = low // 2, high // 2
        return refuse(alg.product(left, right), ~inside, _OUTSIDE)

    def log_signature(self, s: ArrayLike, t: ArrayLike) -> Float[Array, " primitive"]:
        """The log-signature over `[s, t]`, as `signature`."""
        alg = self.control.alg
        return alg.to_primitive(alg.log(self.signature(s, t)))


_OUTSIDE = (
    "a query interval must lie within the control, with its start before its end. "
    "Build the control over a longer time, or clip the interval to its `t0` and `t1`."
)


def signature_tree(control: Any) -> SignatureTree:
    """The tree of a control from which log-signatures over arbitrary intervals are read
    in logarithmic time.

    !!! example

        ```python
        control = abx.rough_path(ts, xs, abx.Ito(2, 2), brackets="realised")
        tree = abx.signature_tree(control)
        tree.log_signature(0.13, 0.78)
        jax.vmap(tree.log_signature)(starts, stops)
        ```

    **Arguments:**

    - `control`: from [`arborax.rough_path`][]; its windows are the leaves. Windows of
        one step (the default there) make queries cheapest.

    **Returns:**

    A `SignatureTree`, with some `2 * windows` signatures.
    """
    as_kind("control", control, RoughPath, "come from `arborax.rough_path`")
    if control.log_signatures.ndim != 2:
        raise ValueError(
            "a tree takes one control, with log-signatures (windows, primitives); got "
            f"{control.log_signatures.shape}. Use `jax.vmap`."
        )
    alg = control.alg
    group = alg.exp(alg.from_primitive(control.log_signatures))
    return SignatureTree(control, tuple(product_levels(alg, group)))
