"""Services and action of the standard simulation_interfaces for one simulated arm.

The entities are the arm, by its name, each of its links, ``<arm>/<link>``, and the objects of the
scene. Of the standard this simulator offers features, states, steps, resets, entities, spawning of
objects, and worlds, which are scenes. One arm is simulated: a request for another one is checked
and rejected with the reason. One step is one control period. Names are private
(``~/get_entities``); the parameter
``simulation_interfaces_prefix`` = "/" gives the names of Isaac Sim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Vector3
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.exceptions import InvalidServiceNameException
from rclpy.node import Node
from rclpy.task import Future
from simulation_interfaces import srv
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityState,
    Result,
    SimulationState,
    SimulatorFeatures,
    Spawnable,
    TagsFilter,
)

from arm_dynamics.collision.scene import Scene
from arm_dynamics.collision.scene_files import (
    bundled_scenes,
)
from arm_dynamics.collision.scene_shapes import object_corners, object_triangles
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, InvalidValue
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.dynamics.kinematics.frames import acceleration, link_poses, pose, twist
from arm_dynamics.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from arm_dynamics.dynamics.kinematics.link_points import BoundingBox, LinkPoints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import format_report
from arm_dynamics.model.xml_source import parse_xml
from arm_dynamics.ros.messages.conversions import Frames, Placed, header, placed, pose_message
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.ros.topics.scene_topics import SceneTopics
from arm_dynamics.ros.topics.simulation_worlds import (
    Failure,
    Worlds,
    is_arm,
    resource_failure,
    resource_scene,
    resource_text,
)
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl

PREFIX = "simulation_interfaces_prefix"
PERIOD = 0.02
"""Time [s] between two looks at requested steps, and two feedbacks of the action."""
MAX_STEPS = 10**9
"""Largest number of steps of a request: 23 days of simulated time at 500 Hz."""
STATES = {
    SimulationState.STATE_STOPPED: "stopped",
    SimulationState.STATE_PLAYING: "playing",
    SimulationState.STATE_PAUSED: "paused",
    SimulationState.STATE_QUITTING: "quitting",
}
FEATURES = (
    SimulatorFeatures.SPAWNING,
    SimulatorFeatures.DELETING,
    SimulatorFeatures.ENTITY_TAGS,
    SimulatorFeatures.ENTITY_BOUNDS,
    SimulatorFeatures.ENTITY_BOUNDS_BOX,
    SimulatorFeatures.ENTITY_CATEGORIES,
    SimulatorFeatures.ENTITY_STATE_GETTING,
    SimulatorFeatures.ENTITY_STATE_SETTING,
    SimulatorFeatures.ENTITY_INFO_GETTING,
    SimulatorFeatures.SIMULATION_RESET,
    SimulatorFeatures.SIMULATION_RESET_TIME,
    SimulatorFeatures.SIMULATION_RESET_STATE,
    SimulatorFeatures.SIMULATION_RESET_SPAWNED,
    SimulatorFeatures.SIMULATION_STATE_GETTING,
    SimulatorFeatures.SIMULATION_STATE_SETTING,
    SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE,
    SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
    SimulatorFeatures.STEP_SIMULATION_ACTION,
)
NAME = re.compile(r"[\w.-]+")
"""Name of an entity; ``/`` separates arm and link."""
NAMESPACE = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*")
"""ROS namespace."""
SAME_POSE = 1e-9
"""Difference [m, and of rotation matrices] up to which a pose is the present one."""


class SimulationInterfaces:
    """Serves the standard on a simulator.

    ``reset`` resets state and time, ``fixed_time`` returns why time cannot start again at 0, else
    "", and ``end`` ends the node.
    Requests for the plant are executed by the simulating thread between two periods.
    """

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        frames: Frames,
        simulation: Simulation,
        control: SimulationControl,
        reset: Callable[..., str],
        requests: LoopRequests,
        fixed_time: Callable[[], str],
        end: Callable[[], None],
        scene: SceneTopics,
    ) -> None:
        self._simulation, self._control, self._requests = simulation, control, requests
        self._stopped, self._reset_to = control.stopped, reset
        self._fixed_time, self._end = fixed_time, end
        self._scene = scene
        self._entities = Entities(arm, frames, scene)
        self._worlds = Worlds(scene, self._stop)
        self._reset_time = -1.0  # simulated time [s] after the last stop, with a reset
        self._steps: StepRequest | None = None
        self._timer = wall_timer(node, PERIOD, self._observe_steps)
        self._timer.cancel()
        text = 'prefix of the services of simulation_interfaces: "~/" is private, "/" the root'
        prefix = str(declare_fixed(node, PREFIX, "~/", text))
        services: dict[Any, Callable[[Any, Any], None]] = {
            srv.GetSimulatorFeatures: self._get_features,
            srv.GetSimulationState: self._get_state,
            srv.SetSimulationState: self._set_state,
            srv.ResetSimulation: self._reset,
            srv.GetEntities: self._get_entities,
            srv.GetEntitiesStates: self._get_entities_states,
            srv.GetEntityState: self._get_entity_state,
            srv.GetEntityInfo: self._get_entity_info,
            srv.GetEntityBounds: self._get_entity_bounds,
            srv.SetEntityState: self._set_entity_state,
            srv.GetSpawnables: self._get_spawnables,
            srv.SpawnEntity: self._spawn,
            srv.DeleteEntity: self._delete,
            **self._worlds.services,
        }
        try:
            for kind, work in services.items():
                node.create_service(kind, _service_name(prefix, kind), _served(work))
            # Other callbacks are executed while this one waits for the last step.
            node.create_service(
                srv.StepSimulation,
                _service_name(prefix, srv.StepSimulation),
                self._step,
                callback_group=ReentrantCallbackGroup(),
            )
            self._action = ActionServer(
                node,
                SimulateSteps,
                f"{prefix}simulate_steps",
                execute_callback=self._simulate_steps,
                cancel_callback=lambda _: CancelResponse.ACCEPT,
            )
        except InvalidServiceNameException as error:
            raise ConfigError(f"{PREFIX} = '{prefix}'; expected '~/', '/' or '/name/'") from error

    # --- simulation

    def _get_features(self, _: Any, response: Any) -> None:
        features = response.features
        features.features = [*FEATURES, *self._worlds.features]
        features.custom_info = (
            "arm_dynamics: one arm, its links and objects; one step is a control period of"
            f" {self._simulation.period:g} s"
        )

    @property
    def _state(self) -> int:
        """Present state; simulated time is stopped by a pause or an emergency stop."""
        if not self._control.paused and not self._stopped():
            return int(SimulationState.STATE_PLAYING)
        is_reset = self._control.paused and self._simulation.state.time == self._reset_time
        return int(SimulationState.STATE_STOPPED if is_reset else SimulationState.STATE_PAUSED)

    def _get_state(self, _: Any, response: Any) -> None:
        response.state.state = self._state
        response.result.error_message = self._stopped()

    def _set_state(self, request: Any, _: Any) -> None:
        target, kind = request.state.state, srv.SetSimulationState.Response
        if target not in STATES:
            text = f"state = {target}; expected one of {_listed(STATES)}; this arm is the world"
            raise Failure(kind.INCORRECT_TRANSITION, text)
        if target == SimulationState.STATE_QUITTING:
            self._end()
            return
        if target == SimulationState.STATE_PLAYING and (stopped := self._stopped()):
            raise Failure(kind.STATE_TRANSITION_ERROR, f"not playing: {stopped}")
        if target == self._state:
            text = f"the simulation is {STATES[target]} already"
            raise Failure(kind.ALREADY_IN_TARGET_STATE, text)
        if target == SimulationState.STATE_STOPPED:
            self._stop()
        else:
            self._control.pause(target != SimulationState.STATE_PLAYING)
            self._reset_time = -1.0

    def _stop(self) -> None:
        """Pause at the start."""
        self._control.pause(True)
        self._reset_to(time=self._starts_again(srv.ResetSimulation.Request.SCOPE_ALL))
        self._reset_time = self._requests.call(lambda: self._simulation.state.time)

    def _reset(self, request: Any, response: Any) -> None:
        kind = srv.ResetSimulation.Request
        scope, fixed = request.scope or kind.SCOPE_ALL, self._fixed_time()
        if fixed and scope != kind.SCOPE_ALL and scope & kind.SCOPE_TIME:
            raise Failure(Result.RESULT_OPERATION_FAILED, f"no reset of time: {fixed}")
        self._reset_to(state=bool(scope & kind.SCOPE_STATE), time=self._starts_again(scope))
        if scope & kind.SCOPE_SPAWNED:
            self._scene.take(self._scene.initial)
        if fixed and scope == kind.SCOPE_ALL:
            response.result.error_message = f"time continues: {fixed}"

    def _starts_again(self, scope: int) -> bool:
        """Return whether a reset of ``scope`` sets simulated time to 0."""
        return bool(scope & srv.ResetSimulation.Request.SCOPE_TIME) and not self._fixed_time()

    # --- steps

    async def _step(self, request: Any, response: Any) -> Any:
        """Simulate ``steps`` control periods; respond after the last one."""
        response.result = await self._simulated(request.steps, lambda done: None)
        return response

    async def _simulate_steps(self, handle: Any) -> Any:
        """Simulate ``steps`` control periods, with feedback, until the end or a cancellation."""
        steps = handle.request.steps

        def observe(completed: int) -> bool:
            handle.publish_feedback(
                SimulateSteps.Feedback(completed_steps=completed, remaining_steps=steps - completed)
            )
            return bool(handle.is_cancel_requested)

        result = await self._simulated(steps, observe)
        if result.result == Result.RESULT_OK:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return SimulateSteps.Result(result=result)

    async def _simulated(self, steps: int, observe: Callable[[int], bool | None]) -> Result:
        """Simulate ``steps`` periods; return the result after the last one, or after its end."""
        try:
            if self._steps is not None:
                raise InvalidValue("steps of another request are not complete")
            if not 1 <= steps <= MAX_STEPS:
                raise InvalidValue(f"steps = {steps}; expected 1 to {MAX_STEPS}")
            pending = self._steps = StepRequest(steps, observe, self._control.add_steps(steps))
        except InvalidValue as error:
            return Result(result=Result.RESULT_OPERATION_FAILED, error_message=str(error))
        self._timer.reset()
        result: Result = await pending.future
        return result

    def _observe_steps(self) -> None:
        """Report the progress of the requested steps, and their end."""
        request = self._steps
        if request is None:
            self._timer.cancel()
            return
        completed, ended = request.progress()
        canceled = request.observe(completed)
        if not (ended or canceled):
            return
        self._steps = None
        if canceled and not ended:
            self._requests.post(self._control.forget_steps)
        if completed == request.steps:
            request.future.set_result(Result(result=Result.RESULT_OK))
            return
        cause = "the simulation diverged" if self._control.paused else "the simulation continued"
        cause = "canceled" if canceled else self._stopped() or cause
        request.future.set_result(
            Result(
                result=Result.RESULT_OPERATION_FAILED,
                error_message=f"{completed} of {request.steps} steps: {cause}",
            )
        )

    # --- entities

    def _selected(self, filters: Any) -> list[str]:
        state = self._simulation.state
        return self._entities.select(filters, state.q)

    def _get_entities(self, request: Any, response: Any) -> None:
        response.entities = self._selected(request.filters)

    def _get_entities_states(self, request: Any, response: Any) -> None:
        response.entities = self._selected(request.filters)
        response.states = [self._entity_state(name) for name in response.entities]

    def _get_entity_state(self, request: Any, response: Any) -> None:
        response.state = self._entity_state(request.entity)

    def _entity_state(self, entity: str) -> EntityState:
        """Return the state of an entity in one state of the simulation."""
        state, a = self._requests.call(
            lambda: (self._simulation.state, self._simulation.acceleration)
        )
        return self._entities.state(entity, state.time, state.q, state.v, a)

    def _get_entity_info(self, request: Any, response: Any) -> None:
        category, tags, text = self._entities.info(request.entity)
        response.info.category.category, response.info.tags = category, tags
        response.info.description = text

    def _get_entity_bounds(self, request: Any, response: Any) -> None:
        low, high = self._entities.box(request.entity, self._simulation.state.q)
        ends = [Vector3(**dict(zip("xyz", end.tolist(), strict=True))) for end in (high, low)]
        response.bounds = Bounds(type=Bounds.TYPE_BOX, points=ends)

    def _set_entity_state(self, request: Any, _: Any) -> None:
        """Bring the tool to a pose by inverse kinematics, at rest; the base is fixed."""
        state, entity = request.state, request.entity
        sets_pose = getattr(request, "set_pose", True)  # without these fields, all are set
        if getattr(request, "set_twist", True) and not _is_zero(state.twist):
            text = f"'{entity}': twist; only a state at rest can be set"
            raise Failure(Result.RESULT_OPERATION_FAILED, text)
        if getattr(request, "set_acceleration", False):
            text = f"'{entity}': acceleration follows from the efforts and cannot be set"
            raise Failure(Result.RESULT_FEATURE_UNSUPPORTED, text)
        if entity in self._scene.scene:
            if sets_pose:
                self._move_object(entity, state)
            return
        self._entities.link(entity)
        if sets_pose:
            q = self._entities.configuration(entity, state, self._simulation.state.q)
            if q is not None:
                self._control.reset(q, entity)

    # --- spawning

    def _move_object(self, entity: str, state: Any) -> None:
        kind = srv.SetEntityState.Response
        invalid = getattr(kind, "INVALID_POSE", Result.RESULT_OPERATION_FAILED)
        position, rotation = self._entities.placement(entity, state, invalid)
        self._scene.change(
            lambda scene: Scene(
                one.placed(position, rotation) if one.name == entity else one for one in scene
            )
        )

    def _get_spawnables(self, request: Any, response: Any) -> None:
        """Return the bundled scenes; sources are listed as not recognized, as by the standard."""
        for name in bundled_scenes():
            spawnable = Spawnable(description=f"bundled scene '{name}'")
            getattr(spawnable, "entity_resource", spawnable).uri = name
            response.spawnables.append(spawnable)
        if request.sources:
            text = f"sources = {', '.join(request.sources)}; expected none: scenes are files"
            response.result.error_message = text

    def _spawn(self, request: Any, response: Any) -> None:
        """Add the objects of a scene file or of a URDF of fixed links; reject another arm.

        One object gets the name of the request, several get it as ``<name>/<object>``.
        """
        kind, resource = srv.SpawnEntity.Response, getattr(request, "entity_resource", request)
        text, folder = resource_text(resource, kind)
        if text.lstrip().startswith("<") and is_arm(text):
            raise self._rejected_arm(request, text, folder)
        scene = resource_scene(text, resource.uri, folder, kind)
        first = next(iter(scene), None)
        if first is None:
            raise Failure(kind.RESOURCE_PARSE_ERROR, "objects = 0; expected at least one")
        name = request.name or first.name
        self._check_name(request, name)
        frame = request.initial_pose.header.frame_id
        state = EntityState(header=header(frame, 0.0), pose=request.initial_pose.pose)
        position, rotation = self._entities.placement(name, state, kind.INVALID_POSE)

        def extended(before: Scene) -> Scene:
            taken, own, number = self._entities.taken, name, 0
            while own in taken:  # between the check and here, or renamed
                number += 1
                own = f"{name}_{number}"
            response.entity_name = own
            names = [own] if len(scene) == 1 else [f"{own}/{one.name}" for one in scene]
            added = (
                replace(one.moved(position, rotation), name=full)
                for full, one in zip(names, scene, strict=True)
            )
            return Scene((*before, *added))

        self._scene.change(extended)

    def _check_name(self, request: Any, name: str) -> None:
        """Raise Failure for an invalid or repeated name or namespace."""
        kind = srv.SpawnEntity.Response
        if not NAME.fullmatch(name):
            raise Failure(kind.NAME_INVALID, f"name = '{name}'; expected letters, digits, _ . -")
        if not request.allow_renaming and name in self._entities.taken:
            raise Failure(kind.NAME_NOT_UNIQUE, f"name = '{name}' is an entity of this simulation")
        if request.entity_namespace and not NAMESPACE.fullmatch(request.entity_namespace):
            text = f"entity_namespace = '{request.entity_namespace}'; expected /name/name"
            raise Failure(kind.NAMESPACE_INVALID, text)

    def _rejected_arm(self, request: Any, text: str, folder: Path | None) -> Failure:
        """Return the failure of an arm: its first fault, else that it is not supported."""
        kind = srv.SpawnEntity.Response
        faults = audit_urdf(text, folder)
        if any(fault.severity == "error" for fault in faults):
            source = getattr(request, "entity_resource", request).uri or "resource_string"
            return Failure(kind.RESOURCE_PARSE_ERROR, format_report(source, faults))
        if any(fault.element.endswith("filename>") for fault in faults):
            return resource_failure(faults, "", folder, kind)
        name = request.name or parse_xml(text).get("name") or ""
        self._check_name(request, name)
        try:
            placed(name, request.initial_pose.pose.position, request.initial_pose.pose.orientation)
        except InvalidValue as error:
            return Failure(kind.INVALID_POSE, str(error))
        text = f"'{name}' is valid, but one arm is simulated; start another simulator in a"
        return Failure(
            Result.RESULT_FEATURE_UNSUPPORTED, f"{text} namespace: arm:=FILE namespace:=/NAME"
        )

    def _delete(self, request: Any, _: Any) -> None:
        """Remove an object, or all objects of a spawned entity; the arm stays."""
        entity = request.entity
        own = {n for n in self._entities.objects if n == entity or n.startswith(f"{entity}/")}
        if own:
            self._scene.change(lambda scene: Scene(one for one in scene if one.name not in own))
            return
        self._entities.link(entity)
        ends = f"state {_listed([SimulationState.STATE_QUITTING])} ends it"
        text = f"'{entity}' cannot be deleted: one arm is simulated; {ends}"
        raise Failure(Result.RESULT_FEATURE_UNSUPPORTED, text)


class StepRequest:
    """Requested steps: ``progress()`` returns the completed ones and whether they ended."""

    def __init__(
        self,
        steps: int,
        observe: Callable[[int], bool | None],
        progress: Callable[[], tuple[int, bool]],
    ) -> None:
        self.steps, self.observe, self.progress = steps, observe, progress
        self.future: Any = Future()


class Entities:
    """The arm, its links and the objects of the scene as entities of the standard."""

    def __init__(self, arm: ArmModel, frames: Frames, scene: SceneTopics) -> None:
        self.name, self._arm, self._frame, self._scene = arm.name, arm, frames.base, scene
        self._links = {arm.name: arm.base_frame}
        self._links |= {
            f"{arm.name}/{link}": link for link in link_poses(arm, arm.configuration("initial"))
        }
        self._points = LinkPoints(arm)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entities."""
        return (*self._links, *self.objects)

    @property
    def taken(self) -> set[str]:
        """Names of entities, and of spawned ones with several objects."""
        return {name for whole in self.names for name in (whole, whole.partition("/")[0])}

    @property
    def objects(self) -> tuple[str, ...]:
        """Names of the objects."""
        return tuple(one.name for one in self._scene.scene)

    def link(self, entity: str) -> str:
        """Return the link of an entity, the base of the arm; raise Failure for another name."""
        if entity not in self._links:
            text = f"entity = '{entity}'; expected one of {', '.join(self.names)}"
            raise Failure(Result.RESULT_NOT_FOUND, text)
        return self._links[entity]

    def info(self, entity: str) -> tuple[int, list[str], str]:
        """Return category, tags and description of an entity."""
        if entity in (scene := self._scene.scene):
            one = scene[entity]
            fixed, free = (
                EntityCategory.CATEGORY_STATIC_OBJECT,
                EntityCategory.CATEGORY_DYNAMIC_OBJECT,
            )
            text = f"{one.shape.kind}, {'fixed' if one.is_fixed else f'{one.mass:g} kg'}"
            return fixed if one.is_fixed else free, ["object"], text
        link = self.link(entity)
        if entity == self.name:
            return EntityCategory.CATEGORY_ROBOT, ["arm"], "arm with a fixed base"
        return EntityCategory.CATEGORY_DYNAMIC_OBJECT, ["link"], f"link '{link}'"

    def select(self, filters: Any, q: Vector) -> list[str]:
        """Return the entities that pass every filter at the configuration ``q`` (nv,)."""
        try:
            expression = re.compile(filters.filter)
        except re.error as error:
            text = f"filter = '{filters.filter}': {error}"
            raise Failure(Result.RESULT_OPERATION_FAILED, text) from error
        categories = {c.category for c in filters.categories}
        required = set(filters.tags.tags)
        needs_all = filters.tags.filter_mode == TagsFilter.FILTER_MODE_ALL
        selected = []
        for entity in self.names:
            category, tags, _ = self.info(entity)
            has_tags = (
                required <= {*tags} if needs_all else not required or bool(required & {*tags})
            )
            if (
                expression.search(entity)
                and (not categories or category in categories)
                and has_tags
                and self._overlaps(entity, filters.bounds, q)
            ):
                selected.append(entity)
        return selected

    def state(self, entity: str, time: float, q: Vector, v: Vector, a: Vector) -> EntityState:
        """Return pose, twist and acceleration of an entity in the base frame."""
        message = EntityState(header=header(self._frame, time))
        if entity in (scene := self._scene.scene):
            message.pose = pose_message(scene[entity].position, scene[entity].rotation)
            return message
        link = self.link(entity)
        message.pose = pose_message(*pose(self._arm, q, link))
        for motion, values in (
            (message.twist, twist(self._arm, q, v, link)),
            (message.acceleration, acceleration(self._arm, q, v, a, link)),
        ):
            for part, numbers in ((motion.linear, values[:3]), (motion.angular, values[3:])):
                part.x, part.y, part.z = numbers.tolist()
        return message

    def box(self, entity: str, q: Vector) -> BoundingBox:
        """Return the bounding box of the visible geometry in the frame of the entity."""
        if entity in (scene := self._scene.scene):
            return BoundingBox.of(object_triangles(scene[entity])[0])
        link = self.link(entity)
        return BoundingBox.of(
            self._points.placed(q) if entity == self.name else self._points.local[link]
        )

    def _overlaps(self, entity: str, bounds: Any, q: Vector) -> bool:
        """Return whether the box of an entity, along the base axes, overlaps ``bounds``."""
        if bounds.type == Bounds.TYPE_EMPTY:
            return True
        ends = np.array([[p.x, p.y, p.z] for p in bounds.points])
        if bounds.type not in {Bounds.TYPE_BOX, Bounds.TYPE_SPHERE}:
            text = f"bounds type = {bounds.type}; expected a box or a sphere"
            raise Failure(Result.RESULT_FEATURE_UNSUPPORTED, text)
        if len(ends) != 2:
            text = f"bounds points = {len(ends)}; expected 2"
            raise Failure(Result.RESULT_OPERATION_FAILED, text)
        if entity == self.name:
            points = self._points.placed(q)
        elif entity in (scene := self._scene.scene):
            points = object_corners(scene[entity])
        else:
            points = self._points.of_links(q)[self._links[entity]]
        box = BoundingBox.of(points)
        if bounds.type == Bounds.TYPE_BOX:
            return box.overlaps(BoundingBox.of(ends))
        center, radius = ends[0], ends[1, 0]
        return box.distance(center) <= float(radius)

    def placement(self, entity: str, state: Any, invalid: int) -> Placed:
        """Return position (3,) [m] and rotation (3, 3) of a state; raise Failure ``invalid``."""
        if state.header.frame_id not in {"", "world", self._frame}:
            text = f"frame_id = '{state.header.frame_id}'; expected '{self._frame}'"
            raise Failure(invalid, text)
        try:
            return placed(entity, state.pose.position, state.pose.orientation)
        except InvalidValue as error:
            raise Failure(invalid, str(error)) from error

    def configuration(self, entity: str, state: Any, start: Vector) -> Vector | None:
        """Return the configuration (nv,) that brings an entity to a pose; None if it is there.

        Raise Failure for an invalid pose, one out of reach, and links other than the tool.
        """
        link, kind = self.link(entity), srv.SetEntityState.Response
        invalid = getattr(kind, "INVALID_POSE", Result.RESULT_OPERATION_FAILED)
        position, rotation = self.placement(entity, state, invalid)
        here, axes = pose(self._arm, start, link)
        differences = np.concatenate([here - position, (axes - rotation).ravel()])
        if np.abs(differences).max() < SAME_POSE:
            return None
        if link != self._arm.tool_frame:
            text = (
                f"'{entity}' cannot be moved: the base is fixed, and of the links only"
                f" '{self._arm.name}/{self._arm.tool_frame}' can be placed"
            )
            raise Failure(Result.RESULT_OPERATION_FAILED, text)
        try:
            return inverse_kinematics(self._arm, position, rotation, initial_guess=start).q
        except ArmDynamicsError as error:
            raise Failure(invalid, str(error)) from error


def _service_name(prefix: str, kind: Any) -> str:
    """Return the name of the service of a type, as GetEntities: get_entities."""
    return prefix + re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _served(work: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
    """Return the callback of a service: ``work`` with its failure as result."""

    def respond(request: Any, response: Any) -> Any:
        code, text = Result.RESULT_OK, ""
        try:
            work(request, response)
        except Failure as failure:
            code, text = failure.code, str(failure)
        except ArmDynamicsError as error:
            code, text = Result.RESULT_OPERATION_FAILED, str(error)
        if hasattr(response, "result"):  # only the features have none
            response.result.result = code
            response.result.error_message = text or response.result.error_message
        return response

    return respond


def _listed(states: Iterable[int]) -> str:
    return ", ".join(f"{code} ({STATES[code]})" for code in states)


def _is_zero(twist: Any) -> bool:
    parts = (twist.linear, twist.angular)
    return not any(getattr(part, axis) for part in parts for axis in "xyz")
