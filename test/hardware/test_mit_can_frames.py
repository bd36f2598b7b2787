"""Frames of MIT-mode CAN compared with bytes computed by hand from the manuals' formulas."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.hardware.mit_can import can_frames
from arm_dynamics.hardware.mit_can.can_frames import Ranges, decode, encode, encode_command
from arm_dynamics.hardware.mit_can.motors import MOTORS, find_motor
from arm_dynamics.hardware.mit_can.transport import decode_line, encode_line

pytestmark = pytest.mark.hardware

DM4310, DM8009 = find_motor("DM4310").ranges, find_motor("DM8009").ranges
finite = st.floats(-100, 100)


def fields(data):
    """Return the codes of position, velocity, kp, kd and torque by the bit positions of the
    manuals.
    """
    d = list(data)
    return (
        d[0] * 256 + d[1],
        d[2] * 16 + d[3] // 16,
        d[3] % 16 * 256 + d[4],
        d[5] * 16 + d[6] // 16,
        d[6] % 16 * 256 + d[7],
    )


# --- by hand ---


def test_zero_command_of_a_dm4310():
    """32767.5 and 2047.5 are rounded up: 0x8000 and 0x800."""
    assert encode_command(DM4310).hex() == "8000800000000800"


def test_command_by_hand():
    """p = 1 rad: 13.5/25·65535 = 35388.9; v = -3: 27/60·4095 = 1842.75; kp = 50/500·4095 = 409.5;
    kd = 1/5·4095 = 819; τ = 2.5: 12.5/20·4095 = 2559.375."""
    data = encode_command(DM4310, 1.0, -3.0, 50.0, 1.0, 2.5)
    assert fields(data) == (35389, 1843, 410, 819, 2559)
    assert data.hex() == "8a3d7331 9a3339ff".replace(" ", "")


def test_lower_and_upper_ends():
    assert encode_command(DM8009, -12.5, -45, 0, 0, -54).hex() == "0" * 16
    assert fields(encode_command(DM8009, 12.5, 45, 500, 0, 54)) == (65535, 4095, 4095, 0, 4095)
    assert encode_command(DM8009, -99, -99, -1, -1, -99) == encode_command(
        DM8009, -12.5, -45, 0, 0, -54
    )


def test_instructions():
    assert can_frames.encode_instruction(can_frames.ENABLE).hex() == "fffffffffffffffc"
    assert can_frames.encode_instruction(can_frames.DISABLE).hex() == "fffffffffffffffd"
    assert can_frames.encode_instruction(can_frames.ZERO).hex() == "fffffffffffffffe"
    assert can_frames.encode_instruction(can_frames.CLEAR_FAULT).hex() == "fffffffffffffffb"


def test_register_requests():
    assert can_frames.refresh(0x03) == (0x7FF, bytes.fromhex("0300cc0000000000"))
    assert can_frames.read_register(0x123, 7) == (0x7FF, bytes.fromhex("2301330700000000"))
    assert can_frames.write_register(5, 9, 2000) == (0x7FF, bytes.fromhex("05005509d0070000"))
    assert can_frames.register_reply(bytes.fromhex("2301330711000000"), 7) == (
        0x123,
        b"\x11\0\0\0",
    )
    assert can_frames.register_reply(bytes.fromhex("2301330711000000"), 9) is None
    assert can_frames.register_reply(b"\x23\x01\x33", 7) is None


def test_feedback_of_damiao_by_hand():
    """0xB3: drive too hot, motor 3; 0x8A3D = 35389, 0x733 = 1843, 0x9FF = 2559; 45 and 50 °C."""
    reply = can_frames.parse_damiao(bytes.fromhex("b38a3d7339ff2d32"), DM4310)
    assert reply.position == pytest.approx(35389 / 65535 * 25 - 12.5)
    assert reply.velocity == pytest.approx(1843 / 4095 * 60 - 30)
    assert reply.torque == pytest.approx(2559 / 4095 * 20 - 10)
    assert (reply.fault, reply.enabled) == ("drive over-temperature", False)
    assert (reply.drive_temperature, reply.rotor_temperature) == (45.0, 50.0)


@pytest.mark.parametrize(
    ("state", "fault", "enabled"),
    [
        (0, "", False),
        (1, "", True),
        (8, "over-voltage", False),
        (9, "under-voltage", False),
        (0xA, "over-current", False),
        (0xB, "drive over-temperature", False),
        (0xC, "rotor over-temperature", False),
        (0xD, "communication lost", False),
        (0xE, "overload", False),
        (0x5, "fault 0x5", False),
    ],
)
def test_states_of_damiao(state, fault, enabled):
    reply = can_frames.parse_damiao(bytes((state << 4 | 2, 0x80, 0, 0x80, 8, 0, 25, 25)), DM4310)
    assert (reply.fault, reply.enabled) == (fault, enabled)


def test_feedback_of_cubemars():
    """Temperatures are sent with an offset of 40; one temperature, no torque status."""
    reply = can_frames.parse_cubemars(
        bytes.fromhex("01ffff000fff5a00"), find_motor("AK80-9").ranges
    )
    assert (reply.position, reply.velocity, reply.torque) == (12.5, -50.0, 18.0)
    assert (reply.rotor_temperature, reply.fault, reply.enabled) == (50.0, "", None)
    assert math.isnan(reply.drive_temperature)
    hot = can_frames.parse_cubemars(bytes.fromhex("01ffff000fff5a06"), find_motor("AK80-9").ranges)
    assert hot.fault == "drive over-temperature"


def test_a_register_reply_is_not_feedback():
    assert can_frames.parse_damiao(bytes.fromhex("0100330711000000"), DM4310) is None


@given(st.binary(max_size=9))
def test_parsers_accept_random_bytes(data):
    for parse in (can_frames.parse_damiao, can_frames.parse_cubemars):
        reply = parse(data, DM4310)
        assert reply is None or abs(reply.position) <= 12.5


# --- round trips ---


@given(st.sampled_from(sorted(MOTORS)), finite, finite, st.floats(0, 500), st.floats(0, 5), finite)
def test_commands_round_to_the_nearest(name, p, v, kp, kd, t):
    r = find_motor(name).ranges
    p, v, t = (max(-m, min(m, x)) for x, m in ((p, r.position), (v, r.velocity), (t, r.torque)))
    data = encode_command(r, p, v, kp, kd, t)
    assume(data[:3] != b"\xff\xff\xff")
    spans = ((-r.position, r.position, 16), (-r.velocity, r.velocity, 12), (0, 500, 12))
    spans += ((0, 5, 12), (-r.torque, r.torque, 12))
    for x, code, (low, high, bits) in zip((p, v, kp, kd, t), fields(data), spans, strict=True):
        half = (high - low) / (2**bits - 1) / 2
        assert abs(decode(code, low, high, bits) - x) <= half * (1 + 1e-9)


@given(st.integers(0, 4095))
def test_codes_are_decoded_to_their_values(code):
    assert encode(decode(code, -54.0, 54.0, 12), -54.0, 54.0, 12) == code


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_commands_differ_from_special_instructions(t):
    for data in (
        encode_command(DM4310, 99, 99, 999, 99, t),
        encode_command(DM4310, t, t, t, t, 99),
    ):
        assert not data.startswith(b"\xff" * 7)


@pytest.mark.parametrize("name", MOTORS)
def test_zero_torque_has_the_nearest_code(name):
    """Half a step, T / 4095: no code is nearer."""
    r = find_motor(name).ranges
    left = decode(fields(encode_command(r))[4], -r.torque, r.torque, 12)
    assert left == pytest.approx(r.torque / 4095)
    assert abs(decode(2047, -r.torque, r.torque, 12)) == pytest.approx(left)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", range(5))
def test_non_finite_values_are_rejected(bad, place):
    values = [0.0] * 5
    values[place] = bad
    with pytest.raises(InvalidValue, match="finite"):
        encode_command(Ranges(12.5, 30, 10), *values)


def test_an_unknown_motor_is_rejected():
    with pytest.raises(UnknownName, match="'DM9999'; known: AK60-6"):
        find_motor("DM9999")


# --- slcan ---


@given(st.integers(0, 0x7FF), st.binary(min_size=8, max_size=8))
def test_slcan_frames_are_decoded(id, data):
    text = encode_line((id, data))
    assert len(text) == 22
    assert decode_line(text.removesuffix(b"\r")) == (id, data)


def test_slcan_by_hand():
    assert encode_line((0x11, bytes(range(8)))) == b"t01180001020304050607\r"


@given(st.binary(max_size=30))
def test_the_slcan_parser_accepts_random_bytes(text):
    frame = decode_line(text)
    assert frame is None or encode_line(frame)[:-1].lower() == text.rpartition(b"\x07")[2].lower()


@pytest.mark.parametrize("text", [b"", b"z", b"t0117", b"t01170001020304050607", b"T0118" * 5])
def test_other_slcan_lines_are_ignored(text):
    assert decode_line(text) is None


def test_ranges_equal_the_manuals():
    """Max position [rad], velocity [rad/s] and torque [N·m]: defaults of Damiao and CubeMars."""
    found = [(name, model.ranges) for name, model in MOTORS.items()]
    assert {name: (r.position, r.velocity, r.torque) for name, r in found} == {
        "DM4310": (12.5, 30.0, 10.0),
        "DM4340": (12.5, 10.0, 28.0),
        "DM8009": (12.5, 45.0, 54.0),
        "AK60-6": (12.5, 45.0, 15.0),
        "AK80-9": (12.5, 50.0, 18.0),
    }


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (1, "rotor over-temperature"),
        (2, "over-current"),
        (3, "over-voltage"),
        (4, "under-voltage"),
        (5, "encoder"),
        (6, "drive over-temperature"),
        (7, "rotor locked"),
    ],
)
def test_faults_of_cubemars_equal_the_manual(code, fault):
    data = bytes.fromhex("01ffff000fff5a") + bytes([code])
    assert can_frames.parse_cubemars(data, find_motor("AK80-9").ranges).fault == fault
