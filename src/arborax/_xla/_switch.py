"""The switch between compiler tricks and their plain forms."""

import os
from contextlib import AbstractContextManager

import jax


TRICKS = (
    "barrier",
    "sums",
    "quadratic",
    "sparse",
    "pieces",
    "running_sums",
    "even",
    "finite",
    "cosine",
)


def _read(text: str) -> frozenset[str]:
    names = frozenset(name for name in text.replace(",", " ").split())
    names = frozenset(TRICKS) if names == {"all"} else names
    if not names <= set(TRICKS):
        raise ValueError(
            f"ARBORAX_PLAIN names tricks that do not exist: "
            f"{sorted(names - set(TRICKS))}. Use 'all', or some of {TRICKS}."
        )
    return names


# Part of the key under which JAX caches compiled programs.
_plain = jax.make_user_context(_read(os.environ.get("ARBORAX_PLAIN", "")))


def plain(*names: str) -> AbstractContextManager:
    """A context in which these tricks (all, if none is named) are replaced by their
    plain forms, wherever functions are traced. The environment variable
    `ARBORAX_PLAIN`, `all` or names with commas, does so for a whole process."""
    return _plain(_read(" ".join(names) if names else "all"))


def uses(name: str) -> bool:
    """Whether a trick is on where this is traced."""
    return name not in _plain.value
