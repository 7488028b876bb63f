"""Rigid bodies that turn without torque."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float

from .._inputs import as_choice, as_count, as_number
from .._values import shown
from . import _quaternions as quaternions


@dataclasses.dataclass(frozen=True)
class Rotations:
    """Simulated orientations on a common grid.

    **Fields:**

    - `ts`: `(times,)`, seconds.
    - `rotations`: `(trajectories, times, 3, 3)`, body to world.
    - `velocities`: angular velocities of the state, `(trajectories, times, 3)`.
    - `inertia`: principal moments, `(trajectories, 3)`.
    """

    ts: Float[np.ndarray, " times"]
    rotations: Float[np.ndarray, "trajectories times 3 3"]
    velocities: Float[np.ndarray, "trajectories times 3"]
    inertia: Float[np.ndarray, "trajectories 3"]


@dataclasses.dataclass(frozen=True)
class FreeRotation:
    r"""Torque-free rotation of a rigid body, $I\dot\omega = -\omega \times I\omega$.

    Moments of inertia are a random permutation of `inertia`, $\omega_0 \sim
    N(0, \text{velocity}^2)$ with $|\omega_0| \ge$ `slowest`, the first orientation is
    uniform. Only the times asked for are kept: 8,000 trajectories take a few seconds.

    Kinematics: `"body"` (default) is $\dot q = \frac12 q \otimes (\omega, 0)$, for
    which energy and angular momentum in space are conserved. `"mixed"` is
    $\dot q = \frac12 (\omega, 0) \otimes q$, which reads the velocity of the body as
    one in space: the published data, whose angular momentum is not conserved.

    ??? cite "Reference"

        Forecasting rotational dynamics, the data set FREE_ROTATION (inertia, initial
        law); EXPERIMENTS: arXiv:2606.05272, section on SO(3).

    **Fields:**

    - `step`, `times`: seconds between samples, and their number.
    - `inertia`, `velocity`, `slowest`: see above.
    - `kinematics`: `"body"` or `"mixed"`.
    - `substeps`: Runge-Kutta steps (order 4) for each sample.
    """

    step: float = 0.1
    times: int = 101
    substeps: int = 4
    inertia: tuple[float, float, float] = (0.1, 0.2, 0.3)
    velocity: float = 0.3
    slowest: float = 0.1
    kinematics: Literal["body", "mixed"] = "body"

    def __post_init__(self):
        as_choice("kinematics", self.kinematics, ("body", "mixed"))
        as_number("step", self.step, 0, above=True)
        as_count("times", self.times)
        as_count("substeps", self.substeps)
        if not isinstance(self.inertia, tuple) or len(self.inertia) != 3:
            raise ValueError(
                f"`inertia` must be three moments, got {shown(self.inertia)}."
            )
        for moment in self.inertia:
            as_number("inertia", moment, 0, above=True)
        as_number("velocity", self.velocity, 0, above=True)
        as_number("slowest", self.slowest, 0)
        if self.slowest > 4 * self.velocity:
            raise ValueError(
                "`slowest` must be at most four times `velocity`, since slower "
                f"velocities are drawn again; got {self.slowest} and {self.velocity}."
            )

    def sample(self, trajectories: int, *, seed: int = 42) -> Rotations:
        """Independent trajectories, in double precision.

        **Arguments:**

        - `trajectories`: number of trajectories.
        - `seed`: of NumPy's generator.
        """
        as_count("trajectories", trajectories)
        rng = np.random.default_rng(as_count("seed", seed, 0))
        inertia = rng.permuted(np.tile(self.inertia, (trajectories, 1)), axis=1)
        omega = self.velocity * rng.standard_normal((trajectories, 3))
        while (slow := np.linalg.norm(omega, axis=1) < self.slowest).any():
            omega[slow] = self.velocity * rng.standard_normal((slow.sum(), 3))
        q = quaternions.normalise(rng.standard_normal((trajectories, 4)))
        left = self.kinematics == "mixed"

        def rate(state):
            q, omega = state[:, :4], state[:, 4:]
            torque = np.cross(inertia * omega, omega)
            return np.concatenate([_spin(q, omega, left), torque / inertia], axis=1)

        states = self._integrate(rate, np.concatenate([q, omega], axis=1))
        return Rotations(
            self.step * np.arange(self.times),
            quaternions.to_matrix(states[..., :4]),
            states[..., 4:],
            inertia,
        )

    def _integrate(self, rate: Callable, state: np.ndarray) -> np.ndarray:
        """States `(trajectories, times, ..)` by the classical Runge-Kutta scheme."""
        h = self.step / self.substeps
        out = [state]
        for k in range((self.times - 1) * self.substeps):
            a = rate(state)
            b = rate(state + h / 2 * a)
            c = rate(state + h / 2 * b)
            d = rate(state + h * c)
            state = state + h / 6 * (a + 2 * b + 2 * c + d)
            if (k + 1) % self.substeps == 0:
                # The quaternion drifts off the sphere by the error of the scheme.
                state[:, :4] = quaternions.normalise(state[:, :4])
                if not np.isfinite(state).all():
                    raise ValueError(
                        "the rotation is too fast for its steps and leaves the finite "
                        "numbers: take a smaller `step` or more `substeps`."
                    )
                out.append(state)
        return np.stack(out, axis=1)


def _spin(q, omega, left: bool) -> np.ndarray:
    pure = np.pad(omega, [(0, 0), (0, 1)])
    pair = (pure, q) if left else (q, pure)
    return quaternions.multiply(*pair) / 2
