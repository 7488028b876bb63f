"""Run benchmarks in turn: `python -m benchmarks [signatures kernels ...]`."""

import subprocess
import sys
from pathlib import Path


def main():
    folder = Path(__file__).parent
    known = {
        file.stem.removeprefix("bench_"): file for file in folder.glob("bench_*.py")
    }
    chosen = sys.argv[1:] or sorted(known)
    for name in chosen:
        if name not in known:
            sys.exit(f"no benchmark {name!r}; there are {', '.join(sorted(known))}")
        subprocess.run([sys.executable, str(known[name])], check=True)


if __name__ == "__main__":
    main()
