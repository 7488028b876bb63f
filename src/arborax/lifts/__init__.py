"""Vector fields lifted to primitive elements, contracted with a log-signature."""

from ._block_matrices import Blocks as Blocks
from ._coefficients import Coefficients as Coefficients
from ._expansion import AbstractExpansion as AbstractExpansion
from ._fields import (
    as_driving_fields as as_driving_fields,
    DrivingFields as DrivingFields,
    takes_time as takes_time,
)
from ._linear import (
    check_ordered as check_ordered,
    lift_matrices as lift_matrices,
    window_matrices as window_matrices,
)
from ._linear_fields import exact_flow as exact_flow, LinearFields as LinearFields
from ._window_field import (
    check_lift as check_lift,
    lift as lift,
    lifted_fields as lifted_fields,
    WindowField as WindowField,
)
