"""Transmission and hardware info: conversion in both directions, URDF entries, their faults."""

import math

import pytest
from conftest import chain_urdf
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.model.load import parse_arm

pytestmark = pytest.mark.hardware

wirings = st.builds(
    JointMotor,
    st.just("J1"),
    st.integers(0, 253),
    st.just("sts3215"),
    st.sampled_from([1.0, -1.0]),
    st.floats(-10, 10),
    st.floats(0.01, 400),
)
numbers = st.floats(-100, 100)

BLOCK = """
<ros2_control name="chain" type="system">
<hardware>
<param name="driver">feetech</param>
<param name="port">/dev/ttyACM0</param>
<param name="baud">1000000</param>
</hardware>
<joint name="J1">
<param name="id">4</param>
<param name="motor">sts3215</param>
<param name="sign">-1</param>
<param name="offset">0.25</param>
<param name="mechanical_reduction">2</param>
</joint>
<joint name="J2">
<param name="id">7</param>
<param name="motor">sts3250</param>
</joint>
</ros2_control>
"""


def urdf(old="", new="", block=BLOCK):
    assert old in block
    return chain_urdf({}, {}, more=block.replace(old, new, 1) if old else block)


def line_of(text, words, last=False):
    return text[: text.rindex(words) if last else text.index(words)].count("\n") + 1


# --- the mapping ---


@given(wirings, numbers)
def test_positions_velocities_and_efforts_convert_in_both_directions(w, x):
    assert w.position(w.shaft_position(x)) == pytest.approx(x, abs=1e-9)
    assert w.velocity(w.shaft_velocity(x)) == pytest.approx(x, abs=1e-9)
    assert w.effort(w.shaft_effort(x)) == pytest.approx(x, abs=1e-9)


@given(wirings, numbers, numbers)
def test_power_is_the_same_at_joint_and_shaft(w, effort, speed):
    assert w.effort(effort) * w.velocity(speed) == pytest.approx(effort * speed, abs=1e-9)


@given(wirings, numbers, st.floats(-1, 1))
def test_velocity_is_the_derivative_of_position(w, shaft, step):
    moved = w.position(shaft + step) - w.position(shaft)
    assert moved == pytest.approx(w.velocity(step), abs=1e-6 + 1e-9 * abs(w.position(shaft)))


def test_a_shaft_of_twice_the_velocity_in_the_opposite_direction():
    w = JointMotor("J1", 4, "sts3215", -1.0, 0.25, 2.0)
    assert w.position(0.0) == 0.25
    assert w.position(math.pi) == pytest.approx(0.25 - math.pi / 2)
    assert w.effort(1.5) == -3.0
    assert w.shaft_velocity(1.0) == -2.0


# --- entries of a URDF ---


def test_motors_are_in_joint_order_with_defaults_and_settings():
    wiring = read_hardware_info(parse_arm(urdf()))
    assert wiring.motors == (
        JointMotor("J1", 4, "sts3215", -1.0, 0.25, 2.0),
        JointMotor("J2", 7, "sts3250"),
    )
    assert dict(wiring.settings) == {
        "driver": "feetech", "port": "/dev/ttyACM0", "baud": "1000000",
    }  # fmt: skip


def test_a_joint_without_a_motor_is_named():
    with pytest.raises(ConfigError, match=r"motor of joint 'R1': id is missing; expected a number"):
        read_hardware_info(load_arm("five_dof"))


def test_a_motor_without_a_name_is_named():
    plain = parse_arm(chain_urdf({}, more=_block('<param name="id">3</param>')))
    with pytest.raises(ConfigError, match=r"joint 'J1': expected <param name=\"motor\">"):
        read_hardware_info(plain)


def test_ids_may_repeat_in_two_blocks_but_not_on_one_bus():
    block = '<ros2_control name="{0}" type="system"><joint name="{0}"><param name="id">1</param>'
    block += '<param name="motor">sts3215</param></joint></ros2_control>'
    text = chain_urdf({}, {}, more=block.format("J1") + block.format("J2"))
    assert not [fault for fault in audit_urdf(text) if fault.severity == "error"]
    with pytest.raises(ConfigError, match="joint 'J2': motor id = 1, as joint 'J1'; expected"):
        read_hardware_info(parse_arm(text))


@pytest.mark.parametrize(
    "params",
    ['<param name="id">1.5</param>', '<param name="id">1</param><param name="sign">0</param>'],
)
def test_invalid_ids_and_signs_are_rejected_also_without_the_audit(params):
    """Blocks that name neither driver nor motor are not audited."""
    plain = parse_arm(chain_urdf({}, more=_block(params)))
    with pytest.raises(
        ConfigError, match=r"joint 'J1': sign = .*; expected sign 1 or -1 and an integer id"
    ):
        read_hardware_info(plain)


def _block(params):
    return f'<ros2_control name="c" type="system"><joint name="J1">{params}</joint></ros2_control>'


# --- faults found by the audit ---

JOINT = "<ros2_control> joint 'J1' <param"
HARDWARE = "<ros2_control> <hardware> <param"
# old text, new text, words of the fault
ERRORS = {
    "id word": ('"id">4<', '"id">four<', f"{JOINT} id>: 'four' is not a number"),
    "id half": ('"id">4<', '"id">4.5<', f"{JOINT} id>: 4.5 is not a whole number"),
    "id negative": ('"id">4<', '"id">-4<', f"{JOINT} id>: -4 is out of range; allowed: at least 0"),
    "id twice": (
        '"id">7<', '"id">4<',
        "<ros2_control> joint 'J2' <param id>: 4 is the motor of <ros2_control> joint 'J1' too,",
    ),
    "sign": ('"sign">-1<', '"sign">0.5<', f"{JOINT} sign>: 0.5 is neither 1 nor -1"),
    "sign beyond": ('"sign">-1<', '"sign">-2<', f"{JOINT} sign>: -2 is out of range"),
    "offset unit": ('"offset">0.25<', '"offset">14deg<', "'14deg' has a unit, 'deg'"),
    "offset nan": ('"offset">0.25<', '"offset">nan<', f"{JOINT} offset>: nan is not finite"),
    "mechanical_reduction": (
        '"mechanical_reduction">2<', '"mechanical_reduction">0<',
        f"{JOINT} mechanical_reduction>: 0 is out of range; allowed: above 0",
    ),
    "baud": ('"baud">1000000<', '"baud">1M<', f"{HARDWARE} baud>: '1M' has a unit, 'M'"),
    "baud zero": ('"baud">1000000<', '"baud">0<', f"{HARDWARE} baud>: 0 is out of range"),
    "baud half": ('"baud">1000000<', '"baud">9600.5<', "9600.5 is not a whole number"),
    "port": ('"port">/dev/ttyACM0<', '"port"><', f"{HARDWARE} port>: the value is empty"),
}  # fmt: skip
WARNINGS = {
    "driver": ('">feetech<', '">feetec<', "'feetec' is not a driver that is installed; did you"),
    "no motor": (
        '<param name="motor">sts3215</param>', "",
        f"{JOINT} motor>: motor is missing: no driver finds the motor; write <param",
    ),
    "no id": ('<param name="id">7</param>', "", "joint 'J2' <param id>: id is missing"),
    "empty id": ('"id">7<', '"id"><', "joint 'J2' <param id>: id is missing"),
    "misspelt": ('name="offset"', 'name="ofset"', "'ofset' is not a parameter of actuator 'ideal'"),
}  # fmt: skip


def test_valid_hardware_info_has_no_fault():
    assert not [fault for fault in audit_urdf(urdf()) if "ros2_control" in fault.element]


@pytest.mark.parametrize("name", [*ERRORS, *WARNINGS])
def test_a_fault_is_found_at_its_line(name):
    old, new, words = (ERRORS | WARNINGS)[name]
    text = urdf(old, new)
    (fault,) = [fault for fault in audit_urdf(text) if "ros2_control" in fault.element]
    assert words in str(fault)
    assert fault.severity == ("error" if name in ERRORS else "warning")
    places = {
        "no motor": '<joint name="J1">\n<param',
        "no id": '<joint name="J2">\n\n<param',
        "id twice": '"id">4<',
    }
    assert fault.line == line_of(text, places.get(name, new), last=True)
    assert fault.remedy


def test_a_duplicate_id_is_reported_with_both_lines():
    text = urdf('"id">7<', '"id">4<')
    (fault,) = [fault for fault in audit_urdf(text) if "ros2_control" in fault.element]
    assert f"on line {line_of(text, BLOCK.splitlines()[7])}" in fault.problem


def test_blocks_of_other_programs_are_ignored():
    """Their ids, offsets in steps and baud rates are not checked."""
    block = BLOCK.replace('<param name="driver">feetech</param>\n', "").replace(
        '"offset">0.25<', '"offset">2048<'
    )
    for motor in ("sts3215", "sts3250"):
        block = block.replace(f'<param name="motor">{motor}</param>\n', "")
    assert not [fault for fault in audit_urdf(urdf(block=block)) if fault.severity == "error"]
