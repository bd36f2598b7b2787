"""Node excitation: an arm of toy motors runs an excitation trajectory once it is active."""

import signal

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from arm_dynamics import load_arm
from arm_dynamics.identification.excitation import Excitation
from arm_dynamics.identification.excitation_search import excite

from .motors import Motors

pytestmark = pytest.mark.hardware


@pytest.fixture(scope="module")
def motors(tmp_path_factory):
    """Start an inactive arm with a controller."""
    arm = Motors(tmp_path_factory.mktemp("motors"))
    try:
        assert arm.ask("configure")
        arm.controller("computed_torque")
        yield arm
    finally:
        arm.close()


@pytest.fixture
def shared(motors):
    """Return the domain whose output is shown after a failure."""
    yield motors.ros
    if motors.life == "active":
        assert motors.ask("deactivate")


@pytest.fixture(scope="module")
def file(motors, tmp_path_factory):
    """Return the file of a short excitation trajectory."""
    arm, path = load_arm(motors.arm), tmp_path_factory.mktemp("excite") / "excite.yaml"
    excite(arm, 3.0, evaluations=30, acceleration_limit=10.0).save(path)
    return path


def logged(motors, node, text):
    motors.ros.wait_for(lambda: text in node.output, f"not logged: {text}")


def ended(motors, node):
    motors.ros.wait_for(lambda: node.code is not None, "the node did not end")
    return node.code


def test_the_trajectory_runs_after_the_activation(motors, shared, file):
    node = motors.start("excitation", file=file)
    logged(motors, node, "waits until hardware is active")
    goal = shared.record(JointState, "joint_commands")
    assert motors.life == "inactive"
    states = shared.states()
    assert motors.ask("activate")
    logged(motors, node, "moving to the start")
    assert ended(motors, node) == 0, shared.report("not completed")
    assert "completed; the arm holds its configuration" in node.output
    assert len(goal) > 100
    excitation = Excitation.load(file)
    q = np.array([state.position for state in states])
    wanted = excitation.sample(np.linspace(0, excitation.duration, 300))[0]
    np.testing.assert_allclose(q[-1], excitation.end, atol=0.05)
    np.testing.assert_allclose(q.max(axis=0), wanted.max(axis=0), atol=0.1)
    np.testing.assert_allclose(q.min(axis=0), wanted.min(axis=0), atol=0.1)


def test_an_interrupt_cancels_the_motion(motors, shared, file):
    assert motors.ask("activate")
    node = motors.start("excitation", file=file)
    logged(motors, node, "moving to the start")
    node.send(signal.SIGINT)
    assert ended(motors, node) == 0
    assert "completed" not in node.output
    assert motors.life == "active"


def test_a_rejected_motion_ends_the_node(motors, shared, file, tmp_path):
    other = Excitation.load(file)
    fast = other.with_coefficients(other.coefficients * 1e-3)
    path = tmp_path / "other.yaml"
    path.write_text(fast.to_yaml().replace("J1", "J9"))
    node = motors.start("excitation", file=path)
    assert ended(motors, node) == 2
    assert "J9" in node.output
