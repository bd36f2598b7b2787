"""The interface of the methods that improve a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod

from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.knots import KnotSpline
from arm_dynamics.batch.planning.local_model import LocalModel
from arm_dynamics.batch.planning.planning_kernel import PlanningKernel
from arm_dynamics.core.arrays import Vector


class PlanningMethod(ABC):
    """A method that lowers the cost of the nominal motion of a planning kernel.

    Attributes
    ----------
    samples : int
        Input sequences that it evaluates together.
    needs_model : bool
        Whether it needs the second-order model.

    """

    samples: int
    needs_model = False

    @abstractmethod
    def spline(self, horizon: Horizon) -> KnotSpline:
        """Return the spline of the changes of the inputs."""

    @abstractmethod
    def start(self, kernel: PlanningKernel, bound: Vector, model: LocalModel | None) -> None:
        """Begin without a past.

        Parameters
        ----------
        kernel : PlanningKernel
            Kernel whose nominal motion is improved.
        bound : Vector
            Largest commands (nv,), or infinity.
        model : LocalModel, optional
            Second-order model along the nominal motion.

        """

    def shift(self, periods: float) -> None:
        """Note that the horizon has moved by a number of periods."""

    @abstractmethod
    def improve(self) -> float:
        """Improve the nominal motion; return its cost, infinity without a finite one."""
