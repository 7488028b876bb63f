"""Arrays inside `jax.shard_map`.

There the type of an array says over which axes of the mesh it varies. The operands of a
primitive must agree on it, and so must what a loop carries in and out. JAX sees to this
in its own functions of several arrays, but not in ours, nor in loops.
"""

from typing import Any

import jax
import jax.lax as lax
import jax.tree_util as jtu


def _axes(x: Any) -> frozenset:
    """Axes of the mesh over which `x` varies. JAX 0.10 changed the name of this."""
    kind = jax.typeof(x)
    kind = getattr(kind, "manual_axis_type", kind)
    return frozenset(getattr(kind, "varying", getattr(kind, "vma", ())))


def _cast(x: Any, axes: frozenset) -> Any:
    missing = tuple(sorted(axes - _axes(x)))
    return lax.pcast(x, missing, to="varying") if missing else x


def vary_alike(*xs: Any) -> list:
    """The arrays, all varying over the axes over which one of them does."""
    every = frozenset().union(*map(_axes, xs))
    return [_cast(x, every) for x in xs] if every else list(xs)


def vary_as(tree: Any, *others: Any) -> Any:
    """The arrays of `tree`, varying over all axes over which an array of `tree` or of
    `others` does. The others may be shapes, from `jax.eval_shape`."""
    if not sharded():
        return tree
    every = frozenset().union(*map(_axes, jtu.tree_leaves((tree, others))))
    return jtu.tree_map(lambda x: _cast(x, every), tree)


def sharded() -> bool:
    """Whether this is traced inside `jax.shard_map`."""
    return bool(jax.sharding.get_abstract_mesh().manual_axes)


def scan(body, init, xs=None, **options):
    """`jax.lax.scan`, with a carry that varies from the start over the axes over which
    the body makes it vary."""
    if not sharded():
        return lax.scan(body, init, xs, **options)
    row = jtu.tree_map(lambda x: x[0], xs)
    for _ in range(len(jtu.tree_leaves(init))):  # one part may pass it on to the next
        out = jax.eval_shape(lambda carry: body(carry, row)[0], init)
        new = jtu.tree_map(lambda x, like: _cast(x, _axes(x) | _axes(like)), init, out)
        same = jtu.tree_map(lambda a, b: a is b, init, new)
        init = new
        if all(jtu.tree_leaves(same)):
            break
    return lax.scan(body, init, xs, **options)
