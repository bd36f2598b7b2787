"""The bundled arm of CAN motors: plant, emulated motors, slcan, driver, safety, controller."""

from collections import deque
from functools import cache

import numpy as np
import pytest
from emulators.faults import Faults, after
from emulators.memory import MemoryPort

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller, node_parameters, parameter_file
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.mit_motors import MitMotors
from arm_dynamics.hardware.mit_can import MitCan
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.safety_settings import SafetySettings

pytestmark = pytest.mark.hardware

PERIOD = 2e-3
PROMPT = {"reply_timeout": "0.001"}
"""A cycle of 2 ms cannot wait for 3 ms for a lost reply."""
HEAVY = np.array([2.97, 1.41, 1.16, 0.35, -1.25, -0.26, -0.28])
"""Gravity torque: 8.6 N·m in J2, 2.7 N·m in J4."""


@cache
def arm():
    return load_arm("seven_dof_can")


class Rig:
    """Arm, motors, transport, driver and controller; ``answers`` are faults of the replies."""

    def __init__(self, interface="effort", q=None, period=0.0, **safety):
        wired = read_hardware_info(arm())
        self.motors = MitMotors([Shaft(m.id, m.motor, supply=24.0) for m in wired.motors])
        self.body = EmulatedArm(
            arm(), self.motors, arm().configuration("initial") if q is None else q
        )
        self.answers = Faults(seed=1, split=after(b"\r"))
        self.port = MemoryPort(self.motors, self.body, baud=4e6, answers=self.answers)
        self.bus = MitCan(wired.motors, {**wired.settings, **PROMPT}, self.port)
        safety = SafetySettings(**safety)
        self.driver = MotorBusDriver(
            arm(), self.bus, interface=interface, safety=safety, period=period
        )
        self.controller, self.goal = (
            build_controller(arm(), "pid_gravity"),
            arm().configuration("initial"),
        )

    def up(self):
        self.driver.configure()
        self.driver.read()
        self.driver.activate()
        self.controller.reset(self.driver.read())
        self.driver.idle()
        return self

    def run(self, cycles):
        for _ in range(cycles):
            start = self.port.now()
            self.cycle()
            self.port.pass_until(start + PERIOD)

    def cycle(self):
        try:
            state = self.driver.read()
        except DriverFault:
            self.driver.idle()
            return
        if np.isfinite(state.q).all():
            self.driver.write(self.controller.update(state, Reference.hold(self.goal), PERIOD))
        else:
            self.driver.idle()

    def error(self):
        return np.abs(self.body.state.q - self.goal).max()


def test_activation_causes_no_motion_and_the_arm_is_held():
    rig = Rig().up()
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.body.moved.max() < 1e-3
    rig.run(500)
    assert rig.error() < 1e-3
    assert not rig.driver.trips


def activated_heavy_arm(interface, **safety):
    """Return an arm with high gravity torques, activated without a command."""
    rig = Rig(interface, HEAVY, **safety)
    rig.driver.configure()
    rig.driver.read()
    rig.driver.activate()
    return rig


@pytest.mark.quick(1)
@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_enabling_torque_causes_no_sag(interface):
    """A spring of 50 N·m/rad would deflect by 10° under 8.6 N·m, a damper without limit."""
    rig = activated_heavy_arm(interface)
    for _ in range(300):
        rig.port.pass_until(rig.port.now() + PERIOD)
        rig.driver.read()
        rig.driver.idle()
    assert np.abs(rig.body.moved).max() < np.radians(1.0)
    assert rig.driver.status is DriverState.ACTIVE


def test_the_feedforward_effort_is_bounded():
    """A tenth of 40 N·m is below J2's gravity torque; a tenth of 27 N·m is nearly that of J4."""
    limits = CommandLimiter(arm(), SafetySettings(effort_limit_scale=0.1))
    fed = limits.gravity_effort(HEAVY, np.full(7, 30.0))
    np.testing.assert_allclose(fed[1], -4.0)
    assert (np.abs(fed) <= np.abs(gravity(arm(), HEAVY))).all()
    np.testing.assert_allclose(fed[4:], gravity(arm(), HEAVY)[4:])


@pytest.mark.parametrize(("interface", "limit"), [("position", 0.12), ("velocity", 0.02)])
def test_an_arm_that_sags_after_enabling_torque_is_rejected(interface, limit, monkeypatch):
    """A servo without feedforward may sag by another tenth of its limit."""
    monkeypatch.setattr(MitCan, "accepts_feedforward_effort", False)
    message = rf"'J2': motion = {limit}.* rad; expected at most {limit}$"
    with pytest.raises(DriverFault, match=message):
        activated_heavy_arm(interface)


def test_watchdogs_are_refreshed_during_activation():
    rig = activated_heavy_arm("position", motor_watchdog_timeout=0.03)
    assert all(rig.motors.torque_is_on(shaft.id) for shaft in rig.motors.shafts)


def test_activation_is_rejected_if_a_motor_stops_replying():
    rig = Rig("position", HEAVY)
    rig.driver.configure()
    rig.driver.read()
    write, late = rig.bus.write, rig.port.now() + 0.1

    def stop_replies(goals):
        rig.motors.shafts[2].silent = rig.port.now() > late
        write(goals)

    rig.bus.write = stop_replies
    with pytest.raises(DriverFault, match=r"'J3' .motor 3. stopped replying"):
        rig.driver.activate()


@pytest.mark.slow
def test_the_arm_reaches_the_target():
    rig = Rig().up()
    rig.goal = rig.goal + 0.1
    rig.run(1000)
    assert rig.error() < 2e-3
    assert not rig.driver.trips


@pytest.mark.quick(2)
@pytest.mark.parametrize("fault", ["loss", "truncation", "duplication", "corruption"])
@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_corrupt_replies_cause_no_trip_and_no_motion(fault, rate):
    """A changed digit gives another value, which the plausibility check rejects."""
    rig = Rig().up()
    rig.run(50)
    rig.body.forget()
    setattr(rig.answers, fault, rate)
    rig.run(250)
    assert [t.kind for t in rig.driver.trips] == []
    assert rig.body.moved.max() < 0.02
    rig.answers.heal()
    rig.run(150)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.error() < 2e-3


def test_losing_half_of_the_replies_stops_the_arm():
    rig = Rig().up()
    rig.run(50)
    rig.body.forget()
    rig.answers.loss = 0.7
    rig.run(300)
    assert rig.driver.status is DriverState.STOPPED
    assert rig.body.moved.max() < 0.05
    rig.answers.heal()
    rig.run(200)
    assert rig.driver.status is DriverState.ACTIVE


def test_motors_disable_torque_after_a_host_timeout():
    """After half a second without a frame every motor stops and reports it."""
    rig = Rig().up()
    rig.run(50)
    rig.port.pass_until(rig.port.now() + 0.5)
    assert not any(rig.motors.torque_is_on(shaft.id) for shaft in rig.motors.shafts)
    assert all(shaft.effort == 0.0 for shaft in rig.motors.shafts)
    rig.run(20)
    assert {t.kind for t in rig.driver.trips} >= {"motor_fault"}
    assert any("communication lost" in str(t) for t in rig.driver.trips)


@pytest.mark.parametrize("happens", ["reboot", "overheating", "overload"])
def test_a_motor_fault_stops_the_arm(happens):
    rig = Rig().up()
    rig.run(50)
    if happens == "reboot":
        rig.motors.reboot(4)
    else:
        rig.motors.trip(4, happens)
    rig.run(5)
    assert rig.driver.status is not DriverState.ACTIVE
    assert any(t.joint == "J4" for t in rig.driver.trips)


@pytest.mark.quick(1)
@pytest.mark.parametrize("q", [arm().configuration("initial"), HEAVY, np.zeros(7)])
def test_the_configured_controller_moves_the_arm_at_the_configured_rate(q):
    """Commands have one cycle of delay; at full extension J1 has almost no inertia."""
    period = 1 / node_parameters(parameter_file("seven_dof_can"), "hardware")["update_rate"]
    rig = Rig(q=q, period=period)
    rig.driver.configure()
    rig.driver.read()
    rig.driver.activate()
    loop = ControlLoop(rig.driver, build_controller(arm()))
    write, late = rig.driver.write, deque()

    def late_write(command):
        late.append(command)
        write(late.popleft() if len(late) > 1 else command)

    rig.driver.write = late_write

    def run(seconds):
        for _ in range(round(seconds / period)):
            start = rig.port.now()
            loop.step()
            rig.port.pass_until(start + period)

    run(0.3)
    goal = np.clip(rig.body.state.q + 0.1, arm().lower + 0.01, arm().upper - 0.01)
    loop.hold(dict(zip(arm().joint_names, goal, strict=True)))
    run(2.0)
    assert rig.driver.status is DriverState.ACTIVE, rig.driver.trips
    np.testing.assert_allclose(rig.body.state.q, goal, atol=0.015)
    assert np.abs(rig.body.state.v).max() < 0.02
