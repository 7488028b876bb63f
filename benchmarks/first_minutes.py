"""What a newcomer waits for, in a fresh environment.

    python benchmarks/first_minutes.py

Builds the wheel, installs it into a new environment, and runs three pieces of the
documents there, each in a new process and an empty folder: the first signature of
`docs/getting-started.md`, and from `README.md` the features of a DataFrame and the
generator that is trained, sampled and compared. Seconds hold everything: starting
Python, imports, compiling. Installing is timed apart, since it depends on the network.
Writes `benchmarks/results/first_minutes.json`.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time


ROOT = pathlib.Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "first_minutes.json"


def blocks(page: str) -> list[str]:
    """The Python blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def pieces() -> dict[str, str]:
    """What is run, by name. A block that is one of several gets the imports of all."""
    signature = blocks("docs/getting-started.md")[0]
    snippets = blocks("README.md")
    imports = re.findall(r"^import .*$", "\n".join(snippets), re.MULTILINE)
    head = "\n".join(imports) + "\n"

    def snippet(name: str) -> str:
        (found,) = (block for block in snippets if name in block)
        return head + found

    return {
        "signature": signature,
        "own data": snippet("SignatureFeatures"),
        "generator": snippet("PathGenerator"),
    }


def seconds(*command: object, folder: pathlib.Path) -> float:
    # An environment that is on the path of this process is not that of a newcomer.
    ours = ("PYTHONPATH", "XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    start = time.perf_counter()
    subprocess.run(
        list(map(str, command)),
        check=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    return round(time.perf_counter() - start, 1)


def measure(place: pathlib.Path) -> dict:
    python = place / "new" / "bin" / "python"
    seconds(sys.executable, "-m", "venv", place / "new", folder=place)
    pip = (python, "-m", "pip", "--quiet")
    seconds(*pip, "wheel", "--no-deps", ROOT, "--wheel-dir", place, folder=place)
    (wheel,) = place.glob("*.whl")
    fixed = ("--constraint", ROOT / "constraints.txt")
    install = {
        "core": seconds(*pip, "install", wheel, *fixed, folder=place),
        "sklearn and pandas": seconds(
            *pip, "install", f"{wheel}[sklearn]", "pandas", *fixed, folder=place
        ),
    }
    empty = place / "empty"
    empty.mkdir()
    first = {
        name: seconds(python, "-c", code, folder=empty)
        for name, code in pieces().items()
    }
    git = ["git", "rev-parse", "--short=10", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=ROOT).stdout
    return {
        "command": "python benchmarks/first_minutes.py",
        "date": datetime.date.today().isoformat(),
        "commit": commit.strip(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "install_s": install,
        "first_s": first,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = measure(pathlib.Path(folder))
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(RESULT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
