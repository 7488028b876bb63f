"""`python -m arborax_experiments.demo`: a B-NRDE learns rough volatility."""

import argparse
import pathlib
import time

from .harness import pyplot, read_paths, report, run, table
from .rough_bergomi import RoughBergomiTask
from .rough_bergomi.figures import fan_chart


def main(arguments: list[str] | None = None) -> None:
    """Trains at preset `quick`, prints the scores, writes a picture and a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="quick", choices=("smoke", "quick"))
    parser.add_argument("--output", type=pathlib.Path, default="demo-output")
    parser.add_argument("--cache", type=pathlib.Path, default=None)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    print(
        "Rough Bergomi: a branched neural RDE learns the law of log-prices under\n"
        "rough volatility from simulated paths. This takes minutes on two cores.\n",
        flush=True,
    )
    task = RoughBergomiTask()
    result = run(
        task,
        model="bnrde",
        preset=options.preset,
        folder=options.output / "runs",
        cache=options.cache,
    )
    print(table(task, [result]))
    options.output.mkdir(parents=True, exist_ok=True)
    picture = options.output / "rough-bergomi.png"
    paths = read_paths(result)
    assert paths is not None
    figure = fan_chart(paths)
    figure.savefig(picture)
    pyplot().close(figure)
    page = report(task, [result], options.output / "rough-bergomi.html")
    print(f"\npicture: {picture}\nreport:  {page}")
    print(f"{time.perf_counter() - start:.0f} s in total")


if __name__ == "__main__":
    main()
