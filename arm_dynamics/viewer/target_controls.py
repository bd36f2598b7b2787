"""Targets of an arm from a page: sliders, named configurations, the handle of the tool."""

from __future__ import annotations

import time
from collections.abc import Callable

from arm_dynamics.control.joint_motions import JointTargets, MotionOutput
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.scene_drags import ToolHandle

FOLLOW_PERIOD = 0.15
"""Time [s] between two updates of sliders and handle from the reference."""


class TargetControls:
    """Sends the targets of a page's users to a controller; follows its reference without one.

    Parameters
    ----------
    page : ArmPage
        Page with control.
    arm : ArmModel
        The arm.
    output : MotionOutput
        Receives the motions.
    status : StatusSummary
        Status of the arm, for rejected motions.
    clear : callable
        As for ``JointTargets``.
    handle : bool
        Whether the tool has a handle. Its inverse kinematics run in the interpreter of a loop of
        this process, which delays cycles in real time.

    """

    def __init__(
        self,
        page: ArmPage,
        arm: ArmModel,
        output: MotionOutput,
        status: StatusSummary,
        clear: Callable[[], bool] = lambda: True,
        *,
        handle: bool = True,
    ) -> None:
        self._page, self._arm = page, arm
        self._controls = page.add_controls()
        sliders, feedback = self._controls.sliders, self._controls.feedback
        targets = JointTargets(output, arm, status, clear, feedback, sliders.send_again)
        self._targets, self._next_follow = targets, 0.0
        sliders.on_target(targets.go)
        self._handle = ToolHandle(page, arm, targets.go) if handle else None

    def reset(self) -> None:
        """Discard the target."""
        self._targets.reset()

    def update(self, reference: Vector | None) -> None:
        """Send a due target; without a target follow ``reference`` (nv,) [rad or m]."""
        self._targets.update(reference)
        dragging = self._handle is not None and self._handle.dragging
        busy = self._targets.under_way or dragging
        now = time.monotonic()
        if reference is not None and now >= self._next_follow and not busy:
            self._next_follow = now + FOLLOW_PERIOD
            first_turn = reference + whole_turns(self._arm, reference, 0 * reference)
            self._page.show_target(None)
            self._controls.sliders.show(first_turn.tolist())
            if self._handle is not None:
                self._handle.follow(reference)
