"""Costs of predicted motions: functions of a stage, evaluated on numbers or traced for a kernel."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import FunctionType, MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.contact_impulse import SHAPES, gap_and_normal
from arm_dynamics.collision.link_spheres import LinkSphere, covering_spheres
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import maximum
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, UnknownName
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

PACKAGE = str(Path(__file__).parents[2])


class Stage:
    """State and command of the arm at one instant of a predicted motion.

    Values are floats, or symbols while a kernel is traced: use arithmetic, ``@``, and ``where``,
    ``minimum``, ``maximum``, ``clip``, ``sign``, ``exp`` of ``arm_dynamics.simulation``; ``math``
    has the square root and the trigonometric functions.

    Attributes
    ----------
    q, v : (nv,) array
        Positions [rad or m] and velocities [rad/s or m/s].
    act : (na,) array
        Actuator states.
    effort : (nv,) array
        Applied efforts [N·m or N].
    command : (nv,) array
        Commands that lead to this state [N·m, N, V, rad or m].

    """

    def __init__(
        self,
        geometry: CostGeometry,
        rows: Mapping[str, Any],
        placements: Sequence[tuple[Any, Any]],
        mass_matrix: Callable[[], Any],
        evaluate: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function,
    ) -> None:
        """Take rows q, v, act, effort, command (of a free object too), placements, and M(q).

        ``evaluate`` returns a function of numbers as one of the stage's values.
        """
        self.q, self.v, self.act = rows["q"], rows["v"], rows["act"]
        self.effort, self.command, self._rows = rows["effort"], rows["command"], rows
        self._geometry, self._placements = geometry, placements
        self._mass_matrix, self._evaluate = mass_matrix, evaluate

    @cached_property
    def position_excess(self) -> Any:
        """Distance of each joint beyond its position limits (nv,) [rad or m], 0 within them."""
        arm, larger = self._geometry.arm, self._evaluate(maximum)
        beyond = zip(self.q, arm.lower, arm.upper, strict=True)
        return np.array([larger(larger(low - q, q - high), 0.0) for q, low, high in beyond])

    @cached_property
    def tool_position(self) -> Any:
        """Tool center point in base axes (3,) [m]."""
        joint, placement = self._geometry.tool
        rotation, origin = self._placed(joint)
        return origin + rotation @ np.array(placement.translation)

    @cached_property
    def tool_rotation(self) -> Any:
        """Orientation of the tool frame in base axes (3, 3)."""
        joint, placement = self._geometry.tool
        return self._placed(joint)[0] @ np.array(placement.rotation)

    @cached_property
    def tool_velocity(self) -> Any:
        """Linear and angular velocity of the tool center point in base axes (6,) [m/s, rad/s]."""
        model, joint = self._geometry.arm.model, self._geometry.tool[0]
        linear, angular = np.zeros(3), np.zeros(3)
        while joint > 0:
            rotation, origin = self._placed(joint)
            axis = (rotation @ self._geometry.axes[joint]) * self.v[joint - 1]
            if self._geometry.prismatic[joint]:
                linear = linear + axis
            else:
                linear = linear + np.cross(axis, self.tool_position - origin)
                angular = angular + axis
            joint = model.parents[joint]
        return np.concatenate([linear, angular])

    @cached_property
    def kinetic_energy(self) -> Any:
        """½ vᵀ M(q) v with the rotors [J]."""
        return 0.5 * (self.v @ (self._mass_matrix() @ self.v))

    @cached_property
    def potential_energy(self) -> Any:
        """Energy of the links in the field of gravity [J], as ``pinocchio``'s."""
        model, total = self._geometry.arm.model, 0.0
        for joint in range(1, model.njoints):
            rotation, origin = self._placed(joint)
            inertia = model.inertias[joint]
            center = origin + rotation @ np.array(inertia.lever)
            total = total - inertia.mass * (center @ np.array(model.gravity.linear))
        return total

    @property
    def body_position(self) -> Any:
        """Center of the free object in base axes (3,) [m]."""
        return self._of_body("body_position")

    @property
    def body_rotation(self) -> Any:
        """Rotation of the axes of the free object into base axes (3, 3)."""
        return self._of_body("body_rotation").reshape(3, 3)

    @property
    def body_velocity(self) -> Any:
        """Linear and angular velocity of the free object in base axes (6,) [m/s, rad/s]."""
        return self._of_body("body_velocity")

    @cached_property
    def object_gaps(self) -> tuple[Any, ...]:
        """Gaps [m] of the spheres that cover the links to fixed objects, negative inside."""
        return tuple(
            self._evaluate(gap_and_normal)(
                one.shape.kind, one.shape.size, np.array(one.position), np.array(one.rotation),
                center, radius,
            )[0]
            for center, radius in self.spheres
            for one in self._geometry.scene
        )  # fmt: skip

    @cached_property
    def own_gaps(self) -> tuple[Any, ...]:
        """Gaps [m] between the spheres of those pairs of links that can collide."""
        spheres = self.spheres
        return tuple(self._gap(spheres[i], *spheres[j]) for i, j in self._geometry.own_pairs)

    def sphere_gaps(self, center: Any, radius: Any) -> tuple[Any, ...]:
        """Return the gaps [m] of the spheres of the links to a sphere at ``center`` (3,) [m]."""
        return tuple(self._gap(sphere, center, radius) for sphere in self.spheres)

    @cached_property
    def spheres(self) -> tuple[tuple[Any, float], ...]:
        """Center (3,) [m] in base axes and radius [m] of the spheres that cover the links."""
        placed = []
        for sphere in self._geometry.spheres:
            rotation, origin = self._placed(sphere.joint)
            placed.append((origin + rotation @ sphere.center, sphere.radius))
        return tuple(placed)

    def _of_body(self, name: str) -> Any:
        """Return a row of the free object; raises InvalidValue without any."""
        if name not in self._rows:
            raise InvalidValue(
                f"cost: {name}: free objects = 0; expected 1; give the planner a scene with an"
                " object that has a mass, and contact=True"
            )
        return self._rows[name]

    def _placed(self, joint: int) -> tuple[Any, Any]:
        return self._placements[joint] if joint > 0 else (np.eye(3), np.zeros(3))

    def _gap(self, sphere: tuple[Any, float], center: Any, radius: Any) -> Any:
        place = np.array(center), np.eye(3)
        return self._evaluate(gap_and_normal)("sphere", (radius,), *place, *sphere)[0]


class CostGeometry:
    """What the frames and gaps of a stage depend on: an arm and the fixed objects of a scene.

    Raises
    ------
    InvalidValue
        For an object without a distance in closed form.

    """

    def __init__(self, arm: ArmModel, scene: Scene = EMPTY_SCENE) -> None:
        self.arm, self.scene = arm, Scene(one for one in scene if one.is_fixed)
        for one in scene:
            if one.shape.kind not in SHAPES:
                raise InvalidValue(
                    f"scene object '{one.name}': shape = '{one.shape.kind}'; expected one of"
                    f" {', '.join(SHAPES)} in a cost; replace it by boxes or spheres"
                )
        frame = arm.model.frames[arm.model.getFrameId(arm.tool_frame, pin.BODY)]
        self.tool = int(frame.parentJoint), frame.placement
        data, neutral = arm.model.createData(), np.zeros(arm.nv)
        pin.computeJointJacobians(arm.model, data, neutral)
        self.prismatic, self.axes = [False], [np.zeros(3)]
        for i in range(1, arm.model.njoints):
            jacobian = pin.getJointJacobian(arm.model, data, i, pin.LOCAL)
            column = jacobian.reshape(6, arm.nv)[:, i - 1]
            self.prismatic.append(not column[3:].any())
            self.axes.append(column[:3] if self.prismatic[i] else column[3:])

    @cached_property
    def spheres(self) -> list[LinkSphere]:
        """Spheres that cover the links that move."""
        return covering_spheres(self.arm)

    @cached_property
    def own_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of spheres of links that can collide, without overlap at the start."""
        checks = SelfCollision(self.arm, 0.0, self.arm.configuration("initial"))
        links = {frozenset(checks.ends(k)) for k in range(checks.pairs)}
        names = [sphere.link for sphere in self.spheres]
        start = State.of(self.arm.configuration("initial"))
        placed = self.stage(start, start.q).spheres
        return tuple(
            (i, j)
            for i, (center, radius) in enumerate(placed)
            for j, (other, size) in enumerate(placed[:i])
            if frozenset((names[i], names[j])) in links
            and np.linalg.norm(center - other) > radius + size
        )

    def stage(
        self, state: State, command: Vector, body: Mapping[str, Vector] = MappingProxyType({})
    ) -> Stage:
        """Return the stage of a state (its tau is the effort) after a command (nv,).

        ``body`` has the rows of a free object, as ``BODY_ROWS``.
        """
        data = self.arm.model.createData()
        pin.forwardKinematics(self.arm.model, data, state.q)
        placements = [(place.rotation.copy(), place.translation.copy()) for place in data.oMi]
        rows = {
            "q": state.q, "v": state.v, "act": state.act, "effort": state.tau, "command": command,
            **body,
        }  # fmt: skip
        return Stage(self, rows, placements, lambda: mass_matrix(self.arm, state.q))


CostFunction = Callable[[Stage, Any], Any]
"""Function of a stage and of the parameters by name; returns a number."""


@dataclass(frozen=True, eq=False)
class Cost:
    """Cost of a predicted motion: Σ_k running(x_k, p) + terminal(x_N, p).

    Attributes
    ----------
    running : callable
        Cost of a stage, ``running(stage, p)``; p has the parameters as attributes.
    terminal : callable, optional
        Cost of the last stage.
    parameters : Mapping[str, ArrayLike]
        Names and initial values, numbers or vectors, which may change from plan to plan.

    Raises
    ------
    InvalidValue
        For another callable than a function, or a parameter that is empty or not finite.

    """

    running: CostFunction
    terminal: CostFunction | None = None
    parameters: Mapping[str, ArrayLike] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("running", "terminal"):
            function = getattr(self, name)
            omitted = name == "terminal" and function is None
            if not (isinstance(function, FunctionType) or omitted):
                raise InvalidValue(
                    f"cost: {name} = {function!r}; expected a function(stage, p); write it with"
                    " 'def' or 'lambda'"
                )
        check_type(Mapping, "cost: parameters", self.parameters, "{name: value}")  # type: ignore[type-abstract]
        values = {name: _parameter(name, value) for name, value in dict(self.parameters).items()}
        object.__setattr__(self, "parameters", MappingProxyType(values))

    @property
    def size(self) -> int:
        """Number of entries of all parameters."""
        return sum(np.size(value) for value in self.parameters.values())

    def packed(self, changes: Mapping[str, ArrayLike] | None = None) -> Matrix:
        """Return all parameters as rows (1 or periods, size), with ``changes`` to some.

        A changed parameter may have one more dimension in front: its values over the periods.

        Raises
        ------
        InvalidValue, UnknownName
            For a parameter of another name or shape, or one that is not finite.

        """
        values, given = dict(self.parameters), {} if changes is None else changes
        for name, value in check_type(Mapping, "parameters", given, "{name: value}").items():  # type: ignore[type-abstract]
            if name not in values:
                raise UnknownName("parameter of the cost", name, tuple(values))
            values[name] = _parameter(name, value)
        rows, periods = [], 1
        for name, nominal in self.parameters.items():
            shape, value = np.shape(nominal), np.asarray(values[name])
            if value.shape != shape:
                if value.shape[1:] != shape or not len(value) or periods not in (1, len(value)):
                    raise InvalidValue(
                        f"cost: parameter '{name}': shape = {value.shape}; expected {shape}, or"
                        f" {('periods', *shape)} with the periods of all"
                    )
                periods = len(value)
            rows.append(value.reshape(-1, np.size(nominal)))
        return np.hstack([np.broadcast_to(row, (periods, row.shape[1])) for row in rows] or
                         [np.empty((1, 0))])  # fmt: skip

    def unpacked(self, entries: Any) -> SimpleNamespace:
        """Return the parameters as attributes, from their entries (size,) as ``packed``."""
        found, first = {}, 0
        for name, value in self.parameters.items():
            size, shape = np.size(value), np.shape(value)
            part = entries[first : first + size]
            found[name] = np.reshape(part, shape) if shape else part[0]
            first += size
        return SimpleNamespace(**found)

    def evaluate(
        self, stage: Stage, parameters: Vector | None = None, *, terminal: bool = False
    ) -> float:
        """Return the running or the terminal cost of a stage of numbers: the reference form."""
        function = self.terminal if terminal else self.running
        if function is None:
            return 0.0
        entries = self.packed()[0] if parameters is None else parameters
        with cost_errors(function):
            return float(function(stage, self.unpacked(entries)))


@contextmanager
def cost_errors(function: Callable[..., Any]) -> Iterator[None]:
    """Raise InvalidValue with function, line and cause for an error of a user's cost."""
    try:
        yield
    except ArmDynamicsError:
        raise
    except Exception as error:  # of any type: a user's function
        frames = traceback.extract_tb(sys.exc_info()[2])
        own = [x for x in frames if not x.filename.startswith(PACKAGE) and "<" not in x.filename]
        file = getattr(getattr(function, "__code__", None), "co_filename", None)
        named = [x for x in frames if x.filename == file] or own
        line = f", line {named[-1].lineno}" if named else ""
        cause = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise InvalidValue(
            f"cost '{getattr(function, '__name__', function)}'{line}: {cause}; expected arithmetic,"
            " where(), clip(), minimum(), maximum(), sign(), abs() and exp, log, sqrt, sin, cos,"
            " tan or tanh of math, without branches on values"
        ) from error


def _parameter(name: str, value: ArrayLike) -> FloatArray:
    try:
        array = as_readonly(value)
    except (InvalidValue, TypeError, ValueError) as error:
        raise InvalidValue(
            f"cost: parameter '{name}' = {value!r}; expected a number or numbers"
        ) from error
    if not (array.size and np.isfinite(array).all()):
        raise InvalidValue(f"cost: parameter '{name}' = {value!r}; expected finite values")
    return array


@lru_cache(maxsize=16)
def cost_geometry(arm: ArmModel, scene: Scene) -> CostGeometry:
    """Return the geometry of an arm in a scene, made once."""
    return CostGeometry(arm, scene)
