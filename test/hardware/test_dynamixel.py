"""The Dynamixel bus on emulated motors: feedback, commands, rejections, broken communication."""

import random
from dataclasses import replace
from math import inf, isnan, nan, pi

import pytest
from dynamixel_rig import Wire, bus, wiring
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.core.errors import CommandRejected, ConfigError, DriverFault, UnknownName
from arm_dynamics.hardware.dynamixel import packets
from arm_dynamics.hardware.dynamixel.bus import Dynamixel
from arm_dynamics.hardware.dynamixel.control_table import (
    BUS_WATCHDOG,
    MODELS,
    TORQUE_ENABLE,
    find_model,
)
from arm_dynamics.hardware.dynamixel.discovery import scan_port
from arm_dynamics.hardware.dynamixel.feedback_reader import MAX_COMPARISON_AGE
from arm_dynamics.hardware.dynamixel.transport import DynamixelTransport
from arm_dynamics.hardware.emulation.dynamixel_motors import SHEETS, EmulatedDynamixels
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorCommand

pytestmark = pytest.mark.hardware

TICK = 2 * pi / 4096
RATE = 0.229 * 2 * pi / 60
SIX = ("XM430-W350",) * 6


def ready(models=("XM430-W350",) * 3, interface="effort", **options):
    """Return a bus whose motors are prepared."""
    made, motors, wire = bus(models, **options)
    made.open()
    made.discover()
    made.prepare(interface)
    return made, motors, wire


def running(models=("XM430-W350",) * 3, interface="effort", **options):
    """Return a bus whose motors have torque enabled."""
    made, motors, wire = ready(models, interface, **options)
    assert made.enable_watchdog(0.1) == made.enable(made.motors) == set(made.motors)
    return made, motors, wire


def cycle(made, wire):
    """Return readings, duration [s] and number of requests of one read."""
    time, writes = wire.time, wire.writes
    return made.read(), wire.time - time, wire.writes - writes


def test_constants_equal_the_data_sheets_of_the_emulator():
    for name, sheet in SHEETS.items():
        model = MODELS[name]
        assert model.number == sheet.number
        assert (model.stall_torque, model.stall_current) == (sheet.stall, sheet.amps)
        assert (model.voltage, model.current_unit) == (sheet.supply, sheet.amps_unit)
    assert len({model.number for model in MODELS.values()}) == len(MODELS)


def test_models_are_found_by_any_spelling_of_their_name():
    assert find_model("xm430-w350-t") is find_model(" XM430-W350-R") is MODELS["XM430-W350"]
    with pytest.raises(UnknownName, match="XL330-M288"):
        find_model("AX-12A")


@given(st.floats(-40, 40), st.floats(-8, 8), st.integers(5, 75), st.floats(9.6, 15.9))
def test_readings_equal_the_state_of_the_shaft(q, v, temperature, supply):
    made, motors, _ = ready(("XM430-W350", "XM430-W350"))
    shaft = motors.shafts[1]
    shaft.q, shaft.v, shaft.temperature, shaft.supply = q, v, float(temperature), supply
    reading = made.read()[2]
    assert reading.q == pytest.approx(q, abs=0.51 * TICK)
    assert reading.v == pytest.approx(v, abs=0.51 * RATE)
    assert reading.temperature == temperature
    assert reading.supply == pytest.approx(supply, abs=0.051)
    assert (reading.fault, reading.enabled) == ("", False)


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("models", [SIX, ("XL430-W250",) * 2 + ("XL330-M288",) * 4])
def test_a_cycle_is_one_request(models, fast):
    made, _, wire = ready(models, "position", settings={"fast_sync_read": fast})
    for _ in range(5):
        found, _, questions = cycle(made, wire)
        assert set(found) == set(range(1, 7))
        assert questions == 1
        assert all(abs(r.time - wire.time) < 2e-3 for r in found.values())


def test_old_firmware_gets_plain_requests():
    made, _, wire = ready(SIX, firmware=44)
    found, _, questions = cycle(made, wire)
    assert set(found) == set(range(1, 7))
    assert questions == 1


def test_echoes_and_noise_are_ignored():
    made, _, wire = running(SIX, echo=True)
    wire.distort = lambda data: b"\xff\xff\xfd\x00\x01\x07" + data if data else data
    for _ in range(4):
        assert set(made.read()) == set(range(1, 7))
    made.write({id: MotorCommand("effort", 0.5) for id in made.motors})
    assert made.read()[3].enabled


@given(st.floats(-3, 3))
def test_effort_is_converted_to_current_and_back(effort):
    made, motors, wire = running()
    made.write({2: MotorCommand("effort", effort)})
    wire.advance(1e-3)
    step = MODELS["XM430-W350"].kt * 2.69e-3
    assert motors.shafts[1].effort == pytest.approx(effort, abs=0.51 * step)
    assert made.read()[2].tau == pytest.approx(motors.shafts[1].effort, abs=0.51 * step)
    assert motors.shafts[0].effort == 0


@given(st.floats(-11, 11))
def test_voltage_is_converted_to_pwm_of_the_measured_supply(volts):
    made, motors, wire = running(("XL430-W250",), "voltage")
    motors.shafts[0].supply = 11.0
    made.read()
    made.write({1: MotorCommand("voltage", volts)})
    wire.advance(1e-3)
    assert motors.shafts[0].effort == pytest.approx(1.4 * volts / 11.1, abs=1.4 / 885)


def test_position_and_velocity_move_the_shaft():
    made, motors, wire = running(interface="position")
    made.write({1: MotorCommand("position", -7.0)})
    assert motors.get(1, 116) == 2048 - round(7.0 / TICK)
    made, motors, wire = running(interface="velocity")
    made.write({1: MotorCommand("velocity", -2.0)})
    assert motors.get(1, 104) == -round(2.0 / RATE)
    wire.advance(1e-3)
    assert motors.shafts[0].effort < 0


def test_large_goals_are_clipped_to_the_limits_of_the_motor():
    made, motors, _ = running()
    motors.set(1, 38, 500)
    made.disable([1])
    made.prepare("effort")
    made.write({1: MotorCommand("effort", -1e9), 2: MotorCommand("effort", 1e9)})
    assert (motors.get(1, 102), motors.get(2, 102)) == (-500, 1193)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_non_finite_goals_are_not_sent(value):
    made, motors, _ = running()
    with pytest.raises(CommandRejected):
        made.write({1: MotorCommand("effort", 1.0), 2: MotorCommand("effort", value)})
    assert motors.get(1, 102) == 0


def test_goals_of_another_interface_or_before_preparation_are_rejected():
    made, _, _ = running()
    with pytest.raises(CommandRejected, match="expected 'effort'"):
        made.write({1: MotorCommand("voltage", 1.0)})
    made, _, _ = bus()
    made.open()
    with pytest.raises(DriverFault, match="not set up"):
        made.write({1: MotorCommand("effort", 1.0)})
    assert made.enable([1]) == set()


def test_motors_without_current_control_accept_voltage():
    made, _, _ = bus(("XL430-W250", "XC330-T288", "XM430-W350", "XL330-M288"))
    takes = {id: made.interfaces(id) for id in made.motors}
    assert [id for id, taken in takes.items() if "effort" in taken] == [3]
    made.open()
    with pytest.raises(DriverFault, match="'effort'; expected 'position' or 'velocity' or 'v"):
        made.prepare("effort")


def test_enabling_moves_nothing():
    made, motors, wire = ready(interface="position")
    for shaft, q in zip(motors.shafts, (0.5, -1.0, 2.0), strict=True):
        shaft.q = q
    motors.set(1, 116, 0)
    assert made.enable([1, 2, 3]) == {1, 2, 3}
    wire.advance(0.05)
    assert all(abs(shaft.effort) < 0.02 for shaft in motors.shafts)
    made, motors, wire = ready()  # the initial goal current is its limit
    assert made.enable([1, 2, 3]) == {1, 2, 3}
    wire.advance(0.05)
    assert all(shaft.effort == 0 for shaft in motors.shafts)


def test_goals_written_before_enabling_are_kept():
    made, motors, wire = ready()
    made.write({1: MotorCommand("effort", 1.0)})
    wire.advance(1e-3)
    assert motors.shafts[0].effort == 0
    made.enable([1, 2])
    wire.advance(1e-3)
    assert motors.shafts[0].effort == pytest.approx(1.0, abs=0.01)


def test_disabling_torque_clears_the_goals():
    made, motors, wire = running()
    made.write({1: MotorCommand("effort", 1.0)})
    made.disable([1])
    made.enable([1])
    wire.advance(1e-3)
    assert motors.shafts[0].effort == 0


def test_disabling_is_confirmed_by_each_motor():
    made, motors, _ = running()
    motors.shafts[1].silent = True
    assert made.disable([1, 2, 3]) == {1, 3}
    assert motors.torque_is_on(2)
    motors.shafts[1].silent = False
    assert made.disable([1, 2, 3]) == {1, 2, 3}
    assert not motors.torque_is_on(2)


@pytest.mark.parametrize(
    ("timeout", "steps"), [(1e-3, 1), (0.02, 1), (0.1, 5), (0.11, 6), (60.0, 127)]
)
def test_the_watchdog_counts_steps_of_20_ms(timeout, steps):
    made, motors, _ = ready()
    assert made.enable_watchdog(timeout) == {1, 2, 3}
    assert motors.get(2, 98) == steps


def test_a_host_timeout_trips_the_watchdog_and_is_reported_afterwards():
    made, motors, wire = running()
    made.write({1: MotorCommand("effort", 1.0)})
    for _ in range(100):  # every read restarts the watchdog
        wire.advance(5e-3)
        assert not any(r.fault for r in made.read().values())
    wire.advance(0.13)
    assert all(shaft.effort == 0 for shaft in motors.shafts)
    assert {r.fault for r in made.read().values()} == {"bus watchdog"}
    made.write({1: MotorCommand("effort", 1.0)})
    wire.advance(1e-3)
    assert motors.shafts[0].effort == 0
    assert made.enable_watchdog(0.1) == {1, 2, 3}
    assert {r.fault for r in made.read().values()} == {""}
    wire.advance(0.13)
    assert made.clear_faults([1, 2, 3]) == {1, 2, 3}
    assert {(r.fault, r.enabled) for r in made.read().values()} == {("", False)}


@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_a_tripped_watchdog_is_cleared_before_other_writes(interface):
    made, motors, wire = running(interface="voltage")
    made.write({1: MotorCommand("voltage", 1.0)})
    wire.advance(0.3)
    assert {motors.get(id, 98) for id in (1, 2, 3)} == {-1}
    assert motors.get(1, 100) == 0
    after = Dynamixel(wiring(*("XM430-W350",) * 3), {"baud": "1000000"}, wire)
    after.open()
    after.discover()
    after.prepare(interface)
    assert [motors.get(id, 100) for id in (1, 2, 3)] == [885] * 3
    assert after.enable_watchdog(0.1) == after.enable([1, 2, 3]) == {1, 2, 3}
    assert {(r.fault, r.enabled) for r in after.read().values()} == {("", True)}


def test_a_watchdog_is_enabled_although_its_first_clearing_was_lost():
    made, motors, wire = running()
    wire.advance(0.3)
    received, lost = motors.receive, []

    def ignore_first_clearing(data, now):
        """Ignore the first clearing."""
        if data[7:10] == b"\x83\x62\x00" and not lost:
            lost.append(data)
            return b""
        return received(data, now)

    motors.receive = ignore_first_clearing
    assert made.enable_watchdog(0.1) == {1, 2, 3}
    assert lost


def test_a_restart_clears_a_motor_without_a_watchdog():
    made, motors, _ = ready(firmware=37)
    motors.reboot(2)
    for _ in range(2):
        made.read()
    assert made.read()[2].fault == "rebooted"
    assert made.clear_faults([2]) == {2}
    assert made.read()[2].fault == ""


@pytest.mark.parametrize("model", ["XL330-M288", "XC330-T288"])
def test_a_supply_current_is_not_reported_as_effort(model):
    made, motors, wire = running((model,), "voltage")
    made.read()
    made.write({1: MotorCommand("voltage", 1.0)})
    wire.advance(1e-3)
    reading = made.read()[1]
    drawn = MODELS[model].kt * motors.get(1, 126) * MODELS[model].current_unit
    assert 0 < drawn < 0.5 * motors.shafts[0].effort
    assert isnan(reading.tau)


@pytest.mark.parametrize(
    ("model", "firmware", "armed", "text"),
    [
        ("XM430-W350", 37, False, "firmware = 37; expected at least 38"),
        ("XC330-T288", 37, False, "firmware = 37; expected at least 38"),
        ("XM430-W350", 38, True, ""),
        ("XM430-W350", 51, True, ""),
        ("XL330-M288", 37, True, ""),
        ("XL330-M288", 52, True, ""),
        (
            "XL330-M288",
            51,
            False,
            "firmware = 51 continues when its bus watchdog trips; expected another",
        ),
    ],
)
def test_only_the_supported_watchdog_is_written_and_it_stops_the_motor(
    model, firmware, armed, text
):
    made, motors, wire = bus((model,), firmware=firmware)
    assert made.has_watchdog(1) is None
    made.open()
    made.discover()
    assert (made.has_watchdog(1), made.missing_watchdog_reason(1)) == (armed, text)
    made.prepare("voltage")
    assert made.enable_watchdog(0.1) == ({1} if armed else set())
    assert made.enable([1]) == {1}
    made.write({1: MotorCommand("voltage", 3.0)})
    wire.advance(0.3)
    assert (motors.shafts[0].effort == 0.0) is armed


def test_watchdog_support_is_known_after_preparation_without_discovery():
    made, _, _ = bus(firmware=37)
    made.open()
    made.prepare("position")
    assert made.has_watchdog(2) is False
    made.open()
    assert made.has_watchdog(2) is None


@pytest.mark.parametrize("option", [{}, {"chained": True}, {"firmware": 44, "chained": True}])
def test_a_motor_without_reply_does_not_delay_the_others(option):
    made, motors, wire = running(SIX, **option)
    _, usual, _ = cycle(made, wire)
    motors.shafts[2].silent = True
    others = {1, 2, 4, 5, 6}
    seen = [cycle(made, wire) for _ in range(40)]
    lost = [others - set(found) for found, _, _ in seen]
    assert not any(lost)
    assert seen[0][1] < usual + 0.014
    assert max(took for _, took, _ in seen[1:]) < usual + 0.006
    assert sum(took for _, took, _ in seen[10:]) / 30 < usual + 0.002
    motors.shafts[2].silent = False
    assert any(3 in made.read() for _ in range(4))
    assert set(made.read()) == set(range(1, 7))


def test_a_recovered_motor_is_read_behind_one_without_reply():
    made, motors, _ = running(SIX, firmware=44, chained=True)
    motors.shafts[2].silent = motors.shafts[4].silent = True
    for _ in range(4):
        found = set(made.read())
    assert found == {1, 2, 4, 6}
    motors.shafts[4].silent = False
    assert any(5 in made.read() for _ in range(3))


def test_bytes_before_the_request_are_not_a_reply():
    made, motors, wire = running(settings={"fast_sync_read": "0"})
    received = []
    wire.distort = lambda data: received.append(data) or data
    made.read()
    (old,) = received
    motors.shafts[0].silent = True
    for _ in range(2):
        made.read()
    wire.repeat(old)  # of the length of the next request
    assert set(made.read()) == {2, 3}


def test_a_reply_without_the_value_does_not_end_the_wait():
    """A reply of the same motor to a write has no error and no data."""
    _, _, wire = bus()
    line = DynamixelTransport(wire, 1e6, 1e-3)
    empty = packets.encode(2, packets.STATUS, b"\x00")
    wire.distort = lambda data: empty + data
    found = line.read(range(1, 4), BUS_WATCHDOG)
    assert found == {1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize("lost", [1, 2])
def test_a_register_write_is_repeated_for_unconfirmed_motors(lost):
    """The first motor's reply is lost in ``lost`` of three rounds."""
    _, _, wire = bus()
    line, rounds = DynamixelTransport(wire, 1e6, 1e-3), []

    def distort(data):
        rounds.extend([data] if data else [])
        return data[packets.STATUS_SIZE + BUS_WATCHDOG.size :] if len(rounds) <= lost else data

    wire.distort = distort
    values = dict.fromkeys((1, 2, 3), 5)
    assert line.write_registers(BUS_WATCHDOG, values, lost) == {2, 3}
    rounds.clear()
    assert line.write_registers(BUS_WATCHDOG, values, lost + 1) == {1, 2, 3}
    assert len(rounds) == lost + 1
    rounds[:] = [b""] * lost
    assert line.write_registers(BUS_WATCHDOG, values, 3) == {1, 2, 3}
    assert len(rounds) == lost + 1, "no request after all have confirmed"


def test_corrupted_replies_give_no_wrong_value():
    made, motors, wire = running(SIX)
    chance = random.Random(3)
    for k, shaft in enumerate(motors.shafts):
        shaft.q = 0.1 * k

    def distort(data):
        noisy = bytearray(data)
        for k in range(len(noisy)):
            if chance.random() < 0.02:
                noisy[k] ^= 1 << chance.randrange(8)
        return bytes(noisy)

    wire.distort = distort
    answered = 0
    for _ in range(300):
        for id, reading in made.read().items():
            assert reading.q == pytest.approx(0.1 * (id - 1), abs=0.51 * TICK)
            answered += 1
    assert answered > 600


@given(st.lists(st.binary(max_size=60), max_size=6), st.integers(0, 5))
def test_random_bytes_give_no_value_and_raise_nothing(noise, where):
    made, motors, wire = running(("XM430-W350",) * 2)
    motors.shafts[1].q = 0.5
    pieces = iter(noise)

    def distort(data):
        piece = next(pieces, b"")
        return data[:where] + piece + data[where:] if where % 2 else piece

    wire.distort = distort
    for _ in range(3):
        assert all(r.q == pytest.approx(0.5 * (id - 1), abs=TICK) for id, r in made.read().items())
    made.disable([1, 2])
    made.clear_faults([1])
    wire.distort = lambda data: data
    assert made.disable([1, 2]) == {1, 2}
    assert set(made.read()) == {1, 2}


def test_a_slow_adapter_is_waited_for_after_discovery():
    made, _, wire = bus(SIX)
    wire.hold = 0.012
    made.open()
    made.discover()
    made.prepare("effort")
    assert all(set(made.read()) == set(range(1, 7)) for _ in range(5))


def test_a_slow_adapter_extends_no_wait_for_silent_motors_beyond_40_ms():
    made, _, wire = bus(("XM430-W350",))
    wire.hold = 0.03
    made.open()
    made.discover()
    wire.distort = lambda data: b""
    start, writes = wire.time, wire.writes
    assert made.read() == {}
    assert 0.03 < (wire.time - start) / (wire.writes - writes) < 0.042


def test_a_reply_to_the_previous_request_is_ignored():
    made, motors, wire = running(settings={"fast_sync_read": "0"})
    late = [b"", b""]  # two requests per cycle without replies

    def hold_back(data):
        late.append(data)
        return late.pop(0)

    made.read()
    wire.distort = hold_back
    for _ in range(10):
        assert made.read() == {}
        motors.shafts[0].q += 0.1
    wire.distort = lambda data: data
    for _ in range(4):
        found = made.read()
    assert found[1].q == pytest.approx(motors.shafts[0].q, abs=TICK)


def test_a_restart_is_reported_until_it_is_cleared():
    made, motors, wire = running(SIX)
    motors.shafts[3].q = 1.0
    made.write({4: MotorCommand("effort", 1.0)})
    motors.reboot(4)
    for _ in range(5):
        found, took, _ = cycle(made, wire)
        assert set(found) == set(range(1, 7))
        assert (found[4].fault, found[4].enabled) == ("rebooted", False)
        assert found[4].q == pytest.approx(1.0, abs=TICK)
        assert took < 0.01
    assert made.clear_faults([4]) == {4}
    found, _, questions = cycle(made, wire)
    assert found[4].fault == ""
    assert questions == 1, "it is prepared as the others are"
    assert made.read()[1].enabled


def test_closing_the_port_resets_the_preparation():
    made, motors, _ = running()
    motors.shafts[0].q = 1.0
    made.close()
    motors.reboot(1)
    made.open()
    found = made.read()
    assert (found[1].fault, found[1].q) == ("", pytest.approx(1.0, abs=TICK))
    motors.reboot(2)
    made.prepare("effort")
    motors.reboot(3)
    assert made.read()[3].fault == "rebooted"
    made.prepare("effort")
    assert made.read()[3].fault == ""


def test_a_goal_that_only_bounds_the_mode_is_set_to_its_maximum():
    made, motors, _ = bus()
    made.open()
    motors.set(1, 11, 0)
    motors.set(1, 100, 7)
    made.prepare("effort")
    assert motors.get(1, 100) == 885


@pytest.mark.parametrize("fault", ["overload", "overheating", "electrical shock"])
def test_a_fault_is_described_and_cleared_by_a_restart(fault):
    made, motors, _ = running()
    motors.trip(2, fault)
    found = made.read()
    assert (found[2].fault, found[2].enabled) == (fault, False)
    assert found[1].fault == ""
    assert made.enable([2]) == set()
    assert made.clear_faults([2]) == {2}
    found = made.read()
    assert (found[2].fault, found[2].enabled) == ("", False)
    assert made.enable_watchdog(0.1) == {1, 2, 3}
    assert made.enable([2]) == {2}


@pytest.mark.parametrize("away", [0.0, 0.3, 5.0])
def test_the_wait_for_a_restart_ends_with_its_first_reply(away):
    made, motors, wire = running()
    motors.trip(2, "overload")
    motor, start, received = motors.motors[1], wire.time, motors.receive
    back = []

    def starting(data, now):
        """Reply to the reboot request of motor 2, then not until it has started."""
        if motor.reboots and not back:
            back.append(now + away)
        motors.shafts[1].silent = bool(back) and now < back[0]
        return received(data, now)

    motors.receive = starting
    writes = wire.writes
    assert made.clear_faults([2]) == ({2} if away < 1 else set())
    assert motor.reboots == 1
    took = wire.time - start
    assert away - 0.01 < took < away + 0.2 or 1.0 < took < 1.4
    assert wire.writes - writes < 60
    if away < 1:
        assert made.read()[2].fault == ""
        assert made.enable([2]) == {2}
    else:
        motors.receive, motors.shafts[1].silent = received, False
        for _ in range(12):
            found = made.read()
        assert found[2].fault == "rebooted"
        assert made.clear_faults([2]) == {2}


def test_a_motor_that_cannot_be_prepared_again_is_not_cleared():
    made, motors, _ = running()
    motors.reboot(2)
    motors.set(2, 10, 1)
    assert made.clear_faults([1, 2, 3]) == {1, 3}


def test_a_watchdog_is_cleared_also_before_preparation():
    made, motors, _ = bus()
    made.open()
    motors.set(1, 98, -1)
    assert made.clear_faults([1, 2, 3]) == {1, 2, 3}
    assert motors.get(1, 98) == 0
    assert made.read()[1].fault == ""


def test_a_restarted_motor_is_prepared_and_its_readings_accepted_immediately():
    """Its clock restarts at 0; earlier replies do not mark it as late."""
    made, motors, wire = running()
    for _ in range(10):
        wire.advance(0.5)
        made.read()
    motors.reboot(2)
    assert made.read()[2].fault == "rebooted"
    motors.shafts[1].silent = True
    made.read()
    motors.shafts[1].silent = False
    assert made.clear_faults([2]) == {2}
    found, _, questions = cycle(made, wire)
    assert found[2].fault == ""
    assert questions == 1


def test_a_persistent_fault_is_not_cleared():
    made, motors, wire = running()
    motors.shafts[0].temperature = 95.0
    wire.advance(1e-3)
    assert made.read()[1].fault == "overheating"
    assert made.clear_faults([1]) == set()
    assert made.read()[1].temperature == 95


def test_values_are_read_before_preparation():
    made, motors, _ = bus(SIX)
    made.open()
    motors.shafts[1].q = 1.0
    motors.trip(3, "encoder")
    before = {id: bytes(m.bytes) for id, m in enumerate(motors.motors)}
    found = made.read()
    assert found[2].q == pytest.approx(1.0, abs=TICK)
    assert found[3].fault == "encoder"
    assert {r.enabled for r in found.values()} == {False}
    after = {id: bytes(m.bytes) for id, m in enumerate(motors.motors)}
    changed = {k for id in before for k in range(1024) if before[id][k] != after[id][k]}
    assert changed <= {0, 1, 6, *range(120, 147)}  # what the motors measure


def test_discovery_changes_nothing_and_names_every_wrong_motor():
    shafts = [
        Shaft(1, "XM430-W350"),
        Shaft(1, "XM430-W350", q=1.0),
        Shaft(2, "XM430-W210"),
        Shaft(4, "XM430-W350"),
    ]
    made, motors, _ = bus(("XM430-W350",) * 4, shafts)
    made.open()
    with pytest.raises(DriverFault) as raised:
        made.discover()
    a, b, c, remedies = str(raised.value).split("; ", 3)
    assert remedies == made.remedies
    assert a == "joint 'a' (id 1): two motors reply with this id"
    assert b == ("joint 'b' (id 2): model = XM430-W210 (firmware 46), expected XM430-W350")
    assert c == "joint 'c' (id 3): no reply"
    assert all(m.get(11) == 3 and m.get(64) == 0 for m in motors.motors)


@pytest.mark.parametrize("k", range(1, 31))
def test_two_motors_of_one_model_with_one_id_are_detected_in_any_position(k):
    made, _, _ = bus(("XM430-W350",), [Shaft(1, "XM430-W350"), Shaft(1, "XM430-W350", q=0.1 * k)])
    made.open()
    with pytest.raises(DriverFault, match=r"two motors (reply )?with this id"):
        made.discover()


def test_lost_bytes_are_not_reported_as_a_second_motor():
    chance = random.Random(1)
    made, _, wire = bus()
    wire.distort = lambda data: data if chance.random() < 0.95 else data[:-1]
    made.open()
    for _ in range(5):
        made.discover()


def test_two_models_with_one_id_are_detected():
    made, _, _ = bus(("XM430-W350",), [Shaft(1, "XM430-W350"), Shaft(1, "XL430-W250")])
    made.open()
    with pytest.raises(DriverFault, match=r"two motors (reply )?with this id"):
        made.discover()


def test_without_any_reply_the_error_names_baud_rate_and_latency():
    made, _, _ = bus(("XM430-W350",) * 2, [])
    made.open()
    with pytest.raises(DriverFault, match=r"baud = 1000000 bit/s .*raise latency = 0\.004 s"):
        made.discover()


@pytest.mark.parametrize("bit", [1, 2, 8])
def test_inverting_drive_modes_are_rejected(bit):
    made, motors, _ = bus()
    made.open()
    motors.set(2, 10, bit)
    with pytest.raises(DriverFault, match=f"joint 'b' .id 2.: drive mode = {bit}"):
        made.prepare("effort")
    assert motors.get(2, 10) == bit


def test_eeprom_is_written_only_where_it_differs():
    made, motors, wire = ready()
    motors.set(1, 11, 0)
    served = [motors.served]
    made.prepare("effort")
    served.append(motors.served)
    wire.motors.set(1, 11, 3)
    made.prepare("effort")
    assert motors.served - served[1] > served[1] - served[0]
    assert motors.get(1, 11) == 0


def test_a_disconnected_port_is_a_fault_until_it_is_reopened():
    made, _, wire = running()
    wire.gone = True
    for call in (made.read, made.discover, made.open, lambda: made.disable([1])):
        with pytest.raises(DriverFault):
            call()
    made.close()
    made.close()
    wire.gone = False
    made.open()
    made.discover()
    made.prepare("effort")
    assert set(made.read()) == {1, 2, 3}


def test_scan_lists_motors_by_rate_and_changes_nothing():
    def port(baud):
        _, motors, wire = bus(("XM430-W350", "XL430-W250") if baud == 1_000_000 else ())
        made.append(motors)
        wires.append(wire)
        return wire

    made: list[EmulatedDynamixels] = []
    wires: list[Wire] = []
    assert scan_port(port, (57_600, 1_000_000)) == [
        DiscoveredMotor(1, "XM430-W350", "46", 1_000_000),
        DiscoveredMotor(2, "XL430-W250", "46", 1_000_000),
    ]
    assert all(wire.closed for wire in wires)
    fresh = bus(("XM430-W350", "XL430-W250"))[1]
    for motor, like in zip(made[1].motors, fresh.motors, strict=True):
        writable = [address for address, entry in motor.table.items() if entry[1]]
        assert [motor.get(a) for a in writable] == [like.get(a) for a in writable]


def test_scan_reports_colliding_replies():
    shafts = [Shaft(1, "XM430-W350"), Shaft(1, "XL430-W250"), Shaft(2, "XM430-W350")]
    found = scan_port(lambda baud: bus(("XM430-W350",), shafts)[2], (1_000_000,))
    assert [(f.id, f.model) for f in found] == [(2, "XM430-W350"), (1, "corrupt")]


def test_scan_reports_two_motors_with_identical_replies():
    shafts = [Shaft(1, "XM430-W350", q=0.3), Shaft(1, "XM430-W350"), Shaft(2, "XM430-W350")]
    found = scan_port(lambda baud: bus(("XM430-W350",), shafts)[2], (1_000_000,))
    assert {f.id for f in found if f.model == "corrupt"} == {1}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"baud": "fast"}, "baud"),
        ({"baud": ""}, "driver 'dynamixel': baud = '' bit/s; expected a number"),
        ({"baud": "12"}, "at least 9600"),
        ({"latency": "-1"}, "latency"),
    ],
)
def test_invalid_settings_are_named(settings, text):
    with pytest.raises(ConfigError, match=text):
        bus(settings=settings)


def test_a_port_must_be_named_and_ids_must_be_possible():
    with pytest.raises(ConfigError, match="port is missing"):
        Dynamixel(wiring("XM430-W350"), {})
    motor = replace(wiring("XM430-W350")[0], id=253)
    with pytest.raises(ConfigError, match="Dynamixel id = 253; expected 0 to 252"):
        Dynamixel([motor], {"port": "x"})


def test_replies_with_an_error_give_no_value():
    line = ready(firmware=37)[0]._transport
    assert line.read_register(2, BUS_WATCHDOG) is None
    assert line.read_register(2, TORQUE_ENABLE) == 0
    assert not line.write_register(2, BUS_WATCHDOG, 0)


def test_fast_and_plain_sync_reads_are_equal():
    fast, one, _ = running(SIX)
    plain, other, _ = running(SIX, settings={"fast_sync_read": "0"})
    for motors in (one, other):
        for k, shaft in enumerate(motors.shafts):
            shaft.q, shaft.v = -1.0 + 0.4 * k, 3.0 - k  # FF FF FD inside some of them
            motors.set(k + 1, 116, 0)
        motors.shafts[2].q = (0xFDFFFF - (1 << 24) - 2048) * TICK
    for _ in range(3):
        a, b = fast.read(), plain.read()
        assert {i: (r.q, r.v) for i, r in a.items()} == {i: (r.q, r.v) for i, r in b.items()}
        assert set(a) == set(range(1, 7))


def test_instructions_after_a_truncated_one_are_executed():
    motors = EmulatedDynamixels([Shaft(1, "XM430-W350")])
    cut = packets.ping(1)[:7]
    assert motors.receive(cut, 0.0) == b""
    assert motors.receive(packets.ping(1), 0.0) != b""


def test_a_reply_many_cycles_late_is_detected_by_the_motors_clock():
    """Twelve requests late, with the expected length: four periods of the cycle of lengths."""
    made, _, wire = running(settings={"fast_sync_read": "0"})
    for _ in range(3):
        made.read()
    late = [b""] * 12

    def hold_back(data):
        late.append(data)
        return late.pop(0)

    wire.distort = hold_back
    for _ in range(40):
        assert made.read() == {}
    wire.distort = lambda data: data
    assert any(made.read() for _ in range(4))


def test_readings_are_accepted_again_after_a_clock_deviation():
    made, _, wire = running(settings={"fast_sync_read": "0"})
    made.read()
    wire.distort = lambda data: b""
    wire.advance(20.0)
    made.read()
    wire.distort = lambda data: data
    wire.advance(MAX_COMPARISON_AGE)
    assert any(made.read() for _ in range(4))
