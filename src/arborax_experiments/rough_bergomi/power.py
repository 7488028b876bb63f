"""What the scores say of laws that are known: power of the permutation test of all
paths, and the bracket column of the true law itself.

    python -m arborax_experiments.rough_bergomi.power results/power/rough-bergomi.json
"""

import dataclasses
import pathlib
import sys
from typing import Any

import jax.random as jr
import numpy as np

from arborax.datasets import RoughBergomi
from arborax.training import metrics

from ..harness import read_preset
from ..harness.results import write_json
from .config import Config
from .scores import large_p_value


LAWS: dict[str, dict[str, float]] = {
    "the true law": {},
    "volatility of volatility 2 % lower": {"eta": 0.98 * RoughBergomi.eta},
    "volatility of volatility 5 % lower": {"eta": 0.95 * RoughBergomi.eta},
    "H = 0.27 for 0.25": {"hurst": 0.27},
}


def power(
    pairs: int, config: Config, laws: dict[str, dict[str, float]] = LAWS
) -> dict[str, list[float]]:
    """p-values of `pairs` tests of paths of each law against fresh ones of the true
    law, `config.price_paths` of both. Seeds are those of no data set."""
    truth = RoughBergomi(hurst=config.hurst, steps=config.steps)
    count = config.price_paths

    def sample(law: RoughBergomi, seed: int) -> np.ndarray:
        return np.asarray(law.sample(count, key=jr.PRNGKey(seed)).values)

    found: dict[str, list[float]] = {name: [] for name in laws}
    for k in range(pairs):
        true = sample(truth, 1000 + 100 * k)
        for place, (name, change) in enumerate(laws.items()):
            other = sample(dataclasses.replace(truth, **change), 1001 + 100 * k + place)
            found[name].append(large_p_value(other, true, config, seed=k))
    return found


def bracket_gap(config: Config, hurst: float) -> tuple[float, float]:
    """KS of realised against integrated variances of independent true paths, which is
    what a perfect model scores in the column `bracket`, and of two samples of the
    integrated ones, its floor."""
    law = RoughBergomi(hurst=hurst, steps=config.steps)
    one, two = (law.sample(config.price_paths, key=jr.PRNGKey(k)) for k in (98, 99))
    assert one.brackets is not None and two.brackets is not None
    realised = np.square(np.diff(one.values, axis=1)).sum(axis=(1, 2))
    known, other = (x.brackets.sum(axis=(1, 2, 3)) for x in (one, two))
    gap = lambda variances: metrics.ks(variances[:, None], other[:, None]).item()  # noqa: E731
    return gap(realised), gap(known)


def main(file: str, pairs: Any = 10) -> None:
    """Writes the p-values and shares below 0.05 of the preset `quick`."""
    folder = pathlib.Path(__file__).parent
    config = read_preset(Config, folder, "volterra", "quick", {})
    found = power(int(pairs), config)
    content = {
        "command": f"python -m arborax_experiments.rough_bergomi.power {file} {pairs}",
        "paths": config.price_paths,
        "pairs": int(pairs),
        "p_values": found,
        "bracket": {f"H = {h}": bracket_gap(config, h) for h in (0.25, 0.1)},
        "rejected": {k: float(np.mean(np.array(v) < 0.05)) for k, v in found.items()},
    }
    write_json(pathlib.Path(file), content)


if __name__ == "__main__":
    main(*sys.argv[1:])
