"""Models: branched neural rough differential equations and general sequence models.

One interface: `model(path)` gives outputs at the samples of one path, `predict` takes
batches, `sample` draws the driver, `start` and `update` run causal models on a stream.
"""

from ._base import (
    AbstractCausalModel as AbstractCausalModel,
    AbstractModel as AbstractModel,
    brownian_driver as brownian_driver,
)
from ._bnrde import BNRDE as BNRDE
from ._gru import GRU as GRU
from ._layers import activate as activate
from ._linear_bnrde import LinearBNRDE as LinearBNRDE
from ._log_ncde import LogNCDE as LogNCDE
from ._mlp import lipswish as lipswish, MLP as MLP, VectorField as VectorField
from ._mnode import MNODE as MNODE
from ._ncde import NCDE as NCDE, NCDEpp as NCDEpp
from ._nrde import NRDE as NRDE
from ._reservoir import Reservoir as Reservoir
from ._xlstm import XLSTM as XLSTM
