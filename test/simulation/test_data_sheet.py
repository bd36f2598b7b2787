"""Data sheets: round trips, published values, rejected inputs."""

from math import pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.simulation.actuators.data_sheet import DataSheet, from_rpm
from arm_dynamics.simulation.actuators.dc_motor import DcMotor

# Two motors of maxon and one of Pololu, values of their data sheets.
RE_40 = {
    "nominal_voltage": 48.0,
    "no_load_speed": from_rpm(7590),
    "no_load_current": 0.0686,
    "stall_torque": 2.56,
}
RE_40_MORE = {
    "stall_current": 42.4,
    "resistance": 1.13,
    "torque_constant": 0.0603,
    "speed_constant": from_rpm(158),
}
RE_30 = {
    "nominal_voltage": 48.0,
    "no_load_speed": from_rpm(8490),
    "no_load_current": 0.0786,
    "stall_torque": 1.05,
}
RE_30_MORE = {
    "stall_current": 19.6,
    "resistance": 2.45,
    "torque_constant": 0.0538,
    "speed_constant": from_rpm(178),
}
POLOLU_37D = {
    "nominal_voltage": 12.0,
    "no_load_speed": from_rpm(10000),
    "no_load_current": 0.2,
    "stall_torque": 0.5 * 0.0980665,
}

positive = st.floats(0.01, 100)


def test_a_minute_has_sixty_seconds():
    assert from_rpm(60) == pytest.approx(2 * pi)


@pytest.mark.parametrize(("basic", "more"), [(RE_40, RE_40_MORE), (RE_30, RE_30_MORE)])
def test_published_data_sheets_are_consistent(basic, more):
    """Three digits are published, and stall torque there includes friction: half a percent."""
    sheet = DataSheet(**basic, **more, tolerance=0.005)
    assert sheet.k == pytest.approx(more["torque_constant"], rel=0.005)
    assert 1 / sheet.k == pytest.approx(more["speed_constant"], rel=0.005)
    assert sheet.r == pytest.approx(more["resistance"], rel=0.005)
    assert basic["nominal_voltage"] / sheet.r == pytest.approx(more["stall_current"], rel=0.005)


def test_a_sheet_of_rounded_numbers_is_accepted_with_a_wider_tolerance():
    """0.5 kg cm at 5.5 A and 10 000 rpm: 4.7 A would be consistent with these."""
    with pytest.raises(InvalidValue, match=r"stall_current = 5\.5 A and stall_torque = 0\.049"):
        DataSheet(**POLOLU_37D, stall_current=5.5)
    assert DataSheet(**POLOLU_37D, stall_current=5.5, tolerance=0.2).k == pytest.approx(
        0.011, abs=1e-4
    )


@given(
    k=positive, r=positive, volts=positive, idle_fraction=st.floats(0, 0.9),
    viscous=st.floats(0, 1), gear=st.floats(0.1, 500), efficiency=st.floats(0.1, 1),
)  # fmt: skip
def test_constants_to_data_sheet_and_back(k, r, volts, idle_fraction, viscous, gear, efficiency):
    idle = idle_fraction * volts / r
    speed = (volts - r * idle) / k
    sheet = DataSheet(
        nominal_voltage=volts,
        no_load_speed=speed / gear,
        stall_torque=gear * efficiency * (k * volts / r - (1 - viscous) * k * idle),
        no_load_current=idle,
        stall_current=volts / r,
        resistance=r,
        torque_constant=k,
        speed_constant=1 / k,
        gear_ratio=gear,
        efficiency=efficiency,
        viscous_fraction=viscous,
        tolerance=1e-6,
    )
    c = sheet.constants()
    assert c["kt"] == c["ke"] == pytest.approx(k, rel=1e-9)
    assert c["resistance"] == pytest.approx(r, rel=1e-9)
    friction = efficiency * k * idle
    assert c["coulomb_friction"] == pytest.approx((1 - viscous) * friction, rel=1e-9, abs=1e-15)
    assert c["viscous_friction"] * speed == pytest.approx(viscous * friction, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("viscous", [0.0, 0.4, 1.0])
def test_the_motor_reproduces_no_load_speed_and_stall_torque(viscous):
    """Zero net torque at no-load speed, the stall torque at rest, through the actuator."""
    geared = RE_40 | {
        "no_load_speed": RE_40["no_load_speed"] / 20, "stall_torque": 20 * 0.8 * 2.56,
        "gear_ratio": 20.0, "efficiency": 0.8, "viscous_fraction": viscous,
    }  # fmt: skip
    motor = DcMotor("J", 1e3, DataSheet(**geared).constants(rotor_inertia=137e-7))
    assert motor.constants["rotor_inertia"] == 137e-7
    w = geared["no_load_speed"]
    drive = motor.effort("voltage", 48.0, 0.0, w)
    friction = motor.dry_friction_bounds(w, drive)[0] + motor.viscous_friction * w
    assert drive == pytest.approx(friction, rel=1e-9)
    stall = motor.effort("voltage", 48.0, 0.0, 0.0)
    assert stall - motor.dry_friction_bounds(0.0, stall)[0] == pytest.approx(
        geared["stall_torque"], rel=1e-9
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nominal_voltage": 0.0}, r"nominal_voltage \[V\] = 0.0; expected above 0"),
        ({"no_load_speed": -1.0}, r"no_load_speed \[rad/s\] = -1.0"),
        ({"stall_torque": float("nan")}, r"stall_torque \[N·m\] = nan; expected a finite number"),
        ({"no_load_current": -0.1}, r"no_load_current \[A\] = -0.1; expected at least 0"),
        ({"stall_current": 0.0}, r"stall_current \[A\] = 0.0"),
        ({"stall_current": "a"}, "stall_current .* expected a number"),
        ({"gear_ratio": 0.0}, "gear_ratio = 0.0"),
        ({"efficiency": 1.2}, "efficiency = 1.2; expected at most 1"),
        ({"viscous_fraction": 2.0}, "viscous_fraction = 2.0"),
        ({"tolerance": -1.0}, "tolerance = -1.0"),
        ({"no_load_current": 42.4, "stall_current": 42.4},
         "no_load_current = 42.4 A is not below stall_current = 42.4 A"),
        ({"no_load_current": 50.0, "resistance": 1.13},
         r"no_load_current = 50 A is not below nominal_voltage / resistance = 42.47"),
        ({"resistance": 2.0}, r"resistance = 2 Ω and stall_torque = 2.56 N·m .* 1\.1\d* Ω ± 10 %"),
        ({"resistance": 1.13, "stall_current": 60.0},
         r"resistance = 1.13 Ω and stall_current = 60 A contradict each other: .* = 0\.8 Ω"),
        ({"torque_constant": 0.1}, r"torque_constant = 0.1 .* no_load_speed = 794.8.* 0\.060\d* "),
        ({"speed_constant": 158.0}, r"speed_constant = 158 .* no_load_speed .* 16\.\d+ rad/s/V"),
        ({"torque_constant": 0.0603, "speed_constant": 158.0},
         r"torque_constant = 0.0603 N·m/A and speed_constant = 158 rad/s/V"),
        ({"resistance": 2.0, "gear_ratio": 2.0}, "or the gear's efficiency is another"),
    ],
)  # fmt: skip
def test_rejections_name_the_numbers(changes, message):
    with pytest.raises(InvalidValue, match=message):
        DataSheet(**(RE_40 | changes))


def test_additional_constants_are_passed_to_the_motor():
    sheet = DataSheet(**RE_40)
    assert sheet.constants(inductance=3.3e-4)["inductance"] == 3.3e-4
    with pytest.raises(UnknownName, match="constant of dc_motor 'color'"):
        sheet.constants(color=1.0)
    with pytest.raises(InvalidValue, match=r"kt = 1\.0: the data sheet determines it"):
        sheet.constants(kt=1.0)
