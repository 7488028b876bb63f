"""The console script, which says what is missing."""

import sys


def main(arguments: list[str] | None = None) -> None:
    """Runs the command `arborax`."""
    try:
        from .cli import main as command
    except ImportError as error:
        sys.exit(f"{error}. Run: pip install 'arborax[cli,plots,train]'")
    command(arguments)
