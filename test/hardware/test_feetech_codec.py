"""Feetech's packets: examples of the manual, and a parser robust to noise."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arm_dynamics.core.errors import UnknownName
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.feetech import discovery
from arm_dynamics.hardware.feetech import packets as codec
from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.feetech.packets import Packet, Parser, decode
from arm_dynamics.hardware.register_protocol import BROADCAST

pytestmark = pytest.mark.hardware

# Feetech, FT-SCS communication protocol: the examples of chapter 1.
EXAMPLES = {
    "ping 1": (codec.ping(1), "FF FF 01 02 01 FB"),
    "read position of 1": (codec.read(1, 0x38, 2), "FF FF 01 04 02 38 02 BE"),
    "write goal of 1": (
        codec.write(1, 0x2A, bytes.fromhex("00 08 00 00 E8 03")),
        "FF FF 01 09 03 2A 00 08 00 00 E8 03 D5",
    ),
    "write goals of 1 to 4": (
        codec.sync_write(0x2A, 6, dict.fromkeys((1, 2, 3, 4), bytes.fromhex("000800 00E803"))),
        "FF FF FE 20 83 2A 06 01 00 08 00 00 E8 03 02 00 08 00 00 E8 03"
        " 03 00 08 00 00 E8 03 04 00 08 00 00 E8 03 58",
    ),
    "action": (codec.packet(BROADCAST, 5), "FF FF FE 02 05 FA"),
    "reset of 1": (codec.packet(1, 0x0A), "FF FF 01 02 0A F2"),
}
ANSWERS = {
    "ping": ("FF FF 01 02 00 FC", Packet(1, 0, b"")),
    "position 1304": ("FF FF 01 04 00 18 05 DD", Packet(1, 0, b"\x18\x05")),
}
packets = st.builds(Packet, st.integers(0, 253), st.integers(0, 255), st.binary(max_size=40))


def raw(packet):
    return codec.packet(packet.id, packet.error, packet.data)


def parse_in_pieces(data, cuts=()):
    """Return the packets of ``data`` received in pieces."""
    parser, found, start = Parser(), [], 0
    for cut in [*sorted(c % (len(data) + 1) for c in cuts), len(data)]:
        found += parser.feed(data[start:cut])
        start = cut
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_instructions_equal_the_manual(name):
    built, expected = EXAMPLES[name]
    assert built == bytes.fromhex(expected)


@pytest.mark.parametrize("name", ANSWERS)
def test_replies_equal_the_manual(name):
    text, expected = ANSWERS[name]
    assert decode(bytes.fromhex(text)) == expected
    assert raw(expected) == bytes.fromhex(text)


def test_the_position_of_the_example_is_decoded():
    assert table.POSITION.unpack(bytes.fromhex("18 05"), 0x38) == 1304


@pytest.mark.parametrize(
    ("register", "value", "stored"),
    [
        (table.GOAL_POSITION, -1, "01 80"),
        (table.GOAL_POSITION, 4095, "FF 0F"),
        (table.GOAL_PWM, -1000, "E8 07"),
        (table.GOAL_PWM, 1000, "E8 03"),
        (table.SPEED, -50, "32 80"),
        (table.LOAD, -300, "2C 05"),
        (table.HOMING_OFFSET, -85, "55 08"),
        (table.HOMING_OFFSET, 2047, "FF 07"),
        (table.TORQUE, 1, "01"),
    ],
)
def test_negative_values_use_a_sign_bit(register, value, stored):
    assert register.pack(value) == bytes.fromhex(stored)
    assert register.unpack(bytes.fromhex(stored), register.address) == value


def test_faults_are_described():
    assert table.fault_text(0) == ""
    assert table.fault_text(0x24) == "overheating, overload"
    assert table.fault_text(0x50) == "status 0x50"


def test_models_are_identified_by_their_numbers():
    assert table.model_number("STS3215") == 777
    assert table.model_name(777) == "sts3215"
    with pytest.raises(UnknownName, match="'scs0009'; known: sts3215, sts3250"):
        table.model_number("scs0009")


@given(packets)
def test_encoded_values_are_decoded(packet):
    assert decode(raw(packet)) == packet


@given(packets, st.integers(0, 300), st.integers(1, 255))
def test_a_changed_byte_makes_no_packet(packet, at, change):
    """One changed byte always changes the checksum, the header, the id range or the length."""
    data = bytearray(raw(packet))
    data[at % len(data)] ^= change
    assert decode(bytes(data)) is None


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_random_bytes_in_any_split_raise_nothing_and_give_no_packet(data, cuts):
    assert all(raw(packet) in data for packet in parse_in_pieces(data, cuts))
    parser = Parser()
    whole = parser.feed(data)
    assert parser.lost + parser.waiting + sum(len(raw(p)) for p in whole) == len(data)


@given(st.lists(packets, max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_packets_are_parsed_in_any_split(sent, cuts):
    data = b"".join(map(raw, sent))
    assume(not any(_hidden(data, sent)))
    assert parse_in_pieces(data, cuts) == sent


headers = st.builds(
    lambda id, length: b"\xff\xff" + bytes((id, length)), st.integers(0, 255), st.integers(0, 255)
)
noise = st.lists(st.one_of(st.binary(max_size=12), headers), max_size=5).map(b"".join)


@given(noise, packets, st.lists(st.integers(0, 200), max_size=6))
def test_a_valid_packet_after_noise_is_found(before, packet, cuts):
    """For any noise; by chance the 8-bit checksum may accept some noise as a packet."""
    data = before + raw(packet)
    assume(not any(_hidden(data, [packet], len(before))))
    assert packet in parse_in_pieces(data, cuts)


def _hidden(data, sent, start=0):
    """Return the packets in ``data`` that were not sent, in sequence from ``start``."""
    starts = set()
    for packet in sent:
        starts.add(start)
        start += len(raw(packet))
    for at in range(len(data) - 5):
        end = at + 4 + data[at + 3]
        if at not in starts and end <= len(data) and decode(data[at:end]) is not None:
            yield at


instructions = st.builds(
    codec.packet, st.integers(0, 254), st.integers(0, 255), st.binary(max_size=6)
)


@given(
    st.lists(st.one_of(st.binary(max_size=60), instructions), max_size=5).map(b"".join),
    st.integers(0, 200),
)
def test_the_emulated_servos_accept_random_bytes(data, cut):
    motors = EmulatedFeetech([Shaft(1, "sts3215"), Shaft(2, "sts3215")])
    motors.receive(data[:cut], 0.0)
    motors.receive(data[cut:], 0.0)
    motors.receive(bytes(260), 0.0)  # completes a packet that the bytes may have started
    answer = motors.receive(codec.ping(1), 0.0)
    alive = motors.servos[0].memory[5] == 1 and motors.servos[0].away_until < 0
    assume(alive)
    assert decode(answer[-6:]) is not None


@pytest.mark.parametrize("noise", ["FF", "FF FF", "FF FF FF", "00 FF", "FF FF 05 FF"])
def test_a_packet_after_bytes_like_its_header_is_found(noise):
    packet = bytes.fromhex("FF FF 01 02 00 FC")  # status of servo 1, no error, no data
    parser = Parser()
    (found,) = parser.feed(bytes.fromhex(noise) + packet)
    assert (found.id, found.data) == (1, b"")
    assert parser.lost == len(bytes.fromhex(noise))
    assert not parser.waiting


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_bytes_without_a_packet_are_discarded(pieces):
    """At most one packet is buffered: a noisy line needs no memory."""
    parser = Parser()
    for piece in pieces:
        parser.feed(piece)
        assert parser.waiting <= 4 + 255
    parser.feed(b"\0" * 300)
    assert parser.waiting == 0


@pytest.mark.parametrize("id", [0xFE, 0xFF])
def test_a_reply_with_an_id_that_no_servo_has_is_not_valid(id):
    assert decode(codec.packet(id, 0, b"")) is None
    assert decode(codec.packet(0xFD, 0, b"")) == Packet(0xFD, 0, b"")


def test_a_scan_tries_the_rates_of_the_memory_table():
    """Baud rates 0 to 7 of the STS series; that of delivery first."""
    table_order = 1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400
    assert discovery.BAUDS[0] == 1_000_000
    assert sorted(discovery.BAUDS) == sorted(table_order)
