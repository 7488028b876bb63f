"""Stored values of iisignature, pysiglib and roughpy (see fixtures for conventions)."""

import json
import pathlib

import jax.numpy as jnp
import jitted
import numpy as np
import pytest

import arborax as abx
from arborax import algebra


FIXTURE = pathlib.Path(__file__).parent.parent / "fixtures" / "oracles.json"
CASES = json.loads(FIXTURE.read_text())["cases"]
cases = pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['dim']}-{c['depth']}")


def close(got, expected):
    np.testing.assert_allclose(got, np.array(expected), 1e-12, 1e-12)


def our_tree(theirs):
    """pysiglib's `[child, ..., root]` as `(root, (child, ...))`."""
    return (theirs[-1], tuple(our_tree(c) for c in theirs[:-1]))


@cases
def test_words(case):
    alg = abx.Shuffle(case["dim"], case["depth"])
    xs = jnp.asarray(case["path"])
    x = jitted.signature(xs, alg)
    for package in ("iisignature", "pysiglib", "roughpy"):
        close(x, case[package]["signature"])
    close(algebra.to_pysiglib(alg)(np.asarray(x)), case["pysiglib"]["signature"])
    expanded = alg.log(x)
    close(expanded, case["iisignature"]["log_signature_expanded"])
    close(expanded, case["pysiglib"]["log_signature_0"])
    lyndon_words = [alg.index[key] for key in alg.primitive_basis]
    close(expanded[jnp.array(lyndon_words)], case["pysiglib"]["log_signature_1"])


@cases
def test_lyndon_and_hall_brackets(case):
    alg = abx.Shuffle(case["dim"], case["depth"])
    log = np.asarray(jitted.log_signature(jnp.asarray(case["path"]), alg))
    close(log, case["iisignature"]["log_signature_lyndon"])
    close(log, case["pysiglib"]["log_signature_2"])
    close(log, case["pysiglib"]["log_signature_3"])
    hall = algebra.to_roughpy(alg)(log)
    close(hall, case["roughpy"]["log_signature_hall"])
    single_precision = case["iisignature"]["log_signature_hall"]
    np.testing.assert_allclose(hall, single_precision, 1e-6, 1e-8)
    names = case["iisignature"]["log_signature_lyndon_names"]
    letters = [tuple(int(c) - 1 for c in name if c.isdigit()) for name in names]
    assert letters == list(alg.primitive_basis)


def test_lyndon_words_and_brackets_differ_from_dimension_three_on():
    """The two conventions that are both called log-signature."""
    case = next(c for c in CASES if c["dim"] == 3)["pysiglib"]
    gap = np.subtract(case["log_signature_1"], case["log_signature_2"])
    assert np.abs(gap).max() > 1e-3


@cases
def test_nonplanar_trees(case):
    alg = abx.GrossmanLarson(case["dim"], case["branched_depth"])
    xs = jnp.asarray(case["path"])
    theirs = case["pysiglib"]
    keys = [algebra.canonical((our_tree(t),)) for t in theirs["nonplanar_keys"]]
    x, log = jitted.both(xs, alg)
    close(x[jnp.array([alg.index[k] for k in keys])], theirs["nonplanar_signature"])
    places = jnp.array([alg.primitive_index[k[0]] for k in keys])
    close(log[places], theirs["nonplanar_log_signature"])
    order = algebra.to_pysiglib(alg)
    close(order(np.asarray(x)), theirs["nonplanar_signature"])


@cases
def test_planar_forests_with_and_without_brackets(case):
    alg = abx.MuntheKaasWright(case["dim"], case["branched_depth"])
    xs, brackets = jnp.asarray(case["path"]), jnp.asarray(case["brackets"])
    theirs = case["pysiglib"]
    keys = [tuple(our_tree(t) for t in f) for f in theirs["planar_keys"]]
    places = jnp.array([alg.index[k] for k in keys])
    order = algebra.to_pysiglib(alg)
    x = jitted.signature(xs, alg)
    close(x[places], theirs["planar_signature"])
    close(order(np.asarray(x)), theirs["planar_signature"])
    x = jitted.signature(xs, alg, brackets)
    close(x[places], theirs["planar_signature_ito"])
    close(order(np.asarray(x)), theirs["planar_signature_ito"])
    log = alg.from_primitive(jitted.log_signature(xs, alg, brackets))
    close(log[places], theirs["planar_log_signature_ito_0"])
