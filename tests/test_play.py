"""The page to play with, in a real browser: its numbers are those of the library."""

import html.parser
import json
import pathlib
import re
import shutil

import numpy as np
import pytest
from browser import document, needs_browser

import arborax as abx
from arborax.algebra import AbstractWordAlgebra, to_text


PLAY = pathlib.Path(__file__).parents[1] / "docs" / "_static" / "play"
ALGEBRAS = {
    "Shuffle": abx.Shuffle,
    "Ito": abx.Ito,
    "GrossmanLarson": abx.GrossmanLarson,
    "MuntheKaasWright": abx.MuntheKaasWright,
}


class Elements(html.parser.HTMLParser):
    """The `data-*` attributes of all elements that have some."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        data = {k.removeprefix("data-"): v for k, v in attrs if k.startswith("data-")}
        if data:
            self.found.append(data)


def _open(page, folder, fragment=""):
    return Elements(document(page, folder / "profile", fragment)).found


def _with_script(folder, script):
    """A copy of the page that runs one more script."""
    shutil.copytree(PLAY, folder / "play")
    page = folder / "play" / "index.html"
    text = page.read_text().replace("</body>", f"<script>{script}</script></body>")
    page.write_text(text)
    return page


def _text(alg, key):
    if not isinstance(alg, AbstractWordAlgebra):
        return to_text(key)
    letters = (letter if isinstance(letter, tuple) else (letter,) for letter in key)
    return "".join(f"({''.join(map(str, letter))})" for letter in letters)


def _check(elements, path, depth):
    sections, cells = {}, None
    for element in elements:
        if "algebra" in element:
            cells = sections.setdefault(element["algebra"], {})
        elif "key" in element:
            assert cells is not None
            cells[element["key"]] = element
    assert set(sections) == set(ALGEBRAS)
    for name, cells in sections.items():
        alg = ALGEBRAS[name](2, depth)
        assert set(cells) == {_text(alg, key) for key in alg.basis}
        ordered = [cells[_text(alg, key)] for key in alg.basis]
        for calculus, brackets in (("stratonovich", None), ("ito", "realised")):
            if alg.calculus not in (None, calculus):
                assert not any(calculus in cell for cell in ordered)
                continue
            values = np.array([float(cell[calculus]) for cell in ordered])
            expected = abx.signature(path, alg, brackets=brackets)
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@needs_browser
@pytest.mark.parametrize("depth", [2, 3])
def test_numbers_are_those_of_the_library(depth, tmp_path):
    path = np.random.default_rng(depth).uniform(-1, 1, (12, 2))
    points = ";".join(f"{x!r},{y!r}" for x, y in path.tolist())
    elements = _open(PLAY / "index.html", tmp_path, f"depth={depth}&path={points}")
    _check(elements, path, depth)


@needs_browser
def test_drawing_with_the_pointer_and_thinning(tmp_path):
    script = """
    const canvas = get("canvas"), box = canvas.getBoundingClientRect();
    canvas.setPointerCapture = () => {};
    const send = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {
      clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
    send("pointermove", 0.9, 0.9);
    send("pointerdown", 0.5, 0.5);
    for (let k = 1; k < 30; k++)
      send("pointermove", 0.5 + 0.012 * k, 0.5 + 0.3 * Math.sin(k / 4));
    send("pointerup", 0.9, 0.5);
    send("pointermove", 0.1, 0.1);
    get("every").value = 4;
    get("every").dispatchEvent(new Event("input"));
    update();
    document.body.dataset.path = JSON.stringify(state.path);
    """
    elements = _open(_with_script(tmp_path, script), tmp_path)
    (drawn,) = (json.loads(e["path"]) for e in elements if "path" in e)
    assert len(drawn) == 30
    np.testing.assert_allclose(drawn[0], [0, 0], atol=1e-12)
    kept = [point for k, point in enumerate(drawn) if k % 4 == 0 or k == 29]
    _check(elements, np.array(kept), 2)


@needs_browser
def test_fits_a_telephone(tmp_path):
    script = """
    const page = document.documentElement;
    parent.postMessage([page.clientWidth, page.scrollWidth], "*");
    """
    page = _with_script(tmp_path, script)
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<!doctype html><body><script>addEventListener('message', (event) => "
        "document.body.dataset.widths = JSON.stringify(event.data));</script>"
        f"<iframe src='{page.as_uri()}' width='390' height='800'></iframe></body>"
    )
    (widths,) = (json.loads(e["widths"]) for e in _open(frame, tmp_path) if e)
    assert widths[0] > 360 and widths[1] <= widths[0], widths


def test_the_page_needs_no_network():
    for file in PLAY.iterdir():
        addresses = set(re.findall(r"https?://[^\"' ]+", file.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file
