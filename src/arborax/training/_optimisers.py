"""AdamW and Muon through Optax, reading Equinox's weights as `(out, in)`."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np

from .._imports import require
from .._inputs import as_choice
from .._values import is_concrete


def muon(
    learning_rate: float | Callable,
    weight_decay: float = 1e-6,
    *,
    layout: Literal["equinox", "optax"] = "equinox",
    **options: Any,
) -> Any:
    """Muon for the matrices of a model, AdamW for the rest (`optax.contrib.muon`).

    A matrix's momentum (0.95, Nesterov) is orthogonalised by five Newton-Schulz steps
    and scaled by `sqrt(max(1, fan_out / fan_in))`; decoupled weight decay. Leaves of
    any other rank go to Adam with betas (0.9, 0.999), the same learning rate, no decay,
    and Nesterov momentum too (pass `nesterov=False` for neither).

    **Arguments:**

    - `learning_rate`: a number or an Optax schedule; 5e-4 in the published runs.
    - `weight_decay`: decoupled decay of the matrices.
    - `layout`: `"equinox"` reads a matrix as `(out, in)`, as `eqx.nn.Linear` stores it.
        `"optax"` reads it as `(in, out)`, which for Equinox models inverts the ratio of
        fans: this is what the published runs did. Square matrices do not tell them
        apart.
    - `options`: further arguments of `optax.contrib.muon`.

    Reference: Jordan et al., "Muon: an optimizer for hidden layers" (2024).
    """
    contrib = require("optax.contrib", "train", "abx.fit with Muon")
    as_choice("layout", layout, ("equinox", "optax"))
    inner, outer = (-1, -2) if layout == "equinox" else (-2, -1)
    axes = contrib.MuonDimensionNumbers(reduction_axis=inner, output_axis=outer)

    def dimension_numbers(params: Any) -> Any:
        return jax.tree.map(lambda x: axes if x.ndim == 2 else None, params)

    return contrib.muon(
        learning_rate,
        weight_decay=weight_decay,
        muon_weight_dimension_numbers=dimension_numbers,
        **options,
    )


def _named(name: str, learning_rate: Any, weight_decay: Any) -> Any:
    """An optimiser by its name; `None` stands for a default."""
    decay = 1e-6 if weight_decay is None else weight_decay
    rates = {"adamw": 1e-3, "muon": 5e-4, "muon-published": 5e-4}
    rate = rates[as_choice("optimiser", name, tuple(rates))]
    rate = rate if learning_rate is None else learning_rate
    if name == "adamw":
        optax = require("optax", "train", "abx.fit")
        return optax.adamw(rate, weight_decay=decay)
    return muon(rate, decay, layout="equinox" if name == "muon" else "optax")


def _is_rate(value: Any) -> bool:
    if not is_concrete(value):
        return True
    return np.ndim(value) == 0 and bool(np.isreal(value)) and 0 <= value < np.inf


def make_optimiser(
    optimiser: Any,
    learning_rate: float | Callable | None,
    weight_decay: float | None,
    clip: float | None,
) -> Any:
    """The Optax transformation of a `fit` call: global-norm clipping (`None`: none),
    then the rule. `learning_rate` and `weight_decay` belong to the named rules."""
    optax = require("optax", "train", "abx.fit")
    for name, value in (
        ("learning_rate", learning_rate),
        ("weight_decay", weight_decay),
    ):
        if not (value is None or callable(value) or _is_rate(value)):
            raise ValueError(
                f"{name} must be a number that is finite and not negative, got "
                f"{value!r:.40}."
            )
    if isinstance(optimiser, str):
        rule = _named(optimiser, learning_rate, weight_decay)
    elif hasattr(optimiser, "init") and hasattr(optimiser, "update"):
        if learning_rate is not None or weight_decay is not None:
            raise ValueError(
                "learning_rate and weight_decay belong to the named optimisers; an "
                "Optax transformation brings its own. Leave them out."
            )
        rule = optimiser
    else:
        raise TypeError(
            '`optimiser` must be "adamw", "muon" or an Optax transformation, got a '
            f"{type(optimiser).__name__}."
        )
    if clip is None:
        return optax.with_extra_args_support(rule)
    if not clip > 0:
        raise ValueError(f"clip must be positive or None, got {clip}.")
    return optax.chain(optax.clip_by_global_norm(clip), rule)
