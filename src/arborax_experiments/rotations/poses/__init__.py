"""Experiment `poses`: forecast rigid motions, from simulation to recordings."""

import collections
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from arborax import models
from arborax.algebra import Shuffle
from arborax.datasets import read_recordings, Recording, resample
from arborax.geometry import Euclidean, Product, SE
from arborax.paths import SampledPath
from arborax.training import metrics

from ...baselines import baseline
from ...harness import (
    AbstractTask,
    by_model,
    mean_cells,
    run_table,
    Score,
    Stage,
    Table,
    TrainingConfig,
)
from ..filter_bank import FilterBank
from ..motions import broad_motion, broad_positions


GEOMETRY, EYE = SE(3), np.eye(4, dtype=np.float32)
METRES = 0.5  # of position noise for a radian of rotation noise
GAP = 0.1  # seconds that are not bridged
CHANNELS = 13  # time, the front's path, what was observed from there


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run, but for the seed.

    **Fields** beside those of `TrainingConfig`:

    - `folder`: recordings; those without positions are left out.
    - `motions`: simulated windows at each of `rates` (samples per second).
    - `points`, `observed`: of a window.
    - `train_noise`, `noise`: largest level in training and levels of the tests, in rad
        and, times `METRES`, in m.
    - `windows`: at most so many of each test set.
    """

    folder: str | None = None
    motions: int = 4000
    rates: tuple[float, ...] = (10.0, 40.0)
    points: int = 21
    observed: int = 12
    train_noise: float = 0.05
    noise: tuple[float, ...] = (0.0, 0.02, 0.05)
    windows: int = 512
    hidden: int = 16
    depth: int = 2
    window: int = 5


class Travelled(eqx.Module):
    """Observed positions as a path from the middle one, for `FilterBank.path`."""

    mask: Bool[Array, " samples"]
    origin: Float[Array, ""]
    values: Float[Array, "samples 3"]

    def __init__(self, ts, positions):
        middle = positions.shape[0] // 2
        self.mask = jnp.ones(ts.shape, bool)
        self.origin, self.values = ts[middle], positions - positions[middle][None]

    @property
    def last(self) -> Float[Array, " 3"]:
        return self.values[-1]


class PoseBank(eqx.Module):
    """A filter bank for the orientation and another one for the position."""

    turns: FilterBank
    moves: FilterBank

    def __call__(self, ts, poses, times):
        rotations, positions = poses[:, :3, :3], poses[:, :3, 3]
        path = self.moves.path(Travelled(ts, positions), ts, times)
        path = path + positions[positions.shape[0] // 2][None]
        return together(self.turns(ts, rotations, times), path)


class Hold(eqx.Module):
    """The last observation."""

    def __call__(self, ts, poses, times):
        later = times.shape[0] - poses.shape[0]
        return jnp.concatenate([poses, jnp.tile(poses[-1:], (later, 1, 1))])


class Forecaster(eqx.Module):
    r"""A model along the path of a front, which it corrects: $T = F\,Z$, $Z$ the state
    in SE(3), or the exponential of a tenth of six outputs. As `RotationForecaster`, the
    driver has time in seconds, the front's path seen from the middle observation, and
    ten times the motion from the front to what was observed."""

    front: PoseBank
    model: models.AbstractModel

    def __call__(self, ts, poses, times):
        front = self.front(ts, poses, times)
        log = jax.vmap(GEOMETRY.log)
        centre = jnp.broadcast_to(poses[poses.shape[0] // 2], front.shape)
        gap = 10 * log(front[: len(ts)], poses)
        gap = jnp.pad(gap, [(0, len(times) - len(ts)), (0, 0)])
        xs = [(times - ts[-1])[:, None], log(centre, front), gap]
        path = SampledPath(times, jnp.concatenate(xs, axis=1), check=False)
        out = jax.tree.leaves(self.model(path))[0]
        if out.ndim == 3:
            return jnp.matmul(front, out)
        return jax.vmap(GEOMETRY.exp)(front, 0.1 * out)


class PoseTask(AbstractTask):
    """Twelve observed poses, nine to forecast."""

    name = "poses"
    config = Config
    models = {
        "bnrde": "B-NRDE on SE(3)",
        "front": "no equation: the front alone",
        "gru": "GRU",
    }
    private = ("folder",)
    introduction = """<p>Poses: 12 observed points, 9 forecast; errors are means over
the forecast, angles in degrees and distances in mm, under noise. Models are trained on
simulated motion only.</p>"""

    def data(self, config, cache):
        """Training windows and their steps, simulated test sets and recorded ones."""
        sets = {}
        for rate in config.rates:
            sets[f"simulated, {rate:g} Hz"] = simulated(config, rate, 1)
            for recording in read_recordings(config.folder) if config.folder else ():
                if recording.positions is not None:
                    found = recorded(recording, rate, config.points)
                    sets[f"{recording.name}, {rate:g} Hz"] = found
        train = [simulated(config, rate, 0) for rate in config.rates]
        steps = np.repeat([1 / r for r in config.rates], config.motions)
        tests = {}
        for name, windows in sets.items():
            rows = np.random.default_rng(0).permutation(len(windows))[: config.windows]
            step = 1 / float(name.split(", ")[1].split()[0])
            for level in config.noise:
                rng = np.random.default_rng(7)
                batch = observe(windows[rows], step, level, config.observed, rng)
                tests[f"{name}, noise {level:g}"] = batch
        return (np.concatenate(train), steps.astype(np.float32)), tests

    def model(self, config, data, *, key):
        dtype = np.dtype(np.float32)
        options: Any = dict(learned=True, seconds=True, dtype=dtype)
        front = PoseBank(FilterBank(**options), FilterBank(**options))
        if config.model == "front":
            return front
        if config.model == "gru":
            model = baseline("gru", CHANNELS, 6, config, dtype=dtype, key=key)
            return Forecaster(front, model)
        model = models.BNRDE(
            Shuffle(CHANNELS, 2),
            geometry=Product(GEOMETRY, Euclidean(config.hidden)),
            window=config.window,
            width=config.width,
            depth=config.depth,
            dtype=dtype,
            key=key,
        )
        # The state begins near the identity and moves a tenth as fast as weights say.
        near = np.array([0.1] * 6 + [1.0] * config.hidden, np.float32)

        def ends(m):
            layers = m.initial.layers[-1], m.vector_field.mlp.layers[-1]
            return [part for layer in layers for part in (layer.weight, layer.bias)]

        size = [near, np.tile(near, CHANNELS)]
        scales = [size[0][:, None], size[0], size[1][:, None], size[1]]
        slow = [s * part for s, part in zip(scales, ends(model))]
        return Forecaster(front, eqx.tree_at(ends, model, slow))

    def stages(self, config, data):
        (windows, steps), tests = data
        held = [v for k, v in tests.items() if k.startswith("simulated")]

        def batch(key, step):
            entropy = [int(k) for k in np.asarray(jax.random.key_data(key)).ravel()]
            rng = np.random.default_rng([*entropy, step])
            rows = rng.integers(len(windows), size=config.batch)
            level = config.train_noise * rng.random(config.batch)
            return observe(windows[rows], steps[rows], level, config.observed, rng)

        def loss(model, batch, key):
            turn, move = errors(model, batch)
            return jnp.mean(turn) + jnp.mean(move) / METRES

        def metric(model, validation, key):
            turn, move = np.mean([scored(model, one) for one in held], axis=0)
            return float(np.pi / 180 * turn + move / (1000 * METRES))

        yield Stage(
            "angle and distance",
            loss,
            batch,
            metric,
            steps=config.iterations,
            learning_rate=config.learning_rate,
            loss_every=10,
        )

    def score(self, fitted, config, data, *, key, seed):
        banks = PoseBank(FilterBank(), FilterBank())
        rows = {"hold": Hold(), "filter bank": banks, "model": fitted.model}
        found = {
            row: {name: scored(model, one) for name, one in data[1].items()}
            for row, model in rows.items()
        }
        return Score({"scores": found.pop("model"), "references": found})

    def tables(self, results):
        first = results[0]
        lines = [
            (f"reference: {name}", cells([scores]))
            for name, scores in first["references"].items()
        ]
        for _, label, group in by_model(results, self.models):
            lines.append((label, cells([r["scores"] for r in group])))
        title = "under noise, forecast points: angle in degrees, distance in mm"
        sources = under_noise(first["scores"])
        columns = [f"{source}, {unit}" for source in sources for unit in UNITS]
        return [Table(title, columns, lines), run_table(self, results)]


UNITS = ("angle", "mm")


def under_noise(scores: dict[str, list[float]]) -> dict[str, list[float]]:
    """The mean over rates and levels of noise by source."""
    found = collections.defaultdict(list)
    for name, values in scores.items():
        source, _, noise = name.split(", ")
        if noise != "noise 0":
            found[source].append(values)
    return {source: np.mean(v, axis=0).tolist() for source, v in found.items()}


def cells(rows: list[dict[str, list[float]]]) -> list[str]:
    found = [under_noise(scores) for scores in rows]
    return mean_cells([v for values in one.values() for v in values] for one in found)


def together(rotations: Any, positions: Any) -> Float[Array, "*batch 4 4"]:
    """Matrices of SE(3)."""
    top = jnp.concatenate([rotations, positions[..., None]], axis=-1)
    row = jnp.broadcast_to(jnp.asarray(EYE[3], top.dtype), (*top.shape[:-2], 1, 4))
    return jnp.concatenate([top, row], axis=-2)


def simulated(config: Config, rate: float, part: int) -> np.ndarray:
    """Windows of the broad laws of orientation and position, drawn independently; test
    windows (`part` one) are fewer."""
    count = max(8, config.motions // (4 if part else 1))
    seed = [42, part, int(rate)]
    turns = broad_motion(count, config.points, rate, seed=seed)
    moves = broad_positions(count, config.points, rate, seed=[*seed, 1])
    return np.asarray(together(turns, moves), np.float32)


def recorded(recording: Recording, rate: float, points: int) -> np.ndarray:
    """All windows that lie between gaps, stride one; each starts at the origin."""
    found = [np.zeros((0, points, 4, 4))]
    cuts = np.flatnonzero(np.diff(recording.ts) > GAP) + 1
    for part in np.split(np.arange(recording.ts.size), cuts):
        ts = recording.ts[part]
        piece = Recording(recording.name, ts, recording.quaternions[part])
        for turns in resample(piece, rate, GAP):
            assert recording.positions is not None
            grid = ts[0] + np.arange(len(turns)) / rate
            moves = [np.interp(grid, ts, x) for x in recording.positions[part].T]
            poses = np.asarray(together(turns, np.stack(moves, axis=1)))
            starts = np.arange(0, len(poses) - points + 1)
            if starts.size:
                found.append(poses[starts[:, None] + np.arange(points)])
    windows = np.concatenate(found).astype(np.float32)
    windows[..., :3, 3] -= windows[:, :1, :3, 3]
    return windows


def observe(windows, steps, level, observed: int, rng) -> tuple:
    """Times and noisy poses of the observations, all times, and the truth."""
    count, points = windows.shape[:2]
    shake = rng.standard_normal((count, observed, 6)) * [1, 1, 1, *3 * [METRES]]
    shake = np.broadcast_to(level, (count,))[:, None, None] * shake
    eye = jnp.asarray(EYE)
    moved = jax.vmap(jax.vmap(lambda u: GEOMETRY.exp(eye, u)))
    noise = np.asarray(moved(jnp.asarray(shake, jnp.float32)))
    times = np.broadcast_to(steps, (count,))[:, None] * np.arange(points)
    times = times.astype(np.float32)
    return times[:, :observed], windows[:, :observed] @ noise, times, windows


def errors(model: Any, batch: tuple) -> tuple[Array, Array]:
    """Angles (rad) and distances (m) at the points after the observed ones."""
    ts, poses, times, truth = batch
    out = jax.vmap(model)(ts, poses, times)[:, ts.shape[1] :]
    truth = truth[:, ts.shape[1] :]
    turn = metrics.rotation_error(out[..., :3, :3], truth[..., :3, :3])
    gap = jnp.sum((out[..., :3, 3] - truth[..., :3, 3]) ** 2, axis=-1)
    return jnp.asarray(turn) * (np.pi / 180), jnp.sqrt(gap + 1e-12)


@eqx.filter_jit
def _mean_errors(model, batch):
    turn, move = errors(model, batch)
    return jnp.mean(turn) * (180 / np.pi), 1000 * jnp.mean(move)


def scored(model: Any, batch: tuple) -> list[float]:
    """Mean angle in degrees and distance in mm."""
    found = _mean_errors(model, tuple(map(jnp.asarray, batch)))
    return [float(f"{float(v):.6g}") for v in found]
