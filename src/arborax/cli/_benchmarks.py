"""The benchmarks of a checkout, from the command line."""

import pathlib
import subprocess
import sys
from typing import Any


def benchmark_folder() -> pathlib.Path | None:
    """`benchmarks` of the checkout this package is in, or of the present folder."""
    checkout = pathlib.Path(__file__).parents[3]
    for folder in (checkout, pathlib.Path.cwd()):
        if (folder / "benchmarks" / "__main__.py").exists():
            return folder / "benchmarks"
    return None


def bench(command: Any) -> None:
    """Runs benchmarks, all of them by default, and ends with their exit status."""
    folder = benchmark_folder()
    if folder is None:
        sys.exit(
            "Benchmarks are not part of the installed package. Get the source code of "
            "arborax, then run `make bench` there: it sets up the rivals in an "
            "environment of their own."
        )
    program = [sys.executable, "-m", "benchmarks", *command.names]
    sys.exit(subprocess.run(program, cwd=folder.parent, check=False).returncode)
