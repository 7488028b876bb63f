"""One-step schemes on manifolds, the log-ODE solve, adjoints, the Diffrax bridge."""

from ._adaptive import (
    dyadic_control as dyadic_control,
    DyadicControl as DyadicControl,
    solve_adaptive as solve_adaptive,
)
from ._adjoint import (
    AbstractAdjoint as AbstractAdjoint,
    CheckpointedAdjoint as CheckpointedAdjoint,
    ReversibleAdjoint as ReversibleAdjoint,
)
from ._base import AbstractSolver as AbstractSolver
from ._bridge import LogODE as LogODE, RoughTerm as RoughTerm
from ._equation import Equation as Equation, read_equation as read_equation
from ._flows import (
    choose_mode as choose_mode,
    Magnus as Magnus,
    run_flows as run_flows,
)
from ._low_storage import (
    CF4 as CF4,
    CFEES25 as CFEES25,
    CFEES27 as CFEES27,
    LieEuler as LieEuler,
)
from ._results import RESULTS as RESULTS
from ._runge_kutta import (
    as_solver as as_solver,
    EuclideanRK as EuclideanRK,
    Heun as Heun,
    RKMK as RKMK,
)
from ._sde import brownian_control as brownian_control, solve_sde as solve_sde
from ._solution import Solution as Solution
from ._solve import solve as solve
from ._window import (
    scan_windows as scan_windows,
    state_inside as state_inside,
    step_window as step_window,
)
