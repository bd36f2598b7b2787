"""Motor models: closed forms of each term, and one contract for every registered actuator."""

import numpy as np
import pytest
from conftest import examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import INTERFACES
from arm_dynamics.simulation.actuators.actuator import NO_KERNEL, Actuator, Inconsistency
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.actuators.ideal import Ideal
from arm_dynamics.simulation.actuators.winding import brush_voltage
from arm_dynamics.simulation.joint_physics import CONSTANTS, ROWS

BASIC = {"kt": 2.0, "ke": 1.5, "resistance": 4.0}
FULL = BASIC | {
    "gear_ratio": 3.0,
    "supply_voltage": 12.0,
    "current_limit": 2.5,
    "brush_drop": 1.0,
    "brush_half_voltage": 0.8,
}

finite = st.floats(allow_nan=False, allow_infinity=False)


def motor(**changes):
    return DcMotor("J", 100.0, BASIC | changes)


def test_stall_torque_and_idle_speed():
    m = motor()
    assert m.effort("voltage", 8.0, 0.0, 0.0) == pytest.approx(2.0 * 8.0 / 4.0)
    assert m.effort("voltage", 8.0, 0.0, 8.0 / 1.5) == pytest.approx(0.0, abs=1e-14)


@given(st.floats(-50, 50))
def test_back_emf_brakes_at_zero_volts(v):
    assert motor().effort("voltage", 0.0, 0.0, v) == pytest.approx(-2.0 * 1.5 * v / 4.0)


def test_the_effort_does_not_depend_on_the_position():
    m = motor()
    assert len({m.effort("voltage", 3.0, q, 0.4) for q in (-9.0, 0.0, 9.0)}) == 1


def test_supply_and_current_saturate():
    assert motor(supply_voltage=6.0).effort("voltage", 99.0, 0, 0) == pytest.approx(2 * 6 / 4)
    limited = motor(current_limit=0.5)
    assert limited.effort("voltage", 99.0, 0, 0) == pytest.approx(2 * 0.5)
    assert limited.effort("effort", 99.0, 0, 0) == pytest.approx(2 * 0.5)
    assert limited.effort("voltage", 0.0, 0, -99.0) == pytest.approx(2 * 0.5)


@given(st.floats(-12, 12), st.floats(-5, 5), st.floats(0.1, 200))
def test_a_gear_multiplies_torque_and_speed(voltage, v, gear):
    geared, direct = motor(gear_ratio=gear), motor()
    expected = gear * direct.effort("voltage", voltage, 0, gear * v)
    assert geared.effort("voltage", voltage, 0, v) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_brush_voltage_drop():
    """Half of the drop at the half voltage, all of it far above, none at rest; an odd function."""
    assert brush_voltage(0.8, 1.0, 0.8) == pytest.approx(0.8 - 0.5)
    assert brush_voltage(1.6, 1.0, 0.8) == pytest.approx(1.6 - 0.75)
    assert brush_voltage(80.0, 1.0, 0.8) == pytest.approx(79.0)
    assert brush_voltage(0.0, 1.0, 0.8) == 0.0
    assert brush_voltage(-1.6, 1.0, 0.8) == -brush_voltage(1.6, 1.0, 0.8)
    m = motor(brush_drop=1.0, brush_half_voltage=0.8)
    assert m.effort("voltage", 1.6, 0, 0) == pytest.approx(2.0 * (1.6 - 0.75) / 4.0)


def test_rotor_inertia_and_friction_at_the_joint():
    m = motor(gear_ratio=7.0, rotor_inertia=3e-5, viscous_friction=2e-4, coulomb_friction=0.01)
    assert m.armature == pytest.approx(49 * 3e-5)
    assert m.viscous_friction == pytest.approx(49 * 2e-4)
    assert m.breakaway_effort == pytest.approx(7 * 0.01)


@given(st.floats(-60, 60), st.floats(-3, 3))
def test_an_effort_command_is_applied_within_the_supply_limits(effort, v):
    m = DcMotor("J", 100.0, FULL)
    up, down = (m.effort("voltage", volts, 0, v) for volts in (12.0, -12.0))
    expected = np.clip(effort, down, up)
    assert m.effort("effort", effort, 0, v) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_brush_voltage_drop_above_the_supply_gives_no_torque():
    m = motor(supply_voltage=0.5, brush_drop=2.0, brush_half_voltage=0.5)
    assert m.effort("effort", 3.0, 0, 0) == 0.0
    assert m.effort("effort", -3.0, 0, 0) == 0.0


def test_the_ideal_actuator_applies_the_command_up_to_the_effort_limit():
    actuator = Ideal("J", 5.0, {})
    assert not any(
        (actuator.prescribes_motion, actuator.has_dry_friction, actuator.has_internal_friction)
    )
    assert actuator.armature == actuator.viscous_friction == actuator.back_emf_damping == 0.0
    assert [actuator.effort("effort", u, 0, 0) for u in (-9, -5, 2.5, 9)] == [-5, -5, 2.5, 5]


def all_actuators():
    """Return one actuator of each registered kind, with all required constants."""
    for name in plugins.registered_names("actuators"):
        kind = plugins.load_class("actuators", name)
        needed = {p.name: max(1.0, p.lower) for p in kind.parameters if p.default is None}
        yield pytest.param(kind, needed, id=name)
    yield pytest.param(DcMotor, FULL, id="dc_motor with every constant")


contract = pytest.mark.parametrize(("kind", "constants"), list(all_actuators()))


@contract
class TestContract:
    @settings(max_examples=examples(200))
    @given(value=finite, q=finite, v=st.floats(-1e100, 1e100))
    def test_the_effort_is_finite_and_odd(self, kind, constants, value, q, v):
        actuator = kind("J", 50.0, constants)
        for interface in kind.interfaces:
            scale = 1e-200 if abs(value) > 1e100 else 1.0
            effort = actuator.effort(interface, scale * value, q, v)
            assert np.isfinite(effort)
            mirrored = actuator.effort(interface, -scale * value, -q, -v)
            assert mirrored == pytest.approx(-effort, rel=1e-12, abs=1e-12)

    @given(value=st.floats(-1e6, 1e6), more=st.floats(0, 1e6), v=st.floats(-10, 10))
    def test_the_effort_increases_with_the_command(self, kind, constants, value, more, v):
        actuator = kind("J", 50.0, constants)
        for interface in kind.interfaces:
            less, greater = (actuator.effort(interface, u, 0, v) for u in (value, value + more))
            assert greater >= less - 1e-9 * (1 + abs(less))

    @given(v=st.floats(0, 100))
    def test_the_effort_decreases_with_the_velocity(self, kind, constants, v):
        actuator = kind("J", 50.0, constants)
        for interface in kind.interfaces:
            full = 1e9
            slow, fast = (actuator.effort(interface, full, 0, speed) for speed in (v, v + 1))
            assert fast <= slow + 1e-9 * (1 + abs(slow))

    def test_only_declared_command_interfaces_are_accepted(self, kind, constants):
        actuator = kind("J", 50.0, constants)
        assert set(kind.interfaces) <= set(INTERFACES)
        for other in {*INTERFACES, "steam"} - set(kind.interfaces):
            with pytest.raises(UnknownName, match=other):
                actuator.effort(other, 1.0, 0.0, 0.0)

    def test_passive_terms_dissipate_energy(self, kind, constants):
        actuator = kind("J", 50.0, constants)
        assert actuator.armature >= 0
        assert actuator.viscous_friction >= 0
        assert actuator.breakaway_effort >= 0

    def test_parameters_are_described(self, kind, constants):
        for parameter in kind.parameters:
            assert parameter.unit
            assert len(parameter.description) > 5
            assert parameter.default is None or parameter.check("J", parameter.default) is not None
        assert len({p.name for p in kind.parameters}) == len(kind.parameters)

    def test_invalid_constants_are_rejected_by_name(self, kind, constants):
        with pytest.raises(UnknownName, match=r"'J'.*color"):
            kind("J", 50.0, constants | {"color": 1.0})
        for p in kind.parameters:
            for bad in (np.nan, -np.inf, -1.0):
                if bad != -1.0 or max(p.lower, p.above) >= 0:
                    with pytest.raises(InvalidValue, match=f"'J': {p.name} = "):
                        kind("J", 50.0, constants | {p.name: bad})
            if p.default is None:
                with pytest.raises(InvalidValue, match=rf"{p.name} is missing; expected"):
                    kind("J", 50.0, {k: v for k, v in constants.items() if k != p.name})

    def test_the_compiled_motor_model_equals_the_python_model(self, kind, constants):
        actuator = kind("J", 50.0, constants)
        assert kind.kernel_id == NO_KERNEL or len(actuator.kernel_constants()) <= ROWS - CONSTANTS


def test_infinite_constants_are_rejected_unless_they_mean_no_limit():
    assert motor(supply_voltage=np.inf).constants["supply_voltage"] == np.inf
    for name in ("kt", "ke", "resistance", "gear_ratio", "rotor_inertia"):
        with pytest.raises(InvalidValue, match=f"{name} = inf .*finite"):
            motor(**{name: np.inf})


def test_with_motors_replaces_constants():
    arm = five_dof().with_motor("R3", kt=4.0)
    assert [a.constants["kt"] for a in arm.actuators] == [10, 10, 4, 1, 1]
    assert [a.constants["kt"] for a in five_dof().actuators] == [10, 10, 10, 1, 1]
    assert all(
        a.constants["supply_voltage"] == 24 for a in arm.with_motors(supply_voltage=24).actuators
    )
    with pytest.raises(UnknownName, match="R9"):
        arm.with_motor("R9", kt=1.0)
    with pytest.raises(InvalidValue, match="'R3': kt = -1"):
        arm.with_motor("R3", kt=-1.0)
    assert issubclass(plugins.load_class("actuators", "dc_motor"), Actuator)


def test_the_error_of_a_joint_without_a_motor_names_the_remedy():
    arm = five_dof().with_actuator("ideal", joints=["R2", "R4"])
    assert [type(a).__name__ for a in arm.actuators] == [
        "DcMotor", "Ideal", "DcMotor", "Ideal", "DcMotor",
    ]  # fmt: skip
    message = (
        r"joint 'R2': actuator = 'ideal', .*; with_actuator\('dc_motor', joints=\['R2'\], kt=.*"
    )
    with pytest.raises(InvalidValue, match=message + "docs/my_motors.md"):
        arm.with_motor("R2", kt=1.0)
    with pytest.raises(InvalidValue, match="joint 'R2': actuator = 'ideal'"):
        arm.with_motors(supply_voltage=24.0)
    moved = arm.with_actuator("dc_motor", joints=["R2"], kt=2.0, ke=2.0, resistance=1.0)
    assert moved.with_motor("R2", kt=3.0).actuators[1].constants["kt"] == 3.0
    assert type(moved.actuators[3]).__name__ == "Ideal"
    with pytest.raises(UnknownName, match="R9"):
        arm.with_actuator("ideal", joints=["R9"])


@pytest.mark.parametrize("bad", ["a", "", None, [1.0], True, 1j, 10**400])
def test_a_constant_that_is_not_a_number_is_named(bad):
    with pytest.raises(InvalidValue, match=r"actuator of joint 'R3': (kt = .* N·m/A|kt .*missing)"):
        five_dof().with_motor("R3", kt=bad)


def test_an_actuator_may_reject_inconsistent_constants():
    class Pair(Ideal):
        parameters = (Parameter("low", 0.0, "V", "lower end"), Parameter("high", 1.0, "V", "upper"))

        @classmethod
        def inconsistencies(cls, constants):
            if constants["low"] > constants["high"]:
                yield Inconsistency("low", f"is above high = {constants['high']:g} V", "swap them")

    assert Pair("J", 1.0, {"low": 0.5}).constants == {"low": 0.5, "high": 1.0}
    with pytest.raises(InvalidValue, match=r"'J': low = 2 V is above high = 1 V; swap them"):
        Pair("J", 1.0, {"low": 2.0})
