"""Experiment `brackets`: what an objective that sees brackets is good for."""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy import stats

from arborax.kernels import embed, mmd, RandomFourierSignature
from arborax.training import metrics

from ..generation import generate
from ..harness import (
    AbstractTask,
    by_setting,
    mean_cells,
    pyplot,
    run_table,
    Score,
    Stage,
    Table,
    TrainingConfig,
)
from .model import Generator, simulate


LEVELS = 3
# Kind of the features, whether brackets are supplied, whether they are a channel.
OBJECTIVES: dict[str, tuple[Any, bool, bool]] = {
    "geometric": ("geometric", False, False),
    "ito": ("ito", False, False),
    "branched": ("branched", False, False),
    "branched-supplied": ("branched", True, False),
    "geometric-bracket": ("geometric", False, True),
}
SCORES = {
    "volatility": "error of log volatility x 100",
    "bracket": "KS of the bracket",
    "excess": "KS of maxima between",
    "points": "KS at the nine points",
}
SCALES = {"volatility": 100}  # of tables; KS statistics are stored times 100


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run, but for the seed; `model` is the objective.

    **Fields** beside those of `TrainingConfig`:

    - `kappa_delta`: reversion over the time between two observations.
    - `intervals`, `fine`: steps between observations, and hidden ones in each.
    - `spread`: deviation of the logarithm of the stationary variance.
    - `start`: largest factor, either way, of the rate that a model begins with to the
        true one; drawn for each seed.
    - `paths`, `test_paths`, `data_seed`: of the data.
    - `features`: of the objective, in total; a multiple of 21.
    """

    model: str = "branched"
    kappa_delta: float = 1.0
    intervals: int = 8
    fine: int = 8
    spread: float = 0.7
    start: float = 2.0
    paths: int = 8192
    test_paths: int = 4096
    data_seed: int = 7
    features: int = 504
    hidden: int = 3
    width: int = 16
    depth: int = 1
    window: int = 1

    @property
    def kappa(self) -> float:
        return self.kappa_delta * self.intervals

    @property
    def times(self) -> int:
        return self.intervals * self.fine + 1

    @property
    def substeps(self) -> int:
        """Solver steps per hidden step: Heun's method is stable while rate times step
        is below two, and the fastest start must be inside."""
        return math.ceil(self.start * self.kappa / (self.times - 1) / 2)


class BracketsTask(AbstractTask):
    """Fast reversion with a random variance, seen at few points: one generator, trained
    under objectives that see the bracket, or do not."""

    name = "brackets"
    config = Config
    models = {
        "geometric": "geometric",
        "ito": "Itô, realised",
        "branched": "branched, realised",
        "branched-supplied": "branched, supplied",
        "geometric-bracket": "control: geometric of (t, x, bracket)",
    }
    introduction = """<p>One B-NRDE, trained under five objectives on nine observed
points of a fast Ornstein-Uhlenbeck process whose stationary variance is random.
Volatility: absolute logarithm of the model's over the true one, from mean brackets. KS
statistics are times 100; maxima between are how far a path on the hidden grid rises
above its observed neighbours, in the mean over a path.</p>"""

    def data(self, config, cache):
        sizes, seeds = (config.paths, config.test_paths, config.test_paths), (0, 1, 2)
        return tuple(
            simulate(n, config.times, config.kappa, config.spread, config.data_seed + k)
            for n, k in zip(sizes, seeds)
        )

    def model(self, config, data, *, key):
        first, second = jr.split(key)
        factor = config.start ** float(jr.uniform(first, minval=-1, maxval=1))
        return Generator(config, config.kappa * factor, key=second)

    def stages(self, config, data):
        kind, supplied, channel = OBJECTIVES[config.model]
        blocks = 7 if kind == "branched" else LEVELS
        # Fixed: every seed is trained against the same features.
        features = RandomFourierSignature(
            2 if channel else 1,
            key=jr.PRNGKey(0),
            kind=kind,
            levels=LEVELS,
            features=config.features // blocks,
            dtype=np.dtype(np.float32),
        )

        def seen(both):
            both = both[:, :: config.fine]
            values = both if channel else both[..., :1]
            given = jnp.diff(both[..., 1], axis=1)[..., None, None]
            return values, given if supplied else None

        values, given = seen(jnp.asarray(data[0]))
        head = None if given is None else given[:2048]
        features = features.fit(values[:2048], brackets=head)
        target = embed(values, features, brackets=given)
        ts = jnp.linspace(0, 1, config.times, dtype=np.float32)

        def objective(model, batch, key):
            features, target = batch
            values, given = seen(model.sample(ts, config.batch, key=key))
            return mmd(values, target, features, brackets_x=given, unbiased=True)

        # An argument and no constant: one compiled program serves every rate.
        def batch(key, step):
            return features, target

        rate, steps = config.learning_rate, config.iterations
        yield Stage(config.model, objective, batch, None, steps, rate, loss_every=10)

    def score(self, fitted, config, data, *, key, seed):
        _, test, other = data
        ts = np.linspace(0, 1, config.times, dtype=np.float32)
        ours = generate(fitted.model, ts, len(test), key=key)
        content = {"scores": scores(ours, test, config)}
        content["floor"] = scores(other, test, config)
        thin = {"generated": ours[:64, :, 0], "true": test[:64, :, 0]}
        return Score(content, {"ts": ts, **thin})

    def groups(self, results):
        return by_setting(results, changes=False)

    def tables(self, results):
        rates = by_rate(results)
        columns = [f"{value:g}" for value in rates]
        out = []
        for score, title in SCORES.items():
            scale = SCALES.get(score, 1)
            floor = [scale * g[0]["floor"][score] for g in rates.values()]
            lines = [("floor: a second true sample", mean_cells([floor]))]
            for name, label in self.models.items():
                cells = [self.cell(group, name, score) for group in rates.values()]
                lines.append((label, cells))
            out.append(Table(f"{title}, by kappa Delta", columns, lines))
        for score in ("volatility", "excess"):
            title = f"{SCORES[score]}: geometric less row, 95 % interval"
            title += " (*: leaves out zero)"
            names = [*columns, "mean over rates"]
            out.append(Table(title, names, self.gains(results, score)))
        return [*out, run_table(self, results)]

    def cell(self, group, name, score):
        """Mean and deviation over seeds."""
        found = list(errors(group, name, score).values())
        return mean_cells([[value] for value in found])[0] if found else "-"

    def gains(self, results, score):
        """Differences by row and rate, and of means over rates; for the main score also
        those of the third hypothesis, and those of the rows with realised brackets,
        which no hypothesis names."""
        names, rates = list(self.models), list(by_rate(results).values())
        pairs = [("geometric", name, self.models[name]) for name in names[1:]]
        control = "hypothesis 3: control less branched, supplied"
        realised = "branched, realised, less Itô"
        if score == "volatility":
            pairs.append(("geometric-bracket", "branched-supplied", control))
            pairs.append(("branched", "ito", realised))
        groups = [*([rate] for rate in rates), rates]
        return [
            (label, [difference_cell(g, first, second, score) for g in groups])
            for first, second, label in pairs
        ]

    def figures(self, results):
        groups = by_rate(results)
        figure, axes = pyplot().subplots(1, 2, figsize=(9, 3.4))
        titles = {name: SCORES[name] for name in ("volatility", "excess")}
        for ax, (score, title) in zip(axes, titles.items()):
            for place, (name, label) in enumerate(list(self.models.items())[1:]):
                found = {
                    k: difference([g], "geometric", name, score)
                    for k, g in groups.items()
                }
                found = {k: v for k, v in found.items() if v}
                # A little apart, so that intervals do not hide each other.
                xs = [k * 1.06 ** (place - 1.5) for k in found]
                means, halves = zip(*found.values()) if found else ((), ())
                ax.errorbar(xs, means, halves, fmt="o-", capsize=2, label=label)
            ax.axhline(0, color="grey", linewidth=1)
            ax.set(xscale="log", xlabel="kappa Delta", title=title)
            ax.set_xlim(min(groups) / 1.5, max(groups) * 1.5)
            ax.set_xticks(list(groups), [f"{k:g}" for k in groups])
            ax.minorticks_off()
        # One interval is ten times as long as the others.
        axes[0].set_yscale("symlog", linthresh=20)
        axes[0].set_yticks(ticks := [-100, -20, -10, 0, 10, 20, 100], ticks)
        axes[0].set_ylabel("gain: geometric less row")
        axes[0].legend(fontsize=6)
        yield "gain over the geometric objective, with 95 % intervals", figure


def by_rate(results):
    """Results by `kappa_delta`."""
    values = sorted({r["config"]["kappa_delta"] for r in results})
    return {
        value: [r for r in results if r["config"]["kappa_delta"] == value]
        for value in values
    }


def errors(results, model, score="volatility"):
    """A score of one row, by seed, in the units of tables."""
    scale = SCALES.get(score, 1)
    rows = [r for r in results if r["model"] == model]
    return {r["seed"]: scale * r["scores"][score] for r in rows}


def difference(groups, first, second, score="volatility"):
    """Mean over seeds of the first row less the second, each the mean over groups of
    results, and half of the 95 % t-interval. Pairs: within a seed all rows share start
    and noise."""
    firsts, seconds = (
        [errors(group, name, score) for group in groups] for name in (first, second)
    )
    seeds = sorted(set.intersection(*map(set, [*firsts, *seconds])))
    found = np.array(
        [np.mean([a[k] - b[k] for a, b in zip(firsts, seconds)]) for k in seeds]
    )
    if len(found) < 2:
        return None
    half = stats.t.ppf(0.975, len(found) - 1) * stats.sem(found)
    return float(found.mean()), float(half)


def difference_cell(groups, first, second, score):
    """The same in words; a star where the interval leaves out zero."""
    if (found := difference(groups, first, second, score)) is None:
        return "-"
    mean, half = found
    return f"{mean:.1f}±{half:.1f}" + " *" * (abs(mean) > half)


def scores(ours: np.ndarray, test: np.ndarray, config: Config) -> dict[str, float]:
    """Of values and brackets on the hidden grid; KS statistics times 100."""

    def excess(both):
        values, fine = both[..., 0], config.fine
        ends = values[:, ::fine]
        tops = np.maximum(ends[:, 1:], ends[:, :-1])
        inner = values[:, :-1].reshape(len(values), -1, fine).max(axis=2)
        return np.maximum(inner - tops, 0).mean(axis=1)

    def ks(x, y):
        return 100 * float(np.mean(np.asarray(metrics.ks(x, y))))

    points = [both[:, :: config.fine, 0] for both in (ours, test)]
    ends = [both[:, -1, 1] for both in (ours, test)]
    ratio = 0.5 * float(np.log(ends[0].mean() / ends[1].mean()))
    return {
        "volatility": abs(ratio),
        "log_ratio": ratio,
        "bracket": ks(*(end[:, None] for end in ends)),
        "excess": ks(*(excess(both)[:, None] for both in (ours, test))),
        "maximum": ks(*(both[..., 0].max(axis=1)[:, None] for both in (ours, test))),
        "points": ks(*points),
    }


TASKS = (BracketsTask(),)
