"""`abx.citation`: every entry resolves, parts are found, each paper appears once."""

import re

import equinox as eqx

import arborax as abx
from arborax._citation import _bibliography, _CITES


def _keys(text):
    return re.findall(r"^@\w+\{(\w+),", text, flags=re.MULTILINE)


def test_bibliography_is_complete_and_used():
    cited = {key for keys in _CITES.values() for key in keys}
    assert cited == set(_bibliography())


def test_cited_names_exist():
    assert set(_CITES) <= {*dir(abx), *vars(abx.models)}


def test_entries_are_balanced():
    for entry in _bibliography().values():
        assert entry.count("{") == entry.count("}")
        assert all(field in entry for field in ("author", "title", "year"))


def test_algebra_instance_class_and_duplicates():
    alg = abx.GrossmanLarson(2, 2)
    expected = ["grossman1989", "gubinelli2010"]
    assert _keys(abx.citation(alg)) == expected
    assert _keys(abx.citation(abx.GrossmanLarson)) == expected
    assert _keys(abx.citation(alg, [alg, abx.Ito(2, 2)])) == [*expected, "hairer2015"]


def test_parts_of_modules_are_found():
    class Holder(eqx.Module):
        alg: abx.Shuffle = eqx.field(static=True)
        other: dict

    holder = Holder(abx.Shuffle(2, 2), {"a": (abx.MuntheKaasWright(2, 2),)})
    keys = _keys(abx.citation(holder))
    assert keys == ["chen1958", "lyons1998", "munthekaas2008", "curry2020"]


def test_foreign_objects_cite_nothing():
    assert abx.citation(3, "text", None, eqx.Module) == ""
