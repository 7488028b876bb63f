"""BibTeX for the methods in use."""

import dataclasses
import functools as ft
import importlib.resources
import re
from typing import Any


# Name of a class or function of arborax -> keys of `references.bib`.
_CITES: dict[str, tuple[str, ...]] = {
    # Algebras and signatures.
    "Shuffle": ("chen1958", "lyons1998"),
    "GrossmanLarson": ("grossman1989", "gubinelli2010"),
    "MuntheKaasWright": ("munthekaas2008", "curry2020"),
    "Ito": ("hairer2015", "gubinelli2010"),
    "BranchedWords": ("foissy2002", "boedihardjo2019"),
    "MultiIndex": ("linares2023",),
    "RoughPath": ("castell1996",),
    "signature": ("chen1958",),
    "log_signature": ("chen1958",),
    # Drivers.
    "fractional_brownian": ("davies1987",),
    "riemann_liouville": ("bennedsen2017",),
    "brownian_areas": ("davie2014", "foster2020"),
    "square_root_driver": ("andersen2008",),
    # Geometries and solvers.
    "SPD": ("pennec2006",),
    "solve": ("castell1996", "thompson2026"),
    "solve_sde": ("castell1996", "davie2014", "foster2020", "lyonsvictoir2004"),
    "LogODE": ("castell1996", "kidger2021"),
    "RoughTerm": ("castell1996", "kidger2021"),
    "RKMK": ("munthekaas1999",),
    "CF4": ("celledoni2003",),
    "CFEES25": ("shmelev2025ees", "shmelev2025lie"),
    "CFEES27": ("shmelev2025ees", "shmelev2025lie"),
    # Kernels.
    "signature_kernel": ("kiraly2019", "salvi2021"),
    "SignatureKernel": ("kiraly2019", "salvi2021"),
    "signature_gram": ("kiraly2019", "salvi2021"),
    "mmd": ("gretton2012", "chevyrev2022"),
    "signature_score": ("issa2023",),
    "two_sample_test": ("gretton2012",),
    "RandomFourierSignature": ("toth2025",),
    # Models.
    "BNRDE": ("thompson2026",),
    "LinearBNRDE": ("thompson2026", "walker2025"),
    "LogNCDE": ("walker2024",),
    "NRDE": ("morrill2021",),
    "NCDE": ("kidger2020",),
    "NCDEpp": ("kidger2020", "morrill2022"),
    "GRU": ("cho2014",),
    "Reservoir": ("cuchiero2022",),
    "XLSTM": ("beck2024",),
}


@ft.cache
def _bibliography() -> dict[str, str]:
    text = importlib.resources.files("arborax").joinpath("references.bib").read_text()
    entries = re.split(r"\n(?=@)", text.strip())
    found = {}
    for entry in entries:
        match = re.match(r"@\w+\{(\w+),", entry)
        assert match is not None
        found[match.group(1)] = entry.strip()
    return found


def _names(obj: Any, seen: set[int]):
    """Names of the arborax classes and functions that `obj` is made of."""
    if id(obj) in seen:
        return
    seen.add(id(obj))
    named = obj if hasattr(obj, "__name__") else type(obj)
    if str(getattr(named, "__module__", "")).startswith("arborax"):
        yield named.__name__
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        for field in dataclasses.fields(obj):
            yield from _names(getattr(obj, field.name, None), seen)
    elif isinstance(obj, tuple | list):
        for part in obj:
            yield from _names(part, seen)
    elif isinstance(obj, dict):
        for part in obj.values():
            yield from _names(part, seen)


def citation(*objects: Any) -> str:
    """BibTeX entries of the papers behind the given objects.

    Looks at the class of each object and, for modules and containers, at the parts it
    is made of; no array is read.

    **Arguments:**

    - `objects`: any of the library's algebras, controls, geometries, solvers, models,
      kernels, or the functions themselves (`abx.citation(abx.mmd)`).

    **Returns:**

    One string of BibTeX entries, each paper once, in order of first use; the empty
    string if nothing in the objects rests on a particular paper.
    """
    seen: set[int] = set()
    keys: dict[str, None] = {}
    for obj in objects:
        for name in _names(obj, seen):
            keys.update(dict.fromkeys(_CITES.get(name, ())))
    return "\n\n".join(_bibliography()[key] for key in keys)
