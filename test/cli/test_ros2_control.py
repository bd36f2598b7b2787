"""Files of ``arm-dynamics ros2-control``: complete, accepted, stable with the delay of topics."""

import ast
from collections import deque

import numpy as np
import pytest
import yaml

from arm_dynamics import Command, Simulation, load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.cli.ros2_control import parameters
from arm_dynamics.control import cubic_trajectory

GAINS = {
    "p", "i", "d", "ff_velocity_scale", "u_clamp_max", "u_clamp_min", "i_clamp_max", "i_clamp_min",
    "antiwindup_strategy", "tracking_time_constant", "error_deadband",
}  # fmt: skip
"""Gains of joint_trajectory_controller in Jazzy (4.42), Kilted and 6.9."""
DECLARED = {
    "controller_manager": {"update_rate", "joint_state_broadcaster", "joint_trajectory_controller"},
    "joint_state_broadcaster": {"use_local_topics"},
    "joint_trajectory_controller": {
        "joints", "command_interfaces", "state_interfaces", "allow_partial_joints_goal",
        "constraints", "gains",
    },
}  # fmt: skip
"""Parameters of these nodes, as far as the command writes them."""


def written(folder, *arguments):
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(["ros2-control", *arguments, "--output", str(folder)])
    return end.value.code or 0


def test_the_files_of_an_arm_with_effort_commands(tmp_path, capsys):
    folder = tmp_path / "files"
    assert written(folder, "so101") == 0
    assert "effort commands of 6 joints" in capsys.readouterr().out
    arm = load_arm(folder / "so101.urdf")
    nodes = yaml.safe_load((folder / "controllers.yaml").read_text())
    assert nodes.keys() == DECLARED.keys()
    for name, entries in nodes.items():
        assert entries["ros__parameters"].keys() <= DECLARED[name]
    controller = nodes["joint_trajectory_controller"]["ros__parameters"]
    assert controller["joints"] == [*arm.joint_names]
    assert controller["command_interfaces"] == ["effort"]
    for joint in arm.joints:
        gains = controller["gains"][joint.name]
        assert gains.keys() <= GAINS
        assert gains["u_clamp_max"] == gains["i_clamp_max"] == joint.effort
        assert min(gains[name] for name in "pid") > 0
    launch = (folder / "ros2_control.launch.py").read_text()
    texts = {n.value for n in ast.walk(ast.parse(launch)) if isinstance(n, ast.Constant)}
    assert {"simulated", "none", "controllers.yaml", "so101.urdf", "effort"} <= texts
    assert written(folder, "so101") == 2
    assert "exists already" in capsys.readouterr().err


def test_servos_have_position_commands_and_no_gains(tmp_path):
    folder = tmp_path / "files"
    assert written(folder, "so101", "--command-interface", "position") == 0
    controller = yaml.safe_load((folder / "controllers.yaml").read_text())
    assert "gains" not in controller["joint_trajectory_controller"]["ros__parameters"]
    assert 'default_value=""' in (folder / "ros2_control.launch.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["five_dof", "--command-interface", "position"], "expected effort"),
        (["five_dof", "--plugin", "Gazebo"], "JointStateTopicSystem"),
        (["five_dof", "--lock", "R9"], "R9"),
    ],
)
def test_what_an_arm_does_not_accept(tmp_path, capsys, arguments, text):
    assert written(tmp_path / "files", *arguments) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "files").exists()


@pytest.mark.parametrize("name", ["five_dof", "puma560"])
def test_the_effort_gains_reach_a_goal_with_a_delay_of_three_periods(name):
    """PID of joint_trajectory_controller: conditional integration, then both clamps."""
    arm = load_arm(name)
    simulation = Simulation(arm)
    entries = parameters(arm, "effort")["joint_trajectory_controller"]["ros__parameters"]
    kp, ki, kd = (np.array([g[n] for g in entries["gains"].values()]) for n in "pid")
    limit, dt = arm.effort_limit, simulation.period
    start = arm.configuration("initial")
    target = start + np.where(start + 0.2 < arm.upper, 0.2, -0.2)
    trajectory = cubic_trajectory([start, target], [0.5, 2.5])
    states, commands = deque([simulation.state] * 2, 2), deque([np.zeros(arm.nv)] * 3, 3)
    integral, errors = np.zeros(arm.nv), []
    for _ in range(round(4.0 / dt)):
        states.append(simulation.state)
        state, reference = states[0], trajectory.at(simulation.state.time)
        error = reference.q - state.q
        desired = kp * error + integral + kd * (reference.v - state.v)
        effort = np.clip(desired, -limit, limit)
        free = (desired == effort) | (error * desired < 0)
        integral = np.clip(np.where(free, integral + ki * error * dt, integral), -limit, limit)
        commands.append(effort)
        simulation.submit(Command.checked("effort", commands[0], arm.nv))
        simulation.advance()
        errors.append(simulation.state.q - target)
    assert np.abs(errors[-200:]).max() < entries["constraints"][arm.joint_names[0]]["goal"]
    assert np.abs(simulation.state.v).max() < entries["constraints"]["stopped_velocity_tolerance"]
