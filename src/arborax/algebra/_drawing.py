"""Trees and forests in bracket notation and as small drawings."""

from collections.abc import Sequence

from ._trees import is_tree


def _label(colour: int, names: Sequence[str] | None) -> str:
    return str(colour) if names is None else names[colour]


def to_text(key: tuple, names: Sequence[str] | None = None) -> str:
    """Bracket notation: `[a b]_c` is the tree with root `c` and branches `a`, `b`.

    **Arguments:**

    - `key`: a tree or a forest. The empty forest is written `1`.
    - `names`: names of the colours; numbers by default.
    """
    if is_tree(key):
        colour, children = key
        if not children:
            return _label(colour, names)
        inner = " ".join(to_text(child, names) for child in children)
        return f"[{inner}]_{_label(colour, names)}"
    return " ".join(to_text(tree, names) for tree in key) if key else "1"


def draw(key: tuple, names: Sequence[str] | None = None) -> str:
    """A drawing in text, roots at the bottom, as trees grow.

    !!! example

        `print(draw((2, ((0, ()), (1, ())))))` shows

            0 1
            |/
            2
    """
    trees = [key] if is_tree(key) else list(key)
    if not trees:
        return "1"
    blocks = [_block(tree, names) for tree in trees]
    height = max(len(block) for block in blocks)
    blocks = [_raise(block, height) for block in blocks]
    return "\n".join("   ".join(rows).rstrip() for rows in zip(*blocks))


def _raise(block: list[str], height: int) -> list[str]:
    width = max(len(row) for row in block)
    block = [row.ljust(width) for row in block]
    return [" " * width] * (height - len(block)) + block


def _block(tree: tuple, names: Sequence[str] | None) -> list[str]:
    colour, children = tree
    label = _label(colour, names)
    if not children:
        return [label]
    blocks = [_block(child, names) for child in children]
    height = max(len(block) for block in blocks)
    blocks = [_raise(block, height) for block in blocks]
    rows = [" ".join(parts) for parts in zip(*blocks)]
    starts, place = [], 0
    for block in blocks:
        starts.append(place)
        place += len(block[0]) + 1
    edge = [" "] * (max(place - 1, len(label)))
    for start in range(1, starts[-1]):
        edge[start] = "_"
    for k, start in enumerate(starts):
        edge[max(start - 1, 0) if k else 0] = "/" if k else "|"
    return [*rows, "".join(edge), label]
