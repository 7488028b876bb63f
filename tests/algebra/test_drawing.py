"""Trees as text."""

import pytest
from reference import trees

from arborax import algebra


A, B = (0, ()), (1, ())


def test_bracket_notation():
    assert algebra.to_text((2, (A, B))) == "[0 1]_2"
    assert algebra.to_text((0, ((1, (A,)),))) == "[[0]_1]_0"
    assert algebra.to_text((A, B)) == "0 1"
    assert algebra.to_text(()) == "1"
    assert algebra.to_text((1, (A,)), names=("x", "y")) == "[x]_y"


def test_drawing_of_a_cherry():
    assert algebra.draw((2, (A, B))).splitlines() == ["0 1", "|/", "2"]


@pytest.mark.parametrize("n", range(1, 5))
def test_every_drawing_shows_every_vertex_once(n):
    for forest in trees.ordered_forests(2, n):
        text = algebra.draw(forest)
        assert sum(c.isdigit() for c in text) == n
        assert all(line == line.rstrip() for line in text.splitlines())


def test_text_tells_trees_apart():
    keys = [f for n in range(1, 5) for f in trees.ordered_forests(2, n)]
    assert len({algebra.to_text(f) for f in keys}) == len(keys)
    assert len({algebra.draw(f) for f in keys}) == len(keys)
