"""`ros2 param dump` and `ros2 param load` for all nodes."""

import os

import pytest
import yaml

from .domain import claim_domain
from .link import GAINS

import rclpy  # isort: skip
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.parameter import (
    Parameter,
    parameter_dict_from_yaml_file,
    parameter_value_to_python,
)

from arm_dynamics.ros.nodes.hardware import HardwareNode
from arm_dynamics.ros.nodes.joint_controller import JointControllerNode
from arm_dynamics.ros.nodes.joint_sliders import JointSlidersNode
from arm_dynamics.ros.nodes.simulator import SimulatorNode
from arm_dynamics.ros.nodes.task_space_controller import TaskSpaceControllerNode
from arm_dynamics.ros.nodes.viewer import ViewerNode
from arm_dynamics.ros.parameters.ros_parameters import MAX_DOUBLE, take_numbers_as_text

NODES = (
    SimulatorNode,
    JointControllerNode,
    TaskSpaceControllerNode,
    HardwareNode,
    JointSlidersNode,
    ViewerNode,
)


PORTS = ("-p", "viewer:port:=0", "-p", "joint_sliders:port:=0")


@pytest.fixture(scope="module")
def domain():
    claim, number = claim_domain()
    yield number
    os.close(claim)


@pytest.fixture
def started(domain):
    """Return a function that starts a node and ends the previous one."""
    running = []

    def end():
        if running:
            node = running.pop()
            if isinstance(node, ViewerNode):
                node.page.close()
            node.destroy_node()
        rclpy.try_shutdown()

    def start(kind, *arguments):
        end()
        rclpy.init(args=["--ros-args", *PORTS, *arguments], domain_id=domain)
        running.append(kind())
        take_numbers_as_text(running[0])
        return running[0]

    yield start
    end()


def values(node):
    """Return all parameter values by name, as ``get_parameters`` returns them."""
    found = {name: node.get_parameter(name).get_parameter_value() for name in node._parameters}
    return {name: parameter_value_to_python(value) for name, value in sorted(found.items())}


def dump(node, path):
    """Write a file with the output of `ros2 param dump`."""
    table = {}
    for name, value in values(node).items():
        *groups, last = name.split(".")
        inner = table
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = value
    content = {node.get_fully_qualified_name(): {"ros__parameters": table}}
    path.write_text(yaml.dump(content, default_flow_style=False))
    return path


def load(node, path):
    """Return the results of `ros2 param load` by name; each parameter is sent separately."""
    sent = parameter_dict_from_yaml_file(str(path), True)
    return {
        name: node.set_parameters_atomically([Parameter.from_parameter_msg(message)])
        for name, message in sent.items()
    }


@pytest.mark.parametrize("kind", NODES)
def test_a_dump_can_be_loaded_and_restarts_the_node(started, tmp_path, kind):
    node = started(kind, "--params-file", str(GAINS))
    before, file = values(node), dump(node, tmp_path / "dump.yaml")
    for name, result in load(node, file).items():
        assert result.successful or "read-only" in result.reason, (name, result.reason)
    assert values(node) == before
    assert values(started(kind, "--params-file", str(file))) == before


CLAMP, GAIN = "gains.R1.i_clamp", "gains.R1.i"


def test_an_infinite_value_is_dumped_as_a_number(started, tmp_path):
    """An unlimited integral has a finite value, which ros2param sends as a number."""
    node = started(JointControllerNode, "-p", f"{CLAMP}:=.inf")
    assert values(node)[CLAMP] == MAX_DOUBLE
    sent = parameter_dict_from_yaml_file(str(dump(node, tmp_path / "dump.yaml")), True)
    assert sent[CLAMP].value.type == Parameter.Type.DOUBLE.value
    assert sent[CLAMP].value.double_value == MAX_DOUBLE


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gains.R2.pp", "'gains.R2.pp'; did you mean 'gains.R2.p'?"), ("zzz", "'zzz'")],
)
def test_an_undeclared_parameter_is_rejected_with_its_name(started, name, reason):
    node = started(JointControllerNode)
    with pytest.raises(ParameterNotDeclaredException) as rejection:
        node.set_parameters_atomically([Parameter(name, value=1.0)])
    assert str(rejection.value) == f"Invalid access to undeclared parameter(s): {reason}"


def test_numbers_sent_as_text_by_ros2param_are_accepted(started):
    node = started(JointControllerNode)
    before = values(node)

    def after_setting(name, value):
        result = node.set_parameters_atomically([Parameter(name, value=value)])
        return values(node)[name] if result.successful else result.reason

    assert after_setting(CLAMP, "1e-05") == 1e-05
    assert after_setting(CLAMP, "3e+2") == 300.0
    for text in ("inf", float("inf"), "1e+15"):
        assert after_setting(CLAMP, text) == MAX_DOUBLE
    assert "expected 'Type.DOUBLE' got 'Type.STRING'" in after_setting(CLAMP, "much")
    for value in ("nan", "-1e-05", "1e+30"):
        assert "out of range" in after_setting(CLAMP, value)
    assert "out of range" in after_setting(GAIN, "inf")
    assert after_setting("controller", "1e-05") != "1e-05"
    assert values(node) == {**before, CLAMP: MAX_DOUBLE}


def test_lists_with_small_numbers_are_accepted(started):
    node = started(SimulatorNode)
    for name, value in {
        "gravity": [0.0, 1e-05, -9.81],
        "reset_positions": [1e-05, -1.0, 0.3, 0.0, 0.0],
    }.items():
        if name == "reset_positions":  # a loaded empty list has no type
            assert node.set_parameters_atomically([Parameter(name, value=[])]).successful
        result = node.set_parameters_atomically([Parameter(name, value=str(value))])
        assert result.successful, result.reason
        assert values(node)[name] == value
