"""`python -m arborax.cli`: the same as the command `arborax`."""

from . import main


main()
