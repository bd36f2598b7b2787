"""Calibration files of LeRobot: units, zero and homing offsets."""

import json
from dataclasses import replace

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.hardware import LeRobotCalibration, ServoCalibration
from arm_dynamics.hardware.feetech.registers import STEP
from arm_dynamics.hardware.motor_bus import StoredRange
from arm_dynamics.model.hardware_info import read_hardware_info

ARM = load_arm("so101")
SERVOS = {
    name: ServoCalibration(i + 1, 0, 10 * i, 700 + 13 * i, 3300 + 7 * i)
    for i, name in enumerate(ARM.joint_names)
}


def test_the_file_of_lerobot_is_read(tmp_path):
    file = tmp_path / "follower.json"
    names = ServoCalibration.__slots__
    file.write_text(json.dumps({j: {n: getattr(s, n) for n in names} for j, s in SERVOS.items()}))
    assert LeRobotCalibration.read(ARM, file).servos == SERVOS


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"shoulder_pan": {"id": 1}}'])
def test_another_file_is_rejected(tmp_path, content):
    file = tmp_path / "follower.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match="expected"):
        LeRobotCalibration.read(ARM, file)


def test_values_at_the_ends_and_in_the_middle_of_the_range():
    lower = [s.range_min for s in SERVOS.values()]
    upper = [s.range_max for s in SERVOS.values()]
    ranged = LeRobotCalibration(ARM, SERVOS, use_degrees=False)
    np.testing.assert_allclose(ranged.normalized_steps(lower), [-100] * 5 + [0])
    np.testing.assert_allclose(ranged.normalized_steps(upper), [100] * 6)
    np.testing.assert_allclose(ranged.normalized_steps(np.add(upper, 50)), [100] * 6)
    degrees = LeRobotCalibration(ARM, SERVOS)
    middle = np.add(lower, upper) / 2
    np.testing.assert_allclose(degrees.normalized_steps(middle), [0] * 5 + [50])
    turned = degrees.normalized_steps(middle + 4095 / 4)
    np.testing.assert_allclose(turned[:5], 90)


def test_drive_mode_1_mirrors_the_ranges():
    mirrored = {name: replace(servo, drive_mode=1) for name, servo in SERVOS.items()}
    one = LeRobotCalibration(ARM, SERVOS, use_degrees=False)
    other = LeRobotCalibration(ARM, mirrored, use_degrees=False)
    steps = np.linspace(1000, 3000, 6)
    x = one.normalized_steps(steps)
    np.testing.assert_allclose(other.normalized_steps(steps), [*-x[:5], 100 - x[5]], atol=1e-9)
    np.testing.assert_allclose(other.steps(other.normalized_steps(steps)), steps)


@pytest.mark.parametrize("use_degrees", [True, False])
def test_positions_return_from_values(use_degrees):
    calibration = LeRobotCalibration(ARM, SERVOS, use_degrees=use_degrees)
    for part in (0.1, 0.5, 0.9):
        q = ARM.lower + part * (ARM.upper - ARM.lower)
        q = np.clip(q, -1.2, 1.2)
        np.testing.assert_allclose(calibration.positions(calibration.normalized(q)), q, atol=1e-12)


def test_the_middle_of_the_range_is_that_of_the_urdf():
    q = LeRobotCalibration(ARM, SERVOS).positions([0, 0, 0, 0, 0, 50])
    np.testing.assert_allclose(q, (ARM.lower + ARM.upper) / 2, atol=1e-12)


def test_the_calibration_of_the_urdf_has_its_zero():
    calibration = LeRobotCalibration.of_urdf(ARM)
    for motor, wired in zip(calibration.motors, read_hardware_info(ARM).motors, strict=True):
        assert (motor.id, motor.sign) == (wired.id, wired.sign)
        assert motor.offset == pytest.approx(wired.offset, abs=STEP)
    gripper = calibration.servos["gripper"]
    assert gripper.range_max - gripper.range_min == round((ARM.upper - ARM.lower)[5] / STEP)
    assert calibration.normalized(ARM.lower)[5] == pytest.approx(0, abs=0.05)
    assert calibration.normalized(ARM.upper)[5] == pytest.approx(100, abs=0.05)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_rejected(value):
    with pytest.raises(InvalidValue, match="values"):
        LeRobotCalibration(ARM, SERVOS).positions([value, 0, 0, 0, 0, 0])


def test_other_joints_and_empty_ranges_are_rejected():
    with pytest.raises(ConfigError, match="expected the joints of 'so101'"):
        LeRobotCalibration(ARM, {"elbow": SERVOS["gripper"]})
    empty = {**SERVOS, "gripper": replace(SERVOS["gripper"], range_min=3342)}
    with pytest.raises(ConfigError, match="'gripper': range = 3342 to 3342"):
        LeRobotCalibration(ARM, {**empty, "gripper": replace(empty["gripper"], range_max=3342)})


def test_a_servo_with_another_homing_offset_is_named():
    calibration = LeRobotCalibration(ARM, SERVOS)
    stored = {s.id: StoredRange(0.0, 1.0, s.homing_offset * STEP) for s in SERVOS.values()}
    assert calibration.differences(stored) == []
    stored[3] = StoredRange(0.0, 1.0, 0.0)
    assert calibration.differences(stored) == [
        "'elbow_flex': homing offset = 0 steps; expected 20 as in the calibration"
    ]
