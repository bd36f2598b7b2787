"""Replay: the forward model runs the commands of a recording and is compared with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, RecordingError
from arm_dynamics.core.timing import StepClock
from arm_dynamics.recording.reader import Gap, Period, read_items
from arm_dynamics.recording.recorder import nanoseconds
from arm_dynamics.recording.segment_header import RecordingSegment
from arm_dynamics.recording.staged_file import is_finished
from arm_dynamics.simulation.forward_model import forward_model, pack_state, split_state_vector

PARTS = ("q", "v", "act")


@dataclass(slots=True)
class ReplayReport:
    """Result of a replay: its extent, and the differences of the recording from the model."""

    arm: str = ""
    seconds: float = 0.0
    periods: int = 0
    segments: int = 0
    gaps: list[Gap] = field(default_factory=list)
    """Periods dropped by a full or slow disk."""
    finished: bool = True
    """Whether the recording was closed; else it ends where it was interrupted."""
    largest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    """Largest difference of q [rad], v [rad/s] and act; inf if one is NaN."""
    first: str | None = None
    """Location of the first difference; None if all is identical to the last bit."""

    def compare(self, what: str, where: str, recorded: Vector, computed: Vector) -> None:
        """Update the report by one of PARTS."""
        same = recorded == computed
        if same.all():
            return
        difference = np.where(same, 0.0, np.abs(recorded - computed))
        largest = float(np.where(np.isfinite(difference), difference, np.inf).max())
        self.largest[what] = max(self.largest[what], largest)
        if self.first is None:
            i = int(np.flatnonzero(~same)[0])
            self.first = f"{where}: {recorded[i]:.17g} recorded, {computed[i]:.17g} computed"


def replay(folder: str | Path) -> ReplayReport:
    """Run the forward model from the recorded start under the recorded commands.

    The motion continues from the computed state, never from a recorded one. A change of the arm, a
    jump of its state or a gap starts a segment from its recorded initial state. Applied efforts are
    not part of the state and are not compared.

    Parameters
    ----------
    folder : str or Path
        Recording.

    Returns
    -------
    ReplayReport
        Extent and differences.

    Raises
    ------
    RecordingError
        If the folder is not a recording, lacks a topic or a period, or cannot be read.

    """
    report = ReplayReport(finished=is_finished(Path(folder)))
    run: _Run | None = None
    for item in read_items(Path(folder)):
        if isinstance(item, RecordingSegment):
            run = _Run(item)
            report.arm = item.arm.name
            report.segments += 1
        elif isinstance(item, Gap):
            report.gaps.append(item)
        else:
            assert run is not None  # a segment comes first
            try:
                run.follow(item, report)
            except ArmDynamicsError as error:
                raise RecordingError(f"{folder}: at t = {run.time:.6f} s: {error}") from error
    return report


class _Run:
    """Motion of one segment."""

    def __init__(self, segment: RecordingSegment) -> None:
        self._segment, self.time, self._clock = segment, segment.start.time, StepClock()
        self._vector = pack_state(segment.arm, segment.start)

    def follow(self, period: Period, report: ReplayReport) -> None:
        """Compute one period and compare."""
        segment = self._segment
        end = self._clock.after(self.time, segment.dt, segment.steps)
        times = (period.begin, nanoseconds(self.time)), (period.end, nanoseconds(end))
        # The simulation counts from before this segment: its last bit may differ.
        if any(abs(recorded - computed) > 1 for recorded, computed in times):
            raise RecordingError(
                f"period = {period.begin * 1e-9:.6f} s to {period.end * 1e-9:.6f} s;"
                f" expected the one that ends at {end:.6f} s"
            )
        for _ in range(segment.steps):
            self._vector = forward_model(
                segment.arm, self._vector, period.command.value, segment.dt,
                integrator=segment.integrator, interface=period.command.interface,
            )  # fmt: skip
        self.time = end
        report.periods += 1
        report.seconds += segment.steps * segment.dt
        arm, computed = self._segment.arm, split_state_vector(self._segment.arm, self._vector)
        for what in PARTS:
            recorded, model = getattr(period.after, what), getattr(computed, what)
            names = arm.act_names if what == "act" else arm.joint_names
            differs = np.flatnonzero(recorded != model)
            if differs.size:
                where = f"t = {self.time:.6f} s, {what}[{names[int(differs[0])]}]"
                report.compare(what, where, recorded, model)
