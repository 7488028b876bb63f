"""Words, trees, forests and their Hopf algebras as static tables (NumPy only)."""

from ._base import AbstractHopfAlgebra as AbstractHopfAlgebra
from ._branched_words import BranchedWords as BranchedWords
from ._closure import (
    prefix_closure as prefix_closure,
    step_rule as step_rule,
    StepRule as StepRule,
)
from ._conversion import (
    forget_order as forget_order,
    forget_shape as forget_shape,
    primitive_conversion as primitive_conversion,
    word_algebra as word_algebra,
    words_from_tree as words_from_tree,
)
from ._drawing import draw as draw, to_text as to_text
from ._grossman_larson import GrossmanLarson as GrossmanLarson
from ._ito import Ito as Ito
from ._multi_index import MultiIndex as MultiIndex
from ._munthe_kaas_wright import MuntheKaasWright as MuntheKaasWright
from ._orders import to_pysiglib as to_pysiglib, to_roughpy as to_roughpy
from ._shuffle import Shuffle as Shuffle
from ._sparse import (
    ProductTable as ProductTable,
    selection as selection,
    SparseMap as SparseMap,
)
from ._trees import (
    canonical as canonical,
    colours as colours,
    recolour as recolour,
    symmetry_factor as symmetry_factor,
    tree_factorial as tree_factorial,
    weight as weight,
)
from ._word_algebra import AbstractWordAlgebra as AbstractWordAlgebra
from ._words import lyndon_words as lyndon_words
