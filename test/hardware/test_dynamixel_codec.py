"""Packets of Dynamixel protocol 2.0: examples of the e-manual, ROBOTIS' codec, noise."""

import pytest
from dynamixel_sdk import COMM_SUCCESS, Protocol2PacketHandler
from hypothesis import example, given
from hypothesis import strategies as st

from arm_dynamics.hardware.dynamixel import control_table, feedback_reader
from arm_dynamics.hardware.dynamixel import packets as codec
from arm_dynamics.hardware.dynamixel.control_table import Register
from arm_dynamics.hardware.dynamixel.packets import MAX_LENGTH, Parser, crc16
from arm_dynamics.hardware.emulation import dynamixel_motors as emulated

pytestmark = pytest.mark.hardware

NASTY = st.lists(
    st.sampled_from([b"\xff\xff\xfd", b"\xff", b"\xfd", b"\x00", b"\x55", b"\x07"]), max_size=12
).map(b"".join)
DATA = st.one_of(st.binary(max_size=40), NASTY)
NOISE = st.lists(
    st.one_of(
        DATA,
        st.just(b"\xff\xff\xfd\x00"),
        st.binary(min_size=3, max_size=3).map(lambda tail: b"\xff\xff\xfd\x00" + tail),
    ),
    max_size=6,
).map(b"".join)


def words(text: str) -> bytes:
    return bytes.fromhex(text)


# e-manual, "DYNAMIXEL Protocol 2.0", "Instruction Details": every example of an instruction used
@pytest.mark.parametrize(
    ("packet", "golden"),
    [
        (codec.ping(1), "FF FF FD 00 01 03 00 01 19 4E"),
        (codec.ping(0xFE), "FF FF FD 00 FE 03 00 01 31 42"),
        (codec.read(1, 132, 4), "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15"),
        (
            codec.write(1, 116, (512).to_bytes(4, "little")),
            "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89",
        ),
        (codec.reboot(1), "FF FF FD 00 01 03 00 08 2F 4E"),
        (
            codec.sync_or_bulk_read({1: 132, 2: 132}, 4),
            "FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA",
        ),
        (
            codec.sync_write(116, 4, {1: b"\x96\0\0\0", 2: b"\xaa\0\0\0"}),
            "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87",
        ),
    ],
)
def test_instructions_equal_the_manual(packet, golden):
    assert packet == words(golden)


@pytest.mark.parametrize(
    ("packet", "id", "data"),
    [
        ("FF FF FD 00 01 07 00 55 00 06 04 26 65 5D", 1, "06 04 26"),
        ("FF FF FD 00 02 07 00 55 00 06 04 26 6F 6D", 2, "06 04 26"),
        ("FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0", 1, "A6 00 00 00"),
        ("FF FF FD 00 02 08 00 55 00 1F 08 00 00 BA BE", 2, "1F 08 00 00"),
        ("FF FF FD 00 01 04 00 55 00 A1 0C", 1, ""),
        ("FF FF FD 00 01 06 00 55 00 77 00 C3 69", 1, "77 00"),
    ],
)
def test_status_packets_equal_the_manual(packet, id, data):
    (found,) = Parser().feed(words(packet))
    assert (found.id, found.instruction, found.error) == (id, codec.STATUS, 0)
    assert found.data == words(data)


def test_bulk_read_has_one_address_per_motor():
    packet = codec.sync_or_bulk_read({1: 208, 2: 224}, 16, fast=True)
    (found,) = Parser().feed(packet)
    assert found.instruction == codec.FAST_BULK_READ
    assert found.data == bytes([1, 208, 0, 16, 0, 2, 224, 0, 16, 0])


# The same page, "Fast Sync Read (0x8A)", example
FAST = words(
    "FF FF FD 00 FE 19 00 55 00 03 A6 00 00 00 84 0800 07 1F 08 00 00 16 CA 00 04 FF 03 00 00 D1 9E"
)
FAST_PARTS = [(3, 166), (7, 2079), (4, 1023)]


def test_fast_sync_read_equals_the_manual():
    (found,) = Parser().feed(FAST)
    parts = codec.status_data(found, 4, 3)
    assert [(s.id, int.from_bytes(s.data, "little")) for s in parts] == FAST_PARTS
    request = codec.sync_or_bulk_read({3: 132, 7: 132, 4: 132}, 4, fast=True)
    assert request == words("FF FF FD 00 FE 0A 00 8A 84 00 04 00 03 07 04 20 F2")


@pytest.mark.parametrize("length", [0, 1, 2, 0xFFFF])
def test_noise_of_an_impossible_length_hides_no_packet(length):
    """Even with a valid CRC: a packet contains at least an instruction and a CRC."""
    head = codec.HEADER + b"\x01" + length.to_bytes(2, "little")
    noise = head + crc16(head).to_bytes(2, "little")
    packet = codec.encode(2, codec.STATUS, b"\x00\x07")
    (found,) = Parser().feed(noise + packet)
    assert (found.id, found.data) == (2, b"\x07")


@pytest.mark.parametrize(("size", "count"), [(3, 3), (5, 3), (4, 2), (4, 4), (12, 1)])
def test_a_fast_packet_of_another_length_is_ignored(size, count):
    """A late reply belongs to another request: none of its bytes is a value."""
    (late,) = Parser().feed(FAST)
    assert list(codec.status_data(late, size, count)) == []


@pytest.mark.parametrize("kept", range(len(FAST) + 1))
def test_complete_values_of_a_truncated_fast_read_are_used(kept):
    parts = list(codec.split_fast_status(FAST[:kept], 4))
    whole = max(0, (kept - codec.FAST_SIZE) // 8)
    assert [(s.id, int.from_bytes(s.data, "little")) for s in parts] == FAST_PARTS[:whole]


@pytest.mark.parametrize("bit", range(0, 8 * len(FAST), 5))
def test_values_after_a_corrupt_bit_of_a_fast_read_are_discarded(bit):
    wrong = bytearray(FAST)
    wrong[bit // 8] ^= 1 << bit % 8
    good = max(0, (bit // 8 - codec.FAST_SIZE) // 8)
    parts = list(codec.split_fast_status(bytes(wrong), 4))
    assert [s.id for s in parts] == [id for id, _ in FAST_PARTS[:good]]


@given(DATA)
def test_stuffing_is_undone_and_leaves_no_header(data):
    stuffed = codec.stuff(data)
    assert codec.unstuff(stuffed) == data
    assert codec.HEADER not in stuffed


@given(DATA, st.integers(0, 0xFFFF))
def test_crc_can_be_computed_in_parts(data, start):
    half = len(data) // 2
    assert crc16(data[half:], crc16(data[:half], start)) == crc16(data, start)


@given(DATA)
def test_crc_and_stuffing_equal_the_emulator(data):
    assert crc16(data) == emulated._checksum(data)
    assert codec.stuff(data) == emulated._with_stuffing(data)
    assert codec.unstuff(codec.stuff(data)) == emulated._without_stuffing(codec.stuff(data))


class SdkPort:
    """Port for the packet handler of dynamixel-sdk: stores what is sent, returns given bytes."""

    def __init__(self, coming: bytes = b"") -> None:
        self.is_using, self.sent, self.coming = False, b"", coming

    def clearPort(self):  # noqa: N802
        pass

    def writePort(self, packet):  # noqa: N802
        self.sent = bytes(packet)
        return len(packet)

    def readPort(self, size):  # noqa: N802
        there, self.coming = self.coming[:size], self.coming[size:]
        return list(there)

    def setPacketTimeout(self, size):  # noqa: N802
        pass

    def setPacketTimeoutMillis(self, milliseconds):  # noqa: N802
        pass

    def isPacketTimeout(self):  # noqa: N802
        return True


@given(st.integers(0, 252), st.integers(0, 660), DATA.filter(lambda d: len(d) > 0))
def test_dynamixel_sdk_encodes_the_same_packets(id, address, data):
    if b"\xff\xff\xfd" in codec.write(id, address, data)[7:-2]:
        return  # dynamixel-sdk 4.1.0 removes the stuffing that it has added
    loop = SdkPort()
    Protocol2PacketHandler().writeTxOnly(loop, id, address, len(data), list(data))
    assert loop.sent == codec.write(id, address, data)


@given(st.integers(0, 252), st.integers(0, 127), DATA)
def test_dynamixel_sdk_decodes_the_same_packets(id, error, data):
    status = codec.encode(id, codec.STATUS, bytes((error,)) + data)
    if len(status) > 250:
        return
    packet, result = Protocol2PacketHandler().rxPacket(SdkPort(status), False)
    (ours,) = Parser().feed(status)
    assert result == COMM_SUCCESS
    assert (packet[4], packet[8]) == (ours.id, ours.error) == (id, error)
    length = packet[5] + 256 * packet[6]
    assert bytes(packet[9 : 5 + length]) == ours.data == data


@given(st.lists(st.integers(0, 252), min_size=1, max_size=8, unique=True), st.integers(1, 18))
def test_dynamixel_sdk_sync_read_is_equal(ids, size):
    for fast in (False, True):
        loop = SdkPort()
        Protocol2PacketHandler().syncReadTx(loop, 224, size, ids, len(ids), fast)
        assert loop.sent == codec.sync_or_bulk_read(dict.fromkeys(ids, 224), size, fast)


def parse_in_pieces(data: bytes, cuts: list[int]) -> list[codec.Packet]:
    parser, found, begin = Parser(), [], 0
    for end in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        found += parser.feed(data[begin:end])
        begin = end
    return found


CUTS = st.lists(st.integers(0, 10_000), max_size=8)


@given(NOISE, DATA, NOISE, CUTS)
@example(b"\xff\xff\xfd\x00\x01\xff\x17", b"\x01", b"", [3])
@example(b"\xff\xff\xfd\x00\x01\xff\xff\x55", b"\x01", b"\xff", [])
@example(b"\xff", b"", b"", [1])
def test_noise_does_not_hide_the_following_packet(before, data, after, cuts):
    packet = codec.encode(7, codec.STATUS, b"\x00" + data)
    found = parse_in_pieces(before + packet + after, cuts)
    assert packet in [p.raw for p in found]


@given(st.lists(DATA, max_size=6), CUTS)
def test_packets_are_parsed_in_any_split(datas, cuts):
    packets = [codec.encode(k, codec.STATUS, b"\x00" + d) for k, d in enumerate(datas)]
    assert [(p.id, p.data) for p in parse_in_pieces(b"".join(packets), cuts)] == list(
        enumerate(datas)
    )


def require_every_byte_counted(data):
    """Require each byte to be part of a packet, lost, or waiting."""
    parser = Parser()
    found = parser.feed(data)
    assert parser.lost + parser.waiting + sum(len(p.raw) for p in found) == len(data)


@given(st.binary(max_size=300), CUTS)
def test_random_bytes_raise_nothing_in_the_parser(data, cuts):
    for packet in parse_in_pieces(data, cuts):
        assert packet.raw in data
    require_every_byte_counted(data)


@given(NOISE, DATA, NOISE)
def test_every_byte_is_of_a_packet_or_lost_or_waiting(before, data, after):
    require_every_byte_counted(before + codec.encode(7, codec.STATUS, b"\x00" + data) + after)


def test_the_parser_discards_bytes_that_cannot_become_a_packet():
    parser = Parser()
    for _ in range(50):
        parser.feed(b"\xff\xff\xfd\x00\x01\xff\x17" + bytes(500))
    assert len(parser.pending()) <= MAX_LENGTH + 7


@given(st.binary(min_size=1, max_size=60), st.integers(0, 10_000))
def test_a_wrong_byte_is_detected(data, where):
    packet = bytearray(codec.encode(3, codec.STATUS, b"\x00" + data))
    packet[where % len(packet)] ^= 0x40
    assert all(p.raw != bytes(packet) for p in Parser().feed(bytes(packet)))


def test_a_lost_register_mapping_is_detected():
    assert feedback_reader.unpack(bytes(18)) is None
    block = feedback_reader.unpack(words("01 20 FF FEFF 9CFFFFFF 00080000 7800 1E 0000"))
    assert block == (1, 0x20, 0xFF, -2, -100, 2048, 120, 30, 0)


def test_registers_equal_the_manual():
    """E-manual, "Control Table" of XM430-W350: address and size."""
    found = {
        n: (r.address, r.size) for n, r in vars(control_table).items() if isinstance(r, Register)
    }
    assert found == {
        "RETURN_DELAY": (9, 1), "DRIVE_MODE": (10, 1), "OPERATING_MODE": (11, 1),
        "PWM_LIMIT": (36, 2), "CURRENT_LIMIT": (38, 2), "VELOCITY_LIMIT": (44, 4),
        "TORQUE_ENABLE": (64, 1), "HARDWARE_ERROR": (70, 1), "BUS_WATCHDOG": (98, 1),
        "GOAL_PWM": (100, 2), "GOAL_CURRENT": (102, 2), "GOAL_VELOCITY": (104, 4),
        "GOAL_POSITION": (116, 4), "REALTIME_TICK": (120, 2), "MOVING": (122, 1),
        "MOVING_STATUS": (123, 1), "PRESENT_CURRENT": (126, 2), "PRESENT_VELOCITY": (128, 4),
        "PRESENT_POSITION": (132, 4), "INPUT_VOLTAGE": (144, 2), "TEMPERATURE": (146, 1),
    }  # fmt: skip
