"""Signature features of series as a transformer."""

import dataclasses
import functools as ft
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._inputs import as_choice, as_count
from .._values import shown
from ..algebra import (
    AbstractHopfAlgebra,
    GrossmanLarson,
    Ito,
    MuntheKaasWright,
    Shuffle,
)
from ..paths import (
    add_basepoint,
    add_time,
    lead_lag,
    SampledPath,
    windows_by_points,
)
from ..signatures import log_signature, signature
from ._blocks import by_blocks
from ._collections import (
    centred_paths,
    check_channels,
    check_names,
    known_paths,
    learn_names,
)
from ._names import coordinate_names
from ._saving import Saved
from ._scaling import Moments, Scaling


ALGEBRAS = {
    "ito": Ito,
    "shuffle": Shuffle,
    "grossman-larson": GrossmanLarson,
    "munthe-kaas-wright": MuntheKaasWright,
}


def make_algebra(alg: Any, dim: int, depth: int) -> AbstractHopfAlgebra:
    """An algebra by name, by class, or one that is built already."""
    if isinstance(alg, AbstractHopfAlgebra):
        if alg.dim != dim:
            raise ValueError(
                f"`alg` is {alg}, but the paths have {dim} channels with those that "
                "were added; give its name instead."
            )
        return alg
    if isinstance(alg, str):
        alg = ALGEBRAS[as_choice("alg", alg, tuple(ALGEBRAS))]
    if not callable(alg):
        raise TypeError(f"`alg` must be one of {tuple(ALGEBRAS)}, got {shown(alg)}.")
    made: Any = alg(dim, depth)
    return made


class Recipe(NamedTuple):
    """How features are made; static."""

    alg: AbstractHopfAlgebra
    brackets: str | None
    log: bool
    window: int | None
    steps: tuple[str, ...]


AUGMENT = {"lead-lag": lead_lag, "time": add_time, "basepoint": add_basepoint}


@ft.partial(jax.jit, static_argnums=2)
def signature_features(
    path: SampledPath, scaling: Scaling, recipe: Recipe
) -> jax.Array:
    """Features `(n, windows * size)`."""
    path, brackets = scaling.apply(path), recipe.brackets
    if brackets == "hayashi-yoshida":
        found, brackets = path.realised_brackets("hayashi-yoshida"), None
        path = dataclasses.replace(path, brackets=found, check=False)
    for step in recipe.steps:
        path = AUGMENT[step](path)
    if recipe.window is not None:
        path = windows_by_points(path, recipe.window)
    if path.brackets is not None:
        brackets = None
    take = log_signature if recipe.log else signature
    features = take(path, recipe.alg, brackets)
    return features.reshape(features.shape[0], -1)


@dataclasses.dataclass(eq=False, repr=False)
class SignatureFeatures(TransformerMixin, Saved):
    """Signature or log-signature features of series, as a scikit-learn transformer.

    `transform` returns an array `(n, features)`: [`arborax.log_signature`][] (or
    [`arborax.signature`][]) of the standardised and augmented paths. Series may have
    any length, and gaps. Batches are padded to a few sizes and lengths, so that few
    programs are compiled.

    !!! example

        ```python
        features = abx.estimators.SignatureFeatures("ito", depth=2, window=16)
        model = make_pipeline(features, StandardScaler(), LogisticRegression())
        model.fit(X, y).score(X_test, y_test)
        ```

    **Arguments:**

    - `alg`: `"ito"`, `"shuffle"`, `"grossman-larson"` or `"munthe-kaas-wright"`, or
        an algebra (or its class) with the number of channels after augmentation.
    - `depth`: of the algebra.
    - `log`: log-signatures, which have fewer coordinates (true), or signatures (false).
    - `window`: steps per window. The features of all windows are concatenated, and
        series may be no longer than those of `fit`. `None`: one window.
    - `brackets`: `"realised"` (previous tick), `"hayashi-yoshida"` (for channels
        observed at different times), `None`, or `"auto"`: realised, except for
        `"shuffle"`, which has none. Paths with their own brackets keep them.
    - `time`, `basepoint`, `lead_lag`: augmentations, applied in the order lead-lag,
        time, basepoint. Time runs from 0 to 1 over the longest series of `fit`.
    - `standardise`: subtract the mean and divide by the standard deviation of each
        channel in the training data.
    - `channels_last`: `False` for arrays `(n, channels, times)`.
    - `batch_size`: paths per compiled call.
    """

    alg: Any = "ito"
    depth: int = 2
    _: dataclasses.KW_ONLY
    log: bool = True
    window: int | None = None
    brackets: Any = "auto"
    time: bool = True
    basepoint: bool = False
    lead_lag: bool = False
    standardise: bool = True
    channels_last: bool = True
    batch_size: int = 256

    def fit(self, X: Any, y: Any = None) -> "SignatureFeatures":
        """Learns the scale of each channel and the longest length; `X` as in
        [`arborax.estimators.as_paths`][]."""
        return self.fit_parts([X])

    def fit_parts(self, parts: Iterable, names: Any = None) -> "SignatureFeatures":
        """`fit` for data that do not fit into memory.

        **Arguments:**

        - `parts`: collections as for `fit`, held in memory one at a time.
        - `names`: of the channels, for error messages.
        """
        as_choice(
            "brackets", self.brackets, ("auto", "realised", "hayashi-yoshida", None)
        )
        as_count("batch_size", self.batch_size)
        if self.window is not None:
            as_count("window", self.window)
        moments = None
        levels = self.basepoint and not self.standardise
        origin = np.zeros(1) if levels else None
        for part in parts:
            path, origin = centred_paths(part, self.channels_last, origin)
            here = Moments.of(path)
            if moments is None:
                self.n_features_in_, self.length_, moments = path.dim, 0, here
                learn_names(self, part)
            else:
                check_channels(self, path)
                check_names(self, part)
                moments = moments.joined(here)
            self.length_ = max(self.length_, path.num_times)
        if moments is None:
            raise ValueError("`parts` is empty; there is nothing to learn from.")
        self.scaling_, self.origin_ = moments.scaling(self.standardise, names), origin
        self._restore()
        return self

    def _restore(self) -> None:
        flags = {"lead-lag": self.lead_lag, "time": self.time}
        flags["basepoint"] = self.basepoint
        channels = self.n_features_in_ * (2 if self.lead_lag else 1)
        dim = channels + (1 if self.time else 0)
        alg = make_algebra(self.alg, dim, as_count("depth", self.depth))
        brackets = self.brackets
        if brackets == "auto":
            brackets = None if alg.calculus == "stratonovich" else "realised"
        steps = tuple(step for step, wanted in flags.items() if wanted)
        self.recipe_ = Recipe(alg, brackets, bool(self.log), self.window, steps)

    def transform(self, X: Any) -> np.ndarray:
        """Features `(n, features)`."""
        path = known_paths(self, X)
        if self.window is not None and path.num_times > self.length_:
            raise ValueError(
                f"a series has {path.num_times} points, but windows were laid out for "
                f"{self.length_}, the longest series of `fit`. Cut it, or use "
                "window=None."
            )

        def features(block: SampledPath) -> jax.Array:
            return signature_features(block, self.scaling_, self.recipe_)

        fixed = self.window is not None
        return by_blocks(features, path, self.length_, self.batch_size, fixed)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Readable names: words, trees and brackets of the channels.

        **Arguments:**

        - `input_features`: names of the channels; `None`: the columns of the frames
            in `fit`, otherwise `x0`, `x1` and so on.
        """
        check_is_fitted(self)
        channels = [f"x{k}" for k in range(self.n_features_in_)]
        channels = list(getattr(self, "feature_names_in_", channels))
        if input_features is not None:
            if len(input_features) != self.n_features_in_:
                raise ValueError(
                    f"`input_features` has {len(input_features)} names for "
                    f"{self.n_features_in_} channels."
                )
            channels = [str(name) for name in input_features]
        if self.lead_lag:
            channels = [f"{c}_{part}" for part in ("lead", "lag") for c in channels]
        if self.time:
            channels = ["t", *channels]
        recipe = self.recipe_
        names = coordinate_names(recipe.alg, channels, recipe.log)
        if recipe.window is None:
            return np.array(names, object)
        steps = self.length_ * (2 if self.lead_lag else 1) - (2 if self.lead_lag else 1)
        windows = max(-(-(steps + bool(self.basepoint)) // recipe.window), 1)
        every = [f"w{k}:{name}" for k in range(windows) for name in names]
        return np.array(every, object)
