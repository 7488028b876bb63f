"""Values and gradients are those that were stored: `make.py` says how they are made."""

import json
import re

import make
import numpy as np
import pytest


STORED = json.loads(make.FILE.read_text(encoding="utf-8"))


# Close relatives of cases of the default run.
SLOW = re.compile(
    r"field (SE|Sphere|Hyperbolic|Product) .*,3\)"
    r"|solve SO (CF4|CFEES27|LieEuler|final)"
    r"|rotation (SavitzkyGolayNCDE|RotationForecaster)"
    r"|signature (MultiIndex.* array|BranchedWords.* realised)"
    r"|solve (linear MuntheKaasWright|SDE Euclidean)"
)


def _case(name):
    return pytest.param(name, marks=[pytest.mark.slow] if SLOW.match(name) else [])


@pytest.mark.parametrize("name", [_case(name) for name in make.CASES])
def test_numbers(name):
    for part, values in make.numbers(name).items():
        wanted = np.asarray(STORED[part])
        # Relative to the largest number of the vector, since entries may cancel.
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(
            values, wanted, rtol=1e-9, atol=1e-9 * scale, err_msg=part
        )


def test_nothing_stored_is_forgotten():
    names = {part.rsplit(": ", 1)[0] for part in STORED}
    assert names == set(make.CASES)
