"""From sampled paths to signatures, log-signatures and controls."""

from ._areas import rough_path_from_areas as rough_path_from_areas
from ._query import signature_tree as signature_tree, SignatureTree as SignatureTree
from ._rough_path import rough_path as rough_path, RoughPath as RoughPath
from ._selected import selected_signature as selected_signature
from ._signature import (
    combine as combine,
    log_signature as log_signature,
    signature as signature,
    signature_from_increments as signature_from_increments,
)
from ._stream import (
    expanding_log_signature as expanding_log_signature,
    expanding_signature as expanding_signature,
    extend_signature as extend_signature,
    windowed_log_signature as windowed_log_signature,
    windowed_signature as windowed_signature,
)
