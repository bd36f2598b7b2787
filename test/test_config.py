"""Parameter files read without ROS: every spelling that ROS takes, and faults by name."""

import re

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics import plugins
from arm_dynamics.config import build_controller, node_parameters, parameter_file
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.controllers.pid_gravity import PidGravity
from arm_dynamics.errors import ConfigError, InvalidValue, UnknownName

HEAD = "joint_controller:\n  ros__parameters:\n"
SPELLINGS = {
    "tables": "    gains:\n      R1: {p: 7.0, d: 2.0}\n      R2: {p: 3.0}\n",
    "dotted": "    gains.R1.p: 7.0\n    gains.R1.d: 2.0\n    gains.R2.p: 3.0\n",
    "mixed": "    gains.R1: {p: 7.0, d: 2.0}\n    gains:\n      R2.p: 3.0\n",
    "text that ROS takes for numbers": "    gains: {R1: {p: 7e0, d: 2}, R2: {p: +3.0}}\n",
}


@pytest.fixture
def written(tmp_path):
    """A function that writes a parameter file."""

    def write(body, head=HEAD):
        file = tmp_path / "mine.yaml"
        file.write_text(head + body)
        return file

    return write


def gain(controller, joint, name):
    return controller.gains[name][controller.arm.index(joint)]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_gives_the_same_gains(written, spelling):
    law = build_controller(five_dof(), file=written(SPELLINGS[spelling]))
    found = PidGravity(five_dof())
    assert isinstance(law, PidGravity)
    assert [gain(law, "R1", "p"), gain(law, "R1", "d"), gain(law, "R2", "p")] == [7.0, 2.0, 3.0]
    assert gain(law, "R1", "i") == gain(found, "R1", "i")
    np.testing.assert_array_equal(law.gains["p"][2:], found.gains["p"][2:])


def test_a_nodes_own_entries_add_to_those_for_all(written):
    everyone = "/**:\n  ros__parameters: {gains: {R1: {p: 1.0, d: 2.0}}}\n"
    file = written("    gains.R1.p: 7.0\n", everyone + HEAD)
    assert node_parameters(file, "joint_controller") == {"gains.R1.p": 7.0, "gains.R1.d": 2.0}
    assert node_parameters(file, "simulator") == {"gains.R1.p": 1.0, "gains.R1.d": 2.0}


def test_the_bundled_file_is_the_default():
    given = node_parameters(parameter_file("five_dof"), "joint_controller")
    law = build_controller(five_dof())
    assert type(law).__name__ == "PidGravity"
    for joint in five_dof().joint_names:
        assert gain(law, joint, "p") == given[f"gains.{joint}.p"]


def test_another_law_takes_the_gains_that_it_has(written):
    file = written("    controller: pid_gravity\n    gains: {R1: {p: 7.0, other: 1.0}}\n")
    law = build_controller(five_dof(), "pid", file)
    assert type(law) is Pid
    assert gain(law, "R1", "p") == 7.0
    assert set(build_controller(five_dof(), "gravity_compensation", file).gains) == {"d"}


@pytest.mark.parametrize("name", plugins.BUILT_IN["controllers"])
def test_the_file_may_name_any_law(written, name):
    law = build_controller(
        five_dof(), file=written(f"    controller: {name}\n    gains.R1.p: 7.0\n")
    )
    assert isinstance(law, plugins.load("controllers", name))


def test_the_law_knows_the_payload_of_the_file(written):
    law = build_controller(five_dof(), file=written("    payload_mass: 0.5\n"))
    assert law.arm.payload.mass == 0.5


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
        ("    a: [1\n", ["YAML"]),
    ],
)
def test_a_fault_names_file_and_place(written, body, words):
    file = written(body)
    with pytest.raises(ConfigError, match=re.escape(str(file))) as error:
        build_controller(five_dof(), file=file)
    assert all(word in str(error.value) for word in words), error.value


def test_what_the_arm_or_the_range_forbids_is_refused(written):
    with pytest.raises(UnknownName, match="R9"):
        build_controller(five_dof(), file=written("    gains.R9.p: 1.0\n"))
    with pytest.raises(InvalidValue, match=r"R1.*p = -1"):
        build_controller(five_dof(), file=written("    gains.R1.p: -1.0\n"))
