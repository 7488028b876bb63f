"""`python -m arborax.experiments`: the same as the command `arborax`."""

from ._entry import main


main()
