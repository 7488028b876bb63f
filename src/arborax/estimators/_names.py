"""Readable names of the coordinates of an algebra."""

from typing import Any

from ..algebra import AbstractHopfAlgebra, to_text


def coordinate_names(
    alg: AbstractHopfAlgebra, channels: list[str], log: bool
) -> list[str]:
    """Names of the coordinates of a signature, or of its logarithm.

    Words are written one letter after the other, `<x,y>` is the bracket of two
    channels, `[a b]_c` the tree with root `c`, `[x,y]` the Lie bracket of a bracketed
    Lyndon word, and `x y'` the multi-index in which the field of `y` has a derivative.
    """

    def derivatives(index: tuple) -> str:
        return " ".join(channels[i] + "'" * k for i, k in index)

    keys = alg.primitive_basis if log else alg.basis
    known = set(alg.primitive_basis)
    of_trees = alg.tree_algebra == alg
    if alg.scalar:
        members = [(key,) if log else key for key in keys]
        return [" . ".join(map(derivatives, member)) for member in members]

    def letter(key: Any) -> str:
        if isinstance(key, int):
            return channels[key]
        if of_trees:
            return to_text(key, channels)
        names: list[str] = [channels[i] for i in key]
        return names[0] if len(names) == 1 else f"<{','.join(names)}>"

    def is_tree(key: Any) -> bool:
        return of_trees and isinstance(key[0], int)

    def bracketed(word: tuple) -> str:
        if is_tree(word):
            return letter(word)
        if len(word) == 1:
            return letter(word[0])
        # The second factor is the longest proper suffix that is a Lyndon word.
        cut = next(k for k in range(1, len(word)) if word[k:] in known)
        return f"[{bracketed(word[:cut])},{bracketed(word[cut:])}]"

    if log:
        return [bracketed(key) for key in keys]
    return [" ".join(letter(part) for part in key) for key in keys]
