"""The switch: by context, by environment variable, and part of what is compiled."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from arborax._xla import barrier, plain, running_sums, TRICKS


@jax.jit
def tricky(x):
    return barrier(running_sums(x))


def marks(x=jnp.ones((1, 40))) -> tuple[bool, bool]:
    """Whether the barrier and the triangles are there."""
    text = str(jax.make_jaxpr(tricky)(x))
    return "arborax_barrier" in text, "dot_general" in text


def test_names_and_contexts():
    assert marks() == (True, True)
    with plain("barrier"):
        assert marks() == (False, True)
        with plain("running_sums"):  # the inner one alone counts
            assert marks() == (True, False)
        assert marks() == (False, True)
    with plain():
        assert marks() == (False, False)
    assert marks() == (True, True)


def test_compiled_programs_are_not_shared():
    x = jnp.ones((1, 40))

    def products() -> int:
        return tricky.lower(x).as_text().count("dot_general")

    tricky(x)
    assert products() > 0
    with plain():
        tricky(x)
        assert products() == 0


def test_unknown_names():
    with pytest.raises(ValueError, match="'no-such'.*'barrier'"):
        plain("no-such")


REPORT = """
from arborax._xla import TRICKS
from arborax._xla._switch import uses
print(*[name for name in TRICKS if not uses(name)])
"""


@pytest.mark.parametrize(
    "text,off",
    [("", ()), ("all", TRICKS), ("sums,sparse", ("sums", "sparse"))],
)
def test_environment_variable(text, off):
    environment = {**os.environ, "ARBORAX_PLAIN": text}
    command = [sys.executable, "-c", REPORT]
    out = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert tuple(out.stdout.split()) == tuple(off), out.stderr


def test_environment_variable_with_unknown_name():
    environment = {**os.environ, "ARBORAX_PLAIN": "summs"}
    command = [sys.executable, "-c", "import arborax"]
    out = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert out.returncode != 0
    assert "ARBORAX_PLAIN" in out.stderr and "'summs'" in out.stderr
