"""A batch a few paths at a time; derivatives are in `test_derivatives.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arborax._xla import in_pieces, plain


def rows(x, y):
    return jnp.sin(x) * y[:, None], x.sum(axis=-1)


def last(x, y):
    one, two = rows(x, y)
    return one.T, two


@pytest.mark.parametrize("place,function", [("first", rows), ("last", last)])
@pytest.mark.parametrize("batch,size", [(5, 2), (6, 3), (4, 9), (1, 1)])
def test_pieces_are_joined_in_order(place, function, batch, size):
    """Also where the last piece is not full."""
    args = jnp.arange(3.0 * batch).reshape(batch, 3), jnp.arange(1.0, batch + 1)
    for out, want in zip(
        in_pieces(function, args, size, place=place), function(*args), strict=True
    ):
        np.testing.assert_allclose(out, want, rtol=1e-14)


def test_the_switch_takes_all_at_once():
    def loops():
        run = jax.make_jaxpr(lambda x: in_pieces(jnp.sin, (x,), 2, place="first"))
        return str(run(jnp.ones((5, 2)))).count("scan[")

    assert loops() == 1
    with plain("pieces"):
        assert loops() == 0
