"""Makes the files of `abx.pretrained`.

    python -m arborax_experiments.pretrained [rough-bergomi spd so-rotation]

Data of the experiments, with library estimators and their usual models. A few minutes
of one core each. Scores on fresh data, beside their floors, go into the files.
"""

import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import arborax as abx
from arborax.datasets import FreeRotation, RoughBergomi, SPDDiffusion
from arborax.estimators import Forecaster, PathGenerator


FOLDER = pathlib.Path(abx.__file__).parent / "estimators" / "trained_files"
COMMAND = "python -m arborax_experiments.pretrained"


def rough_bergomi() -> Any:
    """At the size of the preset `quick` of the experiment."""
    law = RoughBergomi(hurst=0.25, steps=512)
    train = law.sample(16384, key=jax.random.key(42)).values
    test = law.sample(3277, key=jax.random.key(43)).values
    generator = PathGenerator(
        steps=300, batch_size=256, learning_rate=8e-3, random_state=1
    )
    generator.fit(np.asarray(train, np.float32))
    data = "16,384 log-prices of RoughBergomi(hurst=0.25, steps=512), seed 42"
    return _with_scores(generator, data, np.asarray(test, np.float32))


def spd() -> Any:
    """Paths of covariance matrices, on 129 points."""
    law = SPDDiffusion(steps=128)
    train = _matrices(law.sample(8192, key=jax.random.key(42)).values)
    test = _matrices(law.sample(2048, key=jax.random.key(43)).values)
    generator = PathGenerator(
        geometry=abx.SPD(3),
        noise=6,
        steps=280,
        batch_size=128,
        learning_rate=4e-3,
        random_state=1,
    )
    generator.fit(train)
    data = "8,192 paths of SPDDiffusion(steps=128), seed 42"
    return _with_scores(generator, data, test)


def so_rotation() -> Any:
    """Nine samples of a free rotation from the first twelve."""
    law = FreeRotation(times=21)
    train = law.sample(4000, seed=42).rotations.astype(np.float32)
    test = law.sample(1000, seed=43).rotations.astype(np.float32)
    forecaster: Any = Forecaster(
        9, geometry=abx.SO(3), steps=600, batch_size=128, random_state=1
    )
    forecaster.fit(train)
    past, future = test[:, :12], test[:, 12:]
    found = forecaster.predict(past)
    still = np.broadcast_to(past[:, -1:], future.shape)
    forecaster.about_ = {
        "data": "4,000 trajectories of FreeRotation(times=21), seed 42",
        "command": f"{COMMAND} so-rotation",
        "scores": {
            "mean angle, degrees": _angle(found, future),
            "no change, degrees": _angle(still, future),
        },
    }
    return forecaster


def _matrices(values: np.ndarray) -> np.ndarray:
    """Symmetric 3x3 matrices of lower triangles by rows."""
    rows, columns = np.tril_indices(3)
    out = np.zeros((*values.shape[:-1], 3, 3), np.float32)
    out[..., rows, columns] = values
    out[..., columns, rows] = values
    return out


def _angle(found: np.ndarray, true: np.ndarray) -> float:
    distance = jax.vmap(jax.vmap(abx.SO(3).distance))
    gaps = distance(jnp.asarray(found), jnp.asarray(true))
    # The metric of SO(3) may carry a factor: a quarter turn sets the unit.
    turn = jnp.asarray([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    unit = abx.SO(3).distance(jnp.eye(3), turn) / 90
    return float(jnp.mean(gaps) / unit)


def _with_scores(generator: Any, data: str, test: np.ndarray) -> Any:
    scores = generator.compare(test)
    scores.pop("mmd")
    name = "rough-bergomi" if generator.geometry is None else "spd"
    generator.about_ = {
        "data": data,
        "command": f"{COMMAND} {name}",
        "scores": {
            name: {kind: float(np.mean(v)) for kind, v in both.items()}
            for name, both in scores.items()
        },
    }
    return generator


MAKERS = {"rough-bergomi": rough_bergomi, "spd": spd, "so-rotation": so_rotation}


def main(names: list[str]) -> None:
    """Makes the files with these names, all by default."""
    for name in names or MAKERS:
        if name not in MAKERS:
            sys.exit(f"unknown name {name!r}; known: {', '.join(MAKERS)}")
        estimator = MAKERS[name]()
        estimator.save(FOLDER / f"{name}.abx")
        print(name, estimator.about_, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
