"""Times of a device, and the benchmarks of a checkout, from the command line."""

import importlib
import json
import pathlib
import subprocess
import sys
from typing import Any


def benchmark_folder() -> pathlib.Path | None:
    """`benchmarks` of the checkout of this package, or of the current folder."""
    checkout = pathlib.Path(__file__).parents[3]
    for folder in (checkout, pathlib.Path.cwd()):
        if (folder / "benchmarks" / "__main__.py").exists():
            return folder / "benchmarks"
    return None


def bench(command: Any) -> None:
    """Times a device, shows stored times, or runs the benchmarks of a checkout."""
    if command.show or command.device:
        try:
            _device(command)
        except ValueError as error:
            sys.exit(str(error))
    else:
        _checkout(command)


def _device(command: Any) -> None:
    room = importlib.import_module("arborax.cli._device")
    if command.show:
        documents = [room.read_times(file) for file in command.show]
        page = command.out or pathlib.Path("arborax-bench.html")
        print(room.device_page(documents, page))
        return
    rows = room.time_device(command.device, command.seconds, command.names)
    document = {**next(rows), "cells": []}
    print(room.device_name(document))
    for row in rows:
        found = row.get("error") or f"{1e3 * row['best_s']:.3g} ms"
        print(f"{row['group']}: {row['cell']}: {found}", flush=True)
        document["cells"].append(row)
    if not document["cells"]:
        raise ValueError(f"no cell has a name with {' or '.join(command.names)}.")
    file = command.out or pathlib.Path(f"arborax-{command.device}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1) + "\n")
    print(file, room.device_page([document], file.with_suffix(".html")), sep="\n")
    if any("error" in row for row in document["cells"]):
        sys.exit(1)


def _checkout(command: Any) -> None:
    """Runs benchmarks, by default all, and exits with their status."""
    folder = benchmark_folder()
    if folder is None:
        sys.exit(
            "These benchmarks are not part of the installed package. `arborax bench "
            "--device cpu` (or gpu, tpu) times this machine. For the comparison with "
            "other libraries get the source code of arborax and run `make bench` there."
        )
    program = [sys.executable, "-m", "benchmarks", *command.names]
    sys.exit(subprocess.run(program, cwd=folder.parent, check=False).returncode)
