"""Trajectory goals on a control loop without ROS: rules, tolerances, codes, cancel, preemption."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import Constraints, ErrorCode, Tolerances
from arm_dynamics.control.goals.goal_handler import OVERRIDDEN, GoalHandler, GoalRequest
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import GoalRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import Reference, State
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.simulation.simulation import Simulation

ARM = five_dof()
NAMES = ARM.joint_names
HOME = ARM.configuration("initial")
AWAY = HOME + np.array([0.3, 0.2, -0.3, 0.3, 0.2])
REST = np.zeros(5)
TWO = load_arm("two_link")
NAN = float("nan")


class Session:
    """A simulated arm with a goal handler, stepped by the test."""

    def __init__(self, payload=0.0, name="pid_gravity"):
        self.simulation = Simulation(ARM.with_payload(payload), nominal=ARM)
        controller = build_controller(ARM, name)
        self.loop = ControlLoop(SimulationDriver(ARM, self.simulation), controller)
        self.goals = GoalHandler(self.loop)
        self.tick()

    def tick(self, count=1):
        for _ in range(count):
            self.loop.step()
            self.goals.update()

    def finish(self, goal, ticks=4000):
        """Step until the goal has a result; return it."""
        for _ in range(ticks):
            if goal.result is not None:
                return goal.result
            self.tick()
        raise AssertionError(f"no result after {ticks} ticks")

    @property
    def now(self):
        return self.loop.state.time


def to(q=AWAY, seconds=1.0, **more):
    given = {"velocities": [REST], "accelerations": [REST], **more}
    return GoalRequest(NAMES, [seconds], [q], **given)


def within(position, velocity=0.0):
    return dict.fromkeys(NAMES, (position, velocity))


def test_a_single_waypoint_at_time_zero_is_accepted_within_the_limits():
    """As in joint_trajectory_controller; a position step is rejected with the joint's name."""
    session = Session()
    session.goals.accept(GoalRequest(NAMES, [0.0], [session.loop.reference.q]))
    far = session.loop.reference.q + np.array([0, 0.2, 0, 0, 0])
    with pytest.raises(GoalRejected, match=r"joint 'R2'.*velocity"):
        session.goals.accept(GoalRequest(NAMES, [0.0], [far]))


def test_a_goal_received_during_a_trajectory_replacement_is_followed():
    """The loop computes the transition without a lock; a trajectory set during it is not lost."""
    session, goals = Session(), []
    following = session.loop.reference_generator
    spliced_at = following.spliced_at

    def interrupted(*given):
        if not goals:
            following.spliced_at = spliced_at
            goals.append(session.goals.accept(to(goal=within(0.01))))
        return spliced_at(*given)

    session.loop.hold({"R1": HOME[0] + 0.01})
    following.spliced_at = interrupted
    session.tick()
    result = session.finish(goals[0])
    assert result.code == ErrorCode.SUCCESSFUL
    assert OVERRIDDEN not in result.text
    assert np.abs(session.loop.state.q - AWAY).max() < 0.011


def test_tolerances_are_checked_although_a_stream_always_has_a_pending_trajectory():
    session = Session()
    goal = session.goals.accept(to(path=within(0.05)))
    session.tick(2)
    step_with_stream(session, 20)
    assert goal.result is None
    session.simulation.reset(HOME + 0.09)  # too small to restart the loop
    step_with_stream(session, 1)
    assert goal.result.code == ErrorCode.PATH_TOLERANCE_VIOLATED
    assert OVERRIDDEN in goal.result.text


def test_a_goal_that_starts_before_it_is_active_has_its_own_tolerances():
    """The loop's thread may start a trajectory before the other thread sets the goal."""
    session = Session()
    session.goals.constraints = Constraints.of(ARM, {n: {"trajectory": 1e-9} for n in NAMES})
    follow = session.loop.follow

    def followed(*given, **more):
        follow(*given, **more)
        session.tick(20)

    session.loop.follow = followed
    goal = session.goals.accept(to(path=within(-1.0)))
    assert session.finish(goal).code == ErrorCode.SUCCESSFUL
    assert not session.loop.events.counts


def step_with_stream(session, count):
    """Step with a new trajectory between the loop's step and the goal handler's update."""
    for _ in range(count):
        session.loop.step()
        session.loop.follow(parse_trajectory(ARM, NAMES, [2.0], [AWAY], start=session.now))
        session.goals.update()


def test_a_goal_whose_trajectory_is_replaced_before_its_start_is_overridden():
    session = Session()
    goal = session.goals.accept(to())
    session.loop.hold({"R1": HOME[0]})
    assert session.finish(goal).text.endswith(OVERRIDDEN)


def test_a_goal_is_reached():
    session = Session()
    start = session.now
    goal = session.goals.accept(to(goal=within(0.01)))
    result = session.finish(goal)
    assert result.code == ErrorCode.SUCCESSFUL
    assert not result.canceled
    assert session.now >= start + 1.0
    assert np.abs(session.simulation.state.q - AWAY).max() < 0.01
    assert session.goals.active is None


def test_a_goal_is_not_reached_before_the_trajectory_ends():
    session = Session()
    goal = session.goals.accept(to(HOME, 1.0))
    session.tick(495)
    assert goal.result is None
    session.tick(10)
    assert goal.result.code == ErrorCode.SUCCESSFUL


def test_without_a_goal_time_a_goal_waits_indefinitely():
    session = Session(payload=0.5, name="pid_gravity")
    goal = session.goals.accept(to(goal=within(1e-12)))
    session.tick(1500)
    assert goal.result is None


REJECTED = {
    "no joints": (GoalRequest([], [1.0], [[]]), ErrorCode.INVALID_JOINTS, "missing joint 'R1'"),
    "unknown": (
        GoalRequest([*NAMES[:4], "R9"], [1.0], [AWAY]),
        ErrorCode.INVALID_JOINTS,
        "unknown joint 'R9'",
    ),
    "repeated": (
        GoalRequest([*NAMES[:4], "R4"], [1.0], [AWAY]),
        ErrorCode.INVALID_JOINTS,
        "repeated joint 'R4'",
    ),
    "missing": (
        GoalRequest(NAMES[:4], [1.0], [AWAY[:4]]), ErrorCode.INVALID_JOINTS, "missing joint 'R5'"
    ),
    "no waypoints": (GoalRequest(NAMES, [], []), ErrorCode.INVALID_GOAL, "number of waypoints = 0"),
    "equal times": (
        GoalRequest(NAMES, [1.0, 1.0], [HOME, AWAY]), ErrorCode.INVALID_GOAL, "strictly increasing"
    ),
    "sizes": (
        GoalRequest(NAMES, [1.0], [AWAY[:3]]),
        ErrorCode.INVALID_GOAL,
        "3 positions; expected 5",
    ),
    "not finite": (
        GoalRequest(NAMES, [1.0], [[0, 0, 0, NAN, 0]]),
        ErrorCode.INVALID_GOAL,
        "joint 'R4': positions",
    ),
    "infinite velocity": (
        to(velocities=[[0, 0, np.inf, 0, 0]]), ErrorCode.INVALID_GOAL, "joint 'R3': velocities"
    ),
    "moving at the end": (
        to(velocities=[[0, 0.1, 0, 0, 0]]), ErrorCode.INVALID_GOAL, "joint 'R2': velocity = 0.1"
    ),
    "long ago": (
        to(start=1e-9, seconds=1e-9),
        ErrorCode.OLD_HEADER_TIMESTAMP,
        "time of the last waypoint",
    ),
    "another clock": (to(start=1.8e9), ErrorCode.INVALID_GOAL, "another clock"),
    "position": (
        to([0, 0, 0.9, 0, 0], 9.0), ErrorCode.INVALID_GOAL, "joint 'R3': position = 0.9 rad at"
    ),
    "velocity": (to(seconds=0.2), ErrorCode.INVALID_GOAL, "expected within the limit 1.2"),
    "unknown tolerance": (to(path={"R9": (0.1, 0.0)}), ErrorCode.INVALID_GOAL, "'R9'"),
    "bad tolerance": (
        to(goal={"R2": (-2.0, 0.0)}), ErrorCode.INVALID_GOAL, "joint 'R2': goal tolerance"
    ),
    "odd tolerance": (to(goal={"R2": (NAN, 0.0)}), ErrorCode.INVALID_GOAL, "position = nan"),
}  # fmt: skip


@pytest.fixture(scope="module")
def at_rest():
    session = Session()
    session.tick(10)
    return session


@pytest.mark.parametrize("kind", REJECTED)
def test_invalid_goals_are_rejected_with_their_code(at_rest, kind):
    request, code, words = REJECTED[kind]
    with pytest.raises(GoalRejected) as rejected:
        at_rest.goals.accept(request)
    assert rejected.value.code == code
    assert words in str(rejected.value)
    assert at_rest.goals.active is None
    assert not at_rest.loop.reference_generator.pending


def test_a_goal_beyond_the_effort_limit_of_the_controller_model_is_rejected():
    session = Session()
    session.loop.controller.set_model(ARM.with_payload(16.0))
    with pytest.raises(
        GoalRejected, match=r"joint 'R\d': effort = .* at .* expected within the limit"
    ) as it:
        session.goals.accept(to(HOME - 0.8 * np.eye(5)[2], 2.0))
    assert it.value.code == ErrorCode.INVALID_GOAL


def test_before_the_first_state_goals_are_rejected():
    simulation = Simulation(ARM)
    loop = ControlLoop(SimulationDriver(ARM, simulation), build_controller(ARM, "pid_gravity"))
    with pytest.raises(GoalRejected, match="no state of the arm"):
        GoalHandler(loop).accept(to())


def test_a_rejected_goal_does_not_change_the_active_one():
    session = Session()
    goal = session.goals.accept(to())
    session.tick(100)
    with pytest.raises(GoalRejected):
        session.goals.accept(GoalRequest(NAMES, [], []))
    assert session.goals.active is goal
    assert session.finish(goal).code == ErrorCode.SUCCESSFUL


# --- tolerances


def test_an_error_on_the_path_aborts_and_stops_the_arm():
    session = Session(payload=0.5)
    goal = session.goals.accept(to(path={"R2": (1e-4, 0.0)}))
    result = session.finish(goal)
    assert result.code == ErrorCode.PATH_TOLERANCE_VIOLATED
    assert "joint 'R2': position error" in result.text
    assert "expected within the tolerance 0.0001 at " in result.text
    where = session.simulation.state.q
    session.tick(1000)
    assert np.abs(session.simulation.state.q - where).max() < 0.15
    assert not session.loop.reference.v.any()


def test_an_error_at_the_end_aborts_after_the_goal_time():
    session = Session(payload=0.5, name="pid")
    goal = session.goals.accept(to(seconds=0.6, goal={"R2": (1e-6, -1.0)}, goal_time=0.1))
    start = session.now
    result = session.finish(goal)
    assert result.code == ErrorCode.GOAL_TOLERANCE_VIOLATED
    assert session.now == pytest.approx(start + 0.7, abs=0.005)
    assert "joint 'R2': position error" in result.text
    assert "0.1 s after the trajectory's end" in result.text


def test_a_velocity_error_on_the_path_aborts():
    session = Session(payload=0.5)
    goal = session.goals.accept(to(path={"R3": (0.0, 1e-3)}))
    result = session.finish(goal)
    assert result.code == ErrorCode.PATH_TOLERANCE_VIOLATED
    assert "joint 'R3': velocity error" in result.text


def test_a_velocity_error_at_the_end_is_not_a_success():
    """At the target position but still moving: the goal waits for rest until its goal time ends."""
    session = Session(payload=0.5)
    session.goals.constraints = Constraints.of(ARM, general={"stopped_velocity_tolerance": 0.0})
    goal = session.goals.accept(to(seconds=0.6, goal={"R2": (1.0, 1e-9)}, goal_time=0.1))
    result = session.finish(goal)
    assert result.code == ErrorCode.GOAL_TOLERANCE_VIOLATED
    assert "joint 'R2': velocity error" in result.text


def test_the_stopped_velocity_tolerance_is_the_default_of_every_joint():
    session = Session(payload=0.5)
    slow = {"goal_time": 0.1, "stopped_velocity_tolerance": 1e-9}
    session.goals.constraints = Constraints.of(ARM, general=slow)
    result = session.finish(session.goals.accept(to(seconds=0.6)))
    assert result.code == ErrorCode.GOAL_TOLERANCE_VIOLATED
    assert "velocity error" in result.text


@pytest.mark.parametrize("part", ["position", "velocity"])
@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_tolerance_is_met_up_to_its_value(part, joint, sign):
    """abs(reference - measured) <= tolerance for every joint, in position and in velocity."""
    tolerances = Tolerances.of(TWO, np.array([0.1, 0.2]), np.array([0.3, 0.4]))
    limit = getattr(tolerances, part)[joint]
    for fraction, met in ((1 - 1e-9, True), (1 + 1e-9, False)):
        errors = {"position": np.zeros(2), "velocity": np.zeros(2)}
        errors[part][joint] = sign * fraction * limit
        state, rest = State.of(errors["position"], errors["velocity"]), Reference.hold([0.0] * 2)
        assert tolerances.satisfied(state, rest) == met
        violations = list(tolerances.violations(("a", "b"), state, rest))
        assert len(violations) == (not met)
        assert all(f"joint '{'ab'[joint]}': {part} error" in text for text in violations)


def test_zero_means_the_default_and_minus_one_no_tolerance():
    default = Tolerances.of(TWO, np.array([0.1, 0.0]), np.array([0.0, 0.2]))
    assert default.position.tolist() == [0.1, np.inf]
    changed = default.overridden_by("path", ("a", "b"), {"a": (0.0, 0.3), "b": (0.5, -1.0)})
    assert changed.position.tolist() == [0.1, 0.5]
    assert changed.velocity.tolist() == [0.3, np.inf]
    assert default.overridden_by("path", ("a", "b"), {"a": (-1.0, 0.0)}).position[0] == np.inf


def test_default_tolerances_are_parameters():
    session = Session(payload=0.5)
    session.goals.constraints = Constraints.of(ARM, {"R2": {"trajectory": 1e-4}})
    assert session.finish(session.goals.accept(to())).code == ErrorCode.PATH_TOLERANCE_VIOLATED
    session.tick(1000)
    erased = session.goals.accept(to(HOME, path={"R2": (-1.0, -1.0)}))
    assert session.finish(erased).code == ErrorCode.SUCCESSFUL


def test_a_state_that_is_not_finite_is_not_a_success():
    tolerance = Tolerances.of(TWO, np.array([0.0, 0.1]), np.zeros(2))
    bad = State(0.0, np.array([0.0, NAN]), np.zeros(2), np.zeros(2))
    reference = parse_trajectory(two := five_dof(), two.joint_names, [1.0], [HOME]).at(0.0)
    reference = type(reference)(*(x[:2] for x in (reference.q, reference.v, reference.a)))
    assert not tolerance.satisfied(bad, reference)
    assert "nan" in next(tolerance.violations(("a", "b"), bad, reference))


def test_constraints_are_checked():
    with pytest.raises(UnknownName):
        Constraints.of(ARM, {"R1": {"path": 1.0}})
    with pytest.raises(InvalidValue, match="at least 0"):
        Constraints.of(ARM, general={"goal_time": -1.0})


# --- cancel, preemption, interruptions


def test_cancel_decelerates_and_ends_when_the_reference_is_at_rest():
    session = Session()
    goal = session.goals.accept(to())
    session.tick(250)
    speed = session.loop.reference.v
    assert np.abs(speed).max() > 0.3
    session.goals.cancel(goal)
    assert goal.result is None
    before, steps = speed, []
    for _ in range(300):
        session.tick()
        steps.append(np.abs(session.loop.reference.v - before))
        before = session.loop.reference.v
    rate = session.goals.constraints.max_deceleration * 2e-3
    assert (np.array(steps) <= rate + 1e-9).all()
    assert goal.result.canceled
    assert goal.result.code == ErrorCode.SUCCESSFUL
    assert not session.loop.reference.v.any()
    session.tick(500)
    assert np.abs(session.simulation.state.q - session.loop.reference.q).max() < 2e-3


def test_cancel_of_a_paused_goal_does_not_wait_for_the_pause_to_end():
    session = Session()
    goal = session.goals.accept(to())
    session.tick(250)
    session.loop.reference_generator.clock.set_factor(0.0)
    session.tick(200)
    at = session.loop.reference.q
    session.goals.cancel(goal)
    session.tick(2)
    assert goal.result.canceled
    session.loop.reference_generator.clock.set_factor(1.0)
    session.tick(200)
    assert np.abs(session.loop.reference.q - at).max() < 1e-9


def test_cancel_of_a_finished_goal_changes_nothing():
    session = Session()
    goal = session.goals.accept(to(seconds=0.5))
    session.finish(goal)
    session.goals.cancel(goal)
    assert not session.loop.reference_generator.pending
    assert not goal.result.canceled


def test_a_new_goal_preempts_without_a_jump():
    session = Session()
    first = session.goals.accept(to())
    session.tick(250)
    before = session.loop.reference
    second = session.goals.accept(to(HOME, 1.5))
    assert first.result.code == ErrorCode.INVALID_GOAL
    assert "preempted" in first.result.text
    session.tick()
    assert np.abs(session.loop.reference.q - before.q).max() < 3e-3
    assert session.finish(second).code == ErrorCode.SUCCESSFUL
    assert np.abs(session.loop.reference.q - HOME).max() == 0


def test_a_trajectory_of_another_source_overrides_without_aborting():
    session = Session()
    goal = session.goals.accept(to())
    session.tick(100)
    session.loop.follow(parse_trajectory(ARM, NAMES, [1.0], [HOME], start=session.now))
    session.tick(100)
    assert goal.result is None
    result = session.finish(goal)
    assert result.code == ErrorCode.SUCCESSFUL
    assert result.text.endswith(OVERRIDDEN)


TIGHT = 0.0005
"""Tolerance [rad] that the arm with 0.5 kg exceeds during the motion."""


def session_with_tolerance(tolerance, **general):
    """Return a session that checks this tolerance of R2 for trajectories without a goal."""
    session = Session(payload=0.5)
    row = {"trajectory": tolerance, "goal": 0.0} if not general else {"goal": tolerance}
    session.goals.constraints = Constraints.of(ARM, {"R2": row}, general)
    return session


def test_a_trajectory_without_a_goal_stops_beyond_its_path_tolerance():
    """As in joint_trajectory_controller: the arm holds its configuration and an event states the
    cause.
    """
    session = session_with_tolerance(TIGHT)
    events = session.loop.events
    session.loop.follow(parse_trajectory(ARM, NAMES, [1.0], [AWAY], start=session.now))
    session.tick(1500)
    assert events.counts["path_tolerance_violated"] == 1
    assert "joint 'R2': position error" in events.latest["path_tolerance_violated"]
    assert f"expected within the tolerance {TIGHT:g} at" in events.latest["path_tolerance_violated"]
    assert np.abs(session.loop.reference.q - AWAY).max() > 0.05
    assert not np.any(session.loop.reference.v)
    assert np.abs(session.loop.state.v).max() < 0.05
    session.loop.follow(parse_trajectory(ARM, NAMES, [4.0], [HOME], start=session.now))
    session.tick(100)
    assert np.any(session.loop.reference.v), "the next one is followed again"


def test_a_stream_with_a_message_in_every_control_cycle_is_checked():
    """The tolerance of the active trajectory is checked although another one is always pending."""
    session = session_with_tolerance(TIGHT)
    for _ in range(600):
        session.loop.step()
        session.loop.follow(parse_trajectory(ARM, NAMES, [1.0], [AWAY], start=session.now))
        session.goals.update()
        if session.loop.events.counts:
            break
    assert session.loop.events.counts == {"path_tolerance_violated": 1}


def test_a_goals_own_tolerance_replaces_the_default():
    session = session_with_tolerance(TIGHT)
    goal = session.goals.accept(to(path=within(0.5), goal=within(0.5)))
    assert session.finish(goal).code == ErrorCode.SUCCESSFUL
    session.tick(1000)
    assert not session.loop.events.counts


def test_beyond_the_goal_tolerance_the_arm_holds_its_configuration():
    session = session_with_tolerance(1e-9, goal_time=0.1)
    session.loop.follow(parse_trajectory(ARM, NAMES, [1.0], [AWAY], start=session.now))
    session.tick(1000)
    assert session.loop.events.counts == {"goal_tolerance_violated": 1}
    assert np.abs(session.loop.reference.q - AWAY).max() > 1e-9


def test_steps_and_stops_have_no_tolerance():
    session = session_with_tolerance(1e-9)
    session.loop.hold({"R2": -0.9})
    session.tick(200)
    session.loop.request_stop()
    session.tick(200)
    assert not session.loop.events.counts


def test_a_reset_of_the_arm_aborts_the_goal():
    session = Session()
    goal = session.goals.accept(to())
    session.tick(400)
    session.simulation.reset(HOME)
    session.tick(2)
    assert goal.result.code == ErrorCode.INVALID_GOAL
    assert "interrupted: " in goal.result.text


def test_a_paused_goal_waits_and_continues():
    session = Session()
    goal = session.goals.accept(to(goal_time=0.5, goal=within(0.01)))
    session.tick(250)
    session.loop.reference_generator.clock.set_factor(0.0)
    session.tick(1000)
    still = session.loop.reference
    session.tick(1000)
    assert goal.result is None
    np.testing.assert_array_equal(session.loop.reference.q, still.q)
    assert not session.loop.reference.v.any()
    session.loop.reference_generator.clock.set_factor(1.0)
    assert session.finish(goal).code == ErrorCode.SUCCESSFUL


def test_half_the_speed_doubles_the_duration():
    session = Session()
    session.loop.reference_generator.clock.set_factor(0.5)
    session.tick(200)
    start = session.now
    session.finish(session.goals.accept(to(goal=within(0.01))))
    assert session.now == pytest.approx(start + 2.0, abs=0.05)


# --- partial joints


def test_partial_joint_goals_move_the_named_joints():
    session = Session()
    partial = GoalRequest(["R3"], [1.0], [[AWAY[2]]], [[0.0]])
    with pytest.raises(GoalRejected, match="missing joint 'R1'"):
        session.goals.accept(partial)
    session.goals.allow_partial = True
    assert session.finish(session.goals.accept(partial)).code == ErrorCode.SUCCESSFUL
    expected = HOME.copy()
    expected[2] = AWAY[2]
    np.testing.assert_allclose(session.loop.reference.q, expected, atol=1e-12)


def test_a_partial_goal_without_joints_is_rejected():
    session = Session()
    session.goals.allow_partial = True
    with pytest.raises(GoalRejected) as rejected:
        session.goals.accept(GoalRequest([], [1.0], [[]]))
    assert rejected.value.code == ErrorCode.INVALID_JOINTS


def test_joints_absent_from_a_goal_come_to_rest_within_their_deceleration():
    session = Session()
    session.goals.allow_partial = True
    session.goals.accept(to())
    session.tick(250)
    present = session.loop.reference
    session.goals.accept(GoalRequest(["R3"], [1.0], [[HOME[2]]], [[0.0]]))
    session.tick(600)
    stopped = np.abs(session.loop.reference.q - present.q)
    distance = present.v**2 / (2 * session.goals.constraints.max_deceleration)
    np.testing.assert_allclose(np.delete(stopped, 2), np.delete(distance, 2), atol=3e-3)


@pytest.mark.parametrize("canceled", [False, True])
def test_a_controller_without_reference_ends_the_active_goal_and_accepts_none(canceled):
    session = Session()
    goal = session.goals.accept(to())
    session.tick(100)
    if canceled:
        session.goals.cancel(goal)
    session.loop.switch_controller(build_controller(ARM, "gravity_compensation"))
    session.tick(2)
    assert goal.result.code == ErrorCode.INVALID_GOAL
    assert goal.result.canceled == canceled
    assert "interrupted: controller GravityCompensation does not track" in goal.result.text
    assert session.goals.active is None
    with pytest.raises(GoalRejected, match=r"not active: .* GravityCompensation") as rejected:
        session.goals.accept(to())
    assert rejected.value.code == ErrorCode.INVALID_GOAL
    session.loop.switch_controller(build_controller(ARM, "pid_gravity"))
    session.tick(600)
    assert session.finish(session.goals.accept(to())).code == ErrorCode.SUCCESSFUL


def test_joints_absent_from_a_goal_stop_where_the_reference_can_stop():
    """q + v |v| / (2 d) of the reference; the arm itself deviates from it with a payload."""
    session = Session(payload=1.0)
    session.goals.allow_partial = True
    session.goals.accept(to())
    session.tick(250)
    present, state = session.loop.reference, session.loop.state
    rest = present.q + present.v * np.abs(present.v) / (
        2 * session.goals.constraints.max_deceleration
    )
    assert np.abs(present.q - state.q)[1] > 1e-4
    session.goals.accept(GoalRequest(["R3"], [1.0], [[HOME[2]]], [[0.0]]))
    session.tick(600)
    rest[2] = HOME[2]
    np.testing.assert_allclose(session.loop.reference.q, rest, atol=1e-9)


def test_error_codes_are_those_of_follow_joint_trajectory():
    """control_msgs/action/FollowJointTrajectory, on which clients depend."""
    assert {code.name: int(code) for code in ErrorCode} == {
        "SUCCESSFUL": 0, "INVALID_GOAL": -1, "INVALID_JOINTS": -2, "OLD_HEADER_TIMESTAMP": -3,
        "PATH_TOLERANCE_VIOLATED": -4, "GOAL_TOLERANCE_VIOLATED": -5,
    }  # fmt: skip
