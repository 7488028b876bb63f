"""arborax: learn and solve stochastic and manifold-valued dynamics with branched rough paths."""

from importlib.metadata import version as _version

from .algebra import (
    GrossmanLarson as GrossmanLarson,
    Ito as Ito,
    MuntheKaasWright as MuntheKaasWright,
    Shuffle as Shuffle,
)


__version__ = _version("arborax")
