"""Code that exists only because of the present compiler.

Barriers, sums written out term by term, blocked products, and functions with
derivatives of their own. There is no mathematics here: each trick has a plain form
beside it, to which `plain` switches.
"""

from ._barrier import (
    barrier as barrier,
    barrier_back as barrier_back,
    in_turn as in_turn,
    is_symbolic as is_symbolic,
)
from ._cosine import cosine as cosine
from ._derivatives import (
    custom_jvp as custom_jvp,
    first_size as first_size,
    Function as Function,
    Linear as Linear,
)
from ._einsum import (
    inner as inner,
    outer as outer,
    scale as scale,
    small_einsum as small_einsum,
    small_product as small_product,
    written_out as written_out,
)
from ._even import even as even
from ._finite import all_finite as all_finite
from ._pieces import in_pieces as in_pieces
from ._quadratic import quadratic as quadratic
from ._running_sums import running_sums as running_sums
from ._sparse import apply_map as apply_map, apply_rows as apply_rows
from ._switch import plain as plain, TRICKS as TRICKS
from ._tensors import Tensors as Tensors
from ._varying import (
    scan as scan,
    sharded as sharded,
    vary_alike as vary_alike,
    vary_as as vary_as,
)
