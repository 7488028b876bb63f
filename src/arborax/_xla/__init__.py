"""What the library does only because of today's compiler.

Barriers, sums written out term by term, blocked products, functions with derivatives of
their own. Nothing here is mathematics: each piece has a plain form beside it, and
`plain` switches to it.
"""

from ._functions import custom_jvp as custom_jvp, Function as Function, Linear as Linear
from ._outer import outer as outer
from ._pieces import in_pieces as in_pieces
from ._primitive import first_size as first_size, is_symbolic as is_symbolic
from ._quadratic import quadratic as quadratic
from ._rows import rows_product as rows_product
from ._settle import settle as settle, settle_cotangent as settle_cotangent
from ._small_einsum import small_einsum as small_einsum
from ._small_product import scale as scale, small_product as small_product
from ._sparse_rows import apply_rows as apply_rows
from ._stored import stored as stored
from ._varying import (
    scan as scan,
    sharded as sharded,
    vary_alike as vary_alike,
    vary_as as vary_as,
)
