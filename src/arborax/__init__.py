"""arborax: learn and solve stochastic and manifold-valued dynamics with branched rough paths."""

from importlib.metadata import version as _version


__version__ = _version("arborax")
