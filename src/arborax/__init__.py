"""Branched rough paths in JAX: signatures, log-ODEs on manifolds, kernels, models."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._citation import citation as citation
from ._values import debug_checks as debug_checks
from .algebra import (
    AbstractHopfAlgebra as AbstractHopfAlgebra,
    BranchedWords as BranchedWords,
    GrossmanLarson as GrossmanLarson,
    Ito as Ito,
    MultiIndex as MultiIndex,
    MuntheKaasWright as MuntheKaasWright,
    Shuffle as Shuffle,
)
from .geometry import (
    AbstractGeometry as AbstractGeometry,
    Euclidean as Euclidean,
    gram_schmidt_6d as gram_schmidt_6d,
    Hyperbolic as Hyperbolic,
    Product as Product,
    project_rotation as project_rotation,
    SE as SE,
    SO as SO,
    SPD as SPD,
    spd_from_vech as spd_from_vech,
    Sphere as Sphere,
    unvech as unvech,
    vech as vech,
)
from .kernels import (
    AbstractStaticKernel as AbstractStaticKernel,
    CustomKernel as CustomKernel,
    embed as embed,
    expected_signature as expected_signature,
    LinearKernel as LinearKernel,
    MeanEmbedding as MeanEmbedding,
    mmd as mmd,
    RandomFourierSignature as RandomFourierSignature,
    RationalQuadraticKernel as RationalQuadraticKernel,
    RBFKernel as RBFKernel,
    robust_normalisation as robust_normalisation,
    signature_gram as signature_gram,
    signature_kernel as signature_kernel,
    signature_score as signature_score,
    SignatureKernel as SignatureKernel,
    two_sample_test as two_sample_test,
    TwoSampleResult as TwoSampleResult,
)
from .lifts import (
    lift as lift,
    lifted_fields as lifted_fields,
    LinearFields as LinearFields,
    WindowField as WindowField,
)
from .paths import (
    AbstractInterpolation as AbstractInterpolation,
    add_basepoint as add_basepoint,
    add_time as add_time,
    brownian as brownian,
    brownian_areas as brownian_areas,
    brownian_brackets as brownian_brackets,
    BrownianSteps as BrownianSteps,
    fill_missing as fill_missing,
    fractional_brownian as fractional_brownian,
    HermiteInterpolation as HermiteInterpolation,
    interpolate as interpolate,
    lead_lag as lead_lag,
    LinearInterpolation as LinearInterpolation,
    merge_channels as merge_channels,
    rectilinear as rectilinear,
    RectilinearInterpolation as RectilinearInterpolation,
    riemann_liouville as riemann_liouville,
    SampledPath as SampledPath,
    square_root_driver as square_root_driver,
    SquareRootDriver as SquareRootDriver,
    windows_by_points as windows_by_points,
    windows_by_time as windows_by_time,
)
from .signatures import (
    combine as combine,
    expanding_log_signature as expanding_log_signature,
    expanding_signature as expanding_signature,
    extend_signature as extend_signature,
    log_signature as log_signature,
    rough_path as rough_path,
    rough_path_from_areas as rough_path_from_areas,
    RoughPath as RoughPath,
    selected_signature as selected_signature,
    signature as signature,
    signature_from_increments as signature_from_increments,
    signature_tree as signature_tree,
    SignatureTree as SignatureTree,
    windowed_log_signature as windowed_log_signature,
    windowed_signature as windowed_signature,
)


# Rooms that cost time to import (Diffrax, optimisers, simulators) wait until a name of
# theirs is used. Type checkers read the imports, Python the table.
if _TYPE_CHECKING:
    from . import (
        datasets as datasets,
        estimators as estimators,
        models as models,
        plots as plots,
    )
    from .estimators import pretrained as pretrained
    from .solvers import (
        AbstractSolver as AbstractSolver,
        CF4 as CF4,
        CFEES25 as CFEES25,
        CFEES27 as CFEES27,
        CheckpointedAdjoint as CheckpointedAdjoint,
        dyadic_control as dyadic_control,
        DyadicControl as DyadicControl,
        EuclideanRK as EuclideanRK,
        Heun as Heun,
        LieEuler as LieEuler,
        LogODE as LogODE,
        Magnus as Magnus,
        RESULTS as RESULTS,
        ReversibleAdjoint as ReversibleAdjoint,
        RKMK as RKMK,
        RoughTerm as RoughTerm,
        Solution as Solution,
        solve as solve,
        solve_adaptive as solve_adaptive,
        solve_sde as solve_sde,
    )
    from .training import (
        data_mesh as data_mesh,
        export as export,
        fit as fit,
        FitResult as FitResult,
        initialise_distributed as initialise_distributed,
        load as load,
        register as register,
        save as save,
    )
else:
    from ._imports import lazy_names as _lazy_names

    __getattr__, __dir__ = _lazy_names(
        __name__,
        ("datasets", "estimators", "models", "plots", "solvers", "training"),
        {
            "estimators": ["pretrained"],
            "solvers": """
                AbstractSolver CF4 CFEES25 CFEES27 CheckpointedAdjoint dyadic_control
                DyadicControl EuclideanRK Heun LieEuler LogODE Magnus RESULTS
                ReversibleAdjoint RKMK RoughTerm Solution solve solve_adaptive solve_sde
            """.split(),
            "training": """
                data_mesh export fit FitResult initialise_distributed load register save
            """.split(),
        },
    )


__version__ = _version("arborax")
