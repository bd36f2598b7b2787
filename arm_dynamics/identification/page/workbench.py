"""Recording, identification and gravity calibration of an arm on its page."""

from __future__ import annotations

import time
from collections.abc import Callable

from arm_dynamics.control.joint_motions import TrajectoryFollower
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.identification.page.gravity_steps import GravitySteps
from arm_dynamics.identification.page.identification_steps import IdentificationSteps
from arm_dynamics.identification.page.page_motion import PageMotion
from arm_dynamics.identification.page.recorders import MotionRecorder
from arm_dynamics.identification.page.recording_steps import RecordingSteps
from arm_dynamics.identification.page.steps import GhostPlayer
from arm_dynamics.viewer.page import ArmPage

UNWATCHED_TIME = 3.0
"""Time [s] without a browser, such as that of a reload, after which a motion is stopped."""


class Workbench:
    """Folders "Recording", "Identification" and "Gravity calibration" of a page with control.

    Motions end by Stop, ``stop``, another target, a restart of the controller, and UNWATCHED_TIME
    without a browser. Searches and fits run in other processes.

    Parameters
    ----------
    page : ArmPage
        Page with control.
    follower : TrajectoryFollower
        Its arm.
    recorder : MotionRecorder
        Recorder of the arm.
    requests : LoopRequests
        Requests that the arm's loop serves.
    prepare : callable
        Ends other motions; may wait.

    """

    def __init__(
        self,
        page: ArmPage,
        follower: TrajectoryFollower,
        recorder: MotionRecorder,
        requests: LoopRequests,
        prepare: Callable[[], object],
    ) -> None:
        self._page, self._requests = page, requests
        self._motion = PageMotion(follower, requests, prepare)
        self._ghost = GhostPlayer(page)
        self.recording = RecordingSteps(page, follower.arm, recorder, self._ghost)
        self.identification = IdentificationSteps(page, self._motion, self.recording, self._ghost)
        self.gravity = GravitySteps(page, self._motion)
        self._folders = self.recording, self.identification, self.gravity
        self._watched = time.monotonic()

    def advance(self) -> None:
        """Continue a motion; after each cycle of the loop, in its thread."""
        self._motion.advance()

    def update(self) -> None:
        """Update the folders and the ghost; at every cycle of the page."""
        now = time.monotonic()
        if self._page.watched:
            self._watched = now
        elif self._motion.running and now > self._watched + UNWATCHED_TIME:
            self._motion.stop("no browser shows the page")
        for folder in self._folders:
            folder.update()
        self._ghost.update(now)

    def stop(self, reason: str, *, halt: bool = True) -> None:
        """End a motion, and with ``halt`` stop the arm; from any thread, without waiting."""
        if self._motion.running:
            self._motion.stop(reason, halt=halt)

    def close(self) -> None:
        """End recording, motion and background processes, after the last cycle of the loop."""
        self._requests.close()
        self._motion.close()
        for folder in self._folders:
            folder.close()
