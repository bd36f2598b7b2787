"""Recorders that a page starts and stops: of a simulation, and of any control loop."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import DriverFault, RecordingError
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.recording.recorder import RECORDING_TIMEOUT, Recorder, StateLog
from arm_dynamics.simulation.simulation import Simulation


class MotionRecorder(Protocol):
    """Records an arm to new folders, one after another; both methods may wait for the disk."""

    def begin(self, folder: Path) -> None:
        """Start to record; raise an ArmDynamicsError."""

    def end(self) -> str:
        """Finish; return why the recording failed, "" if it is complete."""


class SimulationRecorder:
    """Recorder of a simulation of this process, which ``arm-dynamics replay`` repeats."""

    def __init__(self, simulation: Simulation, loop: ControlLoop, requests: LoopRequests) -> None:
        self._simulation, self._loop, self._requests = simulation, loop, requests
        self._recorder: Recorder | None = None

    def begin(self, folder: Path) -> None:
        """Start to record between two cycles."""

        def start() -> Recorder:
            return Recorder(self._simulation, folder, loop=self._loop, patience=RECORDING_TIMEOUT)

        self._recorder = self._requests.call(start)

    def end(self) -> str:
        """End between two cycles, then wait for the disk."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return ""
        try:
            self._requests.call(recorder.detach)
        except DriverFault:  # the loop has ended
            recorder.detach()
        recorder.close()
        return recorder.fault or ""


class LoopRecorder:
    """Recorder of states, references and commands of a loop, such as that of a physical arm."""

    def __init__(self, loop: ControlLoop, requests: LoopRequests) -> None:
        self._loop, self._requests = loop, requests
        self._log: StateLog | None = None

    def begin(self, folder: Path) -> None:
        """Start to record with the next cycle."""
        if self._log is not None:
            raise RecordingError(f"{folder}: recordings of the page = 1; expected none")
        self._log = StateLog(self._loop.arm, folder, self._loop.events)

    def end(self) -> str:
        """End between two cycles, then wait for the disk."""
        log = self._log
        if log is None:
            return ""

        def detach() -> None:
            self._log = None

        try:
            self._requests.call(detach)
        except DriverFault:  # the loop has ended
            detach()
        log.close()
        return log.queue.fault

    def record(self) -> None:
        """Record the last cycle; after each cycle of the loop."""
        if self._log is not None and self._loop.latest is not None:
            self._log.cycle(*self._loop.latest)
