"""What a page may do to a simulated arm, wired to the services of its nodes."""

from __future__ import annotations

import time

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.ros.demo_motion import RemoteTour
from arm_dynamics.ros.diagnostics import DiagnosticsSummary
from arm_dynamics.ros.display_goals import JointGoals
from arm_dynamics.ros.remote import Remote
from arm_dynamics.ros.remote_fields import RemoteFields
from arm_dynamics.viewer.controls import ActionRow
from arm_dynamics.viewer.page import ArmPage

LOOK = 0.5
"""Time [s] between two looks for the simulator's services."""
FOLLOW = 0.15
"""Time [s] between two moves of the sliders along with the reference."""
PAUSE, GO_ON, RESET, PUSH = "Pause", "Continue", "Reset", "Push"
STOP_TOUR, START_TOUR = "Stop tour", "Start tour"


class SimulationControls:
    """Sliders, pause, reset, push, tour, payload, gains, and the emergency stop's release.

    They are put on the page once a simulator is found in this namespace; a physical arm has no
    such services, and its page stays view-only. ``look`` is for the page's loop; what waits for
    an answer does so in the page's own threads.
    """

    def __init__(
        self, node: Node, arm: ArmModel, page: ArmPage, status: DiagnosticsSummary
    ) -> None:
        self._node, self._arm, self._page, self._status = node, arm, page, status
        self._pause = Remote(node, SetBool, "simulator/pause")
        self._reset = Remote(node, Trigger, "simulator/reset")
        self._release = Remote(node, Trigger, "simulator/reset_emergency_stop")
        self._tour = RemoteTour(node)
        self._push = Remote(node, Trigger, "simulator/push")
        self._goals: JointGoals | None = None
        self._fields: RemoteFields | None = None
        self._row: ActionRow | None = None
        self._paused = False
        self._paused_until = 0  # update of the status that counts again
        self._next_look = self._next_follow = 0.0

    def look(self, reference: Vector | None) -> None:
        """Find the simulator, or bring the controls up to date; at every cycle of the page."""
        if self._row is None or self._goals is None or self._fields is None:
            self._find()
            return
        self._goals.look(reference)
        self._fields.look()
        if self._status.updates > self._paused_until:
            self._paused = self._status.values.get("paused") == "true"
        tour = {True: (STOP_TOUR,), False: (START_TOUR,), None: ()}[self._tour.running]
        self._row.offer(GO_ON if self._paused else PAUSE, RESET, PUSH, *tour)
        if not self._goals.under_way:
            self._follow(reference)

    def _find(self) -> None:
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK
        needed = (self._pause, self._reset, self._push, self._release)
        if not all(service.ready for service in needed):
            return
        controls = self._page.add_controls()
        sliders, feedback, end = controls.sliders, controls.feedback, self._tour.end
        goals = JointGoals(self._node, self._arm, self._status, end, feedback, sliders.send_again)
        sliders.on_target(goals.ask)
        actions = {
            PAUSE: lambda: self._set_paused(True),
            GO_ON: lambda: self._set_paused(False),
            RESET: lambda: self._do_reset(goals),
            PUSH: self._push.do,
            STOP_TOUR: lambda: self._tour.set(False),
            START_TOUR: lambda: self._start_tour(goals),
        }
        self._fields = RemoteFields(self._node, controls)
        self._row = controls.add_actions("Simulation", actions, (PAUSE, RESET, PUSH))
        self._goals = goals
        if self._page.emergency is not None:
            self._page.emergency.allow_release(self._release.do)

    def _follow(self, reference: Vector | None) -> None:
        """Move the sliders with the reference, unless a user moves them."""
        now = time.monotonic()
        if reference is None or now < self._next_follow:
            return
        self._next_follow = now + FOLLOW
        first_turn = reference + whole_turns(self._arm, reference, 0 * reference)
        self._page.add_controls().sliders.show(first_turn.tolist())

    def _set_paused(self, paused: bool) -> str:
        said = self._pause.do(SetBool.Request(data=paused))
        self._paused, self._paused_until = paused, self._status.updates + 1
        return said

    def _do_reset(self, goals: JointGoals) -> str:
        goals.reset()
        return f"reset: {self._reset.do()}"

    def _start_tour(self, goals: JointGoals) -> str:
        goals.reset()
        return self._tour.set(True)
