"""The checks of scikit-learn, with those that cannot hold for series. `PathGenerator`
is not among them: it needs four times, and the checks have two or three."""

import pathlib
import re

import pytest


pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from arborax.estimators import (  # noqa: E402
    Forecaster,
    ReservoirClassifier,
    ReservoirRegressor,
    SequenceClassifier,
    SequenceRegressor,
    SignatureFeatures,
    SignatureKernelClassifier,
    SignatureKernelRegressor,
)


GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "own-data.md"

COLUMNS = "an array (n, times) is n series of one channel, and may be longer later"
OBJECTS = "arrays of objects are refused"
FRAMES = "a data frame does not say which rows belong together"
FEW = "two steps of training do not learn anything"
CANNOT = {
    "check_n_features_in_after_fitting": COLUMNS,
    "check_n_features_in": COLUMNS,
    "check_transformer_general": COLUMNS,
    "check_classifiers_train": COLUMNS,
    "check_regressors_train": COLUMNS,
    "check_dtype_object": OBJECTS,
    "check_classifier_data_not_an_array": FRAMES,
    "check_regressor_data_not_an_array": FRAMES,
    "check_transformer_data_not_an_array": FRAMES,
    "check_regressors_int": FEW,
    "check_do_not_raise_errors_in_init_or_set_params": "types are checked in tests",
}
NO_FUTURE = {"check_fit2d_1feature": "a series of one sample has no future"}
SMALL = dict(steps=2, options=dict(hidden=4, width=4), average=None)
ESTIMATORS = [
    SignatureFeatures("shuffle", 1),
    SignatureKernelClassifier("geometric", 2),
    SignatureKernelRegressor("geometric", 2),
    SequenceClassifier("gru", **SMALL),
    SequenceRegressor("gru", **SMALL),
    Forecaster(1, "gru", **SMALL),
    ReservoirClassifier("shuffle", hidden=4, levels=2),
    ReservoirRegressor("shuffle", hidden=4, levels=2),
]


def cannot(estimator):
    return CANNOT | (NO_FUTURE if isinstance(estimator, Forecaster) else {})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=cannot)
def test_check_estimator(estimator, check):
    check(estimator)


def test_the_guide_lists_these_checks():
    found = re.findall(r"`(check_\w+)`", GUIDE.read_text())
    assert sorted(found) == sorted([*CANNOT, *NO_FUTURE, "check_estimator"])
