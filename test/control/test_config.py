"""Parameter files read without ROS: every notation that ROS accepts, and faults by name."""

import re
from contextlib import suppress

import numpy as np
import pytest
import yaml
from conftest import five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller, node_parameters, parameter_file
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.core import plugins, resources
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName

HEAD = "joint_controller:\n  ros__parameters:\n"
SPELLINGS = {
    "tables": "    gains:\n      R1: {p: 7.0, d: 2.0}\n      R2: {p: 3.0}\n",
    "dotted": "    gains.R1.p: 7.0\n    gains.R1.d: 2.0\n    gains.R2.p: 3.0\n",
    "mixed": "    gains.R1: {p: 7.0, d: 2.0}\n    gains:\n      R2.p: 3.0\n",
    "text that ROS takes for numbers": "    gains: {R1: {p: 7e0, d: 2}, R2: {p: +3.0}}\n",
}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a parameter file."""

    def write(body, head=HEAD):
        file = tmp_path / "mine.yaml"
        file.write_bytes((head + body).encode("utf-8", "surrogateescape"))
        return file

    return write


OTHER = "effort_weight"
"""A gain of another controller."""


def gain(controller, joint, name):
    """Return the proportional gain of a joint."""
    return controller.gains[name][controller.arm.index(joint)]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_notation_gives_the_same_gains(written, spelling):
    controller = build_controller(five_dof(), file=written(SPELLINGS[spelling]))
    found = PidGravity(five_dof())
    assert isinstance(controller, PidGravity)
    assert [
        gain(controller, "R1", "p"),
        gain(controller, "R1", "d"),
        gain(controller, "R2", "p"),
    ] == [7.0, 2.0, 3.0]
    assert gain(controller, "R1", "i") == gain(found, "R1", "i")
    np.testing.assert_array_equal(controller.gains["p"][2:], found.gains["p"][2:])


def test_entries_of_a_node_extend_those_for_all_nodes(written):
    everyone = "/**:\n  ros__parameters: {gains: {R1: {p: 1.0, d: 2.0}}}\n"
    file = written("    gains.R1.p: 7.0\n", everyone + HEAD)
    assert node_parameters(file, "joint_controller") == {"gains.R1.p": 7.0, "gains.R1.d": 2.0}
    assert node_parameters(file, "simulator") == {"gains.R1.p": 1.0, "gains.R1.d": 2.0}


def test_the_bundled_file_is_the_default():
    given = node_parameters(parameter_file("five_dof"), "joint_controller")
    controller = build_controller(five_dof())
    assert type(controller).__name__ == "PidGravity"
    for joint in five_dof().joint_names:
        assert gain(controller, joint, "p") == given[f"gains.{joint}.p"]


def test_another_controller_takes_only_its_own_gains(written):
    body = f"    controller: pid_gravity\n    gains: {{R1: {{p: 7.0, {OTHER}: 1.0}}}}\n"
    file = written(body)
    controller = build_controller(five_dof(), "pid", file)
    assert type(controller) is Pid
    assert gain(controller, "R1", "p") == 7.0
    assert set(build_controller(five_dof(), "gravity_compensation", file).gains) == {"d"}


@pytest.mark.parametrize("name", plugins.BUILT_IN["controllers"])
def test_the_file_may_name_any_controller(written, name):
    controller = build_controller(
        five_dof(), file=written(f"    controller: {name}\n    gains.R1.p: 7.0\n")
    )
    assert isinstance(controller, plugins.load_class("controllers", name))


def test_the_controller_model_has_the_payload_of_the_file(written):
    controller = build_controller(five_dof(), file=written("    payload_mass: 0.5\n"))
    assert controller.arm.payload.mass == 0.5


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    gains:\n", ["gains", "table"]),
        ("    gains: [1.0, 2.0]\n", ["gains", "table", "[1.0, 2.0]"]),
        ("    gains: {R1: 3.0}\n", ["gains.R1", "table"]),
        ("    gains: {R1: {p: abc}}\n", ["'R1'", "gain p", "'abc'"]),
        ("    gains: {R2: {d: }}\n", ["'R2'", "gain d", "None"]),
        ("    gains.R3.i: [1.0]\n", ["'R3'", "gain i", "[1.0]"]),
        ("    gains.R3.i: true\n", ["'R3'", "gain i", "True"]),
        ("    payload_mass: heavy\n", ["payload_mass", "'heavy'"]),
        ("    a: [1\n", ["line 4", "YAML"]),
        ("    gains: {R1: {pp: 420.0}}\n", ["gains.R1.pp", "PidGravity", "did you mean 'p'?"]),
        ("    gains: {R1: {p: 4,2}}\n", ["gains.R1.2", "decimals with a point"]),
        ("    gains: {R1: {other: 1.0}}\n", ["'other'", "its gains: ", "p"]),
        ("    gains: {R1: {p: '420.0'}}\n", ["'R1'", "gain p", "'420.0'"]),
        ("    gains: {R1: {p: 1.0, p: 2.0}}\n", ["line 3", "'p' is given twice"]),
        ("    gains: {R1: {p: 1.0}}\n    gains.R1.p: 2.0\n", ["gains.R1.p", "twice"]),
        ("    gains: {R1: {p: 4:2}}\n", ["line 3", "'4:2'"]),
        ("    gains: {R1: {p: 010}}\n", ["line 3", "'010'"]),
        ("    gains: {R1: {p: 1_0}}\n", ["line 3", "'1_0'"]),
        ("    gains: {R1: {p: 0x10}}\n", ["line 3", "'0x10'"]),
        ("    gian: {R1: {p: 1.0}}\n    gins: {R1: {p: 1.0}}\n", ["'gins'", "'gains'"]),
        ("    controler: pid\n", ["'controler'", "did you mean 'controller'?"]),
        ("    payload_mas: 1.0\n", ["'payload_mas'", "did you mean 'payload_mass'?"]),
        ("    controller: 3\n", ["controller", "3", "name"]),
        ("    gains: &a [*a]\n", ["line 3", "'*a' is an alias"]),
        ("    a: &a {p: 1.0}\n    gains: {R1: *a}\n", ["line 4", "alias"]),
        ("\tgains: 1\n", ["line 3", "YAML"]),
        ("    a: 1\n---\nb: 2\n", ["line 4", "second document"]),
        ("    a: " + "[" * 50_000, ["line 3", "nested more than 20"]),
        ("    a: " + "{a: " * 50_000, ["line 3", "nested more than 20"]),
        ("    a: " + "1" * 5000 + "\n", ["YAML"]),
        ("    ? [1, 2]\n    : 3\n", ["line 3", "expected a name"]),
        ("    a: !!python/object/apply:os.getcwd []\n", ["line 3", "python"]),
        ("    a: \udcff\n", ["line 3", "UTF-8"]),
    ],
)
def test_a_fault_names_the_file_and_the_entry(written, body, words):
    file = written(body)
    with pytest.raises(ConfigError, match=re.escape(str(file))) as error:
        build_controller(five_dof(), file=file)
    assert all(word in str(error.value) for word in words), error.value


def test_unknown_joints_and_values_out_of_range_are_rejected(written):
    with pytest.raises(UnknownName, match="R9"):
        build_controller(five_dof(), file=written("    gains.R9.p: 1.0\n"))
    with pytest.raises(InvalidValue, match=r"R1.*p = -1"):
        build_controller(five_dof(), file=written("    gains.R1.p: -1.0\n"))
    with pytest.raises(UnknownName, match=r"tool\.w"):
        build_controller(five_dof(), file=written("    gains.tool.w.p: 1.0\n"))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("joint_controler:\n  ros__parameters:\n", ["joint_controler", "joint_controller"]),
        ("joint_controller:\n  ros_parameters:\n", ["joint_controller", "ros__parameters"]),
    ],
)
def test_a_misspelt_section_is_reported(written, head, words):
    with pytest.raises(ConfigError) as error:
        build_controller(five_dof(), file=written("    payload_mass: 1.0\n", head))
    assert all(word in str(error.value) for word in words), error.value


@given(st.binary(max_size=60) | st.text("ab: -[]{}&*!|>\n\t\"'#%1.", max_size=40))
def test_random_bytes_raise_no_other_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    with suppress(ConfigError):
        node_parameters(file, "joint_controller")


def test_lists_as_written_by_launch_are_read(tmp_path):
    file = tmp_path / "launch_params.yaml"
    file.write_text(yaml.dump({"/**": {"ros__parameters": {"lock": ("J5", "J6"), "x": (1.5,)}}}))
    assert "!!python/tuple" in file.read_text()
    assert node_parameters(file, "simulator") == {"lock": ["J5", "J6"], "x": [1.5]}


def test_the_bundled_file_applies_only_to_the_bundled_robot(tmp_path):
    """Another robot in a file of the same name gets default gains from its model."""
    text = resources.resource_folder("urdf").joinpath("so101.urdf").read_text()
    copy = tmp_path / "so101.urdf"
    copy.write_text(text)
    assert parameter_file(copy) == parameter_file("so101")
    assert isinstance(build_controller(load_arm(copy)), PidGravity)
    for changed in (
        text.replace('<robot name="so101"', '<robot name="so101_new_calib"'),
        text.replace('"gripper"', '"jaw"'),
    ):
        assert changed != text
        copy.write_text(changed)
        assert parameter_file(copy) is None
        assert isinstance(build_controller(load_arm(copy)), ComputedTorque)
    assert parameter_file(tmp_path / "absent.urdf") is None
