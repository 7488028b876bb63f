"""Signature kernels and what is built on them: scores, distances, tests."""

from ._functions import (
    signature_gram as signature_gram,
    signature_kernel as signature_kernel,
)
from ._kernel import SignatureKernel as SignatureKernel
from ._scale import safe_scale as safe_scale
from ._static import (
    AbstractStaticKernel as AbstractStaticKernel,
    CustomKernel as CustomKernel,
    LinearKernel as LinearKernel,
    RationalQuadraticKernel as RationalQuadraticKernel,
    RBFKernel as RBFKernel,
)
