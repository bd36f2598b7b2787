"""The seam of every control law: state and reference in, command out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import hypot
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.kinematics import AXIS_NAMES
from arm_dynamics.dynamics.rigid_body import RigidBodyDynamics
from arm_dynamics.model.arm_argument import check_arm, require_same_joints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import require_holdable

Gains = Mapping[str, Mapping[str, float]]
"""Group → parameter name → value; a group is a joint, an axis "tool.x" ... or "law"."""
AXES = AXIS_NAMES
"""Of the tool: along and about the base's axes."""
MAX_VALUE = 1e30
"""Beyond any joint; products of several such numbers are still finite."""
MOMENT = 2.0**-10
"""Time [s] of the update that tells how fast a memory changes."""
NO_MEMORY = as_readonly([])


class Controller(ABC):
    """A law with a model of its own: ``arm`` may differ from the arm it controls.

    ``parameters`` are set per joint, ``axis_parameters`` per axis of the tool and
    ``controller_parameters`` once; a default of None means that the law finds the value from the model.
    """

    interface: ClassVar[str] = "effort"
    tracks_reference: ClassVar[bool] = True
    """Whether it follows a reference: no goal is reached by a law that does not."""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    axis_parameters: ClassVar[tuple[Parameter, ...]] = ()
    controller_parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self.arm, self.dynamics = check_arm(arm), RigidBodyDynamics(arm)
        self.gains: dict[str, Vector] = {}
        self.given: Gains = {}
        self.scale = 1.0
        self._limit = arm.effort_limit
        self.set_gains(gains or {})

    @property
    def parameter_groups(self) -> Mapping[str, tuple[Parameter, ...]]:
        """Where gains are set: group → its parameters."""
        found = dict.fromkeys(self.arm.joint_names, self.parameters)
        if self.axis_parameters:
            found |= dict.fromkeys([f"tool.{axis}" for axis in AXES], self.axis_parameters)
        return found | ({"law": self.controller_parameters} if self.controller_parameters else {})

    def set_gains(self, gains: Gains) -> None:
        """Take new gains without disturbing the law's memory.

        ``given`` are those of them that are no defaults. Raises UnknownName for a joint or gain
        that does not exist, InvalidValue for one out of its range; the old gains then stay in
        force.
        """
        groups, usual = self.parameter_groups, self._default_gains()
        model = {name: self._scaled(name, row) for name, row in usual.items()}
        for name in _mapping("gains", gains):
            if name not in groups:
                raise UnknownName(f"joint of arm '{self.arm.name}'", name, tuple(groups))
            _mapping(f"gains of '{name}'", gains[name])
        values = {
            name: with_defaults(
                f"'{name}'" if name not in self.arm.joint_names else f"joint '{name}'",
                parameters,
                {**model[name], **gains.get(name, {})},
            )
            for name, parameters in groups.items()
        }
        given = {
            group: {
                name: value
                for name, value in row.items()
                if value not in (usual[group].get(name), model[group].get(name))
            }
            for group, row in gains.items()
        }
        for group, row in given.items():
            values[group] |= self.matched(row, model[group])
        self._take(values)
        self.given = given

    def matched(self, given: Mapping[str, float], default: Mapping[str, float]) -> dict[str, float]:
        """Gains of one group, not ``given``, whose ``default`` other given gains change."""
        del given, default
        return {}

    def _default_gains(self) -> dict[str, dict[str, float]]:
        """Every default that exists, of the usual bandwidth."""
        model = self.default_gains()
        return {
            name: {
                **{p.name: p.default for p in parameters if p.default is not None},
                **model.get(name, {}),
            }
            for name, parameters in self.parameter_groups.items()
        }

    def _scaled(self, group: str, row: Mapping[str, float]) -> dict[str, float]:
        """Defaults of one group, of ``scale`` times the usual bandwidth."""
        order = {p.name: p.order for p in self.parameter_groups[group]}
        return {name: value * self.scale ** order.get(name, 0) for name, value in row.items()}

    def slow_down(self, scale: float) -> None:
        """Take defaults of ``scale`` times the usual bandwidth; ``given`` gains stay.

        Raises InvalidValue where a default leaves its range; the old gains then stay in force.
        """
        before, self.scale = self.scale, scale
        try:
            self.set_gains(self.given)
        except BaseException:
            self.scale = before
            raise

    def _take(self, values: Gains) -> None:
        """Gains in force: by group, and by name as vectors (nv,) or (6,), or as numbers."""
        self.values = values
        self.gains = _columns(values, self.parameters, self.arm.joint_names)
        self.axis_gains = _columns(values, self.axis_parameters, [f"tool.{a}" for a in AXES])
        self.controller_gains = dict(values.get("law", {}))

    def default_gains(self) -> Gains:
        """Values for the parameters whose default is None."""
        return {}

    def set_model(self, arm: ArmModel) -> None:
        """Tell the law another model (a payload, say), gains and memory unchanged.

        Raises InvalidValue when it has other joints, or weighs more than they can hold at home.
        """
        self.arm = require_holdable(require_same_joints("model", arm, self.arm))
        self.dynamics = RigidBodyDynamics(self.arm)

    def reset(self, state: State) -> None:
        """Forget the past; the next update starts from ``state``."""
        del state

    def hold_trajectory(self, state: State) -> Trajectory:
        """What to follow on taking over: stand still where the arm is."""
        return JointTrajectory.hold(state.q, state.time)

    def bounded_inputs(
        self, state: State, reference: Reference, dt: float = 0.0
    ) -> tuple[State, Reference]:
        """Both as a law can reckon with them: whatever is beyond ±LARGEST as ±LARGEST.

        Raises InvalidValue for what has not one finite number for each joint, and for a dt [s]
        that is none or negative.
        """
        if not (isinstance(dt, float | int) and 0.0 <= dt < MAX_VALUE):
            check_float("dt [s]", dt, lower=0, upper=MAX_VALUE)
        q, v, r, n = state.q, state.v, reference, self._limit.size
        if (
            q.size == v.size == r.q.size == r.v.size == r.a.size == n
            and hypot(*q.tolist(), *v.tolist(), *r.q.tolist(), *r.v.tolist(), *r.a.tolist())
            < MAX_VALUE
        ):  # one number tells of all, and does not overflow
            return state, reference
        q, v = bounded_vector("state: q", q, n), bounded_vector("state: v", v, n)
        told = {name: bounded_vector(f"reference: {name}", getattr(r, name), n) for name in "qva"}
        return State(state.time, q, v, state.tau, state.act), replace(r, **told)

    @abstractmethod
    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Command for this instant; dt [s] since the last update, 0 at the first one."""

    @property
    def memory(self) -> Vector:
        """What ``update`` integrates, as one vector (nm,); empty without memory."""
        return NO_MEMORY

    def remember(self, memory: Vector) -> None:
        """Go on from a ``memory`` (nm,)."""

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Command u and rate of change ṁ of ``memory`` m in continuous time.

        ``acceleration`` gives the arm's actual v̇ (nv,) at this instant under a command (nv,), for
        a controller that feeds it back. Default: ``update`` from m, which integrates it by a step
        of explicit Euler, so that ṁ = (m⁺ - m) / MOMENT. Filters need a form of their own.
        """
        self.remember(memory)
        command = self.update(state, reference, MOMENT if memory.size else 0.0)
        return command, (self.memory - memory) / MOMENT

    def effort_command(self, effort: Vector, state: State) -> Command:
        """clip(effort, ±limit) as a command that answers ``state``."""
        value = np.maximum(effort, -self._limit)
        np.minimum(value, self._limit, out=value)
        value.flags.writeable = False
        return Command(self.interface, value, state.time)


def bounded_vector(name: str, value: ArrayLike, size: int) -> Vector:
    """``value`` (size,) within ±LARGEST; raises InvalidValue as ``check_vector`` does."""
    return as_readonly(np.clip(check_vector(name, value, size), -MAX_VALUE, MAX_VALUE))


def _mapping(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``given``, which a user may have misshapen; raises InvalidValue for what maps no names."""
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{name}: {given!r} is no mapping of names to numbers")
    return given


def _columns(
    values: Gains, parameters: Sequence[Parameter], groups: Sequence[str]
) -> dict[str, Vector]:
    return {p.name: as_readonly([values[group][p.name] for group in groups]) for p in parameters}
