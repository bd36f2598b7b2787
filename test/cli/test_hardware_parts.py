"""Calibration, params in a URDF's text, the hold-to-run key, motion of a jogged joint."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from motor_rig import PERIOD, Rig

from arm_dynamics.cli.hardware.calibrate import calibrate_joint
from arm_dynamics.cli.hardware.jog import LEAD, JogBounds, JogMotion
from arm_dynamics.cli.hardware.keyboard import HOLD, HoldToRunKey
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.core import resources
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.model.arm_model import Joint
from arm_dynamics.model.calibration import CalibrationPoints, calibrate, calibration_warnings
from arm_dynamics.model.hardware_info import JointMotor
from arm_dynamics.model.urdf_text import with_params

pytestmark = pytest.mark.hardware

SO101 = (resources.resource_folder("urdf") / "so101.urdf").read_text(encoding="utf-8")
REVOLUTE = Joint("J", "revolute", -1.2, 0.9, 1.0, 1.0)
CONTINUOUS = Joint("J", "continuous", -np.inf, np.inf, 1.0, 1.0)
OLD = JointMotor("J", 1, "m", mechanical_reduction=3.0)

real = st.tuples(st.sampled_from((1.0, -1.0)), st.floats(-0.9, 0.9), st.floats(0.2, 20))
"""True sign, offset and mechanical reduction of a motor."""


def true_motor(transmission):
    sign, offset, ratio = transmission
    return JointMotor("J", 1, "m", sign, offset, ratio)


@given(real, st.sets(st.sampled_from(("zero", "lower", "upper")), min_size=2))
def test_two_marks_determine_sign_and_offset(transmission, names):
    true = true_motor(transmission)
    places = {"zero": 0.0, "lower": REVOLUTE.lower, "upper": REVOLUTE.upper}
    marks = CalibrationPoints(**{name: true.shaft_position(places[name]) for name in names})
    motor = JointMotor("J", 1, "m", mechanical_reduction=true.mechanical_reduction)
    found = calibrate(motor, REVOLUTE, marks)
    assert (found.sign, found.mechanical_reduction) == (true.sign, true.mechanical_reduction)
    assert found.offset == pytest.approx(true.offset, abs=1e-5)
    assert not [
        text for text in calibration_warnings(found, REVOLUTE, marks) if "half a turn" not in text
    ]


@given(real)
def test_a_continuous_joint_is_calibrated_by_a_positive_rotation_from_zero(transmission):
    true = true_motor(transmission)
    marks = CalibrationPoints(zero=true.shaft_position(0.0), positive=true.shaft_position(1.5))
    motor = JointMotor("J", 1, "m", mechanical_reduction=true.mechanical_reduction)
    found = calibrate(motor, CONTINUOUS, marks)
    assert found.sign == true.sign
    assert found.offset == pytest.approx(true.offset, abs=1e-5)


@given(real)
def test_the_command_measures_a_continuous_joint_at_zero_and_beyond(transmission):
    true = true_motor(transmission)
    shafts = iter((true.shaft_position(0.0), true.shaft_position(1.5)))
    prompt = SimpleNamespace(at=lambda id, text: next(shafts))
    motor = JointMotor("J", 1, "m", mechanical_reduction=true.mechanical_reduction)
    result, warnings = calibrate_joint(prompt, CONTINUOUS, motor)
    assert result.sign == true.sign
    assert result.offset == pytest.approx(true.offset, abs=1e-5)
    at_zero = abs(true.shaft_position(0.0))
    assert [text for text in warnings if at_zero <= np.pi or "half a turn" not in text] == []


def test_a_geared_continuous_joint_is_calibrated_without_a_warning():
    motor = JointMotor("J", 1, "m", mechanical_reduction=6.0)
    shafts = iter((0.0, 6 * np.pi / 2))
    prompt = SimpleNamespace(at=lambda id, text: next(shafts))
    assert calibrate_joint(prompt, CONTINUOUS, motor) == (motor, [])


@pytest.mark.parametrize(
    ("zero", "positive", "words"),
    [
        (0.3, 0.31, "rotation from zero = 0.010 rad of the motor; expected more than 0.05 rad"),
        (0.3, 0.3, "rotation from zero = 0.000 rad"),
        (0.31, 0.3, "rotation from zero = -0.010 rad"),
        (None, 1.5, "zero mark = not measured; expected it with the positive rotation"),
    ],
)
def test_a_rotation_that_does_not_determine_the_sign_is_warned_of(zero, positive, words):
    motor = JointMotor("J", 1, "m", sign=-1.0)
    shafts = iter((zero, positive))
    prompt = SimpleNamespace(at=lambda id, text: next(shafts))
    result, (warning,) = calibrate_joint(prompt, CONTINUOUS, motor)
    assert result.sign == -1
    assert warning.startswith(words)
    assert "the sign is kept; measure" in warning


def test_one_mark_keeps_the_sign_and_no_mark_keeps_everything():
    assert calibrate(OLD, REVOLUTE, CalibrationPoints()) == OLD
    one = calibrate(OLD, REVOLUTE, CalibrationPoints(upper=0.3))
    assert one.sign == 1
    assert one.position(0.3) == pytest.approx(REVOLUTE.upper)
    still = calibrate(OLD, REVOLUTE, CalibrationPoints(lower=0.3, upper=0.31))
    assert still.sign == OLD.sign, "without motion the sign is unknown"


def test_inconsistent_marks_are_warned_of():
    short = CalibrationPoints(zero=0.0, lower=-3.6, upper=1.8)
    text = next(calibration_warnings(calibrate(OLD, REVOLUTE, short), REVOLUTE, short))
    assert text == "upper end at 0.60 rad, the URDF's limit is 0.90"
    odd = CalibrationPoints(zero=3.1, lower=-2.0, upper=1.0)
    assert any("zero mark" in text for text in calibration_warnings(OLD, REVOLUTE, odd))
    far = CalibrationPoints(zero=4.0)
    assert any("half a turn" in text for text in calibration_warnings(OLD, REVOLUTE, far))


# --- the URDF's text


def without_params(text, joint, names):
    """Return the content of the XML without some params of a joint."""
    robot = ElementTree.fromstring(text, parser=ElementTree.XMLParser(
        target=ElementTree.TreeBuilder(insert_comments=True)
    ))  # fmt: skip
    block = robot.find(f"ros2_control/joint[@name='{joint}']")
    found = {}
    for param in list(block):
        if param.tag == "param" and param.get("name") in names:
            found[param.get("name")] = param.text
            block.remove(param)
    whole = [(e.tag, e.attrib, (e.text or "").strip()) for e in robot.iter()]
    return whole, found


@given(
    st.sampled_from(("shoulder_pan", "gripper")),
    st.dictionaries(
        st.sampled_from(("sign", "offset", "id", "own")),
        st.text("<&>\"'-.é1", min_size=1).map(str.strip).filter(bool),
        min_size=1,
    ),
)
def test_params_change_and_nothing_else(joint, params):
    before, _ = without_params(SO101, joint, params)
    after, found = without_params(with_params(SO101, {joint: params}), joint, params)
    assert found == params
    assert after == before


def test_comments_blanks_and_short_forms_are_kept():
    text = (
        '<?xml version="1.0"?>\n<!-- ü --><robot name="r"><ros2_control name="c"><joint name="A"/>'
        '<joint name="B">\n  <!-- a > b -->\n  <param name="id" />\n</joint></ros2_control>'
        '<joint name="B"><param name="id">7</param></joint></robot>'
    )
    changed = with_params(text, {"B": {"id": "4", "sign": "-1"}})
    here = '<param name="id">4</param>\n  <param name="sign">-1</param>'
    assert changed == text.replace('<param name="id" />', here)
    assert with_params(text, {}) == text
    with pytest.raises(ConfigError, match="joints = A, B; expected also C"):
        with_params(text, {"C": {"id": "4"}})
    with pytest.raises(ConfigError, match="'A' is empty"):
        with_params(text, {"A": {"id": "4"}})


# --- hold-to-run key


@given(st.floats(0, 1e6), st.floats(0, 10))
def test_a_key_press_is_valid_for_a_limited_time(start, later):
    held_key = HoldToRunKey({"r": 1.0, "l": -1.0})
    assert held_key.direction(start) == 0
    held_key.press("l", start)
    assert held_key.direction(start + later) == (-1 if start + later < start + HOLD else 0)
    held_key.press("r", start + later)
    assert held_key.direction(start + later) == 1
    held_key.press("x", start + later)
    assert held_key.direction(start + later) == 0


def run_jog(rig, motion, held_key, seconds, key=None):
    """Run cycles of a host; ``key`` repeats every 0.03 s."""
    end, due = rig.bus.now() + seconds, 0.0
    while rig.bus.now() < end:
        rig.bus.pass_time(PERIOD)
        if key and rig.bus.now() >= due:
            due = rig.bus.now() + 0.03
            held_key.press(key, rig.bus.now())
        motion.run_cycle(held_key.direction(rig.bus.now()))


def ready(speed=0.3, lower=-1.0, upper=1.0):
    rig = Rig("position").up()
    motion = JogMotion(
        rig.driver, PositionController(rig.driver.arm), 0, JogBounds(speed, lower, upper)
    )
    return rig, motion, HoldToRunKey({"r": 1.0, "l": -1.0})


def test_a_joint_moves_at_the_given_speed_and_stops_within_two_tenths_of_a_second():
    rig, motion, held_key = ready()
    run_jog(rig, motion, held_key, 0.2)
    start = rig.body.state.q.copy()
    run_jog(rig, motion, held_key, 1.0, "r")
    assert rig.body.state.q[0] - start[0] == pytest.approx(0.3, abs=0.05)
    run_jog(rig, motion, held_key, 0.2)
    at = rig.body.state.q.copy()
    run_jog(rig, motion, held_key, 1.0)
    assert abs(rig.body.state.q[0] - at[0]) < 2e-3
    assert rig.body.fastest[0] < 2 * 0.3
    np.testing.assert_allclose(at[1:], start[1:], atol=0.01)
    assert rig.driver.status is DriverState.ACTIVE


@pytest.mark.parametrize(("key", "end"), [("r", 0.35), ("l", 0.25)])
def test_a_joint_stays_within_its_bounds(key, end):
    rig, motion, held_key = ready(lower=0.25, upper=0.35)
    run_jog(rig, motion, held_key, 1.0, key)
    assert motion.reference_position == pytest.approx(end)
    run_jog(rig, motion, held_key, 0.5)
    assert rig.body.state.q[0] == pytest.approx(end, abs=0.01)


def test_the_goal_stays_near_a_blocked_joint():
    rig, motion, held_key = ready()
    run_jog(rig, motion, held_key, 0.1)
    rig.body.hold_at(rig.body.state.q)
    rig.body._let_pass = lambda: None  # a hand overpowers the motors
    at = rig.body.state.q[0]
    run_jog(rig, motion, held_key, 3.0, "r")
    assert motion.reference_position - at <= LEAD + 1e-9


def test_after_missing_feedback_the_motion_continues_from_the_measured_position():
    rig, motion, held_key = ready()
    run_jog(rig, motion, held_key, 0.3, "r")
    rig.shafts[1].silent = True
    run_jog(rig, motion, held_key, 0.3, "r")
    assert rig.driver.status is DriverState.STOPPED
    goal = motion.reference_position
    assert np.isnan(goal)
    rig.shafts[1].silent = False
    run_jog(rig, motion, held_key, 0.3)
    assert rig.driver.status is DriverState.ACTIVE
    assert motion.reference_position == pytest.approx(rig.body.state.q[0], abs=0.02)


def test_the_motion_continues_after_a_host_delay_without_a_restart():
    rig, motion, held_key = ready()
    run_jog(rig, motion, held_key, 0.3, "r")
    rig.bus.pass_time(0.15)  # longer than the command timeout
    run_jog(rig, motion, held_key, 0.01, "r")
    assert rig.driver.status is DriverState.STOPPED
    run_jog(rig, motion, held_key, 0.3, "r")
    assert rig.driver.status is DriverState.ACTIVE
    at = motion.reference_position
    run_jog(rig, motion, held_key, 0.5, "r")
    assert motion.reference_position == pytest.approx(at + 0.15, abs=0.01)
