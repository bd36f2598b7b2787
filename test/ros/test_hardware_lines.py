"""Hardware node with real drivers and emulated motors in another process."""

import os
import signal
import time

import numpy as np
import pinocchio as pin
import pytest
from emulators.served import served
from emulators.vendors import VENDORS
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray

from arm_dynamics import load_arm
from arm_dynamics.collision.clearance_monitor import ClearanceMonitor
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.hardware.emulation.emulator_process import EmulatorProcess
from arm_dynamics.ros.nodes.hardware_cycle import PAUSE

from .driven import Driven
from .link import PATIENCE, stamp, trajectory

pytestmark = pytest.mark.hardware

PATIENT = {
    "update_rate": 100.0,
    "safety.soft_limit_zone": 0.05,
    "safety.max_missed_cycles": 30.0,
    "safety.feedback_timeout": 0.5,
    "safety.command_timeout": 0.4,
    "safety.motor_watchdog_timeout": 1.0,
}
"""Limits that a busy machine does not exceed."""
SETTINGS = {"dynamixel": "latency=0.02", "mit_can": "interface=slcan reply_timeout=0.02"}
SLOW = {"kp": 100.0, "ki": 150.0, "kd": 20.0}
"""Gains that are stable with a reply delay of 50 ms."""
POSITION_TOLERANCE = 0.08
"""Twice the position error [rad] that friction causes with such gains."""
RESOLUTION = 2e-3
"""Resolution of the coarsest encoder [rad]."""
AWAY = np.array([0.3, -0.3, 0.3])
ERROR = 2


class Line(Driven):
    """Three motors on a bus that can be unplugged, the hardware node and a controller."""

    def __init__(self, vendor, folder, controlled=True, **more):
        super().__init__()
        self.arm, self.urdf = served(vendor.name, folder / "line"), folder / "arm.urdf"
        self.urdf.write_text(vendor.arm.urdf)
        self.joints, self.arm_model = vendor.arm.joint_names, vendor.arm
        own = {
            "arm": self.urdf,
            "port": folder / "line",
            "driver_settings": SETTINGS[vendor.driver],
        }
        self.drives(self.ros.start("hardware", **own, **PATIENT, **more))
        self.controller_process = self.controller() if controlled else None

    def controller(self):
        return self.controls("computed_torque", dict.fromkeys(self.joints, SLOW))

    def controls(self, controller, gains):
        """Start a controller with the ``gains`` of some joints and defaults for the others."""
        given = {f"gains.{j}.{name}": g for j, row in gains.items() for name, g in row.items()}
        return self.ros.start("joint_controller", arm=self.urdf, controller=controller, **given)

    def is_activated(self):
        """Activate the arm until the controller commands it; retry if the machine was busy."""
        self.ros.wait_for(self._is_commanded, "not activated")

    def _is_commanded(self):
        self.arm.request("forget")
        if not self.change_state("activate"):
            self.becomes_inactive()
            return False
        fresh, commands = time.time() + PAUSE, self.ros.record(JointState, "joint_commands")
        self.ros.wait_for(lambda: commands.raw and stamp(commands.newest) > fresh, "no commands")
        return all(self.torque) or self.becomes_inactive()

    def becomes_inactive(self):
        """Deactivate and hold the arm, and clear all latched trips."""
        self.is_held()
        self.change_state("deactivate")
        reset = "hardware/reset_emergency_stop"
        self.ros.wait_for(lambda: self.ros.trigger(reset).success, "not reset")
        self.ros.wait_for(lambda: not any(self.torque), "torque stays on")

    @property
    def torque(self):
        return self.arm.request("state")["torque"]

    @property
    def q(self):
        """Configuration of the emulated arm, independent of the driver."""
        return np.array(self.arm.request("state")["q"])

    def is_near(self, q):
        return np.abs(self.q - q).max() < POSITION_TOLERANCE

    def is_moved_to(self, q):
        """Move the arm to ``q``; repeat the trajectory if the machine was busy."""
        until = time.monotonic() + PATIENCE
        while not self.is_near(q):
            assert time.monotonic() < until, self.ros.report(f"the arm did not get to {q}")
            message = trajectory((1.0, q, np.zeros(3)), names=self.joints)
            self.ros.publish(message, "joint_controller/joint_trajectory")
            time.sleep(1.2)

    def sets_off_to(self, q):
        """Start a trajectory to ``q``; repeat it if the machine was busy."""
        self.arm.request("forget")
        message = trajectory((2.0, q, np.zeros(3)), names=self.joints)
        until = time.monotonic() + PATIENCE
        while min(self.arm.request("state")["moved"]) < 0.02:
            assert time.monotonic() < until, self.ros.report("the arm does not move")
            if not all(self.torque):
                self.is_activated()
            self.ros.publish(message, "joint_controller/joint_trajectory")
            time.sleep(0.5)

    def is_reset(self):
        """Reset the emergency stop and hold the arm, because torque is disabled.

        A reset during late replies of a busy machine is rejected with this reason, and repeated.
        """
        until = time.monotonic() + PATIENCE
        while not (answer := self.ros.trigger("hardware/reset_emergency_stop")).success:
            assert "no motor replies" in answer.message
            assert time.monotonic() < until, answer.message
        self.is_held()

    def is_held(self):
        """Hold the arm, as a user must before torque is disabled."""
        self.arm.request("hold")

    def close(self):
        super().close()
        self.arm.close()


@pytest.fixture(scope="module", params=SETTINGS)
def line(request, tmp_path_factory):
    """Start an inactive arm with a waiting controller."""
    found = Line(VENDORS[request.param], tmp_path_factory.mktemp(request.param))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def shared(line):
    """Return the domain whose output is shown after a failure."""
    return line.ros


@pytest.fixture
def active(line, shared):
    """Activate the arm at its start configuration; deactivate it afterwards."""
    if line.life == "unconfigured":
        assert line.change_state("configure"), shared.report("not configured")
        line.start = line.q
    assert not any(line.torque)
    try:
        line.is_activated()
        line.moved_by_torque = max(line.arm.request("state")["moved"])
        line.is_moved_to(line.start)
        yield line
        line.change_state("deactivate")
        assert not any(line.torque)
    finally:
        line.becomes_inactive()


@pytest.mark.quick(1)
def test_enabling_torque_moves_nothing_and_a_trajectory_is_tracked(active):
    assert active.moved_by_torque < RESOLUTION
    active.is_moved_to(active.start + AWAY)
    now, shared = time.time(), active.ros
    shared.wait_for(lambda: stamp(active.states.newest) > now, "no states")
    assert np.abs(np.array(active.states.newest.position) - active.q).max() < POSITION_TOLERANCE
    active.is_moved_to(active.start)


@pytest.mark.quick(1)
def test_an_emergency_stop_disables_torque_until_a_reset(active):
    active.sets_off_to(active.start + AWAY)
    active.ros.publish(Bool(data=True), "emergency_stop")
    active.ros.wait_for(lambda: not any(active.torque), "torque stays on")
    active.is_held()
    active.comes_to("inactive")
    assert not active.change_state("activate"), "it is latched"
    active.is_reset()
    assert not any(active.torque), "a reset alone gives no torque"
    active.is_activated()
    active.is_moved_to(active.start)


@pytest.mark.quick(1)
def test_motor_watchdogs_stop_the_arm_of_a_suspended_node(active):
    active.sets_off_to(active.start + AWAY)
    os.kill(active.process.pid, signal.SIGSTOP)
    try:
        active.ros.wait_for(
            lambda: active.arm.request("state")["stopped"], "the motors do not stop"
        )
        active.is_held()
    finally:
        os.kill(active.process.pid, signal.SIGCONT)
    active.diagnosis(lambda values: "trip 1" in values)
    active.is_reset()
    active.comes_to("inactive")
    active.is_activated()
    active.is_moved_to(active.start)


@pytest.mark.quick(1)
def test_an_arm_unplugged_in_motion_reconnects_inactive(active):
    active.sets_off_to(active.start + AWAY)
    active.arm.request("unplug")
    active.ros.wait_for(lambda: active.arm.request("state")["stopped"], "the motors do not stop")
    active.is_held()
    active.diagnosis(lambda values: values["state"] == "error")
    active.comes_to("inactive")
    active.arm.request("plug")
    active.diagnosis(lambda values: values["state"] == "inactive")
    assert not any(active.torque), "activated without a request"
    active.is_reset()  # the motor watchdogs have tripped
    active.is_activated()
    active.is_moved_to(active.start)


@pytest.mark.quick(1)
def test_the_arm_of_a_killed_controller_is_held(active):
    active.sets_off_to(active.start + AWAY)
    active.controller_process.kill()
    active.diagnosis(lambda values: "command_timeout" in values)
    active.ros.wait_for(lambda: np.abs(active.arm.request("state")["v"]).max() < 0.01, "no rest")
    assert all(active.torque), "torque is disabled"
    active.controller_process = active.controller()
    active.diagnosis(lambda values: values["state"] == "active")


@pytest.mark.slow
def test_voltage_commands_move_motors_without_current_control(tmp_path):
    """One of three joints is commanded; the arm stops at the command time-out."""
    line = Line(VENDORS["dynamixel_pwm"], tmp_path, controlled=False, command_interface="voltage")
    try:
        ros = line.ros
        assert line.change_state("configure"), ros.report("not configured")
        line.activate()
        voltages = ros.meet(Float64MultiArray, "voltage_commands")
        line.arm.request("forget")

        def turned():
            voltages.publish(Float64MultiArray(data=[0.0, 0.0, 2.0]))
            return line.arm.request("state")["moved"][2] > 0.3

        ros.wait_for(turned, "no motion")
        line.diagnosis(lambda values: "command_timeout" in values)
        ros.wait_for(lambda: np.abs(line.arm.request("state")["v"]).max() < 0.01, "no rest")
        assert all(line.torque)
    finally:
        line.close()


# --- gains against the period and the delay that the node publishes


@pytest.mark.slow
def test_default_gains_are_reduced_and_unstable_set_gains_are_rejected(tmp_path):
    line = Line(VENDORS["mit_can"], tmp_path, controlled=False)
    usual = PidGravity(line.arm_model).values
    try:
        ros = line.ros
        assert line.change_state("configure"), ros.report("not configured")
        controller = line.controls("pid_gravity", {})
        line.is_activated()
        assert max(line.arm.request("state")["moved"]) < RESOLUTION
        holds_still(line, 3.0)
        status = ros.diagnosis("joint_controller", lambda values: "gains_slowed" in values)
        assert "default gains of" in status["last gains_slowed"]
        p, d = (ros.get("joint_controller", f"gains.{line.joints[0]}.{name}") for name in "pd")
        scale = d / usual[line.joints[0]]["d"]
        assert 0.0 < scale < 1.0
        assert p == pytest.approx(scale**2 * usual[line.joints[0]]["p"])

        (answer,) = ros.set("joint_controller", **{f"gains__{line.joints[0]}__p": 0.9 * p})
        assert answer.successful, answer.reason
        name = f"gains.{line.joints[1]}.d"
        ros.wait_for(
            lambda: ros.get("joint_controller", name) < usual[line.joints[1]]["d"],
            "a change of one gain resets the other defaults",
        )
        (answer,) = ros.set("joint_controller", **{f"gains__{line.joints[0]}__p": 100 * p})
        assert "gains unstable with period" in answer.reason
        holds_still(line, 0.5)
        assert controller.stop() == 0

        commands = ros.record(JointState, "joint_commands")
        fast = {joint: {k: 2 * row[k] for k in "pid"} for joint, row in usual.items()}
        line.controls("pid_gravity", fast)
        status = ros.diagnosis("joint_controller", lambda values: values["level"] == ERROR)
        assert "PidGravity: gains unstable with period" in status["message"]
        ros.wait_longer(line.states, 0.5)
        assert not len(commands)
    finally:
        line.close()


def holds_still(line, seconds):
    """Check that the commanded arm neither moves nor trips."""
    line.arm.request("forget")
    line.ros.wait_longer(line.states, seconds)
    found = line.diagnosis(lambda values: float(values["commands per second"]) > 0)
    assert found["state"] == "active", line.ros.report(str(found))
    trips = {"oscillation", "velocity_limit", "trip 1"}
    assert not trips & set(found), line.ros.report(str(found))
    assert max(line.arm.request("state")["moved"]) < POSITION_TOLERANCE


def test_commands_of_another_program_stop_before_links_touch():
    """Positions that fold the gripper into the base, one for each state, unchecked."""
    emulator, arm, client = EmulatorProcess("so101"), load_arm("so101"), Driven()
    try:
        own = {"port": emulator.settings["port"], "command_interface": "position"}
        client.drives(client.ros.start("hardware", arm="so101", **own, **PATIENT))
        assert client.change_state("configure")
        client.activate()

        def is_stopped():
            q = np.array(client.news().position)
            goal = q + np.clip(1.0 - q, -0.05, 0.05)
            message = JointState(name=arm.joint_names, position=goal.tolist())
            client.ros.publish(message, "joint_commands")
            return "contact_ahead" in client.process.output

        client.ros.wait_for(is_stopped, "not stopped")
        assert "links 'base_link' and 'wrist_roll_link'" in client.process.output
        time.sleep(0.5)
        q = np.array(client.news().position)
        assert smallest_distance(arm, q) > 0
        assert np.abs(q - np.ones(arm.nv)).max() > 0.1
    finally:
        client.close()
        emulator.close()


def smallest_distance(arm, q):
    """Return the smallest distance [m] of the links that are checked."""
    shapes = ClearanceMonitor(arm).shapes
    data, results = arm.model.createData(), shapes.createData()
    pin.computeDistances(arm.model, data, shapes, results, q)
    return min(result.min_distance for result in results.distanceResults)
