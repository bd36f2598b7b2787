"""simulation_interfaces: each service and result code of a simulated arm."""

import re
from functools import cache

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Vector3
from sensor_msgs.msg import JointState
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityFilters,
    EntityState,
    Resource,
    Result,
    SimulationState,
    SimulatorFeatures,
    TagsFilter,
)
from simulation_interfaces.srv import (
    DeleteEntity,
    GetAvailableWorlds,
    GetCurrentWorld,
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    GetSpawnables,
    LoadWorld,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    SpawnEntity,
    StepSimulation,
    UnloadWorld,
)

from arm_dynamics import load_arm
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.dynamics.kinematics.frames import link_poses, pose

from .link import GAINS, INITIAL, LOCKSTEP, stamp

OK = Result.RESULT_OK
STOPPED, PLAYING, PAUSED, QUITTING = (
    getattr(SimulationState, f"STATE_{name}")
    for name in ("STOPPED", "PLAYING", "PAUSED", "QUITTING")
)
ARM = load_arm("five_dof")
TOOL = f"five_dof/{ARM.tool_frame}"
NAMES = ["five_dof", *(f"five_dof/{link}" for link in link_poses(ARM, INITIAL))]


@pytest.fixture(scope="module")
def states(shared):
    record = shared.states()
    shared.start("simulator")
    shared.wait_until(record, 0.02)
    return record


@pytest.fixture
def call(shared, states):
    """Return a function that calls a service of the simulator and returns (code, reply)."""

    @cache
    def name(kind):
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__)
        return f"simulator/{words.lstrip('_')}"

    def send(kind, **fields):
        reply = shared.call(kind, name(kind), kind.Request(**fields))
        return reply.result.result, reply

    return send


@pytest.fixture
def state(call):
    """Return a function that sets the state, and returns its code."""
    yield lambda target: call(SetSimulationState, state=SimulationState(state=target))[0]
    call(SetSimulationState, state=SimulationState(state=PLAYING))


def get_state(call):
    code, reply = call(GetSimulationState)
    assert code == OK
    return reply.state.state


def test_features_are_those_that_are_served(shared, states):
    reply = shared.call(GetSimulatorFeatures, "simulator/get_simulator_features")
    features = {*reply.features.features}
    assert SimulatorFeatures.STEP_SIMULATION_ACTION in features
    assert {SimulatorFeatures.SPAWNING, SimulatorFeatures.DELETING} <= features
    assert SimulatorFeatures.SIMULATION_RESET_TIME in features
    assert "control period of 0.002 s" in reply.features.custom_info


def test_states_follow_the_requests(call, state, states):
    kind = SetSimulationState.Response
    assert get_state(call) == PLAYING
    assert state(PLAYING) == kind.ALREADY_IN_TARGET_STATE
    for target in (PAUSED, STOPPED, PAUSED, PLAYING, STOPPED, PLAYING):
        assert state(target) == OK
        assert get_state(call) == target
        if target == STOPPED:
            assert state(STOPPED) == kind.ALREADY_IN_TARGET_STATE
            assert np.allclose(states.newest.position, INITIAL, atol=1e-2)
    assert state(SimulationState.STATE_NO_WORLD) == kind.INCORRECT_TRANSITION


def test_an_emergency_stop_is_a_pause_that_cannot_be_played(shared, call, state):
    shared.trigger("simulator/emergency_stop")
    assert get_state(call) == PAUSED
    code, reply = call(SetSimulationState, state=SimulationState(state=PLAYING))
    assert code == SetSimulationState.Response.STATE_TRANSITION_ERROR
    assert "emergency stop" in reply.result.error_message
    code, reply = call(StepSimulation, steps=1)
    assert code == Result.RESULT_OPERATION_FAILED
    assert "emergency stop" in reply.result.error_message
    shared.trigger("simulator/reset_emergency_stop")
    assert get_state(call) == PLAYING


def test_steps_only_while_paused_and_within_range(call, state):
    code, reply = call(StepSimulation, steps=1)
    assert code == Result.RESULT_OPERATION_FAILED
    assert "pause it first" in reply.result.error_message
    state(PAUSED)
    code, reply = call(StepSimulation, steps=0)
    assert code == Result.RESULT_OPERATION_FAILED
    assert "steps = 0" in reply.result.error_message


def test_a_step_is_a_control_period_and_ends_in_a_pause(shared, call, state, states):
    state(PAUSED)
    before = call(GetEntityState, entity="five_dof")[1].state.header.stamp
    assert call(StepSimulation, steps=7)[0] == OK
    after = call(GetEntityState, entity="five_dof")[1].state.header.stamp
    elapsed = (after.sec - before.sec) * 10**9 + after.nanosec - before.nanosec
    assert elapsed == 7 * 2_000_000
    assert get_state(call) == PAUSED


def test_steps_from_a_reset_are_bit_identical(shared, call, state, states):
    state(PAUSED)
    ends = []
    for _ in range(2):
        first = len(states)
        assert call(ResetSimulation)[0] == OK
        shared.trigger("simulator/push")
        assert call(StepSimulation, steps=1000)[0] == OK
        shared.wait_for(
            lambda n=first: len(states) > n + 1000 and stamp(states.newest) == 2.0, "not all states"
        )
        message = states.newest
        ends.append([*message.position, *message.velocity, *message.effort])
    assert ends[0] == ends[1]
    assert ends[0][:5] != INITIAL.tolist()


def test_the_action_reports_its_steps_and_is_canceled(shared, call, state):
    client = shared.action(SimulateSteps, "simulator/simulate_steps")
    goal = SimulateSteps.Goal(steps=20)
    handle = shared.answer(client.send_goal_async(goal))
    result = shared.answer(handle.get_result_async())
    assert result.result.result.result == Result.RESULT_OPERATION_FAILED  # it plays
    state(PAUSED)
    progress = []

    def observe(message):
        progress.append((message.feedback.completed_steps, message.feedback.remaining_steps))

    handle = shared.answer(client.send_goal_async(goal, observe))
    assert shared.answer(handle.get_result_async()).result.result.result == OK
    shared.wait_for(lambda: progress and progress[-1] == (20, 0), f"no last feedback: {progress}")
    assert all(done + left == 20 for done, left in progress)
    handle = shared.answer(client.send_goal_async(SimulateSteps.Goal(steps=10**9)))
    code, reply = call(StepSimulation, steps=1)
    assert code == Result.RESULT_OPERATION_FAILED
    assert "not complete" in reply.result.error_message
    shared.answer(handle.cancel_goal_async())
    result = shared.answer(handle.get_result_async()).result.result
    assert result.result == Result.RESULT_OPERATION_FAILED
    assert "of 1000000000 steps: canceled" in result.error_message
    assert call(StepSimulation, steps=1)[0] == OK


def test_scopes_of_a_reset(call, state):
    kind = ResetSimulation.Request
    state(PAUSED)
    call(StepSimulation, steps=10)
    for scope, continues, rests in (
        (kind.SCOPE_SPAWNED, True, False),
        (kind.SCOPE_STATE, True, True),
        (kind.SCOPE_TIME, False, False),
        (kind.SCOPE_ALL, False, True),
        (kind.SCOPE_DEFAULT, False, True),
    ):
        call(SetEntityState, entity=TOOL, state=target(*pose(ARM, INITIAL + 0.1)), set_pose=True)
        call(StepSimulation, steps=2)
        assert call(ResetSimulation, scope=scope)[0] == OK
        found = call(GetEntityState, entity=TOOL)[1].state
        assert (found.header.stamp.sec + found.header.stamp.nanosec > 0) == continues, scope
        p, expected = found.pose.position, pose(ARM, INITIAL)[0]
        assert np.allclose([p.x, p.y, p.z], expected, atol=1e-9) == rests, scope


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, NAMES),
        ({"filter": "^five_dof$"}, NAMES[:1]),
        ({"filter": "R[12]_link"}, ["five_dof/R1_link", "five_dof/R2_link"]),
        ({"filter": "nothing"}, []),
        ({"categories": [EntityCategory(category=EntityCategory.CATEGORY_ROBOT)]}, NAMES[:1]),
        ({"categories": [EntityCategory(category=EntityCategory.CATEGORY_HUMAN)]}, []),
        ({"tags": TagsFilter(tags=["link", "car"])}, NAMES[1:]),
        ({"tags": TagsFilter(tags=["link", "car"], filter_mode=1)}, []),
        (
            {"bounds": Bounds(type=3, points=[Vector3(x=9.0), Vector3(x=8.0)])},
            [],
        ),
        (
            {"bounds": Bounds(type=1, points=[Vector3(x=9.0, y=9.0, z=9.0),
                                              Vector3(x=-9.0, y=-9.0, z=-9.0)])},
            NAMES,
        ),
    ],
)  # fmt: skip
def test_entities_pass_the_filters(call, filters, expected):
    code, reply = call(GetEntities, filters=EntityFilters(**filters))
    assert (code, list(reply.entities)) == (OK, expected)


@pytest.mark.parametrize(
    ("filters", "code", "text"),
    [
        ({"filter": "("}, Result.RESULT_OPERATION_FAILED, "filter = '('"),
        ({"bounds": Bounds(type=2)}, Result.RESULT_FEATURE_UNSUPPORTED, "bounds type = 2"),
        ({"bounds": Bounds(type=3)}, Result.RESULT_OPERATION_FAILED, "bounds points = 0"),
    ],
)
def test_invalid_filters_are_rejected(call, filters, code, text):
    found, reply = call(GetEntitiesStates, filters=EntityFilters(**filters))
    assert found == code
    assert text in reply.result.error_message


def test_states_of_entities_are_those_of_the_links(shared, call, state, states):
    state(PAUSED)
    call(StepSimulation, steps=1)
    code, reply = call(GetEntitiesStates)
    assert (code, list(reply.entities)) == (OK, NAMES)
    time = reply.states[0].header.stamp
    shared.wait_for(lambda: states.newest.header.stamp == time, "no state of this time")
    message: JointState = states.newest
    q = np.array(message.position)
    expected = {"five_dof": pose(ARM, q, ARM.base_frame)}
    expected |= {f"five_dof/{link}": placed for link, placed in link_poses(ARM, q).items()}
    for name, found in zip(reply.entities, reply.states, strict=True):
        position, rotation = expected[name]
        p, o = found.pose.position, found.pose.orientation
        assert [p.x, p.y, p.z] == pytest.approx(position, abs=1e-12)
        expected_quaternion = quaternion_from_rotation(rotation)
        assert [o.x, o.y, o.z, o.w] == pytest.approx(expected_quaternion, abs=1e-12)
        assert found.header.frame_id == ARM.base_frame


def test_acceleration_is_the_change_of_velocity(shared, call, state):
    state(PAUSED)
    call(ResetSimulation, scope=ResetSimulation.Request.SCOPE_STATE)
    shared.trigger("simulator/push")
    call(StepSimulation, steps=3)
    twists = []
    for _ in range(2):
        call(StepSimulation, steps=1)
        found = call(GetEntityState, entity=TOOL)[1].state
        linear = found.twist.linear
        twists.append([linear.x, linear.y, linear.z])
    a = found.acceleration.linear
    change = np.diff(twists, axis=0)[0] / 0.002
    assert np.linalg.norm(change) > 0.1
    assert [a.x, a.y, a.z] == pytest.approx(change, rel=0.1, abs=0.05 * np.linalg.norm(change))


def test_info_and_bounds(call):
    code, reply = call(GetEntityInfo, entity="five_dof")
    assert (code, reply.info.category.category) == (OK, EntityCategory.CATEGORY_ROBOT)
    code, reply = call(GetEntityInfo, entity=TOOL)
    assert (code, list(reply.info.tags)) == (OK, ["link"])
    code, reply = call(GetEntityBounds, entity="five_dof/R2_link")
    high, low = ([p.x, p.y, p.z] for p in reply.bounds.points)
    assert (code, reply.bounds.type) == (OK, Bounds.TYPE_BOX)
    assert np.ptp([low, high], axis=0).max() > 0.1
    assert (np.array(high) >= low).all()


@pytest.mark.parametrize("kind", [GetEntityState, GetEntityInfo, GetEntityBounds, SetEntityState])
def test_unknown_entities_are_not_found(call, kind):
    code, reply = call(kind, entity="car")
    assert code == Result.RESULT_NOT_FOUND
    assert TOOL in reply.result.error_message


def target(position, rotation):
    x, y, z, w = quaternion_from_rotation(rotation).tolist()
    at = dict(zip("xyz", position.tolist(), strict=True))
    return EntityState(pose=Pose(position=Point(**at), orientation=Quaternion(x=x, y=y, z=z, w=w)))


def test_the_tool_is_placed_by_inverse_kinematics(shared, call, state):
    state(PAUSED)
    desired = target(*pose(ARM, INITIAL + 0.1))
    code, reply = call(SetEntityState, entity=TOOL, state=desired, set_pose=True)
    assert code == OK, reply.result.error_message
    reached = call(GetEntityState, entity=TOOL)[1].state.pose.position
    p = desired.pose.position
    assert [reached.x, reached.y, reached.z] == pytest.approx([p.x, p.y, p.z], abs=1e-6)


def test_states_that_cannot_be_set_are_rejected(call):
    kind = SetEntityState.Response
    far = target(np.array([9.0, 0, 0]), np.eye(3))
    none = EntityState(pose=Pose(orientation=Quaternion(w=0.0)))
    elsewhere = EntityState()
    elsewhere.header.frame_id = "moon"
    moving = EntityState()
    moving.twist.linear.x = 1.0
    base = target(*pose(ARM, INITIAL, ARM.base_frame))
    for entity, desired, flags, code in (
        (TOOL, far, {"set_pose": True}, kind.INVALID_POSE),
        (TOOL, none, {"set_pose": True}, kind.INVALID_POSE),
        (TOOL, elsewhere, {"set_pose": True}, kind.INVALID_POSE),
        ("five_dof", far, {"set_pose": True}, Result.RESULT_OPERATION_FAILED),
        (TOOL, moving, {"set_twist": True}, Result.RESULT_OPERATION_FAILED),
        (TOOL, far, {"set_acceleration": True}, Result.RESULT_FEATURE_UNSUPPORTED),
        (TOOL, far, {}, OK),
        ("five_dof", base, {"set_pose": True}, OK),
    ):
        found, reply = call(SetEntityState, entity=entity, state=desired, **flags)
        assert found == code, (entity, flags, reply.result.error_message)


def test_another_arm_is_not_spawned_and_the_reason_is_given(call, tmp_path):
    kind, urdf = SpawnEntity.Response, load_arm("three_link").urdf
    file, broken = tmp_path / "arm.urdf", tmp_path / "broken.urdf"
    file.write_text(urdf)
    broken.write_text(urdf.replace('<mass value="', '<mass value="-', 1))
    lacking = tmp_path / "lacking.urdf"
    lacking.write_text(
        re.sub("<box[^>]*>|<cylinder[^>]*>", '<mesh filename="a.stl"/>', urdf, count=1)
    )
    far = PoseStamped(pose=Pose(orientation=Quaternion(w=0.0)))
    unsupported = Result.RESULT_FEATURE_UNSUPPORTED
    for resource, fields, code, text in (
        ({}, {"name": "b"}, kind.NO_RESOURCE, "are empty"),
        ({"uri": "http://x/y.urdf"}, {}, kind.UNSUPPORTED_FORMAT, "bundled scene, a file"),
        ({"uri": str(tmp_path / "none.urdf")}, {}, kind.RESOURCE_PARSE_ERROR, "none.urdf"),
        ({"uri": str(lacking)}, {}, kind.MISSING_ASSETS, "a.stl"),
        ({"resource_string": lacking.read_text()}, {}, kind.UNSUPPORTED_ASSETS, "a.stl"),
        ({"uri": str(file)}, {"name": "a b"}, kind.NAME_INVALID, "name = 'a b'"),
        ({"uri": str(broken)}, {}, kind.RESOURCE_PARSE_ERROR, "is negative; give the mass"),
        ({"resource_string": "<robot"}, {}, kind.RESOURCE_PARSE_ERROR, "not well-formed"),
        ({"resource_string": urdf}, {"name": "five_dof"}, kind.NAME_NOT_UNIQUE, "'five_dof'"),
        ({"uri": str(file)}, {"entity_namespace": "a b"}, kind.NAMESPACE_INVALID, "'a b'"),
        ({"uri": f"file://{file}"}, {"initial_pose": far}, kind.INVALID_POSE, "quaternion"),
        ({"uri": f"file://{file}"}, {}, unsupported, "'three_link' is valid"),
        ({"uri": str(file)}, {"name": "five_dof", "allow_renaming": True}, unsupported, "is valid"),
    ):  # fmt: skip
        found, reply = call(SpawnEntity, entity_resource=Resource(**resource), **fields)
        assert (found, text in reply.result.error_message) == (code, True), reply.result
    assert call(GetEntities)[1].entities == NAMES
    code, reply = call(GetSpawnables, sources=["mine"])
    assert (code, reply.result.error_message[:14]) == (OK, "sources = mine")
    assert [one.entity_resource.uri for one in reply.spawnables] == ["ground", "table"]
    assert call(DeleteEntity, entity="car")[0] == Result.RESULT_NOT_FOUND
    code, reply = call(DeleteEntity, entity=TOOL)
    assert (code, "one arm is simulated" in reply.result.error_message) == (unsupported, True)


WALL = (
    '<robot name="wall"><link name="{}"><collision><geometry>{}</geometry></collision></link>'
    "</robot>"
)
BOX = WALL.format("wall", '<box size="0.1 0.2 0.4"/>')


def test_objects_are_spawned_moved_and_deleted(call):
    kind, pose_at = SpawnEntity.Response, PoseStamped()
    pose_at.pose.position.x, pose_at.pose.orientation = 2.0, Quaternion(z=1.0, w=0.0)
    wall = {"entity_resource": Resource(resource_string=BOX), "initial_pose": pose_at}
    code, reply = call(SpawnEntity, **wall)
    assert (code, reply.entity_name) == (OK, "wall")
    assert call(SpawnEntity, **wall)[0] == kind.NAME_NOT_UNIQUE
    code, reply = call(SpawnEntity, **wall, allow_renaming=True)
    assert (code, reply.entity_name) == (OK, "wall_1")
    assert call(SpawnEntity, name="cell", entity_resource=Resource(uri="table"))[0] == OK
    assert call(SpawnEntity, name="cell", entity_resource=Resource(uri="table"))[0] == (
        kind.NAME_NOT_UNIQUE
    )
    spawned = ["wall", "wall_1", "cell/table", "cell/ground"]
    assert call(GetEntities)[1].entities == [*NAMES, *spawned]
    tagged = EntityFilters(tags=TagsFilter(tags=["object"]), filter="wall")
    assert call(GetEntities, filters=tagged)[1].entities == ["wall", "wall_1"]
    near = Bounds(type=Bounds.TYPE_SPHERE, points=[Vector3(x=2.0), Vector3(x=0.01)])
    assert call(GetEntities, filters=EntityFilters(bounds=near, filter="wall"))[1].entities
    info = call(GetEntityInfo, entity="wall")[1].info
    assert info.category.category == EntityCategory.CATEGORY_STATIC_OBJECT
    assert info.description == "box, fixed"
    high = call(GetEntityBounds, entity="wall")[1].bounds.points[0]
    np.testing.assert_allclose([high.x, high.y, high.z], (0.05, 0.1, 0.2))
    there = EntityState(pose=Pose(position=Point(y=3.0)))
    assert call(SetEntityState, entity="wall", state=there, set_pose=True)[0] == OK
    assert call(GetEntityState, entity="wall")[1].state.pose.position.y == 3.0
    for entity in ("wall", "cell"):
        assert call(DeleteEntity, entity=entity)[0] == OK
    assert call(DeleteEntity, entity="wall")[0] == Result.RESULT_NOT_FOUND
    assert call(GetEntities)[1].entities == [*NAMES, "wall_1"]
    assert call(ResetSimulation, scope=ResetSimulation.Request.SCOPE_SPAWNED)[0] == OK
    assert call(GetEntities)[1].entities == NAMES


def test_objects_that_are_not_spawned(call, tmp_path):
    kind = SpawnEntity.Response
    (tmp_path / "bad.yaml").write_text("objects: {ball: {shape: sphere, radius: -1}}")
    mesh, odd = WALL.format("w", '<mesh filename="no.stl"/>'), PoseStamped()
    (tmp_path / "mesh.urdf").write_text(mesh)
    odd.header.frame_id = "somewhere"
    for resource, fields, code, text in (
        ({"uri": str(tmp_path / "bad.yaml")}, {}, kind.RESOURCE_PARSE_ERROR, "radius = -1.0 m"),
        ({"resource_string": "objects: {}"}, {}, kind.RESOURCE_PARSE_ERROR, "objects = 0"),
        ({"resource_string": "objects: ["}, {}, kind.RESOURCE_PARSE_ERROR, "line 1"),
        ({"uri": str(tmp_path / "mesh.urdf")}, {}, kind.MISSING_ASSETS, "no.stl"),
        ({"resource_string": mesh}, {}, kind.UNSUPPORTED_ASSETS, "no.stl"),
        ({"resource_string": BOX}, {"name": "a b"}, kind.NAME_INVALID, "name = 'a b'"),
        ({"resource_string": BOX}, {"name": "five_dof"}, kind.NAME_NOT_UNIQUE, "five_dof"),
        ({"resource_string": BOX}, {"entity_namespace": "a b"}, kind.NAMESPACE_INVALID, "'a b'"),
        ({"resource_string": BOX}, {"initial_pose": odd}, kind.INVALID_POSE, "'somewhere'"),
    ):
        found, reply = call(SpawnEntity, entity_resource=Resource(**resource), **fields)
        assert (found, text in reply.result.error_message) == (code, True), reply.result
    assert call(GetEntities)[1].entities == NAMES


def test_root_names_and_quitting(ros):
    states = ros.states()
    ros.start("simulator", simulation_interfaces_prefix="/")
    ros.wait_for(lambda: len(states), "no state")
    quitting = SetSimulationState.Request(state=SimulationState(state=QUITTING))
    assert ros.call(SetSimulationState, "/set_simulation_state", quitting).result.result == OK
    assert ros.processes[-1].wait() == 0


def test_a_controller_in_lockstep_moves_the_arm_identically_after_each_reset(ros):
    """The controller restarts where time steps back."""
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.start("joint_controller", GAINS)
    ros.wait_until(states, 0.1)
    ends = []
    ros.call(SetSimulationState, "simulator/set_simulation_state",
             SetSimulationState.Request(state=SimulationState(state=PAUSED)))  # fmt: skip
    for _ in range(2):
        first = len(states)
        reset = ros.call(ResetSimulation, "simulator/reset_simulation")
        assert reset.result.result == OK
        ros.trigger("simulator/push")
        steps = StepSimulation.Request(steps=500)
        assert ros.call(StepSimulation, "simulator/step_simulation", steps).result.result == OK
        ros.wait_for(  # a busy machine may lose some of the 500 states
            lambda n=first: len(states) > n + 250 and stamp(states.newest) == 1.0, "not all states"
        )
        ends.append([*states.newest.position, *states.newest.velocity, *states.newest.effort])
    assert ends[0] == ends[1]
    assert np.abs(np.array(ends[0][:5]) - INITIAL).max() < 0.05


def test_time_continues_without_an_own_clock(ros):
    states = ros.states()
    ros.start("simulator", publish_clock=False)
    ros.wait_for(lambda: len(states), "no state")
    for scope, code in ((1, Result.RESULT_OPERATION_FAILED), (0, OK)):
        request = ResetSimulation.Request(scope=scope)
        result = ros.call(ResetSimulation, "simulator/reset_simulation", request).result
        assert result.result == code
        assert "not the source of /clock" in result.error_message


def test_an_invalid_prefix_ends_the_start(ros):
    node = ros.start("simulator", simulation_interfaces_prefix="a b")
    assert node.wait() == 2
    assert "simulation_interfaces_prefix = 'a b'" in node.output


def test_worlds_are_scenes(shared, call, tmp_path):
    """A world replaces the scene, also of spawned objects, and the simulation is stopped."""
    worlds = call(GetAvailableWorlds)[1].worlds
    assert [one.world_resource.uri for one in worlds] == ["ground", "table"]
    assert not call(GetAvailableWorlds, filter=TagsFilter(tags=["indoor"]))[1].worlds
    assert call(GetCurrentWorld)[0] == GetCurrentWorld.Response.NO_WORLD_LOADED
    assert call(UnloadWorld)[0] == UnloadWorld.Response.NO_WORLD_LOADED
    reply = shared.call(GetSimulatorFeatures, "simulator/get_simulator_features")
    assert SimulatorFeatures.WORLD_LOADING in reply.features.features
    assert call(SpawnEntity, entity_resource=Resource(resource_string=BOX))[0] == OK
    code, reply = call(LoadWorld, world_resource=Resource(uri="table"))
    assert (code, reply.world.name, reply.world.world_resource.uri) == (OK, "table", "table")
    assert call(GetEntities)[1].entities == [*NAMES, "table", "ground"]
    assert call(GetSimulationState)[1].state.state == STOPPED
    file = tmp_path / "cell.urdf"
    file.write_text(BOX)
    assert call(LoadWorld, world_resource=Resource(uri=f"file://{file}"))[1].world.name == "cell"
    assert call(GetCurrentWorld)[1].world.world_resource.uri == f"file://{file}"
    kind, arm = LoadWorld.Response, load_arm("three_link").urdf
    lacking = tmp_path / "lacking.urdf"
    lacking.write_text(WALL.format("wall", '<mesh filename="a.stl"/>'))
    for resource, code, text in (
        ({}, kind.NO_RESOURCE, "are empty"),
        ({"uri": "http://x/y.sdf"}, kind.UNSUPPORTED_FORMAT, "bundled scene, a file"),
        ({"resource_string": arm}, kind.UNSUPPORTED_FORMAT, "not a URDF of fixed links"),
        ({"resource_string": "objects: 3"}, kind.RESOURCE_PARSE_ERROR, "objects"),
        ({"uri": str(lacking)}, kind.MISSING_ASSETS, "a.stl"),
        ({"resource_string": lacking.read_text()}, kind.UNSUPPORTED_ASSETS, "a.stl"),
    ):
        found, reply = call(LoadWorld, world_resource=Resource(**resource))
        assert (found, text in reply.result.error_message) == (code, True), reply.result
    assert call(GetEntities)[1].entities == [*NAMES, "wall"]
    assert call(UnloadWorld)[0] == OK
    assert call(GetEntities)[1].entities == NAMES
