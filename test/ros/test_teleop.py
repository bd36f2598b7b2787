"""Command teleop between arms of other nodes: approach, tracking, silence, absence."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from arm_dynamics.cli import teleop
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.ros.nodes import teleop as remote_teleop

from .link import INITIAL, trajectory

HELD, GOAL = INITIAL + np.array((0.5, 0, 0, 0, 0.3)), INITIAL + np.array((0.2, 0, 0, 0, 0))
LIMIT = np.radians(60)
"""Velocity limit of the approach [rad/s]."""
STREAM = "/{}/joint_controller/joint_trajectory"


def start(ros, side, q):
    """Start simulator and joint controller in a namespace, in one process."""
    return ros.launch(
        "ros.nodes.composed", "--ros-args", "-r", f"__ns:=/{side}", "-p", "publish_clock:=false",
        "-p", f"initial_positions:={q.tolist()}",
    )  # fmt: skip


def test_an_arm_follows_one_of_another_process_and_holds_when_it_is_silent(ros, tmp_path):
    """Approach without a jump, tracking, and a hold after the end of the leader's process."""
    leader, follower = start(ros, "left", HELD), start(ros, "right", INITIAL)
    of_leader, states = (ros.record(JointState, f"/{x}/joint_states") for x in ("left", "right"))
    stream = ros.record(JointTrajectory, STREAM.format("right"))
    ros.wait_for(lambda: len(of_leader) > 10 and len(states) > 10, "no states")
    run = ros.launch(
        "cli.main", "teleop", "five_dof", "five_dof",
        "--leader-driver", "ros:/left", "--follower-driver", "ros:/right",
        "--approach-speed", "60", "--record", str(tmp_path / "both"),
    )  # fmt: skip

    def reach(goal):
        ros.wait_for(
            lambda: np.abs(np.array(states.newest.position) - goal).max() < 0.03,
            f"the follower does not reach {goal}",
        )

    reach(HELD)
    points = [message.points[0] for message in stream.messages()]
    np.testing.assert_allclose(points[0].positions, INITIAL, atol=0.01)
    assert np.abs([point.velocities for point in points]).max() < LIMIT + 1e-6
    ros.publish(trajectory((1.0, GOAL)), STREAM.format("left"))
    reach(GOAL)
    leader.kill()
    ros.wait_for(lambda: "the follower holds" in run.output, "no event leader_silent")
    assert follower.code is None
    assert run.stop() == 0, run.output
    reach(GOAL)
    assert {path.name for path in (tmp_path / "both").iterdir()} == {"leader", "follower"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--leader-driver", "ros:a"], "--leader-driver = ros:a; expected ros:/NAMESPACE"),
        (["--leader-driver", "ros:/a", "--leader-port", "x"], "--leader-port: driver = ros:/a"),
        (["--leader-driver", "ros:/a", "--follower-driver", "ros:/a"], "namespace of both arms"),
        (["--leader-driver", "ros:/a", "--bilateral"], "--bilateral: leader = ros:/a"),
        (["--follower-driver", "ros:/a", "--controller", "pid"], "--controller = pid: follower"),
    ],
)
def test_invalid_arms_are_rejected(words, message):
    sides = ["--leader-driver", "simulated", "--follower-driver", "simulated"]
    with pytest.raises(ConfigError, match=message):
        teleop.run(["two_link", "two_link", *sides, *words], remote=object())


def test_without_rclpy_the_command_states_what_is_missing():
    words = ["--leader-driver", "ros:/a", "--follower-driver", "simulated"]
    with pytest.raises(ConfigError, match="--leader-driver = ros:/a: "):
        teleop.run(["two_link", "two_link", *words])


def test_an_absent_arm_is_reported(monkeypatch):
    monkeypatch.setattr(remote_teleop, "START_TIMEOUT", 0.0)
    with pytest.raises(DriverFault, match="/absent/joint_states: messages = 0; expected one"):
        remote_teleop._wait(lambda: False, "/absent/joint_states: messages = 0; expected one")
