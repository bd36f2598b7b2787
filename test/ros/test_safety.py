"""An arm with invalid or missing commands stays within its limits and comes to rest."""

import re
import signal
import time

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray

from arm_dynamics import load_arm
from arm_dynamics.dynamics.rigid_body import gravity

from .link import GAINS, INITIAL, JOINTS, ROOT, Motion, joint_state, stamp, to_time, trajectory

ARM = load_arm("five_dof")
NAN, INF = float("nan"), float("inf")
WEIGHT = gravity(ARM, INITIAL)
STOP = 1.0
"""Time [s] in which an arm without commands comes to rest."""
JUMP = 0.05
"""Maximum change of velocity [rad/s] between two states 2 ms apart without a step."""


def volts(values):
    return Float64MultiArray(data=[float(v) for v in values])


BAD_COMMANDS = {
    "NaN effort": (joint_state(effort=[NAN, *WEIGHT[1:]]), "nan"),
    "infinite effort": (joint_state(effort=[*WEIGHT[:4], INF]), "inf"),
    "too few efforts": (joint_state(effort=WEIGHT[:3]), "effort entries = 3; expected 5"),
    "too many efforts": (joint_state(effort=[*WEIGHT, 0.0]), "effort entries = 6; expected 5"),
    "wrong name": (
        joint_state([*JOINTS[:4], "R9"], effort=WEIGHT),
        "joint = 'R9'; expected one of",
    ),
    "name missing": (joint_state(JOINTS[:4], effort=WEIGHT[:4]), "expected also 'R5'"),
    "name twice": (joint_state([*JOINTS, "R1"], effort=[*WEIGHT, 0.0]), "each name once"),
    "empty": (JointState(), "expected also 'R1'"),
    "NaN voltage": (volts([0, 0, NAN, 0, 0]), "nan"),
    "infinite voltage": (volts([0, 0, 0, -INF, 0]), "inf"),
    "too few voltages": (volts([0, 0]), "values = 2; expected 5"),
    "no voltage": (volts([]), "values = 0; expected 5"),
}


@pytest.fixture(scope="module")
def simulator(shared):
    """Start a simulator at half speed: a busy machine then causes no time-out of 0.1 s."""
    states = shared.states()
    shared.start("simulator", real_time_factor=0.5)
    shared.wait_until(states, 0.05)
    return states


def send(shared, message):
    voltage = isinstance(message, Float64MultiArray)
    shared.publish(message, "voltage_commands" if voltage else "joint_commands")


@pytest.fixture(scope="module")
def rejections(shared, simulator):
    """Return the report of each invalid command and the motion during the test."""
    start, reports = len(simulator), {}
    for count, (kind, (message, _)) in enumerate(BAD_COMMANDS.items(), 1):
        send(shared, message)
        reports[kind] = shared.diagnosis(
            "simulator",
            lambda values, n=count: values.get("command_rejected") == str(n),
            f"{kind} is not counted as rejection {count}",
        )["last command_rejected"]
    return reports, Motion(simulator.messages(start))


@pytest.mark.parametrize("kind", BAD_COMMANDS)
def test_an_invalid_command_is_rejected_counted_and_named(rejections, kind):
    assert BAD_COMMANDS[kind][1] in rejections[0][kind]


def test_invalid_commands_do_not_move_the_arm(rejections):
    motion = rejections[1]
    assert np.isfinite(motion.q).all()
    assert np.abs(motion.q - INITIAL).max() < 1e-6


def at_rest(motion, seconds):
    """Return whether the arm is at rest, with gravity balanced, ``seconds`` after the start."""
    after = motion.at(motion.t[0] + seconds)
    held = np.array([gravity(ARM, q) for q in motion.q[after:]])
    return np.abs(motion.v[after:]).max() < 1e-3 and np.abs(motion.tau[after:] - held).max() < 0.05


def within_limits(motion):
    return (motion.q >= ARM.lower).all() and (motion.q <= ARM.upper).all()


@pytest.mark.parametrize("then", [None, "NaN effort", "too few voltages"])
def test_the_arm_stops_when_valid_commands_end(shared, simulator, then):
    """After 0.2 s of effort no commands follow, or invalid commands at 50 Hz."""
    push = joint_state(effort=WEIGHT + np.array([4.0, 2.0, -2.0, 0.0, 0.0]))
    assert shared.trigger("simulator/reset").success
    shared.meet(JointState, "joint_commands")
    until = stamp(simulator.newest) + 0.2
    while stamp(simulator.newest) < until:
        shared.publish(push, "joint_commands")
        shared.wait_longer(simulator, 0.02)
    first = len(simulator)
    end = stamp(simulator.newest) + 1.5
    while stamp(simulator.newest) < end:
        if then is not None:
            send(shared, BAD_COMMANDS[then][0])
        shared.wait_longer(simulator, 0.02)
    motion = Motion(simulator.messages(first - 1))
    assert np.abs(motion.v[0]).max() > 0.05, "no motion"
    assert within_limits(motion)
    assert at_rest(motion, 0.1 + STOP)


def test_a_command_for_an_old_state_is_rejected_as_by_the_hardware(shared, simulator):
    shared.wait_until(simulator, 1.0)
    old = joint_state(effort=WEIGHT)
    old.header.stamp = to_time(stamp(simulator.newest) - 0.5)
    shared.publish(old, "joint_commands")
    values = shared.diagnosis(
        "simulator", lambda v: "command age" in v.get("last command_rejected", "")
    )
    age, limit = re.search(
        r"command age = (\S+) s; expected at most (\S+) s", values["last command_rejected"]
    ).groups()
    assert float(age) >= 0.5
    assert float(limit) == 0.1


def test_the_clock_repeats_the_same_time_in_a_pause(shared, simulator):
    """A node that starts during the pause has a time."""
    assert shared.pause().success
    try:
        clock = shared.record(Clock, "/clock")
        shared.wait_for(lambda: len(clock) >= 3, "no /clock in a pause")
        times = {(m.clock.sec, m.clock.nanosec) for m in clock.messages()}
        newest = simulator.newest.header.stamp
        assert times == {(newest.sec, newest.nanosec)}
    finally:
        assert shared.pause(False).success


def test_timeout_events_are_counted(shared, simulator):
    values = shared.diagnosis("simulator", lambda v: v.get("command_timeout") == "3")
    assert "limit 0.1 s" in values["last command_timeout"]
    assert values["message"] == "controlled stop"
    assert values["level"] == 1


def test_voltages_move_the_arm(shared, simulator):
    """R1 gets 5 V; the others get the voltages R τ / (N Kt) that balance gravity."""
    hold = WEIGHT / [10, 10, 10, 1, 1]
    start = np.array(simulator.newest.position)
    for _ in range(15):
        shared.publish(volts([5, *hold[1:]]), "voltage_commands")
        shared.wait_longer(simulator, 0.02)
    assert simulator.newest.position[0] - start[0] > 0.01
    shared.wait_longer(simulator, 1.5)
    assert np.abs(simulator.newest.velocity).max() < 1e-3


# --- a killed controller

AWAY = INITIAL + np.array([1.0, 0.8, -0.8, 1.0, -0.8])


@pytest.fixture(scope="module")
def killed():
    """Return the motions after the kill and after the restart, the commands, the exit codes."""
    from .link import Ros

    ros = Ros()
    try:
        states = ros.states()
        ros.start("simulator")
        controller = ros.start("joint_controller", GAINS)
        ros.wait_until(states, 0.1)
        first_commands = ros.record(JointState, "joint_commands")
        ros.wait_for(lambda: len(first_commands), "no command")  # the controller knows the state
        rest = np.zeros(5)
        ros.publish(trajectory((2.0, AWAY, rest)), "joint_controller/joint_trajectory")
        ros.wait_for(lambda: np.abs(states.newest.velocity).max() > 0.5, "no motion")
        first = len(states) - 1
        controller.kill()
        ros.wait_longer(states, 2.0)
        dead = Motion(states.messages(first))
        first = len(states)
        commands = ros.record(JointState, "joint_commands")
        ros.start("joint_controller", GAINS)
        ros.wait_for(lambda: len(commands) > 100, "no command after the restart")
        ros.wait_longer(states, 0.5)
        return dead, Motion(states.messages(first)), Motion(commands.messages()), ros.stop_all()
    finally:
        ros.close()


def test_the_arm_was_moving_when_its_controller_was_killed(killed):
    assert np.abs(killed[0].v[0]).max() > 0.4


def test_the_arm_of_a_killed_controller_stays_within_its_limits(killed):
    assert within_limits(killed[0])


def test_the_arm_of_a_killed_controller_rests_with_gravity_balanced(killed):
    assert at_rest(killed[0], 0.1 + STOP)


def test_the_arm_of_a_killed_controller_decelerates_without_a_step(killed):
    motion = killed[0]
    whole = np.diff(motion.stamps) <= 4_000_000
    assert whole.mean() > 0.99
    assert np.abs(np.diff(motion.v, axis=0))[whole].max() < JUMP
    speed = np.abs(motion.v).max(axis=1)
    decay = [speed[motion.at(motion.t[0] + s)] for s in (0.2, 0.4, 0.6, 0.8, 1.0)]
    assert decay == sorted(decay, reverse=True)


def test_a_restarted_controller_holds_the_arm_without_a_step(killed):
    dead, new, commands, codes = killed
    assert np.abs(new.q - dead.q[-1]).max() < 1e-4
    assert np.abs(new.v).max() < 1e-2
    assert np.abs(commands.tau[0] - dead.tau[-1]).max() < 0.05
    assert np.abs(np.diff(new.tau, axis=0)).max() < 0.1
    assert codes[0] == codes[2] == 0


@pytest.mark.slow
def test_the_command_timeout_is_wall_time_when_faster_than_real_time(ros):
    """A killed controller causes a time-out, a pause of 0.2 s does not; the arm holds in both."""
    timeout, states = 0.5, ros.states()
    ros.start(
        "simulator",
        real_time_factor=20.0,
        update_rate=100.0,
        arm="two_link",
        command_timeout=timeout,
    )
    controller = ros.start("joint_controller", ROOT / "config/two_link.yaml", arm="two_link")
    running = ros.diagnosis("simulator", lambda v: float(v["commands per second"]) > 50)
    start = states.newest.position
    for _ in range(2):
        controller.signal(signal.SIGSTOP)
        time.sleep(0.2)  # 4 s at this factor
        controller.signal(signal.SIGCONT)
        ros.wait_longer(states, 1.0)
    values = ros.diagnosis("simulator", lambda v: v["message"] == "running")
    assert values.get("command_timeout") == running.get("command_timeout")
    controller.kill()
    last = len(states)
    ros.diagnosis("simulator", lambda v: v["message"].startswith("controlled stop"))
    ros.wait_longer(states, timeout + STOP)
    motion = Motion(states.messages())
    assert np.abs(motion.q - start).max() < 0.02
    assert np.abs(motion.v[motion.at(motion.t[last - 1] + timeout + STOP) :]).max() < 1e-3


def test_sigusr1_of_any_node_is_the_emergency_stop_of_the_arm(ros):
    stops = ros.record(Bool, "emergency_stop")
    commands = ros.record(JointState, "joint_commands")
    controller = ros.start("joint_controller")
    ros.wait_for(lambda: commands.publishers, "no controller")
    controller.signal(signal.SIGUSR1)
    ros.wait_for(lambda: len(stops) and stops.newest.data, "no emergency stop")
    assert controller.code is None
    assert controller.stop() == 0
