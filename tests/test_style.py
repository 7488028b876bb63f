"""Phrases that the house does not use, in README, pages, text notebooks and docstrings.

Each pattern is narrow, so that a hit is a sentence to rewrite.
"""

import ast
import pathlib
import re

import pytest


ROOT = pathlib.Path(__file__).parents[1]
# What to write instead, by pattern. Patterns meet text on one line.
PHRASES = {
    r"[,;] else ": "otherwise, or two sentences",
    r"\band so is its\b|\band so are its\b": "two sentences",
    r"\bof the form that\b": "say the form",
    r"\b(?:and|or) infinity neither\b": "say it in two sentences",
    r"\b(?:once|twice|times|seconds|evaluations?|products?) a "
    r"(?:step|window|call|path|pair|batch)\b": "per step",
    r"\b(?:measured|made|built|computed|trained|drawn) anew\b": "again",
    r"\bwhat came out\b": "the results",
    r"\bits own whims\b|\band hope\b": "no jokes",
    r"\bperceptrons?\b": "MLP",
    r"\bweights rightly\b": "sets the weights",
    r"\bso many-th\b": "every k-th",
    r"\bshall be\b": "is, or: in total",
}
HEADING = r"^#+ What (?:this|that|it|the \w+|\w+) (?:does|says|is for)$"


def _pages():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if not {"_build", "generated"} & set(page.parts):
            text = page.read_text(encoding="utf-8")
            yield page, re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def _notebooks():
    for script in (ROOT / "examples").rglob("*.py"):
        lines = script.read_text(encoding="utf-8").split("\n")
        prose = [line[1:].strip() for line in lines if line.startswith("#")]
        yield script, "\n".join(prose)


def _docstrings():
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef
    for file in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        texts = filter(None, (ast.get_docstring(node) for node in nodes))
        yield file, re.sub(r"```.*?```", "", "\n\n".join(texts), flags=re.S)


def _found(text):
    """Phrases in a text, each with what to write instead."""
    flat = re.sub(r"\s+", " ", text)
    for pattern, instead in PHRASES.items():
        for match in re.finditer(pattern, flat, re.IGNORECASE):
            yield f"...{flat[max(0, match.start() - 40) : match.end()]}: {instead}"
    for match in re.finditer(HEADING, text, re.MULTILINE):
        yield f"{match.group()}: a heading is a noun"


@pytest.mark.parametrize("texts", [_pages, _notebooks, _docstrings])
def test_phrases(texts):
    read = list(texts())
    assert sum(map(len, (text for _, text in read))) > 10_000
    found = [
        (str(file.relative_to(ROOT)), f) for file, text in read for f in _found(text)
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "Give a key, else one is made.",
        "The size is static\nand so is its shape.",
        "Fields of the form that solvers take.",
        "It evaluates the field twice a\nstep.",
        "The table was measured anew.",
        "A perceptron with two layers.",
        "Every so many-th sample.",
        "## What this says",
        "# What `solve` does".replace("`", ""),
    ],
)
def test_the_phrases_are_found(text):
    assert list(_found(text))


@pytest.mark.parametrize(
    "text",
    [
        "Everything else is an extra, and nothing else is edited.",
        "`x if x > 0 else y` is a value.",
        "The core and so on; made as before. What comes out of it is an array.",
        "Take a step, then a window; a call returns at once.",
        "## What each kernel sees",
    ],
)
def test_plain_sentences_pass(text):
    assert not list(_found(text))
