"""Feetech servos behind the motor bus interface, on virtual time and with bad communication."""

import math
import random
from functools import partial

import pytest

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import (
    CommandRejected,
    ConfigError,
    DriverFault,
    InvalidValue,
    UnknownName,
)
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.feetech import Feetech
from arm_dynamics.hardware.feetech.bus import BLOCK_PERIOD, VELOCITY_PERIOD
from arm_dynamics.hardware.feetech.discovery import scan_port
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorCommand
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

pytestmark = pytest.mark.hardware

STEP = 2 * math.pi / 4096
BAUD = 1_000_000
IDS = (1, 2, 3, 4, 5, 6)


class Wire(Port):
    """Bytes between a bus and emulated servos, ten bits each; ``fault`` changes the replies."""

    def __init__(self, motors, baud=BAUD):
        self.motors, self.time, self.sent, self.queue = motors, 0.0, [], []
        self.byte_time, self.gone, self.is_open = 10 / baud, False, False
        self.fault = lambda reply: reply
        self.delay = 0.0

    def now(self):
        return self.time

    def open(self):
        self._require()
        self.is_open = True

    def write(self, data):
        self._require()
        self.sent.append(data)
        self.time += len(data) * self.byte_time
        start = self.time + 1e-4 + self.delay
        reply = self.fault(self.motors.receive(data, self.time))
        self.queue += [(start + (k + 1) * self.byte_time, b) for k, b in enumerate(reply)]

    def read(self, size, until):
        self._require()
        self.queue.sort(key=lambda entry: entry[0])
        taken = [entry for entry in self.queue if entry[0] <= until][:size]
        self.queue = self.queue[len(taken) :]
        self.time = max(self.time, taken[-1][0] if len(taken) == size else until)
        return bytes(byte for _, byte in taken)

    def flush(self):
        self._require()
        self.queue = [entry for entry in self.queue if entry[0] > self.time]

    def close(self):
        self.is_open = False

    def _require(self):
        if self.gone:
            raise DriverFault("port 'wire' is gone")


def wired(id, motor="sts3215"):
    return JointMotor(f"J{id}", id, motor)


def started(interface="position", ids=IDS, settings=None, baud=BAUD, **shaft):
    """Return a prepared bus, its wire and its shafts by id."""
    shafts = {id: Shaft(id, "sts3215", **shaft) for id in ids}
    wire = Wire(EmulatedFeetech(list(shafts.values())), baud)
    bus = Feetech([wired(id) for id in ids], settings or {}, wire)
    bus.open()
    bus.discover()
    bus.prepare(interface)
    return bus, wire, shafts


def written(wire):
    """Return the addresses of write requests since the list was cleared."""
    return {data[5] for data in wire.sent if data[4] in (0x03, 0x83)}


# --- feedback ---


def test_the_driver_is_registered_and_lists_its_command_interfaces():
    assert plugins.load_class("drivers", "feetech") is Feetech
    bus, _, _ = started()
    assert bus.interfaces(1) == ("position", "voltage")
    assert bus.estimates_effort
    assert not bus.enable_watchdog(0.1)


def test_a_reading_equals_the_state_of_the_shaft():
    bus, wire, shafts = started()
    for id, shaft in shafts.items():
        shaft.q, shaft.v, shaft.temperature, shaft.supply = 0.2 * id - 1, id - 3.5, 30 + id, 11.9
    found = bus.read()
    assert set(found) == set(IDS)
    for id, reading in found.items():
        assert reading.q == pytest.approx(shafts[id].q, abs=STEP)
        assert reading.v == pytest.approx(shafts[id].v, abs=STEP)
        assert (reading.temperature, reading.supply) == (30 + id, pytest.approx(11.9))
        assert (reading.fault, reading.enabled) == ("", False)
        assert reading.time <= wire.time


def test_velocity_is_read_in_the_unit_of_the_servo():
    bus, wire, shafts = started()
    wire.motors.servos[0].memory[18] = 0
    bus.prepare("position")
    shafts[1].v = shafts[2].v = -2.0
    found = bus.read()
    assert found[1].v == pytest.approx(-2.0, abs=50 * STEP)
    assert found[2].v == pytest.approx(-2.0, abs=STEP)
    assert found[1].v / (50 * STEP) == pytest.approx(round(found[1].v / (50 * STEP)))


@pytest.mark.parametrize("sign", [1, -1])
def test_effort_is_estimated_from_current_and_its_direction(sign):
    bus, wire, shafts = started("voltage")
    bus.read()
    bus.enable(IDS)
    bus.write(dict.fromkeys(IDS, MotorCommand("voltage", sign * 4.0)))
    wire.motors.step(wire.time)
    assert shafts[1].effort == pytest.approx(sign * 2.94 / 3, rel=0.01)
    assert bus.read()[1].tau == pytest.approx(shafts[1].effort, abs=1.08 * 6.5e-3)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("speed", [2.5, -1.5])
def test_effort_of_a_braking_motor_is_against_its_duty(sign, speed, signed):
    """Back-EMF above the applied 4 V reverses the current; registers only have the duty's sign."""
    bus, wire, shafts = started("voltage")
    bus.read()
    bus.enable(IDS)
    bus.write(dict.fromkeys(IDS, MotorCommand("voltage", sign * 4.0)))
    shafts[1].v = sign * speed
    wire.motors.step(wire.time)
    assert shafts[1].effort * sign * (-1 if speed > 2 else 1) > 0
    servo = wire.motors.servos[0]
    put = servo.put

    def put_signed(memory, address, value, bit=0):
        current = address == 69
        put(memory, address, sign * value if current else value, 15 if current else bit)

    servo.put = put_signed if signed else put
    assert bus.read()[1].tau == pytest.approx(shafts[1].effort, abs=1.08 * 6.5e-3)


# --- schedule


def cycles(bus, wire, count):
    """Run cycles of a fast loop; return the readings of each."""
    goals = {id: MotorCommand(bus._interface, 0.0) for id in IDS}
    found = []
    for _ in range(count):
        found.append(bus.read())
        bus.write(goals)
    return found


def test_a_fast_loop_reads_positions_in_each_cycle_and_the_rest_in_turn():
    bus, wire, shafts = started()
    bus.enable(IDS)
    cycles(bus, wire, 2)
    shafts[1].q, shafts[1].temperature = 0.3, 55.0
    first = cycles(bus, wire, 1)[0][1]
    assert first.q == pytest.approx(0.3, abs=STEP)
    start, found = wire.time, []
    while not found or found[-1].temperature != 55.0:
        found.append(cycles(bus, wire, 1)[0][1])
    assert wire.time - start < BLOCK_PERIOD + 4e-3
    assert len(found) > 10


@pytest.mark.parametrize(("interface", "rate"), [("position", 800), ("voltage", 500)])
def test_cycles_per_second_at_the_speed_of_the_wire(interface, rate):
    """One sync read and one sync write of six servos; without blocks 295 and 285."""
    bus, wire, _ = started(interface)
    bus.enable(IDS)
    cycles(bus, wire, 1)
    start = wire.time
    assert all(len(found) == 6 for found in cycles(bus, wire, 400))
    assert 400 / (wire.time - start) > rate


def test_the_velocity_of_a_fast_loop_is_at_most_as_old_as_its_period():
    bus, wire, shafts = started()
    cycles(bus, wire, 3)
    for k in range(20):
        shafts[2].v, start = 0.5 + 0.1 * k, wire.time
        while cycles(bus, wire, 1)[0][2].v != pytest.approx(shafts[2].v, abs=STEP):
            assert wire.time - start < VELOCITY_PERIOD + 2e-3


def test_velocities_and_currents_of_voltage_commands_are_read_in_each_cycle():
    bus, wire, shafts = started("voltage")
    bus.enable(IDS)
    for k in range(20):
        shafts[2].v, shafts[2].effort = 0.5 + 0.1 * k, -0.1 - 0.05 * k
        (found,) = cycles(bus, wire, 1)
        assert found[2].v == pytest.approx(shafts[2].v, abs=STEP)
        assert found[2].tau == pytest.approx(shafts[2].effort, abs=1.08 * 6.5e-3)


def test_faults_of_a_fast_loop_are_in_the_next_reply():
    bus, wire, _ = started()
    bus.enable(IDS)
    cycles(bus, wire, 3)
    wire.motors.trip(4, "overload")
    assert cycles(bus, wire, 1)[0][4].fault == "overload"


def test_lost_torque_of_a_fast_loop_is_read_within_the_period_of_blocks():
    bus, wire, _ = started()
    bus.enable(IDS)
    cycles(bus, wire, 3)
    wire.motors.servos[1].memory[40] = 0
    wire.motors.servos[1].write = lambda *_: None  # so that goals do not enable it again
    start = wire.time
    while cycles(bus, wire, 1)[0][2].enabled:
        assert wire.time - start < BLOCK_PERIOD + 4e-3


def test_a_servo_that_missed_a_request_is_commanded_again_after_a_block():
    """It may have restarted: its goal would enable the torque."""
    bus, wire, shafts = started()
    bus.enable(IDS)
    cycles(bus, wire, 3)
    shafts[3].silent = True
    assert 3 not in cycles(bus, wire, 1)[0]
    wire.motors.reboot(3)
    wire.motors.servos[2].away_until, shafts[3].silent = 0.0, False
    assert cycles(bus, wire, 20)[0][3].enabled is False
    assert not wire.motors.torque_is_on(3)
    assert wire.motors.torque_is_on(2)


def test_turns_are_counted_from_the_first_position():
    """11 rad in either direction in steps of 0.3, past the end of the encoder's turn."""
    bus, _, shafts = started()
    path = [3.0 + 0.3 * k for k in range(30)] + [11.7 - 0.3 * k for k in range(75)]
    for q in path:
        shafts[1].q = q
        assert bus.read()[1].q == pytest.approx(q, abs=STEP)
    bus.open()
    shafts[1].q = 7.0
    assert bus.read()[1].q == pytest.approx(7.0 - 2 * math.pi, abs=STEP)


def test_multi_turn_positions_of_a_servo_are_accepted():
    bus, wire, shafts = started()
    for servo in wire.motors.servos:
        servo.memory[18] |= 16
    bus.prepare("position")
    shafts[1].q = -9.0
    assert bus.read()[1].q == pytest.approx(-9.0, abs=STEP)


def test_the_homing_offset_of_the_servo_is_kept():
    bus, wire, _ = started(q=0.5)
    servo = wire.motors.servos[0]
    servo.put(servo.memory, 31, -100, 11)
    assert bus.read()[1].q == pytest.approx(0.5 + 100 * STEP, abs=STEP)


# --- goals ---


def test_a_goal_moves_the_shaft():
    bus, wire, shafts = started()
    bus.read()
    assert set(bus.enable(IDS)) == set(IDS)
    bus.write({1: MotorCommand("position", 0.4), 2: MotorCommand("position", -0.4)})
    wire.motors.step(wire.time)
    assert shafts[1].effort > 1 > -1 > shafts[2].effort
    assert shafts[3].effort == pytest.approx(0, abs=0.1)
    shafts[1].q = 0.4
    wire.motors.step(wire.time)
    assert shafts[1].effort == pytest.approx(0, abs=0.1)


def test_a_goal_beyond_one_turn_is_clipped():
    bus, wire, shafts = started(q=3.0)
    bus.read()
    bus.enable(IDS)
    shafts[1].q = 3.3
    bus.read()
    bus.write(
        {
            1: MotorCommand("position", 3.4),
            2: MotorCommand("position", 99.0),
            3: MotorCommand("position", -99.0),
        }
    )
    goals = [servo.get(42, 15) for servo in wire.motors.servos]
    assert goals[0] == round(3.4 / STEP) + 2048 - 4096 or goals[0] == 4095
    assert goals[1:3] == [4095, 0]


@pytest.mark.parametrize("supply", [5.0, 12.0])
def test_voltage_is_converted_to_a_fraction_of_the_supply_and_clipped(supply):
    bus, wire, _ = started("voltage", supply=supply)
    bus.read()
    bus.enable(IDS)
    volts = {1: 2.5, 2: -2.5, 3: 99.0, 4: -99.0}
    bus.write({id: MotorCommand("voltage", value) for id, value in volts.items()})
    duties = [servo.get(44, 10) for servo in wire.motors.servos]
    duty = round(2500 / supply)
    assert duties == [duty, -duty, 1000, -1000, 0, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("interface", ["position", "voltage"])
def test_a_goal_that_is_not_finite_is_rejected_with_all_others(interface, value):
    bus, wire, _ = started(interface)
    bus.enable(IDS)
    wire.sent.clear()
    with pytest.raises(CommandRejected, match="expected a finite value"):
        bus.write({1: MotorCommand(interface, 0.1), 2: MotorCommand(interface, value)})
    assert not wire.sent


def test_goals_of_another_interface_are_rejected():
    bus, _, _ = started()
    with pytest.raises(InvalidValue, match="expected 'position'"):
        bus.write({1: MotorCommand("voltage", 0.1)})
    with pytest.raises(UnknownName, match="'effort'; known: position, voltage"):
        bus.prepare("effort")


# --- torque ---


@pytest.mark.parametrize("interface", ["position", "voltage"])
def test_enabling_torque_moves_nothing_for_any_old_goals(interface):
    bus, wire, shafts = started(interface, q=0.7)
    for servo in wire.motors.servos:
        servo.put(servo.memory, 42, 100)
        servo.put(servo.memory, 44, 900)
        servo.memory[41] = 33
    assert set(bus.enable(IDS)) == set(IDS)
    wire.motors.step(wire.time)
    assert [shaft.effort for shaft in shafts.values()] == pytest.approx([0.0] * 6, abs=0.05)
    assert {servo.memory[41] for servo in wire.motors.servos} == {33}
    assert all(reading.enabled for reading in bus.read().values())


def test_goals_of_servos_without_torque_are_not_sent():
    """A goal would enable their torque."""
    bus, wire, _ = started()
    bus.enable((1, 2))
    bus.write(dict.fromkeys(IDS, MotorCommand("position", 0.1)))
    assert [wire.motors.torque_is_on(id) for id in IDS] == [True, True, *[False] * 4]
    wire.motors.reboot(1)
    wire.time += 1.0
    assert bus.read()[1].enabled is False
    bus.write(dict.fromkeys(IDS, MotorCommand("position", 0.1)))
    assert not wire.motors.torque_is_on(1)


def test_disabling_is_confirmed_by_reading_back():
    bus, wire, shafts = started()
    bus.enable(IDS)
    shafts[3].silent = True
    assert set(bus.disable(IDS)) == set(IDS) - {3}
    assert [wire.motors.torque_is_on(id) for id in IDS] == [id == 3 for id in IDS]
    shafts[3].silent = False
    assert set(bus.disable(IDS)) == set(IDS)


def test_a_servo_that_does_not_confirm_is_not_enabled():
    bus, wire, shafts = started()
    shafts[2].silent = True
    assert set(bus.enable(IDS)) == set(IDS) - {2}
    assert not wire.motors.torque_is_on(2)


@pytest.mark.parametrize("interface", ["position", "voltage"])
def test_enabled_torque_does_not_confirm_a_goal(interface):
    """Another program enabled it; the packet with the present position is lost."""
    bus, wire, shafts = started(interface, q=0.7)
    for servo in wire.motors.servos:
        servo.put(servo.memory, 42, 100)
        servo.put(servo.memory, 44, 900)
        servo.memory[40] = 1
    obey, lost = wire.motors.receive, []

    def receive(data, now):
        if data[4:6] == bytes((0x83, 40)) and not lost:
            lost.append(data)
            return b""
        return obey(data, now)

    wire.motors.receive = receive
    assert set(bus.enable(IDS)) == set(IDS)
    assert lost
    wire.motors.step(wire.time)
    assert [shaft.effort for shaft in shafts.values()] == pytest.approx([0.0] * 6, abs=0.05)


def test_torque_is_not_enabled_if_a_goal_is_not_stored():
    bus, wire, _ = started(q=0.7)
    servo = wire.motors.servos[1]
    take = servo.write

    def write(address, data):
        take(address, data)
        servo.put(servo.memory, 42, 100)  # unchanged

    servo.write = write
    assert set(bus.enable(IDS)) == set(IDS) - {2}
    assert not wire.motors.torque_is_on(2)


def test_the_mode_is_restored_after_a_loss_of_power():
    bus, wire, _ = started("voltage")
    bus.enable(IDS)
    wire.motors.reboot(2)
    wire.time += 1.0
    assert bus.read()[2].enabled is False
    assert wire.motors.servos[1].memory[33] == 0
    assert set(bus.enable((2,))) == {2}
    assert wire.motors.servos[1].memory[33] == 2
    assert wire.motors.servos[1].get(44, 10) == 0


def test_a_servo_with_stored_pwm_mode_does_not_move_after_a_loss_of_power():
    """It restarts in the stored PWM mode, and a goal enables its torque."""
    bus, wire, shafts = started()
    wire.motors.servos[1].saved[33] = 2
    bus.enable(IDS)
    wire.motors.reboot(2)
    wire.motors.servos[1].away_until = 0.0
    bus.write(dict.fromkeys(IDS, MotorCommand("position", 0.0)))
    wire.motors.step(wire.time)
    assert wire.motors.torque_is_on(2)
    assert shafts[2].effort == 0.0


def test_a_late_confirmation_is_ignored():
    """A reply about one register does not count for another one or for a later request."""
    bus, wire, _ = started()
    bus.enable(IDS)
    for servo in wire.motors.servos:
        servo.write = lambda *_: None  # writes are ignored from now on
    wire.delay = 0.012
    for _ in range(20):
        bus.clear_faults(IDS)
        assert not bus.disable(IDS)


# --- EEPROM ---


def test_only_a_differing_mode_is_written():
    bus, wire, _ = started()
    saved = [bytes(servo.saved) for servo in wire.motors.servos]
    assert written(wire) == {40, 44}, "torque off, PWM 0"
    for servo in wire.motors.servos:
        servo.memory[55] = 0  # left by some programs
    bus.prepare("voltage")
    assert written(wire) == {40, 44, 55, 33}
    assert {servo.memory[33] for servo in wire.motors.servos} == {2}
    assert [bytes(servo.saved) for servo in wire.motors.servos] == saved
    wire.sent.clear()
    bus.prepare("voltage")
    bus.enable(IDS)
    bus.read()
    bus.disable(IDS)
    assert written(wire) == {40, 44}


def test_a_servo_that_does_not_confirm_its_mode_is_named():
    bus, wire, shafts = started()
    shafts[4].silent = True
    with pytest.raises(DriverFault, match=r"motors 4 \(J4\) do not confirm torque off"):
        bus.prepare("voltage")
    shafts[4].silent = False
    wire.motors.servos[4].write = lambda *_: None
    with pytest.raises(DriverFault, match=r"motors 5 \(J5\) do not confirm voltage mode"):
        bus.prepare("voltage")


# --- faults ---


@pytest.mark.parametrize("fault", ["voltage", "sensor", "overheating", "overcurrent", "overload"])
def test_faults_are_named_and_do_not_affect_other_servos(fault):
    bus, wire, _ = started()
    wire.motors.trip(3, fault)
    found = bus.read()
    words = {"voltage": "supply voltage", "sensor": "position sensor"}
    assert {id: reading.fault for id, reading in found.items() if reading.fault} == {
        3: words.get(fault, fault)
    }


def test_an_overload_is_cleared_and_heat_is_not():
    bus, wire, shafts = started()
    wire.motors.trip(1, "overload")
    shafts[2].temperature = 80.0
    assert set(bus.clear_faults((1, 2))) == {1}
    shafts[2].temperature = 50.0
    assert set(bus.clear_faults((1, 2))) == {1, 2}


# --- discovery ---


def test_missing_duplicate_and_unsupported_servos_are_all_named():
    shafts = [Shaft(1, "sts3215"), Shaft(2, "sts3250"), Shaft(3, "sts3215"), Shaft(3, "sts3215")]
    bus = Feetech([wired(id) for id in (1, 2, 3, 4)], {}, Wire(EmulatedFeetech(shafts)))
    bus.open()
    with pytest.raises(DriverFault) as caught:
        bus.discover()
    assert str(caught.value) == (
        "port 'port': motor 2 (J2) model = sts3250, expected sts3215; motor 3 (J3) replies are"
        " corrupt: two servos with its id, another baud, or noise; motor 4 (J4) does not reply;"
        f" {bus.remedies}"
    )


@pytest.mark.parametrize("baud", [BAUD, 9600])
def test_two_successive_replies_are_reported_as_two_servos(baud):
    settings = {"baud": str(baud), "latency": "0.0002"}
    bus, wire, _ = started(ids=(1,), settings=settings, baud=baud)
    wire.fault = lambda reply: reply * 2
    with pytest.raises(DriverFault, match=r"motor 1 \(J1\) replies 2 times: its id is not unique"):
        bus.discover()


def test_without_any_reply_the_error_names_remedies():
    bus = Feetech([wired(1), wired(2)], {}, Wire(EmulatedFeetech([])))
    bus.open()
    with pytest.raises(
        DriverFault, match=r"no servo replies; check power.* raise latency = 0\.008 s"
    ):
        bus.discover()


def test_a_scan_lists_servos_by_baud_rate_and_writes_nothing():
    shafts = [Shaft(1, "sts3215"), Shaft(6, "sts3250"), Shaft(9, "sts9999"), Shaft(7, "sts3215")]
    shafts += [Shaft(7, "sts3215")]
    lines = {BAUD: Wire(EmulatedFeetech(shafts)), 115_200: Wire(EmulatedFeetech([]), 115_200)}
    found = scan_port(lines.__getitem__, lines)
    assert found[:2] == [
        DiscoveredMotor(1, "sts3215", "3.10", BAUD),
        DiscoveredMotor(6, "sts3250", "3.10", BAUD),
    ]
    assert [(f.id, f.model) for f in found[2:]] == [
        (7, "corrupt"), (9, "unknown (model number 25344)"),
    ]  # fmt: skip
    assert not any(map(written, lines.values()))
    assert not any(line.is_open for line in lines.values())


class DelayingWire(Wire):
    """Wire that delays the first reply of servo 6 by ``late`` [s]."""

    def __init__(self, motors, late):
        super().__init__(motors)
        self.late = late

    def write(self, data):
        if data[2] == 6:
            self.delay, self.late = self.late, 0.0
        super().write(data)
        self.delay = 0.0


@pytest.mark.parametrize("late", [0.0, 3.4e-3, 3.45e-3, 3.5e-3, 3.6e-3, 0.005, 0.012, 0.02])
def test_a_late_reply_in_a_scan_is_attributed_to_one_servo(late):
    wire = DelayingWire(EmulatedFeetech([Shaft(1, "sts3215"), Shaft(6, "sts3250")]), late)
    assert [(found.id, found.model) for found in scan_port({BAUD: wire}.__getitem__, [BAUD])] == [
        (1, "sts3215"), (6, "sts3250"),
    ]  # fmt: skip


def test_a_scan_finds_a_servo_whose_second_reply_is_too_late_as_well():
    """The host is busy for longer than a repeated request waits."""
    delays = [0.012, 0.05]

    class BusyWire(Wire):
        def write(self, data):
            self.delay = delays.pop(0) if data[2] == 6 and delays else 0.0
            super().write(data)
            self.delay = 0.0

    wire = BusyWire(EmulatedFeetech([Shaft(1, "sts3215"), Shaft(6, "sts3250")]))
    assert [found.id for found in scan_port({BAUD: wire}.__getitem__, [BAUD])] == [1, 6]
    assert not delays


@pytest.mark.parametrize("late", [0.0005, 0.001, 0.0012, 0.002])
def test_a_late_reply_is_not_counted_twice_during_discovery(late):
    wire = DelayingWire(EmulatedFeetech([Shaft(5, "sts3215"), Shaft(6, "sts3215")]), late)
    bus = Feetech([wired(5), wired(6)], {"latency": "0.0001"}, wire)
    bus.open()
    bus.discover()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"baud": "fast"}, "baud = 'fast' bit/s; expected a number"),
        ({"baud": ""}, "driver 'feetech': baud = '' bit/s; expected a number"),
        ({"baud": "-1"}, "baud = -1 bit/s; expected above 0"),
        ({"latency": "-1"}, "latency = -1 s; expected at least 0"),
        ({"kt": "0"}, "kt = 0 N·m/A; expected above 0"),
        ({}, "port is missing; expected"),
    ],
)
def test_invalid_settings_are_rejected(settings, words):
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        Feetech([wired(1)], settings)


def test_an_unknown_model_is_rejected_with_the_known_ones():
    with pytest.raises(UnknownName, match="'ax12'; known: sts3215, sts3250"):
        Feetech([wired(1, "ax12")], {}, Wire(EmulatedFeetech([])))


# --- bad communication ---


def test_a_servo_without_reply_costs_little_time_and_no_other_reply():
    bus, wire, shafts = started()
    start = wire.time
    bus.read()
    whole = wire.time - start
    shafts[1].silent = True
    bus.read()
    times = []
    for _ in range(20):
        start = wire.time
        assert set(bus.read()) == set(IDS) - {1}
        times.append(wire.time - start)
    assert sorted(times)[-3] < whole + 4e-3
    assert max(times) < whole + 12e-3
    shafts[1].silent = False
    assert set(bus.read()) == set(IDS)


def test_a_recovered_servo_is_read_immediately_at_any_baud_rate():
    bus, _, shafts = started(ids=(1, 2), settings={"baud": "9600"}, baud=9600)
    for k in range(20):
        shafts[1].silent = True
        assert set(bus.read()) == {2}
        shafts[1].silent = False
        assert set(bus.read()) == {1, 2}, k


def test_servos_are_read_again_after_all_were_missing():
    bus, wire, shafts = started()
    for shaft in shafts.values():
        shaft.silent = True
    assert not bus.read()
    for shaft in shafts.values():
        shaft.silent = False
    wire.delay = 5e-3
    assert set(bus.read()) == set(IDS)


@pytest.mark.parametrize("seed", range(5))
def test_corrupt_or_lost_bytes_rarely_make_a_wrong_reading(seed):
    """The checksum has eight bits: at most 1 of 256 corrupt replies passes."""
    bus, wire, shafts = started()
    rng = random.Random(seed)
    for id, shaft in shafts.items():
        shaft.q = 0.1 * id

    def noise(reply):
        kept = (b for b in reply if rng.random() > 0.005)
        return bytes(b ^ 1 << rng.randrange(8) if rng.random() < 0.005 else b for b in kept)

    wire.fault, good, wrong = noise, 0, 0
    for _ in range(100):
        for id, reading in bus.read().items():
            good += 1
            wrong += abs(reading.q - shafts[id].q) > 2 * STEP
    assert good > 300
    assert wrong <= 3


def test_a_reply_one_cycle_late_is_not_fresh():
    bus, wire, shafts = started(ids=(1,))
    for k in range(12):
        shafts[1].q = 0.1 * k
        wire.delay = 0.05 if k % 2 == 0 else 0.0
        found = bus.read()
        wire.time += 0.04
        assert set(found) <= {1}
        assert k % 2 == 0 or not found or found[1].q == pytest.approx(0.1 * k, abs=STEP)
        assert k % 2 == 1 or not found


def test_bytes_received_before_the_request_are_not_a_reply():
    """Replies of every length, from before the servo stopped replying."""
    bus, wire, shafts = started(ids=(1, 2))
    old = []
    wire.fault = lambda reply: old.append(reply) or reply
    for _ in range(8):
        assert set(bus.read()) == {1, 2}
    wire.fault = lambda reply: reply
    shafts[1].silent = True
    for reply in old:
        wire.queue += [(wire.time - 1e-4, byte) for byte in reply]
        assert set(bus.read()) <= {2}


def test_a_disconnected_port_is_a_fault_until_it_is_reopened():
    bus, wire, _ = started()
    bus.enable(IDS)
    wire.gone = True
    calls = (
        partial(bus.write, {1: MotorCommand("position", 0.0)}), bus.read, bus.discover,
        partial(bus.prepare, "position"), partial(bus.disable, IDS), partial(bus.enable, IDS),
        partial(bus.clear_faults, IDS), bus.open,
    )  # fmt: skip
    for call in calls:
        with pytest.raises(DriverFault, match="is gone"):
            call()
    bus.close()
    bus.close()
    wire.gone = False
    bus.open()
    bus.discover()
    bus.prepare("position")
    assert set(bus.read()) == set(IDS)
    wire.sent.clear()
    bus.write({1: MotorCommand("position", 0.0)})
    assert not wire.sent, "what was enabled before is not taken to be so now"
