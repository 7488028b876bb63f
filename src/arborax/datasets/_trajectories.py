"""Recorded orientations: readers of common formats, cleaning, equal time steps."""

import dataclasses
import os
import pathlib
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .._inputs import as_count, as_kind, as_number, as_numbers
from .._values import shown
from . import _quaternions as quaternions
from ._files import existing_file, read_csv, read_table


@dataclasses.dataclass(frozen=True)
class Recording:
    """Orientations at increasing times, and positions where they were recorded.

    **Fields:**

    - `name`: of the recording, and of the object if there are several.
    - `ts`: `(samples,)`, seconds, strictly increasing, first zero.
    - `quaternions`: `(samples, 4)`, unit, `(x, y, z, w)`, neighbours of equal sign.
    - `positions`: `(samples, 3)`, or `None`.
    """

    name: str
    ts: Float[np.ndarray, " samples"]
    quaternions: Float[np.ndarray, "samples 4"]
    positions: Float[np.ndarray, "samples 3"] | None = None

    @property
    def rotations(self) -> Float[np.ndarray, "samples 3 3"]:
        """As matrices."""
        return quaternions.to_matrix(self.quaternions)

    @property
    def poses(self) -> Float[np.ndarray, "samples 4 4"]:
        """Points of `SE(3)`: rotation and position in one matrix."""
        if self.positions is None:
            raise ValueError(f"{self.name} has no positions; use `rotations`.")
        poses = np.tile(np.eye(4), (self.ts.size, 1, 1))
        poses[:, :3, :3], poses[:, :3, 3] = self.rotations, self.positions
        return poses


def make_recording(name: str, ts: Any, q: Any, positions: Any = None) -> Recording:
    """A recording from raw stamps, quaternions `(x, y, z, w)` and perhaps positions.

    Rows with values that are not finite or a quaternion of length far from one are left
    out, stamps are sorted, of repeated ones the first is kept, quaternions are
    normalised and their signs aligned.
    """
    ts, q = _doubles("ts", ts), _doubles("q", q)
    if ts.ndim != 1 or q.shape != (*ts.shape, 4):
        raise ValueError(
            f"{name}: needs n stamps and n quaternions of 4 numbers, got shapes "
            f"{ts.shape} and {q.shape}."
        )
    if positions is not None:
        positions = _doubles("positions", positions)
        if positions.shape != (*ts.shape, 3):
            raise ValueError(
                f"{name}: positions need shape {(*ts.shape, 3)}, got {positions.shape}."
            )
    length = np.linalg.norm(q, axis=1)
    good = np.isfinite(ts) & np.isfinite(length) & (np.abs(length - 1) < 0.1)
    if positions is not None:
        good &= np.isfinite(positions).all(axis=1)
        positions = positions[good]
    ts, q = ts[good], q[good]
    if ts.size < 2:
        raise ValueError(f"{name}: fewer than two valid orientations.")
    ts, first = np.unique(ts, return_index=True)
    if ts.size < 2:
        raise ValueError(f"{name}: all valid orientations have the same stamp.")
    q = quaternions.aligned(quaternions.normalise(q[first]))
    where = None if positions is None else positions[first]
    return Recording(name, ts - ts[0], q, where)


def _doubles(name: str, value: Any) -> np.ndarray:
    array = np.asarray(as_numbers(name, value))
    if array.dtype.kind not in "fiu":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}.")
    return array.astype(np.float64)


def read_tum(file: str | os.PathLike) -> Recording:
    """A trajectory file of the TUM RGB-D benchmark: `t x y z qx qy qz qw`, separated
    by blanks, comments after `#`."""
    file = existing_file(file)
    rows = read_table(file)
    if rows.shape[1] != 8:
        raise ValueError(
            f"{file}: a TUM trajectory has 8 columns `t x y z qx qy qz qw`, got "
            f"{rows.shape[1]}."
        )
    return make_recording(file.stem, rows[:, 0], rows[:, 4:8], rows[:, 1:4])


def read_euroc(file: str | os.PathLike) -> Recording:
    """Ground truth of the EuRoC MAV data, `data.csv`: stamps in nanoseconds, position,
    quaternion `w, x, y, z`, and further columns that are not used."""
    file = existing_file(file)
    rows = read_table(file, delimiter=",", usecols=range(8))
    # Whole nanoseconds since 1970 do not fit into a double; read them apart.
    stamps = read_table(file, delimiter=",", usecols=[0], dtype=np.int64)[:, 0]
    ts = (stamps - stamps.min()) * 1e-9
    folder = file.parent.parent.parent.name if file.stem == "data" else ""
    name = f"{folder}-{file.stem}" if folder else file.stem
    return make_recording(name, ts, rows[:, [5, 6, 7, 4]], rows[:, 1:4])


def read_vicon(
    file: str | os.PathLike, objects: Sequence[str] | None = None
) -> list[Recording]:
    """One recording for each object of a vicon file of the Oxford Multimotion data.

    **Arguments:**

    - `file`: CSV, one row for each object and frame: seconds, nanoseconds, name,
        translation (3), quaternion `x, y, z, w`, and the transform (16, not used), with
        or without a line of column names. Incomplete rows are left out.
    - `objects`: names wanted; default those that begin with `box`, or all if there are
        none.
    """
    file = existing_file(file)
    found: dict[str, list[list[float]]] = {}
    for row in read_csv(file):
        try:
            stamp = int(float(row[0])), int(float(row[1]))
            values = [float(cell) for cell in row[6:10]]
        except (ValueError, IndexError, OverflowError):
            continue  # column names, or a frame in which the object was lost
        if len(values) == 4:
            found.setdefault(row[2].strip(), []).append([*stamp, *values])
    if not found:
        raise ValueError(
            f"{file.name}: no rows `sec, nsec, object, x, y, z, qx, qy, qz, qw, ..`."
        )
    wanted = objects or [n for n in found if n.startswith("box")] or list(found)
    if missing := [name for name in wanted if name not in found]:
        raise ValueError(f"{file}: no object {missing}; there are {sorted(found)}.")
    out = []
    for name in sorted(wanted):
        rows = np.asarray(found[name])
        ts = (rows[:, 0] - rows[:, 0].min()) + 1e-9 * rows[:, 1]
        out.append(make_recording(f"{file.stem}-{name}", ts, rows[:, 2:]))
    return out


def read_broad(file: str | os.PathLike, moving: bool = True) -> Recording:
    """A trial of the BROAD benchmark as `.npz` with its fields `opt_quat` (`w, x, y,
    z`, NaN where the cameras lost it), `sampling_rate` and `movement`.

    **Arguments:**

    - `file`: the trial.
    - `moving`: leave out the phases of rest, which the file marks.
    """
    file = existing_file(file)
    wanted = ("opt_quat", "sampling_rate", "movement")
    try:
        with np.load(file, allow_pickle=False) as trial:
            names = [name for name in wanted if name in trial.files]
            fields = {name: np.asarray(trial[name], np.float64) for name in names}
    except (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{file.name} is not an archive of NumPy arrays: {shown(str(error))}."
        ) from None
    if missing := {"opt_quat", "sampling_rate"} - set(fields):
        raise ValueError(f"{file.name}: a BROAD trial has fields {sorted(missing)}.")
    q, rate = fields["opt_quat"], fields["sampling_rate"]
    if q.ndim != 2 or q.shape[1] != 4:
        raise ValueError(f"{file.name}: `opt_quat` has shape {q.shape}, not (n, 4).")
    if rate.size != 1 or not 0 < rate.item() < np.inf:
        raise ValueError(f"{file.name}: `sampling_rate` is not a positive number.")
    if moving and "movement" in fields:
        moves = fields["movement"]
        if moves.shape != q.shape[:1]:
            raise ValueError(
                f"{file.name}: `movement` has shape {moves.shape}, one flag for each "
                f"of the {len(q)} orientations was expected."
            )
        q = np.where(moves.astype(bool)[:, None], q, np.nan)
    ts = np.arange(len(q)) / rate.item()
    return make_recording(file.stem, ts, q[:, [1, 2, 3, 0]])


def read_recordings(folder: str | os.PathLike) -> list[Recording]:
    """All recordings of a folder, recognised by their form, sub-folders included.

    `*vicon*.csv`: Oxford Multimotion. Other `.csv`: EuRoC. `.txt`: TUM. `.npz`: BROAD.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no folder {folder}. Give the folder of your recordings: vicon CSV files "
            "of the Oxford Multimotion data, TUM trajectories (.txt), EuRoC ground "
            "truth (data.csv) or BROAD trials (.npz)."
        )
    out: list[Recording] = []
    readers = {".csv": read_euroc, ".txt": read_tum, ".npz": read_broad}
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".csv" and "vicon" in file.name:
            out += read_vicon(file)
        elif file.suffix in readers:
            out.append(readers[file.suffix](file))
    if not out:
        raise FileNotFoundError(f"no recording (.csv, .txt, .npz) in {folder}.")
    return out


def resample(
    recording: Recording, rate: float, gap: float = 0.1
) -> list[Float[np.ndarray, "samples 3 3"]]:
    """Rotations at equal steps, in pieces between gaps.

    **Arguments:**

    - `recording`: with any stamps.
    - `rate`: samples per second; between stamps the geodesic is used.
    - `gap`: stamps further apart than this, in seconds, are not bridged.

    **Returns:**

    One array for each piece that has two samples or more.
    """
    must = "be a `Recording`, made by `make_recording`"
    as_kind("recording", recording, Recording, must)
    as_number("rate", rate, 0, above=True)
    as_number("gap", gap, 0, above=True)
    if (recording.ts[-1] - recording.ts[0]) * rate > 1e9:
        raise ValueError(f"`rate` is too high: {rate} gives more than 1e9 samples.")
    ts, q = recording.ts, recording.quaternions
    cuts = np.flatnonzero(np.diff(ts) > gap) + 1
    pieces = []
    for part in np.split(np.arange(ts.size), cuts):
        if part.size < 2:
            continue
        t, values = ts[part], q[part]
        count = int(np.floor((t[-1] - t[0]) * rate + 1e-9)) + 1
        grid = t[0] + np.arange(count) / rate
        k = np.clip(np.searchsorted(t, grid, side="right") - 1, 0, t.size - 2)
        share = np.clip((grid - t[k]) / (t[k + 1] - t[k]), 0, 1)
        if count > 1:
            even = quaternions.slerp(values[k], values[k + 1], share)
            pieces.append(quaternions.to_matrix(even))
    return pieces


def recorded_windows(
    pieces: Iterable[Float[np.ndarray, "_ 3 3"]], points: int = 21, stride: int = 1
) -> Float[np.ndarray, "windows points 3 3"]:
    """Windows that lie within one piece, `stride` samples apart."""
    as_count("points", points)
    as_count("stride", stride)
    if not isinstance(pieces, Iterable):
        raise TypeError(f"`pieces` must be a list of arrays, got {shown(pieces)}.")
    out = [np.zeros((0, points, 3, 3))]
    for piece in pieces:
        if not hasattr(piece, "shape") or piece.shape[1:] != (3, 3):
            raise ValueError(
                "`pieces` must be arrays of rotations (samples, 3, 3), got "
                f"{getattr(piece, 'shape', shown(piece))}."
            )
        starts = np.arange(0, len(piece) - points + 1, stride)
        if starts.size:
            out.append(piece[starts[:, None] + np.arange(points)])
    return np.concatenate(out)


def integrate_gyroscope(
    velocities: Float[np.ndarray, "*batch times 3"], step: float
) -> Float[np.ndarray, "*batch times 3 3"]:
    """Orientations from body angular velocities (rad/s), the first the identity; over
    each step the mean velocity of its ends."""
    velocities = _doubles("velocities", velocities)
    if velocities.ndim < 2 or velocities.shape[-1] != 3 or velocities.shape[-2] == 0:
        raise ValueError(
            f"`velocities` must have shape (..., times, 3), got {velocities.shape}."
        )
    if not np.isfinite(velocities).all():
        raise ValueError("`velocities` must be finite.")
    if not as_number("step", step, 0, above=True) * np.abs(velocities).max() < 1e9:
        raise ValueError("the body turns too far in one `step`: use smaller steps.")
    turns = quaternions.from_vector(
        step * (velocities[..., 1:, :] + velocities[..., :-1, :]) / 2
    )
    q = np.zeros((*velocities.shape[:-1], 4))
    q[..., 0, 3] = 1
    for k in range(velocities.shape[-2] - 1):
        q[..., k + 1, :] = quaternions.normalise(
            quaternions.multiply(q[..., k, :], turns[..., k, :])
        )
    return quaternions.to_matrix(q)
