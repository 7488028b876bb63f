"""Models that turn a path into a control, a log-signature for each window."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._inputs import as_choice, as_kind
from ..algebra import AbstractHopfAlgebra
from ..paths import SampledPath
from ..signatures import rough_path, RoughPath
from ._base import AbstractCausalModel
from ._checks import as_sample


class AbstractControlModel(AbstractCausalModel):
    """An algebra, windows of `window` samples, and the calculus of the driver."""

    alg: AbstractHopfAlgebra = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    calculus: str = eqx.field(static=True)
    window: int = eqx.field(static=True)
    basepoint: bool = eqx.field(static=True)
    brackets: str | None = eqx.field(static=True)

    def prepare(self, path: SampledPath) -> RoughPath:
        """The control that the model makes of a path; `model(model.prepare(path))` is
        `model(path)`. It does not depend on the weights: where the driver is data,
        prepare it once and train on the result."""
        path = self.check(path)
        realised = self.brackets == "realised" and path.brackets is None
        if not realised:
            self._check_calculus("path", path.brackets is not None)
        return rough_path(
            None,
            path,
            self.alg,
            brackets="realised" if realised and self.calculus == "ito" else None,
            window=self.window,
            basepoint=self.basepoint,
        )

    def _check_calculus(self, name: str, ito: bool) -> None:
        """Refuse data of the other calculus."""
        if ito and self.calculus == "stratonovich":
            raise ValueError(
                f"the {name} carries brackets, so its calculus is Itô's, but the model "
                f"({self.alg}) is a Stratonovich model. Build it with `Ito`, "
                "`GrossmanLarson` or `MuntheKaasWright`, or leave the brackets out."
            )
        if not ito and self.calculus == "ito":
            raise ValueError(
                f"the model ({self.alg}) is an Itô model and needs brackets, but the "
                f"{name} has none. Supply them, build the model with "
                "`brackets='realised'`, or use a Stratonovich model (`Shuffle`)."
            )

    def _control(self, path: SampledPath | RoughPath) -> RoughPath:
        if not isinstance(path, RoughPath):
            return self.prepare(path)
        if path.alg != self.alg:
            raise ValueError(
                f"the control is in {path.alg}, the model was built for {self.alg}."
            )
        if path.log_signatures.ndim != 2:
            raise ValueError(
                "a model takes one control, with log-signatures (windows, primitives); "
                f"got {path.log_signatures.shape}. Use `jax.vmap`."
            )
        self._check_calculus("control", path.calculus == "ito")
        return path

    def _step_bracket(
        self,
        last: Float[Array, " channels"],
        x: Float[Array, " channels"],
        bracket: Any,
        finite_variation: tuple[int, ...],
    ) -> Float[Array, "channels channels"] | None:
        """The bracket of the step of a stream from one sample to the next."""
        if bracket is not None:
            shape = (self.channels, self.channels)
            bracket = as_sample("bracket", bracket, shape, self)
        elif self.calculus == "ito" and self.brackets is not None:
            pair = SampledPath(
                jnp.arange(2, dtype=x.dtype),
                jnp.stack([last, x]),
                finite_variation=finite_variation,
                check=False,
            )
            bracket = pair.realised_brackets()[0]
        self._check_calculus("sample", bracket is not None)
        return bracket


def check_algebra(alg: Any) -> None:
    """Refuse all but algebras."""
    as_kind("alg", alg, AbstractHopfAlgebra, "be an algebra such as `Ito(2, 2)`")


def resolve_calculus(alg: AbstractHopfAlgebra, calculus: str | None) -> str:
    """The calculus of a model; an algebra may leave the choice."""
    if calculus is None:
        return alg.calculus or "ito"
    as_choice("calculus", calculus, ("ito", "stratonovich"))
    if alg.calculus not in (None, calculus):
        raise ValueError(
            f"{alg} is the algebra of {alg.calculus} calculus, got "
            f"calculus={calculus!r}. Use `Shuffle` for Stratonovich; `Ito`, "
            "`GrossmanLarson` or `MuntheKaasWright` for Itô."
        )
    return calculus
