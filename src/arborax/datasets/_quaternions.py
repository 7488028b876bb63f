"""Unit quaternions, `(x, y, z, w)`, as NumPy arrays of any batch shape."""

from typing import Any

import numpy as np
from jaxtyping import Float


Quaternions = Float[np.ndarray, "*batch 4"]


def multiply(p: Quaternions, q: Quaternions) -> Quaternions:
    """The product `p q`: rotate by `q`, then by `p`."""
    a, b = p[..., :3], q[..., :3]
    s, t = p[..., 3:], q[..., 3:]
    vector = s * b + t * a + np.cross(a, b)
    scalar = s * t - np.sum(a * b, axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)


def conjugate(q: Quaternions) -> Quaternions:
    """The inverse of a unit quaternion."""
    return q * np.array([-1, -1, -1, 1], q.dtype)


def normalise(q: Quaternions) -> Quaternions:
    """`q` divided by its length."""
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def to_matrix(q: Quaternions) -> Float[np.ndarray, "*batch 3 3"]:
    """Rotation matrices of quaternions of any length."""
    x, y, z, w = np.moveaxis(normalise(q), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_vector(v: Float[np.ndarray, "*batch 3"]) -> Quaternions:
    """The quaternion of a rotation vector."""
    half = np.linalg.norm(v, axis=-1, keepdims=True) / 2
    return np.concatenate([np.sinc(half / np.pi) * v / 2, np.cos(half)], axis=-1)


def to_vector(q: Quaternions) -> Float[np.ndarray, "*batch 3"]:
    """The rotation vector, of angle at most pi, of a unit quaternion."""
    q = np.where(q[..., 3:] < 0, -q, q)
    sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    small = sine < 1e-12
    angle = 2 * np.arctan2(sine, q[..., 3:])
    return q[..., :3] * np.where(small, 2.0, angle / np.where(small, 1.0, sine))


def aligned(q: Float[np.ndarray, "times 4"]) -> Float[np.ndarray, "times 4"]:
    """The same rotations with signs such that neighbours are close."""
    flips = np.sum(q[1:] * q[:-1], axis=-1) < 0
    signs = np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)
    return np.concatenate([q[:1], q[1:] * signs[:, None]])


def slerp(p: Quaternions, q: Quaternions, part: Any) -> Quaternions:
    """Rotations at `part` of the way from `p` to `q` along the shorter arc."""
    turn = to_vector(multiply(conjugate(p), q))
    return multiply(p, from_vector(np.asarray(part)[..., None] * turn))
