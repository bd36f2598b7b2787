"""A trajectory that somebody waits for: how well it must be followed, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from threading import Lock

from arm_dynamics.goals.tolerances import Tolerances
from arm_dynamics.state import Reference, State


class Code(IntEnum):
    """How a goal ended, in the numbers of control_msgs/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a goal: its code, what there is to say, and whether it was canceled."""

    code: Code
    text: str
    canceled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """What a goal asks for beside its trajectory.

    ``path`` holds until the trajectory's end, ``goal`` within ``goal_time`` [s] after it; 0 waits
    for ever.
    """

    path: Tolerances
    goal: Tolerances
    goal_time: float


class Goal:
    """Under way until it has a ``verdict``; the first one counts."""

    def __init__(self, names: Sequence[str], demands: Demands) -> None:
        self._names, self.demands = names, demands
        self.verdict: Verdict | None = None
        self.canceling = False
        self.note = ""
        """What is to be added to the verdict's text."""
        self._lock = Lock()

    def finish(self, code: Code, text: str, *, canceled: bool = False) -> None:
        """End it, unless it has ended."""
        with self._lock:
            if self.verdict is None:
                self.verdict = Verdict(code, text + self.note, canceled)

    def observe(self, time: float, end: float, state: State, reference: Reference) -> None:
        """Judge one instant: trajectory time and the trajectory's end [s], where the arm is."""
        if time < end:
            self._judge_path(state, reference)
        elif self.demands.goal.met(state, reference):
            self.finish(Code.SUCCESSFUL, f"reached {time - end:.3f} s after the trajectory's end")
        elif self.demands.goal_time and time > end + self.demands.goal_time:
            self._judge_goal(state, reference)

    def _judge_path(self, state: State, reference: Reference) -> None:
        path = self.demands.path
        if not path.met(state, reference):
            worst = next(path.violations(self._names, state, reference))
            self.finish(Code.PATH_TOLERANCE_VIOLATED, f"{worst} at {state.time:.3f} s, on the path")

    def _judge_goal(self, state: State, reference: Reference) -> None:
        worst = next(self.demands.goal.violations(self._names, state, reference))
        late = f"{self.demands.goal_time:g} s after the trajectory's end"
        self.finish(Code.GOAL_TOLERANCE_VIOLATED, f"{worst} at {state.time:.3f} s, {late}")
