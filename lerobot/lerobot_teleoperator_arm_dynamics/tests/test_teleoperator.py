"""The leader: keys, simulated motion, servos without torque, silent servos; LeRobot's commands."""

import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from lerobot.common import control_utils
from lerobot.teleoperators import TeleoperatorConfig, make_teleoperator_from_config
from lerobot.teleoperators.so_leader import SO101Leader, SO101LeaderConfig
from lerobot_teleoperator_arm_dynamics import (
    ArmDynamicsTeleoperator,
    ArmDynamicsTeleoperatorConfig,
    teleoperator,
)

from arm_dynamics import DriverFault, InvalidValue, load_arm

BIN = Path(sys.executable).parent
SIMULATED = [
    "--robot.type=arm_dynamics", "--robot.driver=simulated", "--robot.id=follower",
    "--teleop.type=arm_dynamics", "--teleop.driver=simulated", "--teleop.id=leader",
]  # fmt: skip


def leader(tmp_path, **options):
    options = {"driver": "simulated", "id": "leader", "calibration_dir": tmp_path, **options}
    return ArmDynamicsTeleoperator(ArmDynamicsTeleoperatorConfig(**options))


def run(home, command, *options):
    """Run a command of LeRobot; return its output."""
    environment = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "PATH": str(BIN)}
    result = subprocess.run(
        [BIN / command, *options], env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout + result.stderr


def test_lerobot_builds_the_teleoperator_from_its_type():
    kind = TeleoperatorConfig.get_choice_class("arm_dynamics")
    built = make_teleoperator_from_config(kind(driver="simulated"))
    assert isinstance(built, ArmDynamicsTeleoperator)


def test_keys_are_those_of_so101_leader(tmp_path):
    stock = SO101Leader(SO101LeaderConfig(port="", id="stock", calibration_dir=tmp_path))
    assert list(leader(tmp_path).action_features) == list(stock.action_features)


def test_the_simulated_leader_moves_on_a_sine(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(teleoperator.time, "monotonic", lambda: now[0])
    device = leader(tmp_path)
    device.connect()
    assert [*device.get_action().values()] == pytest.approx([0] * 5 + [50], abs=0.1)
    now[0] += 2.0
    arm = load_arm("so101")
    half = np.degrees(arm.upper - arm.lower)[:5] / 2
    action = np.array([*device.get_action().values()])
    np.testing.assert_allclose(action, [*(0.3 * half), 65.0], rtol=2e-3)
    device.disconnect()
    assert not device.is_connected


def test_a_leader_reads_servos_without_torque(tmp_path):
    device = leader(tmp_path, driver="emulated")
    device.connect()
    process = device._port._emulator
    assert [*device.get_action().values()] == pytest.approx([0] * 5 + [9.1], abs=1.0)
    assert device._driver.feedback.enabled == (False,) * 6
    device.disconnect()
    assert not process.is_running


def test_a_silent_servo_is_an_error(tmp_path):
    device = leader(tmp_path, driver="emulated")
    device.connect()
    read = device._driver.bus.read
    device._driver.bus.read = lambda: {id: x for id, x in read().items() if id != 3}
    device.get_action()  # one missed reading is tolerated
    with pytest.raises(DriverFault, match="elbow_flex"):
        deque((device.get_action() for _ in range(100)), maxlen=0)
    device.disconnect()


# --- force feedback


@pytest.fixture
def weightless(tmp_path):
    device = leader(tmp_path, force_feedback=True, amplitude=0.0)
    device.connect()
    yield device
    if device.is_connected:
        device.disconnect()


def until(condition, limit=60.0):
    """Wait for a condition; raise after ``limit`` [s]."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_leader_feels_the_follower(weightless):
    """A hand holds the leader at the middle; the feedback pulls it to the follower."""
    assert [*weightless.feedback_features] == [*weightless.action_features]
    start = weightless.get_action()
    follower = {name: value + 10.0 for name, value in start.items()}

    def pulled():
        weightless.send_feedback(follower)
        return all(v > start[n] + 0.2 for n, v in weightless.get_action().items())

    until(pulled)
    assert weightless._leader.loop.controller.coupling > 0

    def released():
        weightless.get_action()
        return weightless._leader.loop.controller.coupling == 0

    until(released)


@pytest.mark.parametrize("bad", [{}, {"gripper.pos": float("nan")}])
def test_invalid_feedback_is_rejected(weightless, bad):
    feedback = weightless.get_action() | bad if bad else bad
    with pytest.raises(InvalidValue, match=r"feedback: '\w+.pos' = (nan|missing)"):
        weightless.send_feedback(feedback)


def test_emulated_motors_with_current_control_are_weightless(tmp_path):
    device = leader(tmp_path, driver="emulated", arm="seven_dof_can", force_feedback=True)
    device.connect()
    start = device.get_action()
    for _ in range(20):
        device.send_feedback(start)
        time.sleep(0.01)
    assert all(device._control.loop.driver.feedback.enabled)
    assert [*device.get_action().values()] == pytest.approx([*start.values()], abs=3.0)
    device.disconnect()


def test_servos_without_current_control_are_rejected(tmp_path):
    device = leader(tmp_path, driver="emulated", force_feedback=True)
    with pytest.raises(
        InvalidValue, match=r"'shoulder_pan' accepts .* expected motors with current"
    ):
        device.connect()
    assert not device.is_connected


# --- torque, for the hand-over between a policy and a person


def test_feedback_without_torque_is_an_error(tmp_path):
    device = leader(tmp_path)
    device.connect()
    with pytest.raises(NotImplementedError, match=r"enable_torque or teleop\.force_feedback=true"):
        device.send_feedback({})
    device.disconnect()


def test_lerobot_hands_over_to_a_leader_of_emulated_servos(tmp_path):
    """Torque holds the arm where it is; LeRobot's own function moves it; then it is guided."""
    device = leader(tmp_path, driver="emulated")
    device.connect()
    assert control_utils.teleop_supports_feedback(device)
    before = device.get_action()
    device.enable_torque()
    assert [*device.get_action().values()] == pytest.approx([*before.values()], abs=1.0)
    assert all(device._control.loop.driver.feedback.enabled)
    target = {name: value + 8.0 for name, value in before.items()}
    control_utils.teleop_smooth_move_to(device, target, duration_s=1.0)
    until(lambda: [*device.get_action().values()] == pytest.approx([*target.values()], abs=2.0))
    device.disable_torque()
    assert device._driver.feedback.enabled == (False,) * 6
    device.disable_torque()  # again without effect
    device.get_action()
    device.disconnect()


def test_a_weightless_leader_is_held_by_a_bounded_spring(weightless):
    start = weightless.get_action()
    weightless.enable_torque()
    target = {name: value + 5.0 for name, value in start.items()}
    limit = weightless._port.arm.effort_limit

    def moved():
        weightless.send_feedback(target)
        assert np.abs(weightless._leader.loop.command.value).max() <= limit.max()
        return all(v > start[n] + 0.2 for n, v in weightless.get_action().items())

    until(moved)
    time.sleep(2 * teleoperator.MAX_FEEDBACK_AGE)  # no feedback: it is held
    weightless.get_action()
    assert weightless._leader.loop.controller.coupling > 0
    weightless.disable_torque()

    def free():
        weightless.get_action()
        return weightless._leader.loop.controller.coupling == 0

    until(free)


def test_a_simulated_leader_is_held_and_moved_slowly(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(teleoperator.time, "monotonic", lambda: now[0])
    device = leader(tmp_path, approach_speed=10.0)
    device.connect()
    now[0] += 1.0
    before = device.get_action()
    device.enable_torque()
    now[0] += 60.0
    assert device.get_action() == before
    target = before | {"elbow_flex.pos": before["elbow_flex.pos"] - 30.0}
    device.send_feedback(target)
    moved = device.get_action()["elbow_flex.pos"] - before["elbow_flex.pos"]
    assert moved == pytest.approx(-10.0 * teleoperator.MAX_FEEDBACK_AGE, abs=0.01)
    device.disable_torque()
    assert device.get_action()["elbow_flex.pos"] == pytest.approx(
        before["elbow_flex.pos"] + moved, abs=0.01
    )
    device.disconnect()


def test_servos_without_calibration_are_rejected(tmp_path):
    with pytest.raises(DriverFault, match="calibration = none"):
        leader(tmp_path, driver="feetech").connect()


def test_teleoperate_record_and_replay_run_unmodified(tmp_path):
    run(tmp_path, "lerobot-teleoperate", *SIMULATED, "--teleop_time_s=2", "--fps=30")
    data = ["--dataset.repo_id=local/simulated", f"--dataset.root={tmp_path / 'data'}"]
    camera = "{front: {type: arm_dynamics, width: 160, height: 120, fps: 30}}"
    run(
        tmp_path, "lerobot-record", *SIMULATED, f"--robot.cameras={camera}", *data,
        "--dataset.num_episodes=1",
        "--dataset.episode_time_s=2", "--dataset.reset_time_s=0", "--dataset.single_task=sine",
        "--dataset.push_to_hub=false", "--play_sounds=false",
    )  # fmt: skip
    assert list((tmp_path / "data").glob("data/**/*.parquet"))
    assert list((tmp_path / "data").glob("videos/observation.images.front/**/*.mp4"))
    run(
        tmp_path, "lerobot-replay", *SIMULATED[:3], *data, "--dataset.episode=0",
        "--play_sounds=false",
    )  # fmt: skip
    run(tmp_path, "lerobot-calibrate", *SIMULATED[:3])
    assert list(tmp_path.glob("lerobot/calibration/robots/arm_dynamics/follower.json"))
