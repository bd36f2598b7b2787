"""Transmission: units, interfaces, voltages for efforts, and drivers by name."""

import numpy as np
import pytest
from emulators.ideal import IdealBus, IdealMotors, ideal_shafts
from emulators.vendors import VENDORS
from hypothesis import given
from hypothesis import strategies as st
from motor_rig import OFFSET, RATIO, SIGN, START, WIRING, arm

from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.state import Command
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.dynamixel.bus import Dynamixel
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.safety.safety_settings import SafetySettings

pytestmark = pytest.mark.hardware

WARM = np.full(3, np.nan)
MOTOR = {
    "kt": 0.05, "ke": 0.05, "resistance": 1.0, "gear_ratio": 50.0, "supply_voltage": 24.0,
}  # fmt: skip


def bus(*takes):
    body = EmulatedArm(arm(), IdealMotors(ideal_shafts(3)), START)
    return IdealBus(body, takes)


def vectors(size):
    return st.lists(st.floats(-size, size), min_size=3, max_size=3).map(np.array)


def voltage_transmission():
    return Transmission(arm().with_actuator("dc_motor", **MOTOR), WIRING, bus("voltage"), "effort")


@given(vectors(20.0), vectors(2.0))
def test_voltages_give_the_commanded_effort(effort, v):
    shafts = voltage_transmission()
    volts = shafts.voltages(effort, v, WARM)
    assert (np.abs(volts) < 24.0).all()  # R τ / (N kt) + ke N v = 8 + 5 V at most
    np.testing.assert_allclose(shafts.efforts(volts, v, WARM), effort, atol=1e-9)
    expected = effort / (50 * 0.05) + 0.05 * 50 * v
    np.testing.assert_allclose(volts, expected, atol=1e-9)


@pytest.mark.parametrize("warm", [25.0, 85.0, -10.0])
def test_a_warm_winding_needs_a_higher_voltage_for_the_same_effort(warm):
    """u = R (1 + α (T - 25 °C)) τ / (N kt) + ke N v; a missing temperature counts as 25 °C."""
    shafts, effort, v = (
        voltage_transmission(),
        np.array([5.0, -8.0, 2.0]),
        np.array([0.5, 0.0, -1.0]),
    )
    temperature = np.array([warm, warm, np.nan])
    volts = shafts.voltages(effort, v, temperature)
    resistance = 1 + 0.0039 * np.array([warm - 25, warm - 25, 0.0])
    np.testing.assert_allclose(volts, resistance * effort / 2.5 + 2.5 * v, rtol=1e-9)
    np.testing.assert_allclose(shafts.efforts(volts, v, temperature), effort, rtol=1e-9)


AT_55 = 1 + 0.0039 * 30
"""Resistance of MOTOR [Ω] at 55 °C."""


class VoltageMotors(IdealMotors):
    """τ = N kt (u - ke N v) / R at the joint, with the constants of MOTOR."""

    def _effort(self, motor, shaft, dt):
        ratio = RATIO[shaft.id - 1]
        return 2.5 * (motor.goal - 2.5 * shaft.v / ratio) / AT_55 / ratio


def test_voltage_commands_are_limited_by_the_effort_limits():
    """u as commanded if N kt (u - ke N v) / R <= τ_max, else the voltage of τ_max; hold before."""
    real = arm().with_actuator("dc_motor", **MOTOR)
    axes = {"sign": SIGN, "offset": OFFSET, "ratio": RATIO}
    body = EmulatedArm(arm(), VoltageMotors(ideal_shafts(3, temperature=55.0)), START, **axes)
    line, motors = IdealBus(body, ("voltage",)), body.motors
    safety = SafetySettings(velocity_limit_scale=0.06, max_effort_rate=1e6)
    driver = MotorBusDriver(real, line, wiring=WIRING, interface="voltage", safety=safety)

    def cycle(volts=None):
        line.pass_time(2e-3)
        v = driver.read().v
        if volts is None:
            driver.idle()
        else:
            driver.write(Command("voltage", np.array(volts, float)))
        return np.multiply([motors.each[i].goal for i in (1, 2, 3)], SIGN), v

    driver.configure()
    cycle()
    driver.activate()
    body.forget()
    for _ in range(100):
        cycle()
    assert body.moved.max() < 0.01
    carried = gravity(arm(), body.state.q) * AT_55 / 2.5
    sent, _ = cycle(carried + 0.1)
    np.testing.assert_allclose(sent, carried + 0.1, rtol=1e-9)
    sent, v = cycle([24.0, -24.0, 24.0])
    limit = np.array([1, -1, 1]) * arm().effort_limit * AT_55 / 2.5 + 2.5 * v
    np.testing.assert_allclose(sent, limit, rtol=1e-9)
    assert driver.status is DriverState.ACTIVE


def test_efforts_from_voltages_are_marked_as_estimated():
    shafts = voltage_transmission()
    assert {(c.interfaces, c.effort_source) for c in shafts.capabilities} == {
        (("effort", "voltage"), "estimated")
    }
    assert np.isnan(shafts.estimated(np.zeros(3), WARM)).all()
    goals = shafts.motor_commands("effort", np.array([5.0, 5.0, 0.0]), np.zeros(3), WARM)
    assert [(g.interface, g.value) for g in goals.values()] == [
        ("voltage", pytest.approx(2.0)), ("voltage", pytest.approx(-2.0)), ("voltage", 0.0)
    ]  # fmt: skip
    np.testing.assert_allclose(shafts.estimated(np.zeros(3), WARM), [5, 5, 0], atol=1e-9)


def test_efforts_by_voltage_need_a_motor_model():
    with pytest.raises(ConfigError, match=r"interface = 'effort'; expected none for motor 1"):
        Transmission(arm(), WIRING, bus("voltage"), "effort")
    with pytest.raises(ConfigError, match="joint 'J3': motor is missing"):
        Transmission(arm(), WIRING[:2], bus("effort"), "effort")


@given(vectors(3.0), vectors(3.0), vectors(9.0))
def test_a_motor_goal_is_converted_back_to_the_joint(q, v, tau):
    shafts = Transmission(arm(), WIRING, bus("effort", "position", "velocity"), "effort")
    goals = [
        [goal.value for goal in shafts.motor_commands(kind, value, v, WARM).values()]
        for kind, value in (("position", q), ("velocity", v), ("effort", tau))
    ]
    rows = np.zeros((len(shafts.ids), 6))
    rows[:, 1:4] = np.array(goals).T
    shafts.to_joints(rows)
    temperature = rows[:, 1:4].T
    np.testing.assert_allclose(temperature, [q, v, tau], atol=1e-12)
    np.testing.assert_allclose(goals[0], np.multiply(SIGN, RATIO) * (q - OFFSET), atol=1e-12)


def test_power_is_equal_at_shafts_and_joints():
    shafts = Transmission(arm(), WIRING, bus("effort", "velocity"), "effort")
    v, tau = np.array([1.0, -2.0, 0.5]), np.array([3.0, 4.0, -5.0])
    speeds = [goal.value for goal in shafts.motor_commands("velocity", v, v, WARM).values()]
    efforts = [goal.value for goal in shafts.motor_commands("effort", tau, v, WARM).values()]
    np.testing.assert_allclose(np.multiply(speeds, efforts), v * tau)


@pytest.mark.parametrize("kind", ["position", "velocity"])
def test_the_feedforward_is_the_gravity_torque(kind):
    takes = bus("position", "velocity")
    assert not Transmission(arm(), WIRING, takes, kind).accepts_feedforward
    takes.accepts_feedforward_effort = True
    shafts = Transmission(arm(), WIRING, takes, kind)
    assert shafts.accepts_feedforward
    fed, rest = np.array([3.0, 4.0, -5.0]), np.zeros(3)
    goals = shafts.motor_commands(kind, rest, rest, WARM, fed)
    rows = np.zeros((3, 6))
    rows[:, 3] = [goal.feedforward_effort for goal in goals.values()]
    shafts.to_joints(rows)
    np.testing.assert_allclose(rows[:, 3], fed)


def test_drivers_are_built_by_name():
    small = VENDORS["dynamixel"].arm
    driver = build_driver(small, "dynamixel", {"port": "/dev/nothing"})
    assert isinstance(driver, MotorBusDriver)
    assert isinstance(driver.bus, Dynamixel)
    assert driver.bus.settings["port"] == "/dev/nothing"
    assert driver.bus.settings["baud"] == "1000000"  # of the URDF
    assert isinstance(build_driver(small, "simulated"), SimulationDriver)
    with pytest.raises(UnknownName, match=r"'steam'; known: .*dynamixel"):
        build_driver(small, "steam")
    with pytest.raises(ConfigError, match=r"joint 'J1': id is missing"):
        build_driver(arm(), "dynamixel", {"port": "x"})


@pytest.mark.parametrize(("interface", "source"), [("position", "none"), ("voltage", "estimated")])
def test_motors_without_current_sensor_have_no_measured_effort(interface, source):
    vendor = VENDORS["dynamixel_pwm"]
    driver = build_driver(vendor.arm, vendor.driver, {"port": "/dev/null"}, interface=interface)
    assert {capability.effort_source for capability in driver.capabilities} == {source}
