"""Parameters of other nodes as numbers that a user edits on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import NamedTuple

from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from rclpy.qos import qos_profile_parameter_events

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.ros.decode import listen
from arm_dynamics.ros.remote import RemoteParameters
from arm_dynamics.viewer.controls import Controls
from arm_dynamics.viewer.parameter_fields import Field, ParameterFields

GAINS = "gains"
PUSH = "push"
PAYLOAD = "payload_mass"


class Place(NamedTuple):
    """Where a number is set, and what it is now."""

    remote: RemoteParameters
    name: str
    number: float


Places = Mapping[Field, Place]


class RemoteFields:
    """Payload, push and gains; read again whenever a parameter of their nodes changes."""

    def __init__(self, node: Node, controls: Controls) -> None:
        self._simulator = RemoteParameters(node, "simulator")
        self._controller = RemoteParameters(node, "joint_controller")
        space = node.get_namespace().rstrip("/")
        self._nodes = {f"{space}/simulator", f"{space}/joint_controller"}
        self._folders = (
            _Folder(controls, "Payload and push", self._loads),
            _Folder(controls, "Gains", self._gains),
        )
        self._due, self._thread = True, Thread()
        profile = qos_profile_parameter_events
        listen(node, ParameterEvent, "/parameter_events", self._note, profile, lambda _: None)

    def look(self) -> None:
        """Read what changed, in a thread that may wait."""
        ready = self._simulator.ready and self._controller.ready
        if self._due and ready and not self._thread.is_alive():
            self._due = False
            self._thread = Thread(target=self._read, name="parameters", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        try:
            for folder in self._folders:
                folder.read()
        except ArmDynamicsError:
            self._due = True  # a node is busy, or ending: later again

    def _note(self, event: ParameterEvent) -> None:
        self._due = self._due or event.node in self._nodes

    def _loads(self) -> Places:
        push = self._simulator.numbers(PUSH)
        found = {
            (PUSH, f"{name.rpartition('.')[2]} [N·s]"): Place(self._simulator, name, number)
            for name, number in push.items()
        }
        owners = {"simulated arm": self._simulator, "controller's model": self._controller}
        for label, remote in owners.items():
            for name, number in remote.numbers(PAYLOAD).items():
                found["payload", f"{label} [kg]"] = Place(remote, name, number)
        return dict(sorted(found.items()))

    def _gains(self) -> Places:
        found = {}
        for name, number in self._controller.numbers(GAINS).items():
            group, _, gain = name.removeprefix(f"{GAINS}.").rpartition(".")
            found[group, gain] = Place(self._controller, name, number)
        return found


class _Folder:
    """Fields that ``find`` finds; put on the panel anew when there are others."""

    def __init__(self, controls: Controls, title: str, find: Callable[[], Places]) -> None:
        self._controls, self._title, self._find = controls, title, find
        self._places: Places = {}
        self._fields: ParameterFields | None = None

    def read(self) -> None:
        """Show the numbers of now."""
        before, self._places = self._places, self._find()
        numbers: dict[str, dict[str, float]] = {}
        for (owner, label), place in self._places.items():
            numbers.setdefault(owner, {})[label] = place.number
        if self._fields is not None and self._places.keys() == before.keys():
            self._fields.show(numbers)
            return
        if self._fields is not None:
            self._fields.remove()
        add = self._controls.add_parameters
        self._fields = add(self._title, numbers, self._accept, folded=True) if numbers else None

    def _accept(self, owner: str, label: str, number: float) -> None:
        place = self._places[owner, label]
        place.remote.set({place.name: number})
