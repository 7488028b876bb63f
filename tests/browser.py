"""Pages in a real browser, where there is one.

With the environment variable ARBORAX_BROWSER=required, as in the workflows, there must
be one. Otherwise the tests of pages are skipped without it.
"""

import os
import pathlib
import shutil
import subprocess

import pytest


NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
if BROWSER is None and os.environ.get("ARBORAX_BROWSER") == "required":
    raise RuntimeError(f"ARBORAX_BROWSER=required, but there is none of {NAMES}.")
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"needs a browser: one of {', '.join(NAMES)}"
)


def document(
    page: pathlib.Path | str, profile: pathlib.Path, fragment: str = ""
) -> str:
    """The document once the scripts of a page have run; they may not log anything.

    `page` is a file or an address, `profile` a folder for the browser alone.
    """
    address = page if isinstance(page, str) else page.as_uri()
    options = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update "
        "--enable-logging=stderr --virtual-time-budget=5000 --window-size=1000,800 "
        "--dump-dom"
    )
    out = subprocess.run(
        [
            str(BROWSER),
            *options.split(),
            f"--user-data-dir={profile}",
            f"{address}#{fragment}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert out.returncode == 0, out.stderr[-2000:]
    assert "CONSOLE" not in out.stderr, out.stderr[-2000:]
    return out.stdout
