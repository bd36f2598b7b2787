"""Node excitation: an arm runs an excitation trajectory once it is active."""

import re
import signal

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.identification.excitation.excitation_search import excite

from .link import GAINS, LOCKSTEP, arguments
from .motors import Motors


def planned(arm, folder, **more):
    """Return a short excitation trajectory of an arm and its file."""
    found = excite(load_arm(arm), 3.0, evaluations=30, **more)
    found.save(folder / "excite.yaml")
    return found, folder / "excite.yaml"


def logged(ros, node, text):
    ros.wait_for(lambda: text in node.output, f"not logged: {text}")


def ended(ros, node):
    ros.wait_for(lambda: node.code is not None, "the node did not end")
    return node.code


@pytest.fixture(scope="module")
def states(shared):
    """Start a controlled arm in lockstep; return the recorded states."""
    record = shared.states()
    shared.start("simulator", **LOCKSTEP)
    shared.start("joint_controller", GAINS)
    shared.wait_until(record, 0.1)
    return record


def test_an_arm_without_lifecycle_runs_it_immediately(shared, states, tmp_path):
    excitation, file = planned("five_dof", tmp_path)
    node = shared.start("excitation", file=file, wait_for_activation=False)
    assert ended(shared, node) == 0, shared.report("not completed")
    assert "completed; the arm holds its configuration" in node.output
    q = np.array([state.position for state in states.messages()])
    expected = excitation.sample(np.linspace(0, excitation.duration, 500))[0]
    np.testing.assert_allclose(q.max(axis=0), expected.max(axis=0), atol=0.05)
    np.testing.assert_allclose(q.min(axis=0), expected.min(axis=0), atol=0.05)
    np.testing.assert_allclose(q[-1], expected[-1], atol=0.02)


SLOW_REQUESTS = """import time, rclpy.action.client as client
future = client.Future
client.Future = lambda: time.sleep(0.5) or future()
"""


def test_replies_before_the_end_of_their_request_are_accepted(
    shared, states, tmp_path, monkeypatch
):
    """Rclpy sends a request, then it creates the future of the reply."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_REQUESTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _, file = planned("five_dof", tmp_path)
    words = arguments(file=file, wait_for_activation=False)
    node = shared.launch("ros.nodes.excitation", *words, fresh=True)
    assert ended(shared, node) == 0, shared.report("not completed")
    assert "unexpected" not in node.output


def test_a_motion_that_the_controller_rejects_ends_the_node(shared, states, tmp_path):
    """The node has another description than the controller: with faster joints."""
    arm = tmp_path / "fast.urdf"
    text = re.sub(r'velocity="[^"]*"', 'velocity="100"', load_arm("five_dof").urdf)
    text = re.sub(r'lower="[^"]*" upper="[^"]*"', 'lower="-50" upper="50"', text)
    arm.write_text(text)
    excitation, file = planned("five_dof", tmp_path)
    file.write_text(excitation.with_coefficients(8 * excitation.coefficients).to_yaml())
    node = shared.start("excitation", arm=arm, file=file, wait_for_activation=False)
    assert ended(shared, node) == 2
    assert "rejected by joint_controller" in node.output


@pytest.mark.slow
@pytest.mark.hardware
def test_it_waits_for_the_activation_and_an_interrupt_cancels_it(tmp_path):
    motors = Motors(tmp_path)
    try:
        assert motors.change_state("configure")
        motors.controller("computed_torque")
        _, file = planned(motors.arm, tmp_path, acceleration_limit=10.0)
        node = motors.start("excitation", file=file)
        logged(motors.ros, node, "waits until hardware is active")
        assert motors.life == "inactive"
        assert "moving" not in node.output
        motors.activate()
        logged(motors.ros, node, "moving to the start")
        node.signal(signal.SIGINT)
        assert ended(motors.ros, node) == 0
        assert "completed" not in node.output
        assert motors.life == "active"
    finally:
        motors.close()


def test_files_of_other_arms_are_rejected(shared, tmp_path):
    _, file = planned("two_link", tmp_path)
    node = shared.start("excitation", file=file)
    assert ended(shared, node) == 2
    assert "J" in node.output
    excitation, file = planned("five_dof", tmp_path)
    file.write_text(excitation.with_coefficients(8 * excitation.coefficients).to_yaml())
    node = shared.start("excitation", file=file)
    assert ended(shared, node) == 2
    assert "waits until" not in node.output, "checked after the activation"
    assert "expected within" in node.output
    node = shared.start("excitation")
    assert ended(shared, node) == 2
    assert "expected the YAML file of an excitation trajectory" in node.output
