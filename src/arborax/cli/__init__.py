"""The command `arborax`."""

import sys


def main(arguments: list[str] | None = None) -> None:
    """Runs the command `arborax`; says which extra is missing."""
    try:
        from ._commands import main as command
    except ImportError as error:
        sys.exit(f"{error}. Run: pip install 'arborax[cli,plots,train]'")
    command(arguments)
