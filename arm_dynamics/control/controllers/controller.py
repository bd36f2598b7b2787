"""The interface of every controller: state and reference in, command out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import hypot, nan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.scene import Scene
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import IntArray, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.compiled_math import VECTOR, compiled
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import Command, Reference, State, new_command
from arm_dynamics.dynamics.kinematics.frames import AXIS_NAMES
from arm_dynamics.dynamics.rigid_body import RigidBodyDynamics
from arm_dynamics.model.arm_argument import check_arm, require_masses, require_same_joints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import require_holdable

Gains = Mapping[str, Mapping[str, float]]
"""Group → parameter name → value; a group is a joint, an axis "tool.x" ... or "controller"."""
AXES = AXIS_NAMES
"""Axes of the tool: along and about the base's axes."""
MAX_VALUE = 1e30
"""Limit of every input; products of several such numbers are still finite."""
MOMENT = 2.0**-10
"""Time step from which the rate of change of a memory is computed [s]."""
NO_MEMORY = as_readonly([])
STATE, REFERENCE = (VECTOR,) * 2, (VECTOR,) * 3
"""Kinds of q and v of a state, and of q, v and a of a reference, (nv,) each."""


def _short(values: Vector) -> str:
    """Return numbers with four digits in a line; of more than eight joints, the first and last."""
    return np.array2string(
        values, max_line_width=1000, threshold=8, edgeitems=2, formatter={"float": "{:.4g}".format}
    )


class Controller(ABC):
    """Computes a command from state and reference, with a model of the arm.

    Subclasses list their gains: ``parameters`` per joint, ``axis_parameters`` per axis of the tool,
    and ``controller_parameters`` once. ``default_gains`` computes a default of None.

    Parameters
    ----------
    arm : ArmModel
        The controller's model; it may differ from the controlled arm.
    gains : Gains, optional
        Gains by group; default: all defaults.

    Raises
    ------
    UnknownName, InvalidValue
        As ``set_gains``.

    """

    interface: ClassVar[str] = "effort"
    """Command interface."""
    tracks_reference: ClassVar[bool] = True
    """Whether it tracks a reference; goals are rejected otherwise."""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    axis_parameters: ClassVar[tuple[Parameter, ...]] = ()
    controller_parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self.arm, self.dynamics = check_arm(arm), RigidBodyDynamics(arm)
        if self.interface not in ("position", "velocity"):
            require_masses(arm, f"a controller with the command interface {self.interface}")
        self.gains: dict[str, Vector] = {}
        self.given: Gains = {}
        self.scale = 1.0
        self._limit, self._size = arm.effort_limit, arm.nv
        self.effort_bound: Vector | None = None
        """Largest efforts (nv,) [N·m or N] set by ``bound_effort``; None for those of the arm."""
        self.set_gains(gains or {})

    def __repr__(self) -> str:
        """Class, arm, command interface and gains by joint, in a line."""
        gains = "".join(f", {name} {_short(values)}" for name, values in self.gains.items())
        return f"<{type(self).__name__} of {self.arm.name[:40]}: {self.interface}{gains}>"

    @property
    def parameter_groups(self) -> Mapping[str, tuple[Parameter, ...]]:
        """Parameters by group."""
        groups = dict.fromkeys(self.arm.joint_names, self.parameters)
        if self.axis_parameters:
            groups |= dict.fromkeys([f"tool.{axis}" for axis in AXES], self.axis_parameters)
        once = {"controller": self.controller_parameters} if self.controller_parameters else {}
        return groups | once

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the memory stays, and gains that are not given take their defaults.

        Parameters
        ----------
        gains : Gains
            Values by group and name. ``given`` stores those that differ from the defaults.

        Raises
        ------
        UnknownName
            For a group or gain that does not exist.
        InvalidValue
            For a value out of its range. The previous gains stay active.

        """
        groups = self.parameter_groups
        computed = self.default_gains()
        full, scaled = self._defaults(computed, 1.0), self._defaults(computed, self.scale)
        self._require_groups(gains)
        values = {
            name: with_defaults(
                f"'{name}'" if name not in self.arm.joint_names else f"joint '{name}'",
                parameters,
                {**scaled[name], **gains.get(name, {})},
            )
            for name, parameters in groups.items()
        }
        given = {
            group: {
                name: value
                for name, value in row.items()
                if value not in (full[group].get(name), scaled[group].get(name))
            }
            for group, row in gains.items()
        }
        for group, row in given.items():
            values[group] |= self.matched(row, scaled[group])
        self.values = values
        self.gains = _columns(values, self.parameters, self.arm.joint_names)
        self.axis_gains = _columns(values, self.axis_parameters, [f"tool.{a}" for a in AXES])
        self.controller_gains = dict(values.get("controller", {}))
        self.given = given

    def _require_groups(self, gains: Gains) -> None:
        """Raise UnknownName or InvalidValue unless ``gains`` has a mapping for each group."""
        groups = self.parameter_groups
        for name in _require_mapping("gains", gains):
            if name not in groups:
                raise UnknownName(f"joint of arm '{self.arm.name}'", name, tuple(groups))
            _require_mapping(f"gains of '{name}'", gains[name])

    def _defaults(self, computed: Gains, scale: float) -> dict[str, dict[str, float]]:
        """Return the defaults at ``scale`` times the full bandwidth, by group and name."""
        defaults: dict[str, dict[str, float]] = {}
        for group, parameters in self.parameter_groups.items():
            fixed = {p.name: p.default for p in parameters if p.default is not None}
            order = {p.name: p.order for p in parameters}
            row = {**fixed, **computed.get(group, {})}
            defaults[group] = {n: x * scale ** order.get(n, 0) for n, x in row.items()}
        return defaults

    def matched(self, given: Mapping[str, float], default: Mapping[str, float]) -> dict[str, float]:
        """Return gains of one group that follow from ``given`` ones instead of ``default``."""
        del given, default
        return {}

    def default_gains(self) -> Gains:
        """Return the values of parameters with the default None."""
        return {}

    def bound_effort(self, bound: Vector | None) -> None:
        """Limit the effort to ``bound`` (nv,) [N·m or N] and to the limits of the arm."""
        limit = self.arm.effort_limit
        self.effort_bound = bound
        self._limit = limit if bound is None else as_readonly(np.minimum(limit, bound))

    def clear_integral(self, joints: IntArray) -> None:
        """Set the integral terms of some joints to 0; a controller without these does nothing."""
        del joints

    def slow_down(self, scale: float) -> None:
        """Set the defaults to ``scale`` times their full bandwidth; ``given`` gains stay.

        Raises
        ------
        InvalidValue
            If a default leaves its range; the previous gains stay active.

        """
        before, self.scale = self.scale, scale
        try:
            self.set_gains(self.given)
        except BaseException:
            self.scale = before
            raise

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model (with a payload, for example); gains and memory stay.

        Raises
        ------
        InvalidValue
            If it has other joints, or its gravity torque exceeds an effort limit at the initial
            configuration.

        """
        self.arm = require_holdable(require_same_joints("model", arm, self.arm))
        self.dynamics = RigidBodyDynamics(self.arm)

    @property
    def diagnostics(self) -> Mapping[str, str]:
        """Values for the diagnostics of a node, by name with unit."""
        return {}

    def follow_references(self, ahead: Callable[[float], Reference]) -> None:
        """Use the references at later times [s]; predictive controllers do."""
        del ahead

    def use_scene(self, scene: Scene) -> None:
        """Keep a distance from the objects of a scene; controllers that can override this."""
        del scene

    def reset(self, state: State) -> None:
        """Clear the memory; the next update starts from ``state``."""
        del state

    def hold_trajectory(self, state: State) -> Trajectory:
        """Return the trajectory of a restart: rest at the configuration of ``state``."""
        return JointTrajectory.hold(state.q, state.time)

    @abstractmethod
    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the command.

        Parameters
        ----------
        state : State
            Measured state.
        reference : Reference
            Desired motion.
        dt : float
            Time since the last update [s]; 0 at the first one.

        """

    @property
    def memory(self) -> Vector:
        """Integrated quantities of ``update`` as one vector (nm,); empty without memory."""
        return NO_MEMORY

    def remember(self, memory: Vector) -> None:
        """Continue from a ``memory`` (nm,)."""

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Return the command u and the rate of change ṁ of ``memory`` m in continuous time.

        By default ``update`` runs from m with an explicit Euler step, so that
        ṁ = (m⁺ - m) / MOMENT. Controllers with filters override this method.

        Parameters
        ----------
        state : State
            State of the arm.
        reference : Reference
            Desired motion.
        memory : (nm,) array
            Memory m.
        acceleration : callable
            Returns the arm's acceleration v̇ (nv,) under a command (nv,).

        """
        self.remember(memory)
        command = self.update(state, reference, MOMENT if memory.size else 0.0)
        return command, (self.memory - memory) / MOMENT

    def bounded_inputs(
        self, state: State, reference: Reference, dt: float = 0.0
    ) -> tuple[State, Reference]:
        """Return state and reference with all values limited to ±MAX_VALUE.

        Raises
        ------
        InvalidValue
            Without one finite number per joint, and for an invalid dt [s].

        """
        if not (isinstance(dt, float | int) and 0.0 <= dt < MAX_VALUE):
            check_float("dt [s]", dt, lower=0, upper=MAX_VALUE)
        q, v, r, n = state.q, state.v, reference, self._limit.size
        if (
            q.size == v.size == r.q.size == r.v.size == r.a.size == n
            and hypot(*q.tolist(), *v.tolist(), *r.q.tolist(), *r.v.tolist(), *r.a.tolist())
            < MAX_VALUE
        ):  # one number checks all, and does not overflow
            return state, reference
        q, v = bounded_vector("state: q", q, n), bounded_vector("state: v", v, n)
        bounded = {x: bounded_vector(f"reference: {x}", getattr(r, x), n) for x in "qva"}
        return State(state.time, q, v, state.tau, state.act), replace(r, **bounded)

    def effort_command(self, effort: Vector, state: State) -> Command:
        """Return clip(effort, ±limit) as a command with the time stamp of ``state``."""
        value = np.maximum(effort, -self._limit)
        np.minimum(value, self._limit, out=value)
        value.flags.writeable = False
        return Command(self.interface, value, state.time)


class CompiledController(Controller):
    """A controller whose control law is one compiled function, which also checks its inputs.

    Subclasses define ``compute`` instead of ``update``.
    """

    @abstractmethod
    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Write the effort (nv,) [N·m] within the effort limits; return whether inputs are valid.

        With invalid inputs (``are_bounded``) the memory is unchanged.
        """

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m] within the effort limits."""
        effort = np.empty(self._size)
        try:
            valid = self.compute(effort, state, reference, dt)
        except (TypeError, ValueError):  # of arrays of another size or type
            valid = False
        if not valid:
            state, reference = self.bounded_inputs(state, reference, dt)
            if not self.compute(effort, state, reference, dt):
                effort.fill(nan)  # is rejected by every guard
        effort.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
        return new_command(self.interface, effort, state.time)


@compiled
def are_bounded(
    reference: tuple[Vector, Vector, Vector], state: tuple[Vector, Vector], dt: float, size: int
) -> bool:
    """Return whether all vectors have ``size`` entries within ±MAX_VALUE, and dt is valid."""
    (q_ref, v_ref, a_ref), (q, v) = reference, state
    valid = 0.0 <= dt < MAX_VALUE and size == q_ref.size == v_ref.size
    if not (valid and size == a_ref.size == q.size == v.size):
        return False
    for j in range(size):  # a comparison with NaN is false
        valid &= abs(q_ref[j]) <= MAX_VALUE and abs(v_ref[j]) <= MAX_VALUE
        valid &= abs(a_ref[j]) <= MAX_VALUE
        valid &= abs(q[j]) <= MAX_VALUE and abs(v[j]) <= MAX_VALUE
    return valid


def bounded_vector(name: str, value: ArrayLike, size: int) -> Vector:
    """Return ``value`` (size,) within ±MAX_VALUE; raises InvalidValue as ``check_vector``."""
    return as_readonly(np.clip(check_vector(name, value, size), -MAX_VALUE, MAX_VALUE))


def _require_mapping(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{name} = {given!r}; expected a mapping of names to numbers")
    return given


def _columns(
    values: Gains, parameters: Sequence[Parameter], groups: Sequence[str]
) -> dict[str, Vector]:
    return {p.name: as_readonly([values[group][p.name] for group in groups]) for p in parameters}
