"""The page of stored times."""

import json

import numpy as np

from arborax_experiments import timing_report
from arborax_experiments.timing import ALGEBRAS, grid, LABELS, ratios


def document():
    rows = [
        {"library": library, "algebra": algebra, "depth": depth, "dim": dim}
        | {"seconds": dim * 1e-3 * (3 if library == "pysiglib" else 1)}
        for library in ("arborax", "pysiglib")
        for depth in (2, 3)
        for algebra in ALGEBRAS
        for dim in (2, 3)
        if not (library == "pysiglib" and (algebra == "Ito" or dim == depth == 3))
    ]
    settings = {"command": "python bench.py --limit 2", "machine": "2 CPU cores"}
    return {"rows": rows, "channels": [2, 3], "settings": settings}


def test_grids_and_ratios():
    found = grid(document(), "pysiglib")
    # Itô is set against planar trees; a missing time is a blank cell.
    np.testing.assert_allclose(found[LABELS.index((2, "Ito"))], [6.0, 9.0])
    assert np.isnan(found[LABELS.index((3, "Ito")), 1])
    lines = dict(ratios(document()).lines)
    assert lines["Shuffle, 2"] == ["0", "0", "3", "3 to 3"]
    assert lines["Shuffle, 3"] == ["0", "1", "3", "3 to 3"]


def test_page(tmp_path):
    assert timing_report([tmp_path], tmp_path / "page.html") is None
    (tmp_path / "timing").mkdir()
    (tmp_path / "timing" / "timing.json").write_text(json.dumps(document()))
    page = timing_report([tmp_path], tmp_path / "page.html")
    assert page is not None
    text = page.read_text()
    assert "data:image/png;base64," in text and "python bench.py --limit 2" in text
