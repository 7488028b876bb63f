"""Exact brute-force reference for the tests, written from the definitions alone.

Everything is a dict from keys to `fractions.Fraction`; nothing is fast, nothing is
shared with the library. `trees` and `lyndon` hold the combinatorics, `hopf` the four
algebras, `paths` the signatures of sampled rational paths.
"""

from . import (
    bridge as bridge,
    hopf as hopf,
    lyndon as lyndon,
    paths as paths,
    trees as trees,
)
from .hopf import reference as reference
