"""PPG-DaLiA: heart rate from a wrist device, from a folder that the user names."""

import dataclasses
import os
import pathlib
import pickle
from typing import Any

import numpy as np
from jaxtyping import Float


CHANNELS = ("acc_x", "acc_y", "acc_z", "bvp", "eda", "temp")
INPUT, INPUT_STEP = 49_920, 4_992  # samples at 64 Hz per window, between windows
TARGET, TARGET_STEP = 390, 39  # heart rates, one every two seconds

# Which blocks of a subject are for training, validation and test: one of six layouts
# for each of the subjects 1 to 15, drawn once and frozen.
LAYOUTS = (
    ((0.0, 0.7), (0.7, 0.85), (0.85, 1.0)),
    ((0.0, 0.7), (0.85, 1.0), (0.7, 0.85)),
    ((0.15, 0.85), (0.0, 0.15), (0.85, 1.0)),
    ((0.15, 0.85), (0.85, 1.0), (0.0, 0.15)),
    ((0.3, 1.0), (0.0, 0.15), (0.15, 0.3)),
    ((0.3, 1.0), (0.15, 0.3), (0.0, 0.15)),
)
SOURCE = (
    "PPG-DaLiA is data set 495 of the UCI repository, about 3 GB: "
    "curl -LO https://archive.ics.uci.edu/static/public/495/ppg+dalia.zip; unpack it "
    "and the data.zip inside, and give the folder PPG_FieldStudy."
)
SUBJECT_LAYOUTS = (5, 3, 3, 1, 1, 0, 0, 0, 1, 4, 3, 5, 3, 3, 5)


@dataclasses.dataclass(frozen=True)
class PPGDaLiA:
    """Windows of the wrist signals and heart rates, each scaled to [-1, 1].

    **Fields:**

    - `train`, `validation`, `test`: pairs of inputs `(windows, samples, 6)` at 64 Hz
        and targets `(windows, rates)`, one every two seconds.
    - `subjects`: the subjects found.
    """

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    subjects: tuple[int, ...]


def read_ppg_dalia(
    folder: str | os.PathLike,
    *,
    dtype: Any = np.float32,
    lengths: tuple[int, int, int, int] = (INPUT, INPUT_STEP, TARGET, TARGET_STEP),
) -> PPGDaLiA:
    """All subjects of a folder, cut into windows by the frozen splits.

    Signals are repeated to 64 Hz (acceleration twice, skin response and temperature 16
    times) and scaled to [-1, 1] for each subject and sensor (the acceleration as one);
    heart rates, of which the first is repeated three times in front to undo the length
    of their windows, likewise for each subject.

    **Arguments:**

    - `folder`: with `S1/S1.pkl` .. `S15/S15.pkl`, or with a sub-folder `PPG_FieldStudy`
        that has them: UCI data set 495.
    - `dtype`: of the arrays.
    - `lengths`: samples of an input, between inputs; rates of a target, between
        targets.

    **Returns:**

    A `PPGDaLiA`.

    !!! warning

        The files are pickles. They are read by an unpickler that knows NumPy arrays and
        plain Python objects and refuses all other types, so that a file cannot run
        code.

    ??? cite "Reference"

        A. Reiss, I. Indlekofer, P. Schmidt, K. Van Laerhoven, Deep PPG: large-scale
        heart rate estimation with convolutional neural networks, Sensors 19 (2019).
    """
    folder = pathlib.Path(folder)
    if (folder / "PPG_FieldStudy").is_dir():
        folder = folder / "PPG_FieldStudy"
    found = [k for k in range(1, 16) if (folder / f"S{k}" / f"S{k}.pkl").is_file()]
    if not found:
        raise FileNotFoundError(
            f"no subjects S1/S1.pkl .. S15/S15.pkl in {folder}. {SOURCE}"
        )
    size, step, target, target_step = lengths
    if min(lengths) < 1 or step % target_step or size * target_step != target * step:
        raise ValueError(
            "`lengths` must be positive, with as many samples per rate between windows "
            f"as within them, got {lengths}."
        )
    parts: list[list[tuple[np.ndarray, np.ndarray]]] = [[], [], []]
    for subject in found:
        signals, rates = read_subject(folder / f"S{subject}" / f"S{subject}.pkl")
        layout = LAYOUTS[SUBJECT_LAYOUTS[subject - 1]]
        for part, (low, high) in zip(parts, layout):
            part.append(_windows(signals, rates, low, high, lengths))
    joined: Any = [
        tuple(np.concatenate(arrays).astype(dtype) for arrays in zip(*part))
        for part in parts
    ]
    return PPGDaLiA(*joined, subjects=tuple(found))


def read_subject(
    file: str | os.PathLike,
) -> tuple[Float[np.ndarray, "samples 6"], Float[np.ndarray, " rates"]]:
    """Scaled signals at 64 Hz and scaled heart rates of one subject."""
    with open(file, "rb") as stream:
        content = _Unpickler(stream, encoding="latin1").load()
    try:
        wrist, rates = content["signal"]["wrist"], content["label"]
        sensors = {
            name: np.asarray(wrist[name], np.float64).reshape(len(wrist[name]), -1)
            for name in ("ACC", "BVP", "EDA", "TEMP")
        }
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{file}: expected ['signal']['wrist'] with ACC, BVP, EDA, TEMP, and "
            f"['label']; {error} is missing."
        ) from None
    repeats = {"ACC": 2, "BVP": 1, "EDA": 16, "TEMP": 16}
    columns = [
        _scaled(np.repeat(sensors[name], times, axis=0))
        for name, times in repeats.items()
    ]
    length = min(len(column) for column in columns)
    signals = np.concatenate([column[:length] for column in columns], axis=1)
    if not (np.isfinite(signals).all() and np.isfinite(rates).all()):
        raise ValueError(f"{file}: signals or heart rates have NaN or infinity.")
    if signals.shape[1] != len(CHANNELS):
        raise ValueError(f"{file}: {signals.shape[1]} channels, expected 6.")
    rates = np.asarray(rates, np.float64).ravel()
    rates = np.concatenate([np.repeat(rates[:1], 3), rates])
    return signals, _scaled(rates)


def _scaled(values: np.ndarray) -> np.ndarray:
    low, high = values.min(), values.max()
    return 2 * (values - low) / (high - low if high > low else 1.0) - 1


def _windows(signals, rates, low: float, high: float, lengths):
    """Inputs and targets of the same stretch, cut side by side."""
    size, step, target, target_step = lengths
    ratio = step // target_step  # samples for each rate
    count = min(len(rates), len(signals) // ratio)
    first, last = int(low * count), int(high * count)
    x, y = signals[first * ratio : last * ratio], rates[first:last]
    starts = np.arange(0, len(y) - target + 1, target_step)[:, None]
    return x[starts * ratio + np.arange(size)], y[starts + np.arange(target)]


_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("_codecs", "encode"),
}


class _Unpickler(pickle.Unpickler):
    """Reads arrays, numbers, strings and their containers, and nothing that runs."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"the file asks for {module}.{name}; PPG-DaLiA holds NumPy arrays and "
                "plain objects only, so this is another file or a harmful one."
            )
        # The old name of the module still works but warns.
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)
