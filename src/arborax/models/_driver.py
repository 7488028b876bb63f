"""The driver of generative models: time and Brownian motion."""

from typing import Any

from jaxtyping import ArrayLike, PRNGKeyArray

from ..paths import add_time, brownian, brownian_brackets, SampledPath


def brownian_driver(
    ts: ArrayLike,
    dim: int,
    shape: tuple[int, ...] = (),
    *,
    key: PRNGKeyArray,
    brackets: bool = False,
    dtype: Any = None,
) -> SampledPath:
    """Time and `dim` independent Brownian motions from zero.

    **Arguments:**

    - `ts`: `(times,)`, strictly increasing.
    - `dim`: number of Brownian channels; zero is allowed.
    - `shape`: batch shape.
    - `key`: a JAX random key.
    - `brackets`: whether to supply brackets, the time step on the Brownian diagonal:
        the driver is then an Itô driver.
    - `dtype`: floating dtype of the values. `None`: that of `ts`.

    **Returns:**

    A [`arborax.SampledPath`][] with `1 + dim` channels, time first and marked as of
    finite variation. Times and brackets are shared by the batch.
    """
    noise = brownian(ts, max(dim, 1), shape, dtype=dtype, key=key)
    given = brownian_brackets(ts, max(dim, 1), dtype) if brackets else None
    driver = add_time(SampledPath(ts, noise, brackets=given, check=False))
    if dim:
        return driver
    given = None if driver.brackets is None else driver.brackets[..., :1, :1]
    return SampledPath(
        driver.ts,
        driver.xs[..., :1],
        brackets=given,
        finite_variation=(0,),
        check=False,
    )
