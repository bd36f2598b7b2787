"""A node that cannot start reports the cause in one message and ends with exit code 2."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import yaml

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.ros.parameters.ros_parameters import (
    addressed_parameters,
    parameter_entries,
    require_declared,
)
from arm_dynamics.ros.runtime.process import start_ros
from arm_dynamics.simulation.simulation_parameters import control_period

from .link import arguments

BROKEN = '<robot name="b"><link name="a"/><link name="c"/></robot>'
CASES = {
    "unknown arm": ("simulator", {"arm": "six_dof"}, ["six_dof", "five_dof"]),
    "rate 0": ("simulator", {"update_rate": 0.0}, ["update_rate", "0"]),
    "no whole period": ("simulator", {"update_rate": 300.0, "dt": 0.001}, ["dt", "multiple"]),
    "dt longer than the period": ("simulator", {"dt": 0.1}, ["rate = 500", "1 / dt = 10"]),
    "dt 0": ("simulator", {"dt": 0.0}, ["dt"]),
    "unknown integrator": ("simulator", {"integrator": "magic"}, ["magic", "semi_implicit_euler"]),
    "start out of range": ("simulator", {"initial_positions": [0, 9, 0, 0, 0]}, ["R2", "9"]),
    "start too short": ("simulator", {"initial_positions": [0, 0]}, ["5"]),
    "unknown controller": ("joint_controller", {"controller": "magic"}, ["magic", "pid_gravity"]),
    "payload out of range": ("joint_controller", {"payload_mass": -1.0}, ["payload_mass", "-1"]),
    "gain out of range": ("joint_controller", {"gains.R1.p": -1.0}, ["gains.R1.p", "-1"]),
    "misspelt gain": ("joint_controller", {"gains.R1.pp": 420.0}, ["gains.R1.pp", "gains.R1.p'?"]),
    "gain of no joint": ("joint_controller", {"gains.R9.p": 1.0}, ["gains.R9.p", "parameter"]),
    "misspelt tool gain": (
        "task_space_controller",
        {"gains.tool.x.pp": 1.0},
        ["gains.tool.x.pp", "parameter"],
    ),
    "misspelt motor constant": ("simulator", {"motors.R1.kn": 1.0}, ["motors.R1.kn", "motors.R1."]),
    "misspelt limit": (
        "hardware",
        {"safety.motor_watchdg_timeout": 0.1},
        ["safety.motor_watchdg_timeout", "safety.motor_watchdog_timeout"],
    ),
    "misspelt payload": ("joint_controller", {"payload_mas": 1.0}, ["payload_mas", "_mass'?"]),
    "no gain table": (
        "joint_controller",
        {"controller": "lqr", "gain_table": "no.npz"},
        ["no.npz", "gain table"],
    ),
    "factor 0": ("simulator", {"real_time_factor": 0.0}, ["real_time_factor", "0.0"]),
    "timeout 0": ("simulator", {"command_timeout": 0.0}, ["command_timeout", "above 0"]),
    "wrong type": ("simulator", {"update_rate": "fast"}, ["update_rate"]),
    "composed, unknown arm": ("composed", {"arm": "six_dof"}, ["six_dof"]),
    "unknown driver": ("hardware", {"driver": "magic"}, ["magic", "dynamixel"]),
    "driver without motors": ("hardware", {"driver": "simulated"}, ["simulated", "simulator"]),
    "unknown interface": ("hardware", {"command_interface": "thought"}, ["thought", "effort"]),
    "unknown stop policy": ("hardware", {"safety.stop_policy": "panic"}, ["panic", "hold"]),
    "no time to be silent": (
        "hardware",
        {"safety.motor_watchdog_timeout": 0.0},
        ["safety.motor_watchdog_timeout", "0.001"],
    ),
    "derating without a range": (
        "hardware",
        {"safety.max_temperature": 20.0},
        ["derating_temperature", "20"],
    ),
    "frame prefix with a blank": ("simulator", {"frame_prefix": "a b"}, ["'a b'", "letters"]),
    "settings without a name": ("hardware", {"driver_settings": "=fast"}, ["=fast", "name=value"]),
    "viewer, unknown arm": ("viewer", {"arm": "six_dof"}, ["six_dof"]),
}


SEPARATE = ("unknown arm", "composed, unknown arm", "viewer, unknown arm", "broken URDF")
"""Cases that start with ``python -m``; the others are forks."""
AT_A_TIME = 3


@pytest.fixture(scope="module")
def started(shared, tmp_path_factory, request):
    """Return the exit code and output of each selected case."""
    folder = tmp_path_factory.mktemp("cases")
    broken = folder / "broken.urdf"
    broken.write_text(BROKEN)
    tested = {
        i.callspec.params.get("case") for i in request.session.items if hasattr(i, "callspec")
    }
    cases = {name: case for name, case in CASES.items() if name in tested}
    cases["broken URDF"] = ("simulator", {"arm": broken}, None)
    found, names = {}, list(cases)
    for k in range(0, len(names), AT_A_TIME):
        processes = {}
        for name in names[k : k + AT_A_TIME]:
            module, parameters, _ = cases[name]
            words, fresh = arguments(**parameters), name in SEPARATE
            processes[name] = shared.launch(f"ros.nodes.{module}", *words, fresh=fresh)
        found |= {name: (process.wait(), process.output) for name, process in processes.items()}
    return found


@pytest.mark.quick(8)
@pytest.mark.parametrize("case", CASES)
def test_an_invalid_parameter_ends_the_node_with_one_message(started, case):
    code, output = started[case]
    assert code == 2, output
    assert "Traceback" not in output
    lines = output.strip().splitlines()
    notices = [line for line in lines if line.startswith("arm_dynamics compiles for this machine")]
    assert len(lines) - len(notices) == 1, output
    for word in CASES[case][2]:
        assert word in output


def test_a_broken_urdf_ends_the_node_with_its_report(started):
    code, output = started["broken URDF"]
    assert code == 2, output
    assert "Traceback" not in output
    assert "root" in output


@pytest.mark.quick(1)
@pytest.mark.parametrize("module", ["simulator", "composed"])
def test_a_malformed_parameter_file_ends_the_node_with_its_name(shared, module, tmp_path):
    file = tmp_path / "malformed.yaml"
    file.write_text("simulator:\n  ros__parameters:\n    rate: [1.0\n    dt: {\n")
    check_argument_error(shared.start(module, file), str(file))


@pytest.mark.quick(1)
@pytest.mark.parametrize("module", ["simulator", "hardware"])
def test_an_undeclared_parameter_of_a_node_is_rejected_with_similar_names(shared, module, tmp_path):
    file = tmp_path / "old.yaml"
    file.write_text(f"/**:\n  ros__parameters: {{speed_of_others: 1.0}}\n{module}:\n"
                    "  ros__parameters: {arm: two_link, rate: 100.0}\n")  # fmt: skip
    process = shared.start(module, file)
    assert process.wait() == 2, process.output
    expected = f"{module}: parameter = 'rate'; expected a declared parameter; similar: "
    assert expected in process.output
    assert "update_rate" in process.output
    assert "; move a parameter of another node to section /** of a parameter file" in process.output


@pytest.mark.parametrize(
    ("section", "accepted"), [("/**", True), ("/left/joint_controller", False)]
)
def test_a_dictionary_that_a_launch_file_gives_to_several_nodes(tmp_path, section, accepted):
    """launch_ros writes it under the full name of a node with a name and a namespace."""
    given, file = {"arm": "two_link", "gravity": [0.0, 0.0, -9.81]}, tmp_path / "launch_params_x"
    file.write_text(yaml.dump({section: {"ros__parameters": given}}))
    node = SimpleNamespace(
        get_name=lambda: "joint_controller",
        _parameters={"arm": None, "controller": None},
        _parameter_overrides=given,
    )
    entries = parameter_entries(["node", "--ros-args", "--params-file", str(file)])
    if accepted:
        require_declared(node, entries=entries)
        return
    with pytest.raises(ConfigError, match=r"'gravity'; expected .*; move .* section /\*\* of a"):
        require_declared(node, entries=entries)


@pytest.mark.parametrize(
    ("gain", "accepted"), [("gains.pan.p", True), ("gains.pan.pp", False), ("gains.p", False)]
)
def test_gains_of_a_parameter_file_with_a_controller_without_gains(tmp_path, gain, accepted):
    """hardware.launch.py arm:=so101 starts the controller position with config/so101.yaml."""
    file = tmp_path / "so101.yaml"
    file.write_text(f"joint_controller:\n  ros__parameters: {{{gain}: 30.0}}\n")
    node = SimpleNamespace(
        get_name=lambda: "joint_controller",
        _parameters={"controller": None, "constraints.pan.goal": None, "constraints.goal_time": 0},
        _parameter_overrides={gain: 30.0},
    )
    entries = parameter_entries(["node", "--ros-args", "--params-file", str(file)])
    if accepted:
        require_declared(node, entries=entries)
        return
    with pytest.raises(ConfigError, match=f"'{re.escape(gain)}'; expected a declared parameter"):
        require_declared(node, entries=entries)


def test_the_proposed_update_rate_is_accepted():
    with pytest.raises(ConfigError) as rejection:
        control_period(333.0, 1e-4)
    proposed = re.search(r"; set (\S+) Hz", str(rejection.value))[1]
    assert control_period(float(proposed), 1e-4) == pytest.approx(0.003)


EDITING = """
import sys
from pathlib import Path
from rclpy.node import Node
from arm_dynamics.ros.runtime.process import run_nodes

def build():
    node = Node("edited")
    Path(sys.argv[1]).write_text("- an edit")
    return [node], lambda stop: print("the main loop runs")

sys.exit(run_nodes(build, ["node", "--ros-args", "--params-file", sys.argv[1]]))
"""


def test_a_parameter_file_that_changes_while_a_node_is_built_is_not_read_again(shared, tmp_path):
    file = tmp_path / "edited.yaml"
    file.write_text("edited:\n  ros__parameters: {use_sim_time: false}\n")
    ended = subprocess.run(
        [sys.executable, "-c", EDITING, file],
        env={**os.environ, "ROS_DOMAIN_ID": str(shared.domain)},
        capture_output=True,
        check=False,
        text=True,
        timeout=180,
    )
    assert (ended.returncode, ended.stdout) == (0, "the main loop runs\n"), ended.stderr


@pytest.mark.parametrize(("text", "kind"), [("- 1\n", "a list"), ("[]", "a list"), ("7", "7")])
def test_a_parameter_file_without_a_table_is_rejected(tmp_path, text, kind):
    file = tmp_path / "list.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=f"list.yaml: content = {kind}; expected a table of node"):
        parameter_entries(["node", "--ros-args", "--params-file", str(file)])


def test_a_parameter_file_with_a_list_ends_the_node(shared, tmp_path):
    file = tmp_path / "list.yaml"
    file.write_text("- simulator\n")
    check_argument_error(shared.start("simulator", file), f"{file}: content = a list")


@pytest.mark.quick(1)
def test_an_undeclared_parameter_of_a_node_on_the_command_line_is_rejected(shared):
    process = shared.launch("ros.nodes.simulator", "--ros-args", "-p", "simulator:rate:=100.0")
    assert process.wait() == 2, process.output
    assert "simulator: parameter = 'rate'" in process.output


def test_only_sections_with_the_name_of_a_node_address_it(tmp_path):
    file = tmp_path / "several.yaml"
    file.write_text(
        "/**:\n  ros__parameters: {everywhere: 1}\n"
        "simulator:\n  ros__parameters: {gains: {R1: {p: 1.0}}, rate: 1.0}\n"
        "left:\n  simulator:\n    ros__parameters: {nested: 1}\n"
        "/right/simulator:\n  ros__parameters: {absolute: 1}\n"
        "/**/simulator:\n  ros__parameters: {any_namespace: 1}\n"
        "viewer:\n  ros__parameters: {port: 1}\n"
    )
    arguments = ["node", "--ros-args", "--params-file", str(file), "-p", "all:=1"]
    arguments += ["-p", "simulator:own:=2", "--param", "hardware:other:=3"]
    assert addressed_parameters(parameter_entries(arguments), "simulator") == {
        *("gains.R1.p", "rate", "nested", "absolute", "any_namespace", "own")
    }


@pytest.mark.quick(1)
@pytest.mark.parametrize("arguments", [["-r", "__ns:=left"], ["--nonsense"], ["-p", "update_rate"]])
def test_invalid_ros_arguments_end_the_node(shared, arguments):
    check_argument_error(
        shared.launch("ros.nodes.simulator", "--ros-args", *arguments), arguments[-1]
    )


@pytest.mark.parametrize(
    ("variable", "command", "prefix"),
    [
        ("ROS_LOG_DIR", ("ros.nodes.rviz_controls",), ""),
        ("ROS_HOME", ("cli.main", "sim", "two_link", "--headless"), "arm-dynamics sim: "),
    ],
)
def test_an_unwritable_log_folder_is_one_line_with_the_remedy(
    shared, tmp_path, monkeypatch, variable, command, prefix
):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv(variable, str(file / "folder"))
    process = shared.launch(*command)
    assert process.wait() == 2, process.output
    (line,) = [x for x in process.output.splitlines() if "tool frame" not in x]
    assert line.startswith(f"{prefix}ROS log folder: ")
    assert str(file / "folder") in line
    assert line.endswith("; set ROS_LOG_DIR to a folder that can be written")


def test_a_log_file_that_cannot_be_opened_names_the_remedy(monkeypatch):
    """A folder can exist without permission to write into it."""
    rejection = "Failed opening file /read_only/node.log for writing: Permission denied"
    monkeypatch.setattr("rclpy.init", Mock(side_effect=RuntimeError(rejection)))
    with pytest.raises(ConfigError) as error:
        start_ros([])
    remedy = "set ROS_LOG_DIR to a folder that can be written"
    assert str(error.value) == f"ROS log folder: {rejection}; {remedy}"


def check_argument_error(process, word):
    """Check for exit code 2 and one line of this package, after the log lines of ROS."""
    assert process.wait() == 2, process.output
    lines = [line for line in process.output.strip().splitlines() if "[rcl]" not in line]
    assert len(lines) == 1, process.output
    assert lines[0].startswith("ROS arguments: ")
    assert word in lines[0]
    assert ".c:" not in lines[0]
