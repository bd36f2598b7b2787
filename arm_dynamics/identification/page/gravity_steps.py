"""Gravity calibration on a page: poses, measurement, fit and URDF."""

from __future__ import annotations

from math import pi
from typing import Any

from arm_dynamics.core.arrays import check_float, check_int
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.identification.gravity.gravity_calibration import StaticPose, least_pose_count
from arm_dynamics.identification.gravity.pose_measurement import (
    SETTLING_TIME,
    Leg,
    leg_to_start,
    pose_cycles,
)
from arm_dynamics.identification.gravity.recorded_poses import write_poses
from arm_dynamics.identification.page.page_motion import Cycles, PageMotion
from arm_dynamics.identification.page.report_html import report_html
from arm_dynamics.identification.page.steps import Steps, free_name, new_path, write_new
from arm_dynamics.identification.page.work import Fit, fit_poses, plan_poses
from arm_dynamics.viewer.controls import Order
from arm_dynamics.viewer.page import ArmPage

STEPS = ("Poses", "Measure", "URDF")
CHOOSE, MEASURE, STOP, WRITE = "Choose poses", "Measure", "Stop", "Write URDF"
COUNT, MAX_COUNT = 12, 100
"""Default and largest number of poses."""
SPEED, MAX_SPEED = 20.0, 90.0
"""Default and largest speed between poses [deg/s]."""
MAX_STIFFNESS = 1e6


class GravitySteps(Steps):
    """Folder "Gravity calibration"."""

    def __init__(self, page: ArmPage, motion: PageMotion) -> None:
        self._motion, self._arm = motion, motion.follower.arm
        self._legs: tuple[Leg, ...] = ()
        self._speed = 0.0
        self._running = False
        self._measured = ""
        self._fit: Fit | None = None
        actions = {
            CHOOSE: self._choose, MEASURE: self._measure, STOP: self._stop, WRITE: self._write,
        }  # fmt: skip
        super().__init__(page, "Gravity calibration", Order.GRAVITY, STEPS, actions)

    def add_fields(self, gui: Any) -> None:
        """Add number of poses, speed, stiffness and the name of the files."""
        self._count = gui.add_number("Poses", COUNT, min=3, max=MAX_COUNT, step=1)
        self._speed_field = gui.add_number("Speed [deg/s]", SPEED, min=1.0, max=MAX_SPEED, step=1.0)
        self._stiffness = gui.add_number(
            "Stiffness", 0.0, min=0.0, max=MAX_STIFFNESS, step=0.1,
            hint="of position servos without measured efforts [N·m/rad]; 0: measured efforts",
        )  # fmt: skip
        self._name = gui.add_text(
            "Name", free_name(f"{self._arm.name}_gravity"),
            hint="new poses NAME.poses.csv and URDF NAME.urdf in the working directory",
        )  # fmt: skip

    def offered(self) -> tuple[str, ...]:
        """Return the present buttons."""
        if self._running:
            return (STOP,)
        more = (MEASURE,) if self._legs else ()
        return (CHOOSE, *more, *((WRITE,) if self._fit else ()))

    def current(self) -> int:
        """Return the index of the present step."""
        return 2 if self._fit is not None else int(bool(self._legs))

    def progress(self) -> str:
        """Return the progress of the measurement."""
        return self._motion.text if self._running else ""

    def _choose(self) -> str:
        least = least_pose_count(self._arm)
        count = check_int("poses", int(self._count.value), lower=least)
        degrees = check_float("speed [deg/s]", self._speed_field.value, above=0.0, upper=MAX_SPEED)
        self._speed = pi / 180 * degrees

        def finish(legs: tuple[Leg, ...]) -> str:
            self._legs, self._fit = legs, None
            self._report.content = ""
            seconds = sum(leg.duration + SETTLING_TIME for leg in legs)
            return (
                f"{count} poses, each approached from both sides, in {seconds / 60:.1f} min; floor"
                " and surroundings are not checked"
            )

        return self._run(plan_poses, self._arm, min(count, MAX_COUNT), self._speed, finish=finish)

    def _measure(self) -> str:
        if not self._legs:
            raise InvalidValue("poses = none; expected some; choose them first")
        name, poses, follower = str(self._name.value), list[StaticPose](), self._motion.follower
        new_path(name, ".urdf")
        table = new_path(name, ".poses.csv")
        stiffness = float(self._stiffness.value) or None

        def begin() -> Cycles:
            first = leg_to_start(self._arm, follower.present()[1].q, self._speed)
            return pose_cycles(follower, (first, *self._legs), poses, stiffness=stiffness)

        def ended(reason: str) -> None:
            self._running = False
            if reason:
                self._line.rejected(f"{reason}; {len(poses)} efforts measured, nothing is written")
                return
            try:
                write_poses(self._arm, poses, table)
            except ArmDynamicsError as error:
                self._line.rejected(error)
                return
            self._run(fit_poses, self._arm, poses, stiffness, finish=self._fitted)

        self._running, self._measured, self._fit = True, name, None
        try:
            self._motion.start(begin, ended)
        except ArmDynamicsError:
            self._running = False
            raise
        self._report.content = ""
        return "the arm moves through the poses"

    def _fitted(self, fit: Fit) -> str:
        self._fit = fit
        self._report.content = report_html(fit)
        return f"fitted: see the report; {self._measured}.poses.csv contains the poses"

    def _stop(self) -> str:
        self._motion.stop("stopped")
        return "stopping"

    def _write(self) -> str:
        if self._fit is None:
            raise InvalidValue("fit = none; expected one; measure poses first")
        path = new_path(self._measured, ".urdf")
        write_new(path, self._fit.urdf)
        self._name.value = free_name(f"{self._arm.name}_gravity")
        return f"{path.name} is written"
