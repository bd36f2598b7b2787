"""Options of a kernel: everything that its text depends on except the arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from arm_dynamics.batch.kernels.kernel_cache import arm_fingerprint
from arm_dynamics.batch.kernels.pid_spec import PidSpec
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue

AGREEMENT = {"float64": 1e-12, "float32": 1e-4}
"""Allowed difference from plant and controller, relative to the largest value or, if larger, to
the largest change in a step."""
TRIAL_STEP = 1e-4
"""Time step [s] of the comparison with the plant."""


class KernelRejected(ArmDynamicsError):
    """A generated kernel does not agree with the plant or the controller."""


@dataclass(frozen=True, eq=False)
class KernelOptions:
    """Options of a kernel.

    Attributes
    ----------
    integrator : str
        One of ``step_trace.INTEGRATORS``.
    interface : str
        Command interface.
    vary : tuple of str
        Quantities that differ between rollouts, of ``variation.variable_names``.
    precision : str
        "float64" or "float32".
    lanes : int
        SIMD lanes: rollouts side by side.
    pid : PidSpec, optional
        PID controller inside the kernel.

    Raises
    ------
    InvalidValue
        If ``precision`` or ``lanes`` is out of range.

    """

    integrator: str = "semi_implicit_euler"
    interface: str = "effort"
    vary: tuple[str, ...] = ()
    precision: str = "float64"
    lanes: int = 32
    pid: PidSpec | None = None

    def __post_init__(self) -> None:
        if self.precision not in AGREEMENT:
            expected = " or ".join(AGREEMENT)
            raise InvalidValue(f"kernel: precision = '{self.precision}'; expected {expected}")
        if self.lanes < 1:
            raise InvalidValue(f"kernel: lanes = {self.lanes}; expected at least 1")

    @property
    def key(self) -> tuple[Any, ...]:
        """All options, to be hashed."""
        pid = None if self.pid is None else (*self.pid.key, arm_fingerprint(self.pid.arm))
        return self.integrator, self.interface, self.vary, self.precision, self.lanes, pid
