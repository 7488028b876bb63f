"""Fitted estimators in one file, and in a pickle."""

import dataclasses
import os
import pathlib
import tempfile
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..training import FileFormatError, load, load_content, save


_T = TypeVar("_T", bound="Saved")


class Saved(BaseEstimator):
    """Estimators that [`arborax.save`][] can hold."""

    def save(self, path: str | os.PathLike) -> None:
        """Writes parameters and what was learned to one file, without pickle. The
        history of the training (`result_`) is left out, and so is a `random_state` that
        is not a number."""
        check_is_fitted(self)
        fitted = {
            name: _plain(value)
            for name, value in vars(self).items()
            if name.endswith("_") and name not in ("result_", "recipe_", "svm_")
        }
        name, parameters = type(self).__name__, self.get_params(deep=False)
        if isinstance(parameters.get("random_state"), np.random.RandomState):
            parameters["random_state"] = None
        save(path, dict(estimator=name, parameters=parameters, fitted=fitted))

    @classmethod
    def load(cls: type[_T], path: str | os.PathLike) -> _T:
        """Reads what `save` wrote; predictions are the same bit for bit."""
        found = _content(path)
        if found["estimator"] != cls.__name__:
            raise FileFormatError(
                f"{path} holds a {found['estimator']}, not a {cls.__name__}."
            )
        estimator = cls(**found["parameters"])
        for attribute, value in found["fitted"].items():
            value = np.array(value) if isinstance(value, list) else value
            setattr(estimator, attribute, value)
        estimator._restore()
        return estimator

    def _restore(self) -> None:
        """Makes what is not stored."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> Any:
        """Compiled functions inside a model have no pickle, so its file is taken."""
        given: Any = super().__getstate__()
        state = dict(given)
        if "model_" in state:
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "model.abx"
                save(file, state["model_"])
                state["model_"] = file.read_bytes()
            if "result_" in state:
                bare = dict(model=None, last=None)
                state["result_"] = dataclasses.replace(state["result_"], **bare)
        return state

    def __setstate__(self, state: Any) -> None:
        if isinstance(state.get("model_"), bytes):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "model.abx"
                file.write_bytes(state["model_"])
                state = state | {"model_": load(file)}
        super().__setstate__(state)


def _plain(value: Any) -> Any:
    """Arrays of text as lists, which files hold."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return value.tolist()
    return value


def _content(path: str | os.PathLike) -> dict[str, Any]:
    found = load_content(path)
    if not isinstance(found, dict) or "estimator" not in found:
        raise FileFormatError(f"{path} holds no estimator; use `abx.load`.")
    return found


def load_estimator(path: str | os.PathLike) -> Any:
    """Reads an estimator of any class, written by its method `save`."""
    name, kinds = _content(path)["estimator"], [Saved]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__name__ == name:
            return kind.load(path)
    raise FileFormatError(f"{path} holds a {name}, which this arborax does not know.")
