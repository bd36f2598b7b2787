"""Recording of an arm, started and stopped on a page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.page.recorders import MotionRecorder
from arm_dynamics.identification.page.steps import GhostPlayer, Steps, free_name, new_path
from arm_dynamics.identification.page.work import recorded_motion
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.controls import Order
from arm_dynamics.viewer.page import ArmPage

RECORD, STOP, SHOW = "Record", "Stop recording", "Show as ghost"


class RecordingSteps(Steps):
    """Folder "Recording"; the other folders also record with ``begin`` and ``end``."""

    def __init__(
        self, page: ArmPage, arm: ArmModel, recorder: MotionRecorder, ghost: GhostPlayer
    ) -> None:
        self._arm, self._recorder, self._ghost = arm, recorder, ghost
        self._folder: Path | None = None
        self._since = 0.0
        self._last: Path | None = None
        actions = {RECORD: self._start, STOP: self._stop, SHOW: self._show}
        super().__init__(page, "Recording", Order.RECORDING, (), actions)

    def add_fields(self, gui: Any) -> None:
        """Add the name of the next recording."""
        self._name = gui.add_text(
            "Folder", free_name(f"{self._arm.name}_recording"),
            hint="new folder in the working directory of the command",
        )  # fmt: skip

    def offered(self) -> tuple[str, ...]:
        """Return the present buttons."""
        if self._folder is not None:
            return (STOP,)
        return (RECORD, SHOW) if self._last is not None else (RECORD,)

    def progress(self) -> str:
        """Return name and duration of the present recording."""
        if self._folder is None:
            return ""
        return f"recording to {self._folder.name}: {time.monotonic() - self._since:.0f} s"

    def begin(self, folder: Path) -> None:
        """Record to a new folder; raise an ArmDynamicsError."""
        if self._folder is not None:
            raise InvalidValue(
                f"recording {self._folder.name} = running; expected none; stop it first"
            )
        self._recorder.begin(folder)
        self._folder, self._since = folder, time.monotonic()

    def end(self) -> str:
        """End the recording; return a message with its name; raise InvalidValue if it failed."""
        folder, self._folder = self._folder, None
        fault = self._recorder.end()
        if folder is None:
            raise InvalidValue("recordings = 0; expected 1")
        if fault:
            raise InvalidValue(fault)
        self._last = folder
        text = f"recorded: {folder.name}; arm-dynamics replay {folder.name} --page shows it"
        self._line.done(text)
        return text

    def close(self) -> None:
        """End recording and background process."""
        self._recorder.end()
        super().close()

    def _start(self) -> str:
        self.begin(new_path(str(self._name.value)))
        return self.progress()

    def _stop(self) -> str:
        text = self.end()
        self._name.value = free_name(f"{self._arm.name}_recording")
        return text

    def _show(self) -> str:
        folder = self._last
        if folder is None:
            raise InvalidValue("recordings = 0; expected 1")

        def finish(motion: Any) -> str:
            self._ghost.play(motion, time.monotonic())
            return f"{folder.name}: {motion.times[-1]:.1f} s; the ghost shows it"

        return self._run(recorded_motion, self._arm, folder, finish=finish)
