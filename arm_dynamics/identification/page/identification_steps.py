"""Identification on a page: excitation, recorded run, fit, report and URDF."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.identification.excitation.excitation_search import MIN_DURATION
from arm_dynamics.identification.excitation.excitation_start import excitation_motion
from arm_dynamics.identification.page.page_motion import Cycles, PageMotion, excitation_cycles
from arm_dynamics.identification.page.recording_steps import RecordingSteps
from arm_dynamics.identification.page.report_html import report_html
from arm_dynamics.identification.page.steps import (
    GhostPlayer,
    Steps,
    free_name,
    new_path,
    write_new,
)
from arm_dynamics.identification.page.work import (
    Fit,
    FoundExcitation,
    fit_recording,
    search_excitation,
)
from arm_dynamics.viewer.controls import Order
from arm_dynamics.viewer.page import ArmPage

STEPS = ("Excitation", "Run", "Fit", "URDF")
SEARCH, SHOW, RUN, STOP, FIT, WRITE = (
    "Search", "Show as ghost", "Run and record", "Stop", "Fit", "Write URDF",
)  # fmt: skip
DURATION, MAX_DURATION = 20.0, 600.0
"""Default and largest duration of the excitation [s]."""


class IdentificationSteps(Steps):
    """Folder "Identification"."""

    def __init__(
        self, page: ArmPage, motion: PageMotion, recording: RecordingSteps, ghost: GhostPlayer
    ) -> None:
        self._motion, self._recording, self._ghost = motion, recording, ghost
        self._arm = motion.follower.arm
        self._found: FoundExcitation | None = None
        self._running = False
        self._recorded: Path | None = None
        self._fit: Fit | None = None
        actions = {
            SEARCH: self._search, SHOW: self._show, RUN: self._start, STOP: self._stop,
            FIT: self._begin_fit, WRITE: self._write,
        }  # fmt: skip
        super().__init__(page, "Identification", Order.IDENTIFICATION, STEPS, actions)

    def add_fields(self, gui: Any) -> None:
        """Add the duration of the excitation and the name of the recording."""
        self._duration = gui.add_number(
            "Duration [s]", DURATION, min=MIN_DURATION, max=MAX_DURATION, step=1.0
        )
        self._name = gui.add_text(
            "Name", free_name(f"{self._arm.name}_identification"),
            hint="new recording NAME and URDF NAME.urdf in the working directory of the command",
        )  # fmt: skip

    def offered(self) -> tuple[str, ...]:
        """Return the present buttons."""
        if self._running:
            return (STOP,)
        return (
            SEARCH,
            *((SHOW, RUN) if self._found else ()),
            *((FIT,) if self._recorded else ()),
            *((WRITE,) if self._fit else ()),
        )

    def current(self) -> int:
        """Return the index of the present step."""
        if self._fit is not None:
            return 3
        if self._running or self._recorded is None:
            return int(self._found is not None)
        return 2

    def progress(self) -> str:
        """Return the progress of the run."""
        return self._motion.text if self._running else ""

    def _search(self) -> str:
        duration = check_float(
            "duration [s]", self._duration.value, lower=MIN_DURATION, upper=MAX_DURATION
        )

        def finish(found: FoundExcitation) -> str:
            self._found, self._recorded, self._fit = found, None, None
            self._report.content = ""
            self._ghost.play(found.motion, time.monotonic())
            return f"{found.quality}; the ghost shows it; floor and surroundings are not checked"

        return self._run(search_excitation, self._arm, duration, finish=finish)

    def _show(self) -> str:
        if self._found is not None:
            self._ghost.play(self._found.motion, time.monotonic())
        return "the ghost shows the excitation"

    def _start(self) -> str:
        found = self._found
        if found is None:
            raise InvalidValue("excitation = none; expected one; search it first")
        folder, follower = new_path(str(self._name.value)), self._motion.follower

        def begin() -> Cycles:
            state, reference = follower.present()
            motion = excitation_motion(self._arm, found.trajectory, reference.q, state.time)
            follower.follow(motion)
            try:
                self._recording.begin(folder)
            except ArmDynamicsError:
                follower.request_stop()
                raise
            return excitation_cycles(follower, motion)

        self._ghost.play(None, 0.0)
        self._running = True
        try:
            self._motion.start(begin, lambda reason: self._ended(folder, reason))
        except ArmDynamicsError:
            self._running = False
            raise
        self._recorded = self._fit = None
        self._report.content = ""
        return "the arm moves to the start of the excitation"

    def _ended(self, folder: Path, reason: str) -> None:
        """End the recording; a stopped one is kept, and not fitted."""
        try:
            text = self._recording.end()
            fault = f"{reason}; {folder.name} is kept" if reason else ""
        except ArmDynamicsError as error:
            text, fault = "", str(error)
        self._name.value = free_name(f"{self._arm.name}_identification")
        self._recorded = None if fault else folder
        self._running = False
        if fault:
            self._line.rejected(fault)
        else:
            self._line.done(text)

    def _stop(self) -> str:
        self._motion.stop("stopped")
        return "stopping"

    def _begin_fit(self) -> str:
        def finish(fit: Fit) -> str:
            self._fit = fit
            self._report.content = report_html(fit)
            return "fitted: see the report"

        return self._run(fit_recording, self._arm, self._recorded, finish=finish)

    def _write(self) -> str:
        fit, recorded = self._fit, self._recorded
        if fit is None or recorded is None:
            raise InvalidValue("fit = none; expected one; fit a recording first")
        path = new_path(recorded.name, ".urdf")
        write_new(path, fit.urdf)
        warning = "; its header states the warnings" if fit.warnings else ""
        return f"{path.name} is written{warning}"
