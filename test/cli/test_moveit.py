"""Configuration packages of MoveIt: complete, of the arm, and never over existing files."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from arm_dynamics import load_arm
from arm_dynamics.cli import moveit
from arm_dynamics.cli.main import main
from arm_dynamics.collision import collision_matrix
from arm_dynamics.control.config import parameter_file
from arm_dynamics.dynamics import gravity, mass_matrix

ROOT = Path(__file__).resolve().parents[2]


def written(folder, *arguments):
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(["moveit", *arguments, "--output", str(folder)])
    return end.value.code or 0


def test_a_bundled_arm_with_a_gripper(tmp_path):
    folder = tmp_path / "package"
    assert written(folder, "so101") == 0
    arm, config = load_arm("so101"), folder / "config"
    robot = ElementTree.parse(config / "so101.srdf").getroot()
    chain = robot.find("group[@name='arm']/chain")
    assert (chain.get("base_link"), chain.get("tip_link")) == (arm.base_frame, arm.tool_frame)
    assert [j.get("name") for j in robot.findall("group[@name='gripper']/joint")] == ["gripper"]
    assert robot.find("end_effector").get("parent_link") == "wrist_roll_link"
    states = robot.findall("group_state[@group='arm']")
    assert [s.get("name") for s in states] == [*arm.configurations]
    assert len(states[0]) == arm.nv - 1
    controllers = yaml.safe_load((config / "moveit_controllers.yaml").read_text())
    joints = controllers["moveit_simple_controller_manager"]["joint_controller"]["joints"]
    assert joints == [*arm.joint_names]
    parameters = yaml.safe_load((config / "arm_dynamics.yaml").read_text())
    own = parameters["joint_controller"]["ros__parameters"]
    assert own.pop("allow_partial_joints_goal") is True
    assert parameters == yaml.safe_load(parameter_file("so101").read_text())
    assert load_arm(config / "so101.urdf").joint_names == arm.joint_names
    launch = (folder / "launch/demo.launch.py").read_text()
    compile(launch, "demo.launch.py", "exec")
    assert '"arm": "so101"' in launch
    assert ElementTree.parse(folder / "package.xml").find("name").text == "so101_moveit_config"
    assistant = yaml.safe_load((folder / ".setup_assistant").read_text())
    for part in assistant["moveit_setup_assistant_config"].values():
        assert (folder / part["relative_path"]).is_file()


def test_an_own_urdf_with_a_locked_joint(tmp_path):
    source = tmp_path / "own.urdf"
    text = load_arm("three_link").urdf.replace('name="three_link"', 'name="My Arm-3"')
    source.write_text(text)
    assert written(tmp_path / "package", str(source), "--lock", "J3") == 0
    config = tmp_path / "package/config"
    robot = ElementTree.parse(config / "My Arm-3.srdf").getroot()
    assert robot.findall("group[@name='gripper']") == []
    assert "my_arm_3_moveit_config" in (tmp_path / "package/package.xml").read_text()
    launch = (tmp_path / "package/launch/demo.launch.py").read_text()
    assert 'folder / "config" / "My Arm-3.urdf"' in launch
    limits = yaml.safe_load((config / "joint_limits.yaml").read_text())["joint_limits"]
    assert [*limits] == ["J1", "J2"]


@pytest.mark.parametrize("name", ["so101", "puma560"])
def test_the_packages_of_bundled_arms_are_what_the_command_writes(name):
    """``arm-dynamics moveit ARM --output config/moveit/ARM_moveit_config`` writes them again."""
    package = f"{name}_moveit_config"
    folder = ROOT / "config/moveit" / package
    files = moveit.moveit_package(load_arm(name), package, parameter_file(name))
    for path, text in files.items():
        assert (folder / path).read_text("utf-8") == text, path
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == {*files}
    assert (ROOT / "resource" / package).is_file()


def test_existing_files_are_kept(tmp_path, capsys):
    (tmp_path / "package").mkdir()
    assert written(tmp_path / "package", "three_link") == 2
    assert "exists already" in capsys.readouterr().err


def test_acceleration_limits_are_possible_and_below_the_velocity_limit():
    arm = load_arm("five_dof")
    limits = moveit.acceleration_limits(arm)
    assert (limits > 0).all()
    assert (limits * moveit.MIN_TIME_TO_LIMIT <= arm.velocity_limit * (1 + 1e-12)).all()
    lower, upper = np.maximum(arm.lower, -3), np.minimum(arm.upper, 3)
    for q in np.random.default_rng(5).uniform(lower, upper, (50, arm.nv)):
        spare = arm.effort_limit - np.abs(gravity(arm, q))
        needed = np.diag(mass_matrix(arm, q)) * limits
        assert (needed[spare > 0] <= spare[spare > 0]).mean() > 0.9


def test_the_collision_matrix_separates_links_by_distance():
    pairs = {(p.first, p.second): p.reason for p in collision_matrix(load_arm("three_link"), 500)}
    links = ["base_link", "J1_link", "J2_link", "J3_link"]
    for pair in pairwise(links):
        assert pairs[pair] == "Adjacent"
    so101 = {p[:2]: p.reason for p in collision_matrix(load_arm("so101"), 2000)}
    assert ("base_link", "wrist_roll_link") not in so101  # they collide at some configurations
    assert so101["elbow_flex_link", "gripper_link"] == "Never"
    samples = collision_matrix(load_arm("five_dof"), 200)
    assert samples == collision_matrix(load_arm("five_dof"), 200)
