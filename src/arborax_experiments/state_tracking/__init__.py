"""Experiment `state-tracking`: what a linear equation can and cannot remember."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from arborax import models
from arborax.algebra import Ito, Shuffle
from arborax.datasets import VolatilityRegimes, WordProblem
from arborax.paths import SampledPath

from ..harness import (
    AbstractTask,
    by_setting,
    percent_cells,
    pyplot,
    run_table,
    Score,
    Stage,
    Table,
    TrainingConfig,
    with_seeds,
)


PENALTY = 1e-2
WORDS = {"A5": "A5", "parity": "parity", "modulo 5": 5}


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run, but for the seed.

    **Fields** beside those of `TrainingConfig`:

    - `data`: a group, `"A5"`, `"parity"` or `"modulo 5"`, whose words are multiplied;
        or `"volatility"`, paths of two speeds.
    - `block`: size of the blocks of block-diagonal matrices.
    - `words`, `lengths`: for training, as many of each length, the shortest first; one
        stage per length.
    - `test_words`, `test_length`: longer ones, scored letter by letter.
    - `paths`, `steps`: of the two speeds.
    """

    model: str = "block"
    data: str = "A5"
    hidden: int = 32
    block: int = 4
    words: int = 2048
    lengths: tuple[int, ...] = (5, 10, 20, 40)
    test_words: int = 128
    test_length: int = 512
    paths: int = 512
    steps: int = 128


class Tracker(eqx.Module):
    r"""A linear equation whose matrices are skew.

    Its flows are rotations, for every length of a word: a finite group has a faithful
    representation by them.
    """

    core: models.LinearBNRDE

    def __call__(self, values: Any) -> Any:
        core = eqx.tree_at(lambda m: m.layers[0].matrices, self.core, self.skew())
        return core(as_path(values))

    def skew(self) -> Any:
        """The matrices of the letters, as blocks store them."""
        layer = self.core.layers[0]
        a = layer.matrices
        if layer.blocks.rotation:
            return jnp.concatenate([jnp.zeros_like(a[:, :1]), a[:, 1:]], axis=1)
        return (a - jnp.swapaxes(a, 1, 2)) / 2

    def turns(self) -> list[list[float]]:
        """The angles of the rotation of each letter, in turns from 0 to a half."""
        blocks = self.core.layers[0].blocks
        full = np.asarray(blocks.matrix(self.skew()), np.float64)
        full = np.moveaxis(full, -1, 1)
        angles = np.linalg.eigvals(full).imag.reshape(len(full), -1) / (2 * np.pi)
        turns = np.sort(np.abs(angles - np.round(angles)), axis=1)[:, ::2]
        return np.round(turns, 5).tolist()


def as_path(values: Any) -> SampledPath:
    return SampledPath(jnp.arange(values.shape[0], dtype=values.dtype), values)


class StateTrackingTask(AbstractTask):
    """Words in finite groups, and quadratic variation."""

    name = "state-tracking"
    config = Config
    models = {
        "dense": "dense",
        "block": "block-diagonal",
        "diagonal": "diagonal, complex",
        "ito": "Itô",
        "stratonovich": "Stratonovich",
    }
    introduction = """<p>Words: the product of all letters so far, in per cent of the
letters of long words; training saw short ones. Volatility: which of two speeds a path
has, from its last state.</p>"""

    def implied(self, preset, changes):
        volatility = changes.get("model") in ("ito", "stratonovich")
        return {"data": "volatility"} if volatility else {}

    def check(self, config):
        if config.data not in (*WORDS, "volatility"):
            raise ValueError(
                f"`data` must be one of {[*WORDS, 'volatility']}, got {config.data!r}."
            )
        if (config.model in ("ito", "stratonovich")) != (config.data == "volatility"):
            raise ValueError(
                "the models 'ito' and 'stratonovich' are for `data=volatility`, the "
                f"others for words; got {config.model!r} and {config.data!r}."
            )

    def data(self, config, cache):
        """Training data by stage, and test data; targets come second."""
        if config.data == "volatility":
            law = VolatilityRegimes(steps=config.steps)
            sets = [law.sample(config.paths, seed=seed) for seed in (0, 1)]
            first, second = (
                (s.values.astype(np.float32), s.labels.astype(np.int32)) for s in sets
            )
            return [first], second
        problem = WordProblem(WORDS[config.data])
        train = [
            words(problem.sample(config.words, n, seed=k))
            for k, n in enumerate(config.lengths)
        ]
        test = problem.sample(config.test_words, config.test_length, seed=99)
        return train, words(test)

    def model(self, config, data, *, key):
        values, targets = data[1]
        channels, classes = values.shape[-1], int(targets.max()) + 1
        if config.data == "volatility":
            alg = (Ito if config.model == "ito" else Shuffle)(channels, 2)
            return models.LinearBNRDE(
                alg,
                classes,
                hidden=config.hidden,
                block=config.block,
                window=config.window,
                outputs="last",
                brackets="realised" if config.model == "ito" else None,
                key=key,
            )
        core = models.LinearBNRDE(
            Shuffle(channels, 1),
            classes,
            hidden=config.hidden,
            structure=config.model,
            block=config.block,
            affine=False,
            window=1,
            basepoint=False,
            key=key,
        )
        return Tracker(core)

    def stages(self, config, data):
        train, _ = data
        for k, part in enumerate(train):
            yield Stage(
                f"cross-entropy at length {part[0].shape[1] - 1}",
                cross_entropy,
                part,
                None,
                steps=config.iterations,
                learning_rate=config.learning_rate,
                batch_size=min(config.batch, len(part[0])),
                folder=f"checkpoints-{k}",
                loss_every=10,
            )

    def score(self, fitted, config, data, *, key, seed):
        values, targets = data[1]
        found = np.concatenate(
            [
                np.asarray(_logits(fitted.model, values[k : k + 64])).argmax(-1)
                for k in range(0, len(values), 64)
            ]
        )
        if config.data == "volatility":
            return Score({"scores": {"accuracy": float(np.mean(found == targets))}})
        right = (found[:, 1:] == targets[:, 1:]).mean(axis=0)
        seen = max(config.lengths)
        scores = {
            "accuracy": float(right[seen:].mean()),
            "seen": float(right[:seen].mean()),
            "last": float(right[-32:].mean()),
        }
        content = {"by_length": [round(float(x), 4) for x in right]}
        return Score({"scores": scores, **content, "turns": fitted.model.turns()})

    def groups(self, results):
        return by_setting(results, changes=False)

    def tables(self, results):
        kinds = [d for d in WORDS if any(r["config"]["data"] == d for r in results)]
        out = []
        for title, score in (
            ("beyond the lengths of training", "accuracy"),
            ("last 32 letters", "last"),
            ("at the lengths of training", "seen"),
        ):
            lines = list(self.lines(results, kinds, score))
            if lines:
                out.append(Table(f"{title}: letters right, per cent", kinds, lines))
        lines = list(self.lines(results, ["volatility"], "accuracy"))
        if lines:
            out.append(Table("volatility: paths right, per cent", ["accuracy"], lines))
        own = {"data": lambda r: r["config"]["data"]}
        return [*out, run_table(self, results, own)]

    def lines(self, results, kinds, score):
        """A line per model and size, a cell for each kind of data."""
        for label, group in self.sized(results):
            cells, seeds = [], 0
            for kind in kinds:
                rows = [r for r in group if r["config"]["data"] == kind]
                values = [[r["scores"][score]] for r in rows]
                cells.append(percent_cells(values)[0] if values else "-")
                seeds = max(seeds, len(rows))
            if seeds:
                yield with_seeds(label, seeds), cells

    def sized(self, results):
        """Labels and results of each model and number of states."""
        for name, label in self.models.items():
            group = [r for r in results if r["model"] == name]
            for size in sorted({r["config"]["hidden"] for r in group}):
                some = [r for r in group if r["config"]["hidden"] == size]
                yield f"{label}, {size} states", some

    def figures(self, results):
        kinds = [d for d in WORDS if any(r["config"]["data"] == d for r in results)]
        paths = [r for r in results if r["config"]["data"] == "volatility"]
        panels = [*kinds, *(["volatility"] if paths else [])]
        figure, axes = pyplot().subplots(
            1, len(panels), figsize=(2.8 * len(panels), 2.8), squeeze=False, sharey=True
        )
        for ax, kind in zip(axes[0], panels):
            place = -1
            for label, group in self.sized(results):
                rows = [r for r in group if r["config"]["data"] == kind]
                place += bool(rows)
                colour = f"C{place}"
                if kind == "volatility":
                    for r in rows:
                        name = self.models[r["model"]]
                        ax.plot(name, 100 * r["scores"]["accuracy"], "o", color=colour)
                elif rows:
                    mean = 100 * np.mean([r["by_length"] for r in rows], axis=0)
                    order = np.arange(1, len(mean) + 1)
                    # Curves at 100 per cent lie on each other: thin ones on top.
                    width = max(1, 5 - place)
                    ax.plot(order, mean, color=colour, label=label, linewidth=width)
            if kind == "volatility":
                ax.axhline(50, color="grey", linewidth=1, linestyle=":")
                ax.margins(x=0.5)
            else:
                seen = max(results[0]["config"]["lengths"])
                ax.axvline(seen, color="grey", linewidth=1, linestyle=":")
                ax.set_xscale("log", base=2)
                ax.set_xlabel("length of the word")
                ax.legend(fontsize=6, loc="best")
            ax.set(title=kind, ylim=(-3, 103))
        axes[0, 0].set_ylabel("right, per cent")
        yield "state tracking and quadratic variation", figure


def words(tracked):
    """Paths, and the state at each of their points; the first is the identity."""
    states = np.pad(tracked.states, [(0, 0), (1, 0)]).astype(np.int32)
    return tracked.values(), states


def logits(model, values):
    """Of a batch: at all points of words, at the end of other paths."""
    if isinstance(model, Tracker):
        return jax.vmap(model)(values)
    return jax.vmap(lambda x: model(as_path(x)))(values)


_logits = eqx.filter_jit(logits)


def cross_entropy(model, batch, key):
    """Of the states of all points, or of the class of a path. A small penalty on logits
    keeps them finite: otherwise gradients vanish before the angles of the rotations
    are right to the third digit, as words of hundreds of letters need."""
    values, targets = batch
    found = logits(model, values)
    rows = jax.nn.log_softmax(found, axis=-1)
    right = jnp.take_along_axis(rows, targets[..., None], axis=-1)
    return PENALTY * jnp.mean(found**2) - jnp.mean(right)


TASKS = (StateTrackingTask(),)
