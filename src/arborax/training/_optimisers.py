"""AdamW and Muon through Optax, reading Equinox's weights as `(out, in)`."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np

from .._extras import require
from .._values import is_concrete


def adamw(
    learning_rate: float | Callable, weight_decay: float = 1e-6, **options: Any
) -> Any:
    """AdamW (`optax.adamw`) with the library's default decay.

    **Arguments:**

    - `learning_rate`: a number or an Optax schedule.
    - `weight_decay`: decoupled decay, applied to every parameter.
    - `options`: further arguments of `optax.adamw`.
    """
    optax = require("optax", "train", "abx.fit")
    return optax.adamw(learning_rate, weight_decay=weight_decay, **options)


def muon(
    learning_rate: float | Callable,
    weight_decay: float = 1e-6,
    *,
    layout: Literal["equinox", "optax"] = "equinox",
    select: Callable[[Any], bool] | None = None,
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
    - `select`: which arrays go to Muon; all those of rank 2 by default. Selected arrays
        of higher rank are read as stacks of matrices over their leading axes.
    - `options`: further arguments of `optax.contrib.muon`.

    Reference: Jordan et al., "Muon: an optimizer for hidden layers" (2024).
    """
    contrib = require("optax.contrib", "train", "abx.fit with Muon")
    if layout not in ("equinox", "optax"):
        raise ValueError(f'layout must be "equinox" or "optax", got {layout!r}.')
    if layout == "equinox":
        axes = contrib.MuonDimensionNumbers(reduction_axis=-1, output_axis=-2)
    else:
        axes = contrib.MuonDimensionNumbers(reduction_axis=-2, output_axis=-1)
    chosen = (lambda x: x.ndim == 2) if select is None else select

    def dimension_numbers(params: Any) -> Any:
        return jax.tree.map(lambda x: axes if chosen(x) else None, params)

    return contrib.muon(
        learning_rate,
        weight_decay=weight_decay,
        muon_weight_dimension_numbers=dimension_numbers,
        **options,
    )


_NAMED: dict[str, tuple[Callable, float]] = {
    "adamw": (adamw, 1e-3),
    "muon": (muon, 5e-4),
    "muon-published": (lambda *a, **k: muon(*a, layout="optax", **k), 5e-4),
}


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
    """The Optax transformation of a `fit` call: global-norm clipping, then the rule.

    **Arguments:**

    - `optimiser`: `"adamw"`, `"muon"`, `"muon-published"` or an Optax transformation.
    - `learning_rate`, `weight_decay`: for the named ones; `None` for the defaults (1e-3
        for AdamW, 5e-4 for Muon; decay 1e-6). Not allowed beside a transformation.
    - `clip`: largest global gradient norm; `None` for no clipping.
    """
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
        if optimiser not in _NAMED:
            raise ValueError(
                f"optimiser must be one of {sorted(_NAMED)} or an Optax "
                f"transformation, got {optimiser!r}."
            )
        make, default_rate = _NAMED[optimiser]
        rule = make(
            default_rate if learning_rate is None else learning_rate,
            weight_decay=1e-6 if weight_decay is None else weight_decay,
        )
    elif hasattr(optimiser, "init") and hasattr(optimiser, "update"):
        if learning_rate is not None or weight_decay is not None:
            raise ValueError(
                "learning_rate and weight_decay belong to the named optimisers; an "
                "Optax transformation brings its own. Leave them out."
            )
        rule = optimiser
    else:
        raise TypeError(
            f"optimiser must be one of {sorted(_NAMED)} or an Optax transformation, "
            f"got a {type(optimiser).__name__}."
        )
    if clip is None:
        return optax.with_extra_args_support(rule)
    if not clip > 0:
        raise ValueError(f"clip must be positive or None, got {clip}.")
    return optax.chain(optax.clip_by_global_norm(clip), rule)
