"""An arm as a read-only value: Pinocchio model, joints, motors, payload, gravity, tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core import plugins
from arm_dynamics.core.argument_checks import check_names, check_type
from arm_dynamics.core.arrays import (
    BoolArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_vector,
)
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.model.arm_html import arm_html
from arm_dynamics.model.audit.mimic_joints import MimicJoint
from arm_dynamics.model.audit.robot import ONE_COORDINATE, REFLECTED, Robot
from arm_dynamics.model.xml_source import parse_xml


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint with one coordinate; rad, N·m (or m, N for a prismatic one).

    A continuous joint has infinite limits and counts its turns.
    """

    name: str
    kind: str
    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float = 0.0
    friction: float = 0.0
    stop_stiffness: float = 0.0
    stop_damping: float = 0.0
    initial: float = 0.0
    actuator: str = "ideal"
    constants: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Make the constants read-only."""
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constants as a dict: mapping proxies cannot be pickled."""
        *values, constants = (getattr(self, f.name) for f in fields(self))
        return type(self), (*values, dict(constants))

    @property
    def unit(self) -> str:
        """Unit of the joint's position: "m" for a prismatic one, else "rad"."""
        return "m" if self.kind == "prismatic" else "rad"

    @property
    def effort_unit(self) -> str:
        """Unit of the joint's effort: "N" for a prismatic one, else "N·m"."""
        return "N" if self.kind == "prismatic" else "N·m"


STANDARD_GRAVITY = as_readonly([0.0, 0.0, -9.81])


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """A point mass [kg] at ``center`` [m] in the tool frame."""

    mass: float
    center: Vector

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments: a read-only array is not read-only when unpickled."""
        return type(self), (self.mass, self.center)

    def __post_init__(self) -> None:
        """Make the center read-only."""
        object.__setattr__(self, "center", as_readonly(self.center))


NO_PAYLOAD = Payload(0.0, as_readonly([0.0, 0.0, 0.0]))


@dataclass(frozen=True, eq=False, repr=False)
class ArmModel:
    """A URDF arm with its motors. Derived arms come from the ``with_...`` methods.

    ``model`` is the Pinocchio model with reflected rotor inertia, payload and gravity in it;
    nq = nv, and coordinate i belongs to ``joints[i]``. ``tree`` is this model with a coordinate for
    each mimic joint too. Without mimic joints both are the same.
    """

    name: str
    urdf: str
    source: Path | None
    links: Any
    joints: tuple[Joint, ...]
    tool_frame: str
    gravity: Vector = field(default_factory=lambda: STANDARD_GRAVITY)
    payload: Payload = NO_PAYLOAD
    mimic_joints: tuple[MimicJoint, ...] = ()
    tree: Any = field(init=False)
    model: Any = field(init=False)
    actuators: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Build the actuators, then the Pinocchio model that includes them."""
        object.__setattr__(self, "gravity", as_readonly(self.gravity))  # an unpickled array is not
        actuators = tuple(_make_actuator(joint) for joint in self.joints)
        model = pin.Model(self.links)
        model.gravity.linear = self.gravity
        armature = np.array([actuator.armature for actuator in actuators])
        if self.mimic_joints:
            rotors = dict(zip(self.joint_names, armature.tolist(), strict=True))
            model.armature = np.array([rotors.get(name, 0.0) for name in [*model.names][1:]])
        else:
            model.armature = armature
        if self.payload.mass > 0:
            tool = model.frames[model.getFrameId(self.tool_frame, pin.BODY)]
            point = pin.Inertia(self.payload.mass, self.payload.center, np.zeros((3, 3)))
            model.inertias[tool.parentJoint] += tool.placement.act(point)
        object.__setattr__(self, "actuators", actuators)
        object.__setattr__(self, "tree", model)
        if self.mimic_joints:
            model = self._with_mimic_joints(model)
            model.armature = armature
        object.__setattr__(self, "model", model)

    def _with_mimic_joints(self, tree: Any) -> Any:
        """Return ``tree`` without the coordinates of the mimic joints."""
        if not hasattr(pin, "transformJointIntoMimic"):
            raise ConfigError(
                f"arm '{self.name}': Pinocchio = {pin.__version__}, which has no mimic joints;"
                f" install a newer one, or lock {[mimic.name for mimic in self.mimic_joints]}"
            )
        for mimic in self.mimic_joints:
            driven, body = tree.getJointId(mimic.joint), tree.getJointId(mimic.name)
            if driven > body:
                raise ConfigError(
                    f"arm '{self.name}': joint '{mimic.name}' follows '{mimic.joint}'; expected a"
                    f" joint before it in the order {list(tree.names)[1:]}; lock '{mimic.name}'"
                )
            tree = pin.transformJointIntoMimic(tree, driven, body, mimic.multiplier, mimic.offset)
        return tree

    def __repr__(self) -> str:
        """Name, joints, actuators, mass of the links and payload, in a line."""
        joints = " … ".join(dict.fromkeys((self.joint_names[0][:20], self.joint_names[-1][:20])))
        kinds = ", ".join(dict.fromkeys(joint.actuator for joint in self.joints))
        mass = sum(inertia.mass for inertia in self.links.inertias)
        load = f", payload {self.payload.mass:.4g} kg" if self.payload.mass else ""
        size = f"{self.nv} joint{'s' * (self.nv != 1)}"
        return f"<ArmModel {self.name[:40]}: {size} {joints}, {kinds}, {mass:.4g} kg{load}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the init fields only; derived values are computed when unpickled."""
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    @property
    def nv(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names in the order of every vector of this arm."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def na(self) -> int:
        """Number of actuator states."""
        return sum(len(actuator.states) for actuator in self.actuators)

    @property
    def act_names(self) -> tuple[str, ...]:
        """Names of the actuator states, joint by joint: "R1.current" ..."""
        every = ((a.joint, state) for a in self.actuators for state in a.states)
        return tuple(f"{joint}.{state.name}" for joint, state in every)

    @property
    def initial_act(self) -> Vector:
        """Actuator states at rest (na,)."""
        return as_readonly([state.initial for a in self.actuators for state in a.states])

    def hold_act(self, q: Vector, act: Vector) -> Vector:
        """Return ``act`` (na,) so that joints with prescribed motion stay at ``q`` (nv,)."""
        held: list[float] = []
        for actuator, angle in zip(self.actuators, q.tolist(), strict=True):
            own = act[len(held) : len(held) + len(actuator.states)].tolist()
            held.extend(actuator.hold_act(angle, own))
        return as_readonly(held)

    def act_after_command(self, command: Vector, act: Vector) -> Vector:
        """Return ``act`` (na,) after ``command`` (nv,) is sent; itself if nothing changes."""
        before, sent = act.tolist(), list[float]()
        for actuator, value in zip(self.actuators, command.tolist(), strict=True):
            own = before[len(sent) : len(sent) + len(actuator.states)]
            sent.extend(actuator.act_after_command(value, own))
        return act if sent == before else as_readonly(sent)

    @property
    def lower(self) -> Vector:
        """Lower position limits (nv,) [rad or m]; -inf for a continuous joint."""
        return as_readonly([joint.lower for joint in self.joints])

    @property
    def upper(self) -> Vector:
        """Upper position limits (nv,) [rad or m]; inf for a continuous joint."""
        return as_readonly([joint.upper for joint in self.joints])

    @cached_property
    def is_continuous(self) -> BoolArray:
        """Mask (nv,) of the continuous joints, which count their turns."""
        mask = np.array([joint.kind == "continuous" for joint in self.joints], dtype=bool)
        mask.flags.writeable = False
        return mask

    def _repr_html_(self) -> str:
        """Drawing in the initial configuration and joint table, for notebooks."""
        return arm_html(self, self.configuration("initial"), self.name)

    @property
    def velocity_limit(self) -> Vector:
        """Velocity limits (nv,) [rad/s or m/s]."""
        return as_readonly([joint.velocity for joint in self.joints])

    @property
    def effort_limit(self) -> Vector:
        """Effort limits (nv,) [N·m or N]."""
        return as_readonly([joint.effort for joint in self.joints])

    @cached_property
    def mimic_matrix(self) -> tuple[Matrix, Vector]:
        """G (n, nv) and c (n,) [rad or m]: the n joints of ``tree`` are at q_t = G q + c.

        v_t = G v, τ = Gᵀ τ_t, M = Gᵀ M_t G, J = J_t G, as Ġ = 0. G = 1 without mimic joints.
        """
        factors, offsets = np.zeros((self.tree.nv, self.nv)), np.zeros(self.tree.nv)
        factors[self.tree_indices, range(self.nv)] = 1.0
        for mimic in self.mimic_joints:
            row = self.tree.getJointId(mimic.name) - 1
            factors[row, self.index(mimic.joint)] = mimic.multiplier
            offsets[row] = mimic.offset
        return as_readonly(factors), as_readonly(offsets)

    @cached_property
    def tree_indices(self) -> list[int]:
        """Index of each joint among those of ``tree``; Pinocchio's number of it is one higher."""
        return [self.tree.getJointId(name) - 1 for name in self.joint_names]

    def tree_positions(self, q: Vector) -> Vector:
        """Return the positions q_t (..., n) [rad or m] of the joints of ``tree``, q (..., nv)."""
        return self.tree_velocities(q) + self.mimic_matrix[1] if self.mimic_joints else q

    def tree_velocities(self, v: Vector) -> Vector:
        """Return the velocities v_t (..., n) [rad/s or m/s] of the joints of ``tree``, v (..., nv).

        Accelerations likewise.
        """
        velocities: Vector = v @ self.mimic_matrix[0].T if self.mimic_joints else v
        return velocities

    def reduced(self, matrix: Matrix) -> Matrix:
        """Return Gᵀ X G (nv, nv) of a matrix X (n, n) of ``tree``."""
        factors = self.mimic_matrix[0]
        return factors.T @ matrix @ factors if self.mimic_joints else matrix

    @cached_property
    def configurations(self) -> Mapping[str, Vector]:
        """Named joint positions: "initial" (from the URDF) and "zero"."""
        initial = as_readonly([joint.initial for joint in self.joints])
        zero = as_readonly(np.clip(np.zeros(self.nv), self.lower, self.upper))
        return MappingProxyType({"initial": initial, "zero": zero})

    @cached_property
    def locked(self) -> tuple[str, ...]:
        """Movable joints of the URDF that were locked when it was loaded."""
        every = Robot(parse_xml(self.urdf)).joints.items()
        moving = [name for name, joint in every if joint.get("type") in ONE_COORDINATE]
        return tuple(name for name in moving if not self.links.existJointName(name))

    @cached_property
    def gripper_joints(self) -> tuple[str, ...]:
        """Joints of the gripper, which follow those of the tool frame; empty without one."""
        tool = self.links.frames[self.links.getFrameId(self.tool_frame, pin.BODY)].parentJoint
        behind = [tool in [*supports][:-1] for supports in self.links.supports]
        found = {name for name, there in zip(self._driven_by, behind[1:], strict=True) if there}
        return tuple(name for name in self.joint_names if name in found)

    @cached_property
    def tool_links(self) -> tuple[str, ...]:
        """Links that the last joint of the tool frame moves, those of a gripper included."""
        links = self.links
        tool = links.frames[links.getFrameId(self.tool_frame, pin.BODY)].parentJoint
        bodies = [frame for frame in links.frames if frame.type == pin.BODY]
        return tuple(b.name for b in bodies if tool in links.supports[b.parentJoint])

    @cached_property
    def tool_joints(self) -> tuple[str, ...]:
        """Joints between the base and the tool frame, those that drive mimic joints included."""
        tool = self.links.frames[self.links.getFrameId(self.tool_frame, pin.BODY)].parentJoint
        above = [self._driven_by[i - 1] for i in [*self.links.supports[tool]][1:]]
        return tuple(name for name in self.joint_names if name in above)

    @property
    def _driven_by(self) -> list[str]:
        """Driven joint of each joint of ``tree``."""
        follows = {mimic.name: mimic.joint for mimic in self.mimic_joints}
        return [follows.get(name, name) for name in list(self.links.names)[1:]]

    @cached_property
    def is_kinematic(self) -> bool:
        """Whether no moving link has a mass: only kinematics and display are defined."""
        return not any(inertia.mass for inertia in list(self.links.inertias)[1:])

    @property
    def base_frame(self) -> str:
        """Name of the root link."""
        bodies = (f for f in self.links.frames if f.type == pin.BODY)
        return str(next(bodies).name)

    def index(self, joint: str) -> int:
        """Return the index of a joint by name; raises UnknownName."""
        if joint not in self.joint_names:
            raise UnknownName(f"joint of arm '{self.name}'", joint, self.joint_names)
        return self.joint_names.index(joint)

    def with_initial(self, q: ArrayLike) -> ArmModel:
        """Return the arm with another initial configuration (nv,) [rad or m]; InvalidValue."""
        values = self.check_position("initial q", q).tolist()
        joints = [replace(j, initial=x) for j, x in zip(self.joints, values, strict=True)]
        return replace(self, joints=tuple(joints))

    def with_payload(self, mass: float, center: ArrayLike = (0.0, 0.0, 0.0)) -> ArmModel:
        """Return the arm with a point mass [kg] at ``center`` [m] in the tool frame."""
        mass = check_float("payload mass [kg]", mass, lower=0)
        return replace(self, payload=Payload(mass, check_vector("payload center", center, 3)))

    def with_gravity(self, gravity: ArrayLike) -> ArmModel:
        """Return the arm in another gravity field (3,) [m/s²], for example a tilted base."""
        return replace(self, gravity=check_vector("gravity", gravity, 3))

    def with_joint(self, name: str, **changes: Any) -> ArmModel:
        """Return the arm with changed constants of one joint.

        Parameters
        ----------
        name : str
            Name of the joint.
        **changes : float
            ``damping`` [N·m·s/rad], ``friction`` [N·m], ``stop_stiffness`` [N·m/rad],
            ``stop_damping`` [N·m·s/rad]; of a prismatic joint in N and m.

        Returns
        -------
        ArmModel
            The changed arm.

        Raises
        ------
        UnknownName
            For a joint or constant that does not exist.
        InvalidValue
            For a value that is negative or not finite.

        """
        known = ("damping", "friction", "stop_stiffness", "stop_damping")
        for field_name, value in changes.items():
            if field_name not in known:
                raise UnknownName(f"constant of joint '{name}'", field_name, known)
            changes[field_name] = check_float(f"joint '{name}' {field_name}", value, lower=0)
        return self._replaced(name, replace(self.joints[self.index(name)], **changes))

    def with_motor(self, name: str, **constants: float) -> ArmModel:
        """Return the arm with changed constants of one joint's actuator.

        Parameters
        ----------
        name : str
            Name of the joint.
        **constants : float
            Constants of its actuator, for example ``kt`` [N·m/A], ``supply_voltage`` [V].

        Returns
        -------
        ArmModel
            The changed arm.

        Raises
        ------
        UnknownName
            For a joint or constant that does not exist.
        InvalidValue
            For a constant out of its range, and for a motor constant of an ideal actuator:
            ``with_actuator`` gives the joint a motor.

        """
        joint = self.joints[self.index(name)]
        known = {parameter.name for parameter in self.actuators[self.index(name)].parameters}
        if known <= {"armature"} and not constants.keys() <= known:
            raise InvalidValue(
                f"joint '{name}': actuator = '{joint.actuator}', which has no motor constants;"
                f" expected a motor; with_actuator('dc_motor', joints=['{name}'], kt=..., ke=...,"
                " resistance=...) gives it one, or a <ros2_control> block of the URDF"
                " (docs/my_motors.md)"
            )
        return self._replaced(name, replace(joint, constants={**joint.constants, **constants}))

    def with_motors(self, **constants: float) -> ArmModel:
        """Return the arm with the same constants in every joint's actuator; as ``with_motor``."""
        arm = self
        for name in self.joint_names:
            arm = arm.with_motor(name, **constants)
        return arm

    def with_actuator(
        self, actuator: str, joints: Sequence[str] | None = None, **constants: float
    ) -> ArmModel:
        """Return the arm with another actuator in some joints.

        Parameters
        ----------
        actuator : str
            Registered name: "ideal", "dc_motor", "rate_limited" or that of a plugin.
        joints : sequence of str, optional
            Names of the joints; all by default.
        **constants : float
            Constants of the actuator (SI).

        Returns
        -------
        ArmModel
            The changed arm.

        Raises
        ------
        UnknownName
            For an actuator, joint or constant that does not exist.
        InvalidValue
            For a constant that is missing or out of its range.

        """
        names = self.joint_names if joints is None else check_names("joints", joints)
        changed = list(self.joints)
        for i in map(self.index, names):
            changed[i] = replace(self.joints[i], actuator=actuator, constants=constants)
        return replace(self, joints=tuple(changed))

    def _replaced(self, name: str, joint: Joint) -> ArmModel:
        index = self.index(name)
        return replace(self, joints=(*self.joints[:index], joint, *self.joints[index + 1 :]))

    def configuration(self, name: str) -> Vector:
        """Return a named configuration (nv,) [rad or m]; raises UnknownName."""
        if check_type(str, "configuration", name) not in self.configurations:
            kind = f"configuration of arm '{self.name}'"
            raise UnknownName(kind, name, tuple(self.configurations))
        return self.configurations[name]

    def check_position(self, name: str, q: ArrayLike) -> Vector:
        """Return ``q`` (nv,) within the joint limits; raises InvalidValue naming the joint."""
        position = check_vector(name, q, self.nv)
        for joint, value in zip(self.joints, position, strict=True):
            if not joint.lower <= value <= joint.upper:
                raise InvalidValue(
                    f"{name}: joint '{joint.name}' = {value:.6g} {joint.unit}; expected"
                    f" {joint.lower:.6g} to {joint.upper:.6g}"
                )
        return position


def _make_actuator(joint: Joint) -> Any:
    """Return the actuator of a joint; raise InvalidValue if its constants overflow at the joint."""
    kind = plugins.load_class("actuators", joint.actuator)
    with plugins.guarded("actuators", joint.actuator):
        actuator = kind(joint.name, joint.effort, joint.constants)
    for name in REFLECTED:
        where = f"actuator of joint '{joint.name}': {name} at the joint, from its constants,"
        check_float(where, getattr(actuator, name))
    return actuator
