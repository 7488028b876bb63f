"""Sizes of the models of the published tables."""

import pytest

import arborax as abx

from .cases import count, KEY


M = abx.models


def _spd(depth):
    alg = abx.MuntheKaasWright(7, 2)
    return M.BNRDE(alg, geometry=abx.SPD(3), depth=depth, window=8, key=KEY)


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: M.BNRDE(abx.GrossmanLarson(2, 2), 1, key=KEY), 6465),
        (lambda: M.LogNCDE(2, 1, key=KEY), 6465),
        (lambda: M.NRDE(2, 1, key=KEY), 7521),
        # Matrices 2 x 64 x 4 and offsets 2 x 64, initial state 64 x 3, norm 64 x 2,
        # gate 128 x 65, readout 65.
        (lambda: M.LinearBNRDE(abx.Ito(2, 2), 1, key=KEY), 9345),
        (lambda: M.LinearBNRDE(abx.Ito(2, 2), 1, structure="dense", key=KEY), 17025),
        (lambda: M.LinearBNRDE(abx.Ito(2, 2), 1, structure="diagonal", key=KEY), 8961),
        (lambda: M.NCDE(2, 1, key=KEY), 6465),
        (lambda: M.NCDE(2, 1, depth=3, key=KEY), 7521),
        (lambda: M.NCDEpp(2, 1, key=KEY), 6465),
        (lambda: M.NCDEpp(2, 1, depth=3, key=KEY), 7521),
        (lambda: M.GRU(2, 1, key=KEY), 5633),
        (lambda: M.XLSTM(2, 1, key=KEY), 17801),
        (lambda: M.XLSTM(2, 1, layers=4, key=KEY), 70625),
        (lambda: _spd(4), 6384),
        (lambda: _spd(2), 4272),
        (lambda: M.LogNCDE(7, 6, window=8, key=KEY), 12070),
        (
            lambda: M.BNRDE(
                abx.Shuffle(4, 2), abx.SO(3), hidden=16, depth=3, window=4, key=KEY
            ),
            6614,  # and 4,499 of the extrapolator: 11,113
        ),
    ],
)
def test_count(make, expected):
    assert count(make()) == expected
