"""Sampled paths: container, interpolation, augmentation, windows and drivers."""

from ._asynchronous import merge_channels as merge_channels
from ._augment import (
    add_basepoint as add_basepoint,
    add_time as add_time,
    lead_lag as lead_lag,
    rectilinear as rectilinear,
)
from ._brownian import brownian as brownian, brownian_brackets as brownian_brackets
from ._fractional import (
    fractional_brownian as fractional_brownian,
    riemann_liouville as riemann_liouville,
)
from ._interpolation import (
    AbstractInterpolation as AbstractInterpolation,
    fill_missing as fill_missing,
    HermiteInterpolation as HermiteInterpolation,
    interpolate as interpolate,
    LinearInterpolation as LinearInterpolation,
    RectilinearInterpolation as RectilinearInterpolation,
)
from ._levy_area import (
    brownian_areas as brownian_areas,
    BrownianSteps as BrownianSteps,
)
from ._sampled import SampledPath as SampledPath
from ._square_root import (
    square_root_driver as square_root_driver,
    SquareRootDriver as SquareRootDriver,
)
from ._windows import (
    windows_at_known_times as windows_at_known_times,
    windows_by_points as windows_by_points,
    windows_by_time as windows_by_time,
)
