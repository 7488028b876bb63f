"""The walks of `docs/developers.md` visit files that exist, in this order."""

import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import arborax as abx


ROOT = pathlib.Path(__file__).parents[1]
SECTIONS = re.split(r"^## ", (ROOT / "docs/developers.md").read_text(), flags=re.M)


def steps(section: str) -> list[list[str]]:
    """The files of each numbered step; a bare name lies beside the one before it."""
    (text,) = [part for part in SECTIONS if part.startswith(section)]
    found, folder = [], ""
    for step in re.findall(r"^\d+\. (.*(?:\n {3,4}\S.*)*)", text, flags=re.M):
        files = []
        for name in re.findall(r"`([\w/]+\.py)`", step):
            folder = name.rpartition("/")[0] if "/" in name else folder
            files.append(f"{folder}/{name.rpartition('/')[2]}")
        found.append(files)
    return found


WALKS = {"From `rough_path`": "src/arborax", "From `arborax run`": "src"}


@pytest.mark.parametrize("section", WALKS)
def test_files_exist(section):
    walk = steps(section)
    assert len(walk) > 10 and all(walk)
    for file in sum(walk, []):
        assert (ROOT / WALKS[section] / file).is_file(), file


def test_a_solve_visits_them_in_order():
    """By the first call of the function that each step names first."""
    (text,) = [part for part in SECTIONS if part.startswith("From `rough_path`")]
    walk = re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", text, flags=re.M)
    assert [file for file, _ in walk] == [s[0] for s in steps("From `rough_path`")]
    picture = (ROOT / "docs/_static/solve.svg").read_text()
    drawn = re.findall(r">\d+\. ([^<]+)</text>\s*<text[^>]*>([^<]+)<", picture)
    assert drawn == walk
    seen: dict[tuple[str, str], None] = {}
    source = str(ROOT / "src" / "arborax") + "/"

    def watch(frame, event, _):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(source):
            seen.setdefault((name.removeprefix(source), frame.f_code.co_qualname))

    ts = jnp.linspace(0.0, 1.0, 33)
    xs = jnp.cumsum(jr.normal(jr.key(0), (33, 2)), axis=0)
    mlp = abx.models.MLP(9, 6, 4, 1, key=jr.key(1))
    alg, geometry = abx.Ito(2, 2), abx.SO(3)

    def loss(mlp, xs):
        control = abx.rough_path(ts, xs, alg, window=16, brackets="realised")
        fields = lambda y: mlp(y.reshape(-1)).reshape(2, 3)  # noqa: E731
        return jnp.sum(abx.solve(fields, jnp.eye(3), control, geometry=geometry).ys)

    jax.clear_caches()
    sys.setprofile(watch)
    try:
        jax.eval_shape(loss, mlp, xs)
    finally:
        sys.setprofile(None)
    assert [place for place in seen if place in walk] == walk
