"""Operation counts: explicit features or a recursion, and how large a block may be."""

import numpy as np

from ._features import algebra
from ._prepare import Kind, Side


_DIAGONAL = 2**17  # elements of one diagonal of one block: about a megabyte
_MOST_FEATURES = 4000


def features_pay(kind: Kind, depth: int | None, x: Side, y: Side, outer: bool) -> bool:
    """Whether explicit features take fewer operations than the recursion."""
    if depth is None:
        return False
    (bx, lx, d), (by, ly, _) = x[0].shape, y[0].shape
    count = algebra(kind, d, depth).size
    if count > _MOST_FEATURES:
        return False
    pairs = bx * by if outer else bx
    cell = d + depth ** (3 if kind in ("geometric", "planar") else 2)
    if not (x[1] is None and y[1] is None):
        cell = depth * (depth + 1) ** 2 * (d * d + depth * d)
    explicit = 4 * count * (bx * lx + by * ly) + count * pairs
    return explicit < cell * lx * ly * pairs


def block_size(kind: Kind, depth: int | None, x: Side, y: Side) -> int:
    """Rows and columns of a block, so that a diagonal stays near the cache."""
    (_, steps, d), dtype = x[0].shape, x[0].dtype
    components = weight = depth or 1
    if not (x[1] is None and y[1] is None):
        components = 2 * weight * ((depth or 5) + 1) * (1 + d)
    elif kind == "planar" or (kind == "geometric" and depth):
        components = 4 * weight * weight
    steps = min(steps, y[0].shape[1])
    elements = _DIAGONAL * 8 // dtype.itemsize // (steps * components)
    return int(np.clip(2 ** int(np.log2(max(elements, 1)) / 2), 4, 64))
