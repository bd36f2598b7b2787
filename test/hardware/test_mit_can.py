"""MIT-mode CAN motors behind the motor bus interface, virtual time, bad communication."""

import math
import random

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.core.errors import ConfigError, DriverFault, InvalidValue, UnknownName
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.mit_motors import MitMotors
from arm_dynamics.hardware.mit_can import MitCan
from arm_dynamics.hardware.mit_can.exchange import Exchange
from arm_dynamics.hardware.mit_can.motors import MOTORS
from arm_dynamics.hardware.mit_can.transport import CanTransport, SlcanTransport
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

pytestmark = pytest.mark.hardware

FRAME = 130e-6  # [s] at 1 Mbit/s
PASSED = 2e-3  # [s], one period
ARM = ((1, "DM8009"), (2, "DM4340"), (3, "DM4310"))


class Wire(CanTransport):
    """Transport with the duration of each frame; ``fault`` changes the replies."""

    def __init__(self, motors):
        self.motors, self.time, self.queue, self.sent = motors, 0.0, [], []
        self.gone = False
        self.fault = lambda frame: [frame]

    def now(self):
        return self.time

    def open(self):
        self.check()

    def check(self):
        if self.gone:
            raise DriverFault("gone")

    def send(self, frame):
        self.check()
        assert len(frame[1]) == 8
        self.sent.append(frame)
        self.pass_time(FRAME)
        for answer in self.motors.frame(*frame, self.time):
            self.queue += [(self.time + FRAME, f) for f in self.fault(answer)]

    def receive(self, until):
        self.check()
        if self.queue and self.queue[0][0] <= max(until, self.time):
            arrival, frame = self.queue.pop(0)
            self.time = max(self.time, arrival)
            return frame
        self.time = max(self.time, until)
        return None

    def pass_time(self, dt):
        self.time += dt
        self.motors.step(self.time)

    def close(self):
        self.gone = True


def connected(arm=ARM, wired=None, options=None, **more):
    shafts = [Shaft(id, model, **more) for id, model in arm]
    wire = Wire(MitMotors(shafts))
    wiring = [JointMotor(f"J{id}", id, model) for id, model in (wired or arm)]
    return MitCan(wiring, options or {}, wire), wire, shafts


def enabled(bus, interface="effort"):
    bus.open()
    bus.discover()
    bus.prepare(interface)
    assert set(bus.enable(bus.motors)) == set(bus.motors)


def effort(values):
    return {id: MotorCommand("effort", value) for id, value in values.items()}


# --- reading ---


def test_feedback_is_read_without_enabling_torque():
    bus, wire, shafts = connected()
    for i, shaft in enumerate(shafts):
        shaft.q, shaft.v, shaft.effort, shaft.temperature = 0.5 + i, -1.0 - i, 0.0, 40.0 + i
    wire.motors.motor(2).drive_temperature = 55.0
    bus.open()
    bus.discover()
    readings = bus.read()
    assert set(readings) == {1, 2, 3}
    for i, (id, reading) in enumerate(readings.items()):
        r = bus._exchange.ranges[id]
        assert reading.q == pytest.approx(0.5 + i, abs=25 / 65535)
        assert reading.v == pytest.approx(-1.0 - i, abs=2 * r.velocity / 4095)
        assert (reading.fault, reading.enabled) == ("", False)
        assert 0 <= bus.now() - reading.time < 3e-3
    assert readings[1].temperature == 40.0
    assert readings[2].temperature == 55.0  # the higher of both temperatures
    assert bus.temperatures(2) == (55.0, 41.0)
    assert math.isnan(readings[1].supply)
    assert not any(wire.motors.torque_is_on(id) for id in (1, 2, 3))
    assert not any(data[7] == 0xFC for _, data in wire.sent)


def test_a_cycle_of_seven_motors_takes_the_time_of_its_frames():
    """14 frames of requests and replies; the replies to commands are the next feedback."""
    arm = tuple((id, "DM4310") for id in range(1, 8))
    bus, wire, _ = connected(arm)
    enabled(bus)
    bus.read()
    before, sent = wire.time, len(wire.sent)
    bus.write(effort(dict.fromkeys(range(1, 8), 0.1)))
    assert set(bus.read()) == set(range(1, 8))
    assert len(wire.sent) - sent == 7
    assert wire.time - before < 15 * FRAME


def test_a_motor_without_reply_is_omitted_and_costs_little_time():
    bus, wire, shafts = connected()
    bus.open()
    bus.discover()
    bus.read()
    shafts[1].silent = True
    before = wire.time
    assert set(bus.read()) == {1, 3}
    assert wire.time - before < 3e-3 + 8 * FRAME
    shafts[1].silent = False
    assert set(bus.read()) == {1, 2, 3}


def test_replies_received_before_the_request_are_not_fresh():
    """Frames waiting in the transport contain a past position of the motor."""
    bus, wire, shafts = connected(((1, "DM4310"),))
    bus.open()
    bus.discover()
    shafts[0].q = 1.0
    stale = wire.motors.frame(0x7FF, bytes.fromhex("0100cc0000000000"), 0.0)
    wire.queue += [(wire.time, frame) for frame in stale * 5]
    shafts[0].silent = True
    assert bus.read() == {}
    wire.queue += [(wire.time, frame) for frame in stale * 5]
    shafts[0].q, shafts[0].silent = 2.0, False
    assert bus.read()[1].q == pytest.approx(2.0, abs=1e-3)


def test_the_newest_of_several_replies_counts():
    bus, wire, shafts = connected(((1, "DM4310"),))
    enabled(bus)
    bus.read()
    bus.write(effort({1: 0.0}))
    shafts[0].q = 0.05
    late = wire.motors.frame(0x7FF, bytes.fromhex("0100cc0000000000"), wire.time)
    listened = wire.time
    wire.queue += [(wire.time, frame) for frame in late]
    wire.pass_time(2e-3)
    reading = bus.read()[1]
    assert reading.q == pytest.approx(0.05, abs=1e-3)
    assert reading.time == listened  # at the maximum age


@pytest.mark.parametrize("master", [0x10, 0x100, 0])
def test_replies_are_matched_by_the_id_in_their_data(master):
    shafts = [Shaft(id, model, q=id / 10) for id, model in ARM]
    wire = Wire(MitMotors(shafts, master=master))
    bus = MitCan([JointMotor(f"J{id}", id, model) for id, model in ARM], {}, wire)
    bus.open()
    bus.discover()
    assert [round(bus.read()[id].q, 2) for id in (1, 2, 3)] == [0.1, 0.2, 0.3]


def test_ranges_are_read_from_the_motors():
    bus, wire, shafts = connected(((1, "DM4340"),))
    wire.motors.motor(1).registers[22] = 8.0  # factory setting of some motors
    shafts[0].v = 4.0
    bus.open()
    bus.discover()
    assert bus.read()[1].v == pytest.approx(4.0, abs=16 / 4095)


# --- discovery ---


def test_discovery_names_every_problem():
    arm = ((1, "DM8009"), (2, "DM4310"), (3, "DM4310"), (3, "DM4310"))
    wired = ((1, "DM8009"), (2, "DM4340"), (3, "DM4310"), (4, "DM4310"))
    bus, _, _ = connected(arm, wired)
    bus.open()
    with pytest.raises(DriverFault) as fault:
        bus.discover()
    text = str(fault.value)
    assert "motor 2 (DM4340) torque range = 10 N·m (DM4310), expected 28 N·m" in text
    assert "motor 3 (DM4310) replies 2 times: two motors have this id" in text
    assert "motor 4 (DM4310) does not reply" in text
    assert "motor 1" not in text


def test_indistinguishable_replies_are_rejected():
    shafts = [Shaft(id, "DM4310") for id in (1, 17)]
    motors = MitMotors(shafts)
    for motor in motors.motors:
        motor.registers[7] = 0x40
    bus = MitCan([JointMotor(f"J{s.id}", s.id, s.model) for s in shafts], {}, Wire(motors))
    bus.open()
    with pytest.raises(DriverFault, match="motors 1 and 17 reply alike, with CAN id 64"):
        bus.discover()


def ids_1_and_17():
    arm = ((1, "DM4310"), (17, "DM4310"))
    return connected(arm)


def test_a_reply_id_equal_to_another_motors_id_is_rejected():
    bus, _, _ = ids_1_and_17()
    bus.open()
    with pytest.raises(DriverFault, match="motor 1 replies with CAN id 17, a motor's own"):
        bus.discover()


def test_a_motor_executes_the_reply_of_another_motor_as_a_command():
    """Reason for that rejection: motor 17 applies torque without a command."""
    bus, _, shafts = ids_1_and_17()
    shafts[0].q = 1.0
    bus.open()
    assert set(bus.enable([17])) == {17}
    bus.write(effort({17: 0.0}))
    before = abs(shafts[1].effort)
    bus.read()  # request to motor 1
    assert before < 0.01
    assert abs(shafts[1].effort) > 1.0


def test_scan_reads_only():
    _, wire, _ = connected((*ARM, (5, "AK80-9"), (3, "DM4310")), ARM)
    found = MitCan.scan({}, wire)
    assert [(f.id, f.model) for f in found] == [*ARM, (3, "DM4310")], "two with one id"
    assert all(int(f.firmware) > 0 for f in found)
    assert {id for id, _ in wire.sent} == {0x7FF}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kp": "-1"}, "kp = -1"),
        ({"kd_1": "0"}, "kd = 0"),
        ({"reply_timeout": "soon"}, "reply_timeout = 'soon'"),
    ],
)
def test_settings_are_checked(options, text):
    with pytest.raises(ConfigError, match=text):
        connected(options=options)


def test_an_unknown_model_is_rejected():
    with pytest.raises(UnknownName, match="MIT motor 'XL430'"):
        connected(ARM, ((1, "XL430"),))


# --- torque ---


def test_effort_goals_reach_the_shafts():
    bus, _, shafts = connected()
    enabled(bus)
    goals = {1: 5.0, 2: -3.0, 3: 0.5}
    bus.write(effort(goals))
    for shaft in shafts:
        step = 2 * bus._exchange.ranges[shaft.id].torque / 4095
        assert shaft.effort == pytest.approx(goals[shaft.id], abs=step / 2 + 1e-9)
    bus.read()
    bus.write(effort(goals))
    assert bus.read()[1].tau == pytest.approx(5.0, abs=108 / 4095)
    assert all(reading.enabled for reading in bus.read().values())


def test_zero_effort_is_at_most_half_a_quantization_step():
    bus, _, shafts = connected()
    enabled(bus)
    bus.write(effort({1: 0.0, 2: 0.0, 3: 0.0}))
    assert [s.effort for s in shafts] == pytest.approx([54 / 4095, 28 / 4095, 10 / 4095])


def test_position_and_velocity_goals_use_the_settings_gains():
    bus, _, shafts = connected(options={"kp": "40", "kp_2": "100", "kd": "2"})
    enabled(bus, "position")
    shafts[2].v = 1.0
    bus.write(
        {
            1: MotorCommand("position", 0.1),
            2: MotorCommand("position", 0.1),
            3: MotorCommand("velocity", 2.0),
        }
    )
    for shaft, expected in zip(shafts, (40 * 0.1, 100 * 0.1, 2 * (2.0 - 1.0)), strict=True):
        r = bus._exchange.ranges[
            shaft.id
        ]  # half a quantization step of each quantity, times its gain
        steps = r.torque / 4095 + 2 * r.velocity / 4095 + 100 * r.position / 65535 + 0.05 * 0.1
        assert shaft.effort == pytest.approx(expected, abs=steps + 500 / 4095 / 2 * 0.1)


def test_goals_include_a_feedforward_effort():
    """Position and velocity goals add this effort."""
    bus, _, shafts = connected()
    enabled(bus, "position")
    bus.write(
        {
            1: MotorCommand("position", 0.0, 6.0),
            2: MotorCommand("velocity", 0.0, -4.0),
            3: MotorCommand("effort", 1),
        }
    )
    for shaft, effort in zip(shafts, (6.0, -4.0, 1.0), strict=True):
        assert shaft.effort == pytest.approx(effort, abs=0.1)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_non_finite_goals_are_not_sent(value):
    bus, wire, _ = connected()
    enabled(bus)
    sent = len(wire.sent)
    with pytest.raises(InvalidValue, match="finite"):
        bus.write(effort({1: 1.0, 2: value}))
    assert len(wire.sent) == sent


@pytest.mark.parametrize(
    "goals", [{9: MotorCommand("effort", 1.0)}, {1: MotorCommand("voltage", 1.0)}]
)
def test_invalid_goals_are_rejected(goals):
    bus, _, _ = connected()
    enabled(bus)
    with pytest.raises(InvalidValue, match="interface"):
        bus.write(goals)


def test_a_motor_that_does_not_reply_is_not_enabled():
    """It still receives frames: none of them may enable its torque."""
    bus, wire, shafts = connected()
    bus.open()
    bus.discover()
    shafts[1].silent = True
    wire.sent.clear()
    bus.read()
    assert set(bus.enable([1, 2, 3])) == {1, 3}
    assert not wire.motors.torque_is_on(2)
    assert not any(id == 2 and data[7] == 0xFC for id, data in wire.sent)


def test_a_motor_that_stops_replying_during_enabling_is_disabled():
    bus, wire, shafts = connected()
    bus.open()
    bus.discover()

    def stop_replies(frame):
        if wire.sent[-1] == (2, b"\xff" * 7 + b"\xfc"):
            shafts[1].silent = True
        return [] if shafts[1].silent and frame[0] == 0x12 else [frame]

    wire.fault = stop_replies
    assert set(bus.enable([1, 2, 3])) == {1, 3}
    assert not wire.motors.torque_is_on(2)


def test_disabling_is_confirmed_by_reading_back():
    bus, wire, shafts = connected()
    enabled(bus)
    shafts[0].silent = True
    assert set(bus.disable([1, 2, 3])) == {2, 3}
    assert not any(wire.motors.torque_is_on(id) for id in (1, 2, 3))


def test_prepare_sets_the_mode_and_rejects_motors_without_reply():
    bus, wire, shafts = connected()
    wire.motors.motor(2).registers[10] = 2
    bus.open()
    bus.prepare("effort")
    assert wire.motors.motor(2).registers[10] == 1
    shafts[0].silent = True
    with pytest.raises(DriverFault, match=r"\[1\] do not confirm that torque is off"):
        bus.prepare("effort")
    with pytest.raises(UnknownName, match="voltage"):
        bus.prepare("voltage")


def test_the_watchdog_stops_the_motors_after_its_timeout():
    bus, wire, shafts = connected()
    bus.open()
    bus.discover()
    bus.prepare("effort")
    assert set(bus.enable_watchdog(0.1)) == {1, 2, 3}
    assert wire.motors.motor(1).registers[9] == 2000
    bus.enable(bus.motors)
    for _ in range(100):
        bus.write(effort({1: 1.0, 2: 1.0, 3: 1.0}))
        wire.pass_time(2e-3)
        assert set(bus.read()) == {1, 2, 3}
    assert all(s.effort > 0.9 for s in shafts)
    wire.pass_time(0.101)
    assert [s.effort for s in shafts] == [0.0, 0.0, 0.0]
    readings = bus.read()
    assert {r.fault for r in readings.values()} == {"communication lost"}
    assert {r.enabled for r in readings.values()} == {False}
    assert set(bus.clear_faults(bus.motors)) == {1, 2, 3}
    assert not any(wire.motors.torque_is_on(id) for id in (1, 2, 3))
    assert set(bus.enable(bus.motors)) == {1, 2, 3}


def test_a_watchdog_that_is_not_confirmed_is_not_reported_as_enabled():
    bus, _, shafts = connected()
    bus.open()
    bus.discover()
    shafts[2].silent = True
    assert set(bus.enable_watchdog(0.05)) == {1, 2}


@pytest.mark.parametrize("fault", ["overload", "overheating", "drive overheating", "over-current"])
def test_faults_are_reported_and_cleared(fault):
    bus, wire, shafts = connected()
    enabled(bus)
    wire.motors.trip(2, fault)
    bus.write(effort({1: 1.0, 2: 1.0, 3: 1.0}))
    readings = bus.read()
    assert readings[2].fault
    assert (readings[1].fault, readings[3].fault) == ("", "")
    assert shafts[1].effort == 0.0
    bus.write(effort({1: 1.0, 2: 1.0, 3: 1.0}))  # its replies still report the fault
    assert set(bus.clear_faults([2])) == {2}
    assert not bus.read()[2].fault


def test_over_temperature_remains_a_fault_until_the_motor_has_cooled():
    bus, wire, shafts = connected()
    enabled(bus)
    shafts[0].temperature = 120.0
    wire.pass_time(1e-3)
    reading = bus.read()[1]
    assert (reading.fault, reading.temperature) == ("rotor over-temperature", 120.0)
    assert set(bus.clear_faults([1])) == set()
    shafts[0].temperature = 60.0
    assert set(bus.clear_faults([1])) == {1}


def test_a_rebooted_motor_reports_torque_disabled():
    bus, wire, _ = connected()
    enabled(bus)
    wire.motors.reboot(3)
    bus.write(effort({1: 0.0, 2: 0.0, 3: 0.0}))
    assert [bus.read()[id].enabled for id in (1, 2, 3)] == [True, True, False]


def test_the_zero_position_is_set_with_torque_disabled():
    bus, wire, _ = connected(q=0.7)
    enabled(bus)
    assert set(bus.set_zero([2])) == {2}
    assert not wire.motors.torque_is_on(2)
    assert bus.read()[2].q == pytest.approx(0.0, abs=1e-3)
    assert bus.read()[1].q == pytest.approx(0.7, abs=1e-3)


# --- CubeMars ---

CUBES = ((1, "AK80-9"), (2, "AK60-6"), (20, "DM4310"))


def test_cubemars_motors_are_read_with_the_disable_frame():
    bus, wire, _ = connected(CUBES, q=0.3, temperature=36.0)
    bus.open()
    bus.discover()
    readings = bus.read()
    assert [readings[id].q for id in (1, 2, 20)] == pytest.approx([0.3] * 3, abs=1e-3)
    assert (readings[1].temperature, readings[1].enabled) == (36.0, None)
    assert {data[7] for id, data in wire.sent if id in (1, 2)} == {0xFD}


def test_cubemars_motors_have_no_watchdog_and_keep_their_last_command():
    bus, wire, shafts = connected(CUBES)
    enabled(bus)
    assert set(bus.enable_watchdog(0.1)) == {20}
    bus.write(effort({1: 2.0, 2: 1.0, 20: 0.5}))
    bus.read()
    readings = bus.read()
    assert set(readings) == {1, 2, 20}
    assert shafts[0].effort == pytest.approx(2.0, abs=0.01)
    assert readings[1].tau == pytest.approx(2.0, abs=0.02)
    assert set(bus.disable(bus.motors)) == {1, 2, 20}
    assert not any(wire.motors.torque_is_on(id) for id in (1, 2, 20))


def test_a_cubemars_motor_that_does_not_reply_is_not_enabled():
    bus, wire, shafts = connected(CUBES)
    bus.open()
    bus.discover()
    shafts[0].silent = True
    bus.read()
    assert set(bus.enable([1, 2, 20])) == {2, 20}
    assert not wire.motors.torque_is_on(1)
    wire.motors.trip(2, "overheating")
    assert bus.read()[2].fault == "rotor over-temperature"


# --- bad communication ---


def test_every_method_raises_while_the_transport_is_disconnected():
    bus, wire, _ = connected()
    enabled(bus)
    wire.gone = True
    for call in (bus.read, bus.discover, bus.open, lambda: bus.write(effort({1: 1.0}))):
        with pytest.raises(DriverFault, match="gone"):
            call()
    wire.gone = False
    bus.open()
    bus.discover()
    assert set(bus.read()) == {1, 2, 3}
    bus.close()
    bus.close()


@pytest.mark.parametrize("loss", [0.01, 0.1, 0.5])
def test_lost_replies_omit_motors_and_give_no_wrong_value(loss):
    rng = random.Random(3)
    bus, wire, shafts = connected()
    enabled(bus)
    wire.fault = lambda frame: [] if rng.random() < loss else [frame]
    received = []
    for i in range(300):
        for shaft in shafts:
            shaft.q = 1e-3 * i
        bus.write(effort({1: 0.1, 2: 0.1, 3: 0.1}))
        readings = bus.read()
        assert all(abs(r.q - 1e-3 * i) < 1e-3 for r in readings.values())
        received.append(len(readings) / 3)
    assert np.mean(received) == pytest.approx(1 - loss, abs=0.06)


def test_duplicate_and_unknown_frames_change_nothing():
    bus, wire, _ = connected(q=0.4)
    enabled(bus)
    foreign = (0x321, bytes(8))
    wire.fault = lambda frame: [foreign, frame, frame, (0x700, frame[1])]
    for _ in range(20):
        bus.write(effort({1: 0.1, 2: 0.1, 3: 0.1}))
        assert [r.q for r in bus.read().values()] == pytest.approx([0.4] * 3, abs=1e-3)


strange = st.tuples(
    st.sampled_from([0, 1, 0x11, 0x12, 0x13, 0x7FF]), st.binary(min_size=8, max_size=8)
)


@settings(max_examples=examples(50))
@given(st.lists(strange, max_size=6), st.lists(strange, max_size=6))
def test_random_frames_give_finite_readings_and_raise_nothing(before, between):
    """Readings belong to configured motors and are in range; later communication is normal."""
    bus, wire, _ = connected(q=0.4)
    enabled(bus)
    wire.queue += [(wire.time, frame) for frame in before]
    wire.fault = lambda frame: [*between, frame]
    bus.write(effort({1: 0.1, 2: 0.1, 3: 0.1}))
    for reading in bus.read().values():
        assert abs(reading.q) <= 12.5
        assert math.isfinite(reading.v + reading.tau + reading.temperature)
        assert 0 <= reading.time <= bus.now()
    wire.fault = lambda frame: [frame]
    wire.pass_time(PASSED)
    for _ in range(2):
        bus.write(effort({1: 0.1, 2: 0.1, 3: 0.1}))
        wire.pass_time(PASSED)
        found = bus.read()
    assert [found[id].q for id in (1, 2, 3)] == pytest.approx([0.4] * 3, abs=1e-3)


class NoisyPort(Port):
    """Port of an emulated adapter; ``fault`` changes the received bytes."""

    def __init__(self, motors):
        self.motors, self.time, self.waiting = motors, 0.0, b""
        self.fault = lambda data: data

    def now(self):
        return self.time

    def open(self):
        self.waiting = b""

    def write(self, data):
        self.time += len(data) * 5e-6
        self.waiting += self.fault(self.motors.receive(data, self.time))

    def read(self, size, until):
        got, self.waiting = self.waiting[:size], self.waiting[size:]
        self.time = self.time + len(got) * 5e-6 if got else max(self.time, until)
        return got

    def flush(self):
        self.waiting = b""

    def close(self):
        pass


def slcan_bus(**options):
    shafts = [Shaft(id, model, q=0.4) for id, model in ARM]
    port = NoisyPort(MitMotors(shafts))
    wired = [JointMotor(f"J{id}", id, m) for id, m in ARM]
    return MitCan(wired, options, port), port, shafts


def test_feedback_and_commands_over_slcan():
    bus, _, shafts = slcan_bus()
    assert isinstance(bus._transport, SlcanTransport)
    enabled(bus)
    bus.write(effort({1: 2.0, 2: 2.0, 3: 2.0}))
    assert [r.q for r in bus.read().values()] == pytest.approx([0.4] * 3, abs=1e-3)
    assert all(s.effort == pytest.approx(2.0, abs=0.02) for s in shafts)


def test_another_bit_rate_gives_no_reply():
    bus, _, _ = slcan_bus(bitrate="500000")
    bus.open()
    with pytest.raises(DriverFault, match=r"motor 1 .* does not reply; motor 2 .*; motor 3"):
        bus.discover()
    assert bus.read() == {}


@pytest.mark.parametrize("seed", range(5))
def test_truncated_slcan_frames_are_discarded(seed):
    """Bytes are lost or inserted: incomplete frames give no reading."""
    rng = random.Random(seed)
    bus, port, _ = slcan_bus()
    enabled(bus)

    def corrupted(data):
        kept = bytes(b for b in data if rng.random() > 0.01)
        return kept if rng.random() > 0.1 else kept + bytes(rng.randrange(128, 256, 3))

    port.fault = corrupted
    received = 0
    for _ in range(200):
        bus.write(effort({1: 0.1, 2: 0.1, 3: 0.1}))
        readings = bus.read()
        assert all(abs(r.q - 0.4) < 1e-3 for r in readings.values())
        received += len(readings)
    assert received > 300


def test_replies_with_a_common_identifier_are_matched_by_their_first_byte():
    """CubeMars motors reply with CAN id 0 and their full id in the first byte."""
    ids = (1, 2, 17, 33)
    exchange = Exchange(Wire(MitMotors([])), dict.fromkeys(ids, MOTORS["AK80-9"]), {})
    for id in ids:
        owner, answer = exchange._assign((0, bytes((id, 0x80, 0, 0x80, 8, 0, 70, 0))))
        assert owner == id
        assert answer.feedback.rotor_temperature == pytest.approx(30.0)
    assert exchange._assign((0, bytes((3, 0x80, 0, 0x80, 8, 0, 30, 0)))) == (-1, None)
