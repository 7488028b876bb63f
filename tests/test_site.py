"""The built documentation: links, pictures, and pages in a real browser.

Needs `make docs` first; the workflow `docs` runs this file after it.
"""

import functools as ft
import html
import html.parser
import http.server
import json
import pathlib
import re
import threading
import urllib.parse

import pytest
from browser import document, needs_browser


SITE = pathlib.Path(__file__).parents[1] / "docs" / "_build" / "html"
FOLDERS = ("_sources", "_static", "_modules", "_downloads", "_images")
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="needs `make docs`"
)
# A telephone and a screen.
WIDTHS = (390, 1280)
# Opens the pages that the fragment names, one after the other, in a frame of the width
# that it begins with, and writes down how wide they are.
FRAME = """<!doctype html><body><iframe height="800"></iframe><script>
const [width, ...pages] = location.hash.slice(1).split(",");
const frame = document.querySelector("iframe"), found = [];
frame.width = width;
frame.style.border = "none";
(async () => {
  for (const page of pages) {
    await new Promise((done) => { frame.onload = done; frame.src = page; });
    await new Promise((done) => setTimeout(done, 200));
    const root = frame.contentDocument.documentElement;
    found.push([page, root.clientWidth, root.scrollWidth]);
  }
  document.body.dataset.widths = JSON.stringify(found);
})();
</script></body>"""


def _pages():
    pages = sorted(SITE.rglob("*.html")) if SITE.exists() else []
    return [p for p in pages if p.relative_to(SITE).parts[0] not in FOLDERS]


class Page(html.parser.HTMLParser):
    """What a page points to, what it can be pointed at, and its pictures."""

    def __init__(self, file):
        super().__init__()
        self.targets, self.names, self.untold = [], set(), []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[k] for k in ("id", "name") if given.get(k)}
        self.targets += [given[k] for k in ("href", "src") if given.get(k)]
        if tag == "img" and not given.get("alt"):
            self.untold.append(given.get("src"))


@ft.cache
def _page(file):
    return Page(file)


def test_links_and_pictures():
    """Every link and picture of the site is there, and pictures have a text."""
    broken = []
    for file in _pages():
        page = _page(file)
        broken += [(file.name, "no text", source) for source in page.untold]
        for target in page.targets:
            path, _, name = target.partition("#")
            path = urllib.parse.unquote(path.partition("?")[0])
            if re.match(r"[a-z]+:|//", target):
                continue
            found = (file.parent / path).resolve() if path else file
            if not found.exists():
                broken.append((file.name, target))
            elif name and found.suffix == ".html" and name not in _page(found).names:
                broken.append((file.name, target))
    assert not broken


def test_the_site_needs_no_network():
    """No script, style or picture comes from another host."""
    pattern = re.compile(
        r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//'
        r'|<link[^>]+rel="stylesheet"[^>]+href="(?:https?:)?//'
    )
    for file in _pages():
        assert not pattern.search(file.read_text(encoding="utf-8")), file


@pytest.fixture(scope="module")
def server():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            if self.path != "/frame.html":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(FRAME.encode())

    handler = ft.partial(Quiet, directory=SITE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("file", _pages(), ids=lambda file: file.stem)
def test_pages_log_nothing(file, server, tmp_path):
    text = document(f"{server}/{file.relative_to(SITE)}", tmp_path / "profile")
    assert "<h1" in text or file.name in ("genindex.html", "search.html")


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(width, server, tmp_path):
    names = [str(file.relative_to(SITE)) for file in _pages()]
    names.append("_static/play/index.html")
    found = []
    for some in (names[k : k + 8] for k in range(0, len(names), 8)):
        fragment = ",".join([str(width), *some])
        text = document(f"{server}/frame.html", tmp_path / "profile", fragment)
        match = re.search(r'data-widths="([^"]*)"', text)
        assert match is not None, some
        found += json.loads(html.unescape(match[1]))
    assert [name for name, *_ in found] == names
    assert all(width - 20 <= inner <= width for _, inner, _ in found), found
    assert not [row for row in found if row[2] > row[1]]


@pytest.mark.slow
@needs_browser
def test_search(tmp_path):
    """Without a server, as `make docs` leaves the site."""
    address = (SITE / "search.html").as_uri()
    found = document(f"{address}?q=bracket", tmp_path / "profile")
    assert len(re.findall(r'<li[^>]*class="[^"]*kind-', found)) > 5
