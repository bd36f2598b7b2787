"""Control of a running simulation: pause, steps, reset, push and emergency stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.kinematics.frames import frame_id
from arm_dynamics.simulation.simulation import Simulation

STOPPED_SLEEP = 0.01
"""Time [s] between two checks for requests while simulated time is stopped."""


class SimulationControl:
    """Pause, steps, reset, push and emergency stop of a simulation that a loop advances.

    The methods may be called from any thread, unless stated otherwise. The loop's thread executes
    the changes between two periods. During an emergency stop steps are rejected, and all other
    responses include its text.

    Parameters
    ----------
    simulation : Simulation
        The simulation; its events receive those of this class.
    requests : LoopRequests
        Requests that the loop's thread serves between two periods.
    release : str
        What ends an emergency stop, for its text.
    on_reset : callable, optional
        Called with the state after a reset, in the loop's thread.
    on_stop : callable, optional
        Called when an emergency stop begins or ends, in the loop's thread.

    """

    def __init__(
        self,
        simulation: Simulation,
        requests: LoopRequests,
        *,
        release: str,
        on_reset: Callable[[State], object] = lambda _: None,
        on_stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._simulation, self._requests, self._release = simulation, requests, release
        self._on_reset, self._on_stop = on_reset, on_stop
        self.paused = False
        self.steps_left = self._steps_done = 0
        self.stopped_by = ""
        """Source of the active emergency stop."""
        self.emergency_stops = 0

    @property
    def is_time_stopped(self) -> bool:
        """Whether simulated time is stopped."""
        return bool(self.stopped_by) or (self.paused and self.steps_left == 0)

    def period_elapsed(self) -> None:
        """Count an elapsed control period; for the loop."""
        if self.steps_left:
            self.steps_left -= 1
            self._steps_done += 1

    def attempt(self, advance: Callable[[], bool]) -> bool:
        """Return the result of ``advance``; a simulation that diverges pauses. For the loop."""
        try:
            return advance()
        except InvalidValue as error:
            self._simulation.watchdog.events.report(
                "diverged", f"{error}; paused, reset the simulator to continue"
            )
            self.paused = True
            self.forget_steps()
            return False

    def sleep(self) -> None:
        """Sleep while simulated time is stopped; for the loop."""
        time.sleep(STOPPED_SLEEP)

    def pause(self, paused: bool) -> str:
        """Pause or continue the simulation; return its state as text."""
        self.paused = paused
        self._requests.post(self.forget_steps)
        text = "paused" if paused else "not paused" if self.stopped() else "running"
        return self._with_stop(text)

    def step(self, count: int) -> str:
        """Simulate ``count`` control periods; raise InvalidValue unless paused."""
        self.add_steps(count)
        return self._with_stop(f"{count} control periods")

    def add_steps(self, count: int) -> Callable[[], tuple[int, bool]]:
        """Simulate ``count`` control periods; raise InvalidValue unless paused.

        The returned function returns the number of completed periods, and whether they have ended.
        """
        stopped = self.stopped()
        if stopped:
            raise InvalidValue(f"no step: {stopped}")
        if not self.paused:
            raise InvalidValue("the simulator is running; pause it first")
        first: list[int] = []

        def add() -> None:
            first.append(self._steps_done + self.steps_left)
            self.steps_left += count

        def progress() -> tuple[int, bool]:
            done = min(max(self._steps_done - first[0], 0), count) if first else 0
            return done, bool(first) and (self.steps_left == 0 or done == count)

        self._requests.post(add)
        return progress

    def reset(self, q: Vector | None, name: str, *, time: bool = False) -> str:
        """Set the state to rest at ``q`` (nv,) [rad or m], with its ``name`` in the response.

        ``time``: also set simulated time to 0; without ``q`` only that.
        """

        def reset_to() -> None:
            if q is not None:
                self._simulation.reset(q)
            if time:
                self._simulation.set_time(0.0)
            self._on_reset(self._simulation.state)

        self._requests.post(reset_to)
        return self._with_stop(f"at {name}; time {'starts at 0' if time else 'continues'}")

    def push(self, impulse: Sequence[float]) -> str:
        """Apply an impulse (3,) [N·s], base axes, to the tool."""
        self._requests.call(lambda: self._simulation.push(impulse))
        return self._with_stop(f"push of {list(impulse)} N·s")

    def pull(self, link: str, wrench: ArrayLike) -> None:
        """Apply a wrench (6,) [N, N·m] on a link, as ``Simulation.pull``; raises UnknownName."""
        frame_id(self._simulation.arm, link)
        given = check_vector("wrench", wrench, 6)
        self._requests.post(lambda: self._simulation.pull(link, given))

    def engage_emergency_stop(self, source: str) -> str:
        """Stop simulated time until the reset; return the text of the stop. For the loop."""
        if not self.stopped_by:
            self.stopped_by = source
            self.forget_steps()
            self.emergency_stops += 1
            self._on_stop()
            self._simulation.watchdog.events.report(
                "emergency_stop", f"by {source}; simulated time stopped"
            )
        return self.stopped()

    def reset_emergency_stop(self) -> str:
        """Continue simulated time; return its state as text. For the loop."""
        if self.stopped_by:
            self.stopped_by = ""
            self._on_stop()
        return "running" if not self.paused else "paused"

    def stopped(self) -> str:
        """Return the active emergency stop as text; "" without one."""
        if not self.stopped_by:
            return ""
        return f"emergency stop by {self.stopped_by}: simulated time stopped until {self._release}"

    def forget_steps(self) -> None:
        """Discard requested steps; for the loop."""
        self.steps_left = 0

    def _with_stop(self, text: str) -> str:
        """Return ``text`` with that of an active emergency stop."""
        return "; ".join(filter(None, (text, self.stopped())))


def push_parameters(simulation: Simulation) -> dict[str, tuple[Parameter, float]]:
    """Return the parameter of each axis x, y, z of an impulse on the tool, and its default."""
    default = simulation.default_impulse().tolist()
    return {
        axis: (
            Parameter(
                f"push.{axis}", 0.0, "N·s", f"{axis} of the impulse of ~/push on the tool",
                lower=-1e6, upper=1e6,
            ),
            float(f"{value:.2g}"),
        )
        for axis, value in zip("xyz", default, strict=True)
    }  # fmt: skip
