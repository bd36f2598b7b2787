"""The follower: keys, units, approach, rejected actions, silent servos, disconnection."""

import json
import threading
import time
from dataclasses import asdict
from math import nan

import numpy as np
import pytest
from lerobot.cameras import make_cameras_from_configs
from lerobot.motors import Motor, MotorCalibration, MotorNormMode
from lerobot.motors.feetech import FeetechMotorsBus
from lerobot.robots import RobotConfig, make_robot_from_config
from lerobot.robots.so_follower import SO101Follower, SO101FollowerConfig
from lerobot.utils.errors import DeviceNotConnectedError
from lerobot_robot_arm_dynamics import (
    ArmDynamicsCameraConfig,
    ArmDynamicsRobot,
    ArmDynamicsRobotConfig,
    arm_port,
)

from arm_dynamics import ArmDynamicsError, DriverFault, InvalidValue, load_arm
from arm_dynamics.hardware import LeRobotCalibration, ServoCalibration
from arm_dynamics.hardware.emulation.arm_hardware import emulated_arm, emulated_motors
from arm_dynamics.hardware.emulation.serial_terminal import SerialTerminal

NAMES = load_arm("so101").joint_names
CALIBRATION = {
    name: MotorCalibration(i + 1, 0, 0, 800 + 11 * i, 3300 - 7 * i) for i, name in enumerate(NAMES)
}


def robot(tmp_path, **options):
    options = {"driver": "simulated", "id": "follower", "calibration_dir": tmp_path, **options}
    return ArmDynamicsRobot(ArmDynamicsRobotConfig(**options))


@pytest.fixture
def simulated(tmp_path):
    follower = robot(tmp_path)
    follower.connect()
    yield follower
    if follower.is_connected:
        follower.disconnect()


@pytest.fixture
def servos():
    """Emulated servos at a pseudo terminal, served by a thread."""
    arm = load_arm("so101")
    motors = emulated_motors(arm)
    body = emulated_arm(arm, motors, arm.configuration("initial"))
    terminal, end = SerialTerminal(motors, body), threading.Event()

    def serve():
        while not end.is_set():
            terminal.serve()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield terminal
    end.set()
    thread.join()
    terminal.unplug()


def urdf_calibration(folder):
    servos = LeRobotCalibration.of_urdf(load_arm("so101")).servos
    content = {name: asdict(servo) for name, servo in servos.items()}
    (folder / "follower.json").write_text(json.dumps(content))


def until(condition, limit=60.0):
    """Wait for a condition; raise after ``limit`` [s]."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def action(value=0.0, **changed):
    return {**{f"{name}.pos": value for name in NAMES}, **changed}


def test_lerobot_builds_the_robot_from_its_type():
    kind = RobotConfig.get_choice_class("arm_dynamics")
    assert isinstance(make_robot_from_config(kind(driver="simulated")), ArmDynamicsRobot)


def test_keys_are_those_of_so101_follower(tmp_path):
    stock = SO101Follower(SO101FollowerConfig(port="", id="stock", calibration_dir=tmp_path))
    ours = robot(tmp_path)
    assert list(ours.action_features) == list(stock.action_features)
    assert ours.observation_features == stock.observation_features


@pytest.mark.parametrize("drive_mode", [0, 1])
@pytest.mark.parametrize("use_degrees", [True, False])
def test_units_are_those_of_the_bus_of_lerobot(use_degrees, drive_mode):
    body = MotorNormMode.DEGREES if use_degrees else MotorNormMode.RANGE_M100_100
    modes = dict.fromkeys(NAMES, body) | {"gripper": MotorNormMode.RANGE_0_100}
    calibration = {
        name: MotorCalibration(**{**vars(c), "drive_mode": drive_mode})
        for name, c in CALIBRATION.items()
    }
    motors = {name: Motor(c.id, "sts3215", modes[name]) for name, c in calibration.items()}
    bus = FeetechMotorsBus("", motors, calibration)
    servos = {name: ServoCalibration(**vars(c)) for name, c in calibration.items()}
    ours = LeRobotCalibration(load_arm("so101"), servos, use_degrees=use_degrees)
    ids = [c.id for c in calibration.values()]
    rng = np.random.default_rng(0)
    for steps in rng.integers(0, 4096, (200, 6)):
        theirs = bus._normalize(dict(zip(ids, steps.tolist(), strict=True)))
        np.testing.assert_allclose(
            ours.normalized_steps(steps), [theirs[id] for id in ids], rtol=0, atol=1e-9
        )
    for values in rng.uniform(-120, 120, (200, 6)):
        theirs = bus._unnormalize(dict(zip(ids, values.tolist(), strict=True)))
        assert ours.steps(values).astype(int).tolist() == [theirs[id] for id in ids]


def test_the_file_of_so101_follower_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(arm_port, "HF_LEROBOT_CALIBRATION", tmp_path)
    folder = tmp_path / "robots" / "so_follower"
    stock = SO101Follower(SO101FollowerConfig(port="", id="mine", calibration_dir=folder))
    stock.calibration = CALIBRATION
    stock._save_calibration()
    assert robot(None, id="mine").calibration == CALIBRATION


def test_calibrate_writes_the_calibration_in_use(tmp_path):
    follower = robot(tmp_path)
    follower.calibrate()
    assert robot(tmp_path).calibration == follower.calibration
    with pytest.raises(NotImplementedError, match="so101_follower"):
        robot(tmp_path, driver="feetech").calibrate()


def test_servos_without_calibration_and_unknown_drivers_are_rejected(tmp_path):
    with pytest.raises(DriverFault, match="calibration = none"):
        robot(tmp_path, driver="feetech", port="/dev/null").connect()
    with pytest.raises(InvalidValue, match="driver = 'usb'"):
        robot(tmp_path, driver="usb")


def test_the_simulated_arm_follows_and_returns(simulated):
    start = simulated.get_observation()
    goal = action(20.0)
    assert simulated.send_action(goal) == pytest.approx(goal)

    def reached():
        simulated.send_action(goal)
        now = simulated.get_observation()
        return all(abs(now[key] - 20.0) < 1.0 for key in goal)

    until(reached)
    control = simulated._control
    simulated.disconnect()
    end = simulated._named(control.loop.state.q)
    assert end == pytest.approx(start, abs=1.0)
    assert not simulated.is_connected
    with pytest.raises(DeviceNotConnectedError):
        simulated.get_observation()


def test_the_first_action_is_approached_slowly(simulated):
    fastest, control = [0.0], simulated._control
    step = control.loop.step

    def noted():
        step()
        fastest[0] = max(fastest[0], float(np.abs(control.loop.state.v).max()))

    control.loop.step = noted

    def near():
        simulated.send_action(action(40.0))
        return abs(simulated.get_observation()["shoulder_pan.pos"] - 40.0) < 5.0

    until(near)
    assert 0.3 < np.degrees(fastest[0]) / 30.0 < 1.1


@pytest.mark.parametrize("bad", [action(**{"gripper.pos": nan}), {"gripper.pos": 0.0}])
def test_an_invalid_action_is_rejected(simulated, bad):
    with pytest.raises(InvalidValue, match=r"action: '\w+.pos' = (nan|missing)"):
        simulated.send_action(bad)


def test_an_action_beyond_the_range_is_returned_limited(simulated):
    sent = simulated.send_action(action(**{"shoulder_pan.pos": 500.0}))
    assert sent["shoulder_pan.pos"] == pytest.approx(110.0, abs=0.2)


def test_servos_follow_and_are_not_dropped(tmp_path, servos):
    urdf_calibration(tmp_path)
    follower = robot(tmp_path, driver="feetech", port=servos.path, rate=100.0)
    follower.connect()
    start = follower.get_observation()
    goal = {**start, "shoulder_lift.pos": start["shoulder_lift.pos"] + 15.0}

    def reached():
        follower.send_action(goal)
        now = follower.get_observation()["shoulder_lift.pos"]
        return abs(now - goal["shoulder_lift.pos"]) < 3.0

    until(reached)
    ids = [shaft.id for shaft in servos.motors.shafts]
    assert all(servos.motors.torque_is_on(id) for id in ids)
    lift = servos.motors.shafts[1]
    at_torque_off = []
    disable = follower._control.loop.driver.bus.disable

    def noted(ids):
        at_torque_off.append(lift.q)
        return disable(ids)

    follower._control.loop.driver.bus.disable = noted
    follower.disconnect()
    assert abs(at_torque_off[0]) < np.radians(3.0)
    assert not any(servos.motors.torque_is_on(id) for id in ids)


def test_a_silent_servo_is_an_error(tmp_path, servos):
    urdf_calibration(tmp_path)
    follower = robot(tmp_path, driver="feetech", port=servos.path, rate=100.0)
    follower.connect()
    servos.motors.shafts[2].silent = True
    errors = []

    def failed():
        try:
            follower.get_observation()
        except DriverFault as error:
            errors.append(str(error))
        return errors

    until(failed)
    assert "elbow_flex" in errors[0]
    with pytest.raises(ArmDynamicsError, match="elbow_flex"):
        follower.send_action(action())
    follower.disconnect()
    assert not follower.is_connected


def test_another_homing_offset_is_rejected(tmp_path, servos):
    calibration = LeRobotCalibration.of_urdf(load_arm("so101")).servos
    content = {name: asdict(servo) for name, servo in calibration.items()}
    content["elbow_flex"]["homing_offset"] = 100
    (tmp_path / "follower.json").write_text(json.dumps(content))
    follower = robot(tmp_path, driver="feetech", port=servos.path)
    with pytest.raises(DriverFault, match="'elbow_flex': homing offset = 0 steps; expected 100"):
        follower.connect()
    assert not follower.is_connected


def test_the_emulator_is_started_and_ended(tmp_path):
    follower = robot(tmp_path, driver="emulated", rate=100.0)
    follower.connect()
    process = follower._port._emulator
    assert follower.get_observation()["elbow_flex.pos"] == pytest.approx(0, abs=1.0)
    follower.disconnect()
    assert not process.is_running


# --- rendered cameras


def cameras(**options):
    return {"front": ArmDynamicsCameraConfig(width=80, height=60, **options)}


def test_a_rendered_camera_shows_the_measured_configuration(tmp_path):
    follower = robot(tmp_path, cameras=cameras())
    assert follower.observation_features["front"] == (60, 80, 3)
    follower.connect()
    first = follower.get_observation()["front"]
    assert (first.shape, first.dtype) == ((60, 80, 3), np.uint8)

    def moved():
        follower.send_action(action(30.0))
        return follower.get_observation()["shoulder_lift.pos"] > 20.0

    until(moved)
    assert (follower.get_observation()["front"] != first).any(axis=2).mean() > 0.01
    follower.disconnect()
    assert not follower.cameras["front"].is_connected


def test_a_rendered_camera_needs_this_robot():
    (camera,) = make_cameras_from_configs(cameras()).values()
    with pytest.raises(DriverFault, match="robot = another type; expected arm_dynamics"):
        camera.connect()
    with pytest.raises(DeviceNotConnectedError):
        camera.read()


def test_units_of_other_motors_are_those_of_the_urdf(tmp_path):
    arm = load_arm("seven_dof_can")
    degrees = robot(tmp_path, arm="seven_dof_can")._port.units
    half = robot(tmp_path, arm="seven_dof_can", use_degrees=False)._port.units
    q = (arm.lower + 3 * arm.upper) / 4
    np.testing.assert_allclose(degrees.normalized(q), np.degrees(q))
    np.testing.assert_allclose(half.normalized(q), 50.0)
    for units in (degrees, half):
        np.testing.assert_allclose(units.positions(units.normalized(q)), q)
