"""Motion that a page starts, advanced by the cycles of a control loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread

from arm_dynamics.control.joint_motions import TrajectoryFollower
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, TrajectoryRejected
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.identification.excitation.excitation_start import ExcitationMotion

Cycles = Iterator[str]
"""Yields a text of the progress before each control cycle; raises an ArmDynamicsError."""
END_TIMEOUT = 6.0
"""Longest time [s] to wait for the end of a recording."""


class PageMotion:
    """At most one motion of a page; its end is reported in a thread that may wait.

    Parameters
    ----------
    follower : TrajectoryFollower
        The arm.
    requests : LoopRequests
        Requests that the arm's loop serves.
    prepare : callable
        Ends other motions, such as a demo motion; called in a thread that may wait.

    """

    def __init__(
        self, follower: TrajectoryFollower, requests: LoopRequests, prepare: Callable[[], object]
    ) -> None:
        self.follower = follower
        self.text = ""
        """Progress."""
        self._requests, self._prepare = requests, prepare
        self._cycles: Cycles | None = None
        self._ended: Callable[[str], None] = lambda _: None
        self._thread = Thread()

    @property
    def running(self) -> bool:
        """Whether a motion runs."""
        return self._cycles is not None

    def start(self, begin: Callable[[], Cycles], ended: Callable[[str], None]) -> None:
        """Start a motion; ``ended`` gets why it was stopped, "" if it is complete.

        Raises
        ------
        ArmDynamicsError
            While another motion runs, and if ``begin`` rejects the motion.

        """
        if self.running:
            raise InvalidValue("motion of the page = running; expected none; stop it first")
        self._prepare()
        self._requests.call(lambda: None)  # the end of the other motion is executed
        self.text = ""
        cycles = begin()
        self._ended, self._cycles = ended, cycles

    def stop(self, reason: str, *, halt: bool = True) -> None:
        """End the motion, and with ``halt`` stop the arm; returns immediately."""
        self._requests.post(lambda: self._end(reason, halt=halt))

    def advance(self) -> None:
        """Continue; after each cycle of the loop, in its thread."""
        if self._cycles is None:
            return
        try:
            self.text = next(self._cycles)
        except StopIteration:
            self._end("", halt=False)
        except ArmDynamicsError as error:
            self._end(str(error), halt=True)

    def close(self) -> None:
        """End without a loop; wait for the report of an ended motion."""
        self._end("the program ends", halt=False)
        if self._thread.ident is not None:
            self._thread.join(END_TIMEOUT)

    def _end(self, reason: str, *, halt: bool) -> None:
        if self._cycles is None:
            return
        self._cycles = None
        if halt:
            self.follower.request_stop()
        self._thread = Thread(target=self._ended, args=(reason,), name="end of a motion")
        self._thread.start()


def excitation_cycles(follower: TrajectoryFollower, motion: ExcitationMotion) -> Cycles:
    """Wait for the end of ``motion``, which the arm follows; raise if the arm is interrupted."""
    restarts = follower.restart_count
    while True:
        state = follower.present()[0] if follower.latest is None else follower.latest[0]
        left = motion.end - state.time
        if left <= 0:
            return
        total = motion.excitation.end
        yield (
            f"moving to the start, then {total:.0f} s"
            if left > total
            else f"excitation: {total - left:.0f} of {total:.0f} s"
        )
        if follower.restart_count != restarts:
            cause = follower.events.latest.get("control_restarted", "the controller restarted")
            raise TrajectoryRejected(f"excitation interrupted: {cause}")
