"""Words, trees, forests and their Hopf algebras as static tables (NumPy only)."""

from ._base import AbstractHopfAlgebra as AbstractHopfAlgebra
from ._conversion import (
    forget_order as forget_order,
    ito_from_tree as ito_from_tree,
    primitive_conversion as primitive_conversion,
    tree_coordinates as tree_coordinates,
)
from ._grossman_larson import GrossmanLarson as GrossmanLarson
from ._ito import Ito as Ito
from ._munthe_kaas_wright import MuntheKaasWright as MuntheKaasWright
from ._shuffle import Shuffle as Shuffle
from ._sparse import SparseMap as SparseMap
from ._trees import (
    canonical as canonical,
    symmetry_factor as symmetry_factor,
    tree_factorial as tree_factorial,
    weight as weight,
)
from ._words import (
    lyndon_factorisation as lyndon_factorisation,
    lyndon_words as lyndon_words,
    weighted_words as weighted_words,
)
