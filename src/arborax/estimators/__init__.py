"""Estimators with the interface of scikit-learn, for your own data.

Signature features, signature kernels, and sequence models that classify, regress,
forecast and generate. All take arrays `(n, times, channels)`, lists of series of
unequal length, `SampledPath` and the collections of aeon and sktime.
"""

from .._imports import require as _require


_require("sklearn", "sklearn", "abx.estimators")

from ._classifier import SequenceClassifier as SequenceClassifier  # noqa: E402
from ._collections import as_paths as as_paths  # noqa: E402
from ._features import SignatureFeatures as SignatureFeatures  # noqa: E402
from ._forecaster import Forecaster as Forecaster  # noqa: E402
from ._frames import features_of_frame as features_of_frame  # noqa: E402
from ._generator import PathGenerator as PathGenerator  # noqa: E402
from ._kernels import (  # noqa: E402
    SignatureKernelClassifier as SignatureKernelClassifier,
    SignatureKernelRegressor as SignatureKernelRegressor,
)
from ._pretrained import pretrained as pretrained  # noqa: E402
from ._regressor import SequenceRegressor as SequenceRegressor  # noqa: E402
from ._reservoir import (  # noqa: E402
    ReservoirClassifier as ReservoirClassifier,
    ReservoirRegressor as ReservoirRegressor,
)
from ._saving import load_estimator as load_estimator  # noqa: E402
