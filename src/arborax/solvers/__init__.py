"""One-step schemes on manifolds, the log-ODE solve, adjoints, the Diffrax bridge."""

from ._adaptive import (
    dyadic_control as dyadic_control,
    DyadicControl as DyadicControl,
    solve_adaptive as solve_adaptive,
)
from ._base import AbstractSolver as AbstractSolver
from ._bridge import LogODE as LogODE, RoughTerm as RoughTerm
from ._checks import check_solver as check_solver
from ._low_storage import (
    CF4 as CF4,
    CFEES25 as CFEES25,
    CFEES27 as CFEES27,
    LieEuler as LieEuler,
)
from ._runge_kutta import EuclideanRK as EuclideanRK, Heun as Heun, RKMK as RKMK
from ._solution import RESULTS as RESULTS, Solution as Solution
from ._solve import solve as solve
from ._window import (
    scan_windows as scan_windows,
    state_inside as state_inside,
    step_window as step_window,
)
