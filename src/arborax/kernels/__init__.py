"""Signature kernels, scores, distances and tests of laws of paths."""

from ._expected import expected_signature as expected_signature
from ._features import robust_normalisation as robust_normalisation
from ._fourier import (
    cosine as cosine,
    RandomFourierSignature as RandomFourierSignature,
)
from ._functions import (
    signature_gram as signature_gram,
    signature_kernel as signature_kernel,
)
from ._kernel import SignatureKernel as SignatureKernel
from ._objectives import (
    embed as embed,
    MeanEmbedding as MeanEmbedding,
    mmd as mmd,
    signature_score as signature_score,
)
from ._static import (
    AbstractStaticKernel as AbstractStaticKernel,
    CustomKernel as CustomKernel,
    LinearKernel as LinearKernel,
    RationalQuadraticKernel as RationalQuadraticKernel,
    RBFKernel as RBFKernel,
)
from ._two_sample import (
    permutation_test as permutation_test,
    two_sample_test as two_sample_test,
    TwoSampleResult as TwoSampleResult,
)
