"""Writes down what a simulation does while it does it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from arm_dynamics.errors import ArmDynamicsError, RecordingRefused
from arm_dynamics.recording import bag
from arm_dynamics.recording.description import Segment, require_recordable, write
from arm_dynamics.simulation import Simulation
from arm_dynamics.state import Command, State


class Recorder:
    """Records a simulation into a new folder, from its present state until ``close``.

    Every command that the plant obeys is there, those of the safe stop too, and every change of
    the arm and jump of the state. A recording that cannot go on ends with the event
    "recording_ended", its reason in ``fault``; the simulation goes on. Raises RecordingRefused
    for a folder that exists or cannot be made, an arm that its URDF no longer describes, a
    simulation that is recorded already, and without rosbags.
    """

    def __init__(self, simulation: Simulation, folder: str | Path) -> None:
        if simulation.on_period is not None:
            raise RecordingRefused(f"{folder}: this simulation is recorded already")
        require_recordable(simulation.arm)
        self.folder = Path(folder)
        self.periods = 0
        self.fault: str | None = None
        self._simulation = simulation
        self._latest = simulation.state
        self._links = simulation.arm.links
        self._bag = bag.BagWriter(self.folder)
        self._begin(simulation.state)
        simulation.on_period = self._on_period

    def __enter__(self) -> Recorder:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close, whatever happened: what is recorded stays readable."""
        self.close()

    def close(self) -> None:
        """Finish the recording; may be called twice. What prevents it is the ``fault``."""
        if self._simulation.on_period == self._on_period:
            self._simulation.on_period = None
        try:
            self._bag.close()
        except OSError as error:
            self.fault = self.fault or f"recording in {self.folder} is not finished: {error}"

    def _on_period(self, before: State, command: Command, after: State) -> None:
        try:
            if self._simulation.arm is not self._segment.arm or not _same(before, self._latest):
                self._begin(before)
            self._write_command(nanoseconds(before.time), command)
            self._write_state(nanoseconds(after.time), after)
        except (ArmDynamicsError, OSError) as error:
            self._end(str(error))
        self._latest = after
        self.periods += 1

    def _begin(self, start: State) -> None:
        """Describe arm and state anew."""
        arm = self._simulation.arm
        if arm.links is not self._links:
            require_recordable(arm)
        self._segment, self._latest = Segment.of(self._simulation, start), start
        self._bag.text(bag.DESCRIPTION, nanoseconds(start.time), write(self._segment))

    def _write_command(self, time: int, command: Command) -> None:
        names = self._segment.arm.joint_names
        if command.interface in bag.ARRAYS:
            self._bag.numbers(bag.ARRAYS[command.interface], time, names, command.value)
        else:
            self._bag.joints(bag.COMMANDS, time, names, **{command.interface: command.value})

    def _write_state(self, time: int, state: State) -> None:
        arm = self._segment.arm
        if arm.na:
            self._bag.numbers(bag.ACTUATORS, time, arm.act_names, state.act)
        self._bag.joints(
            bag.STATES, time, arm.joint_names, position=state.q, velocity=state.v, effort=state.tau
        )

    def _end(self, why: str) -> None:
        self.fault = f"recording in {self.folder} ended: {why}"
        self._simulation.watch.events.report("recording_ended", self.fault)
        self.close()


def _same(one: State, other: State) -> bool:
    """Whether the plant goes on from both alike."""
    if one is other:
        return True
    names = ("time", "q", "v", "act")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def nanoseconds(time: float) -> int:
    """A time [s] to the nearest nanosecond."""
    return round(time * 1e9)
