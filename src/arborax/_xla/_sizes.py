"""Sizes of axes. They may be unknown (`jax.export` with a symbolic shape), and then no
rule may compare them with numbers."""

from typing import Any


def is_symbolic(*sizes: Any) -> bool:
    """Whether a size is not known, as in `jax.export` with a symbolic shape."""
    return not all(isinstance(size, int) for size in sizes)


def broadcast_size(a: Any, b: Any) -> Any:
    """The size of an axis of a broadcast product."""
    return b if isinstance(a, int) and a == 1 else a


def first_size(args, dims) -> Any:
    """The size of the axis that `vmap` adds."""
    return next(a.shape[d] for a, d in zip(args, dims) if d is not None)
