"""SerialPort on a pseudo terminal, with or without emulated motors at its other end."""

import os
import pty
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import suppress
from fcntl import ioctl

import pytest
from dynamixel_rig import wiring
from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, PortHandler, Protocol2PacketHandler

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.dynamixel.bus import Dynamixel
from arm_dynamics.hardware.emulation.dynamixel_motors import EmulatedDynamixels
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.serial_port import WRITE_TIMEOUT, SerialPort

pytestmark = pytest.mark.hardware

TIOCGEXCL = 0x80045440  # Linux, asm-generic/ioctls.h
PATIENT = {"baud": "1000000", "latency": "0.1"}  # a busy machine delays replies


class Terminal:
    """Pseudo terminal; with ``serve`` emulated motors reply at its other end, in a thread."""

    def __init__(self) -> None:
        self.ours, theirs = pty.openpty()
        tty.setraw(theirs)
        self.name = os.ttyname(theirs)
        self._theirs = theirs
        self._thread: threading.Thread | None = None

    def serve(self, motors: EmulatedDynamixels) -> None:
        self._thread = threading.Thread(target=self._run, args=(motors,), daemon=True)
        self._thread.start()

    def exclusive(self) -> bool:
        """Return whether other programs cannot open it."""
        return ioctl(self._theirs, TIOCGEXCL, bytes(4)) != bytes(4)

    def unplug(self) -> None:
        """Disconnect the device behind the terminal."""
        for fd in (self.ours, self._theirs):
            with suppress(OSError):
                os.close(fd)
        self.ours = self._theirs = -1

    def _run(self, motors: EmulatedDynamixels) -> None:
        with suppress(OSError):
            while data := os.read(self.ours, 4096):
                back = motors.receive(data, time.monotonic())
                motors.step(time.monotonic())
                os.write(self.ours, back)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.unplug()


def six() -> EmulatedDynamixels:
    return EmulatedDynamixels([Shaft(id, "XM430-W350", q=0.1 * id) for id in range(1, 7)])


def test_bytes_are_transferred_in_both_directions(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    port.write(b"\x00\xff\x11\x13\r\n")
    assert os.read(terminal.ours, 100) == b"\x00\xff\x11\x13\r\n"
    os.write(terminal.ours, b"abcdef\r\n\x03")
    assert port.read(4, port.now() + 10) == b"abcd"
    assert port.read(100, port.now() + 0.02) == b"ef\r\n\x03"
    assert port.read(1, port.now()) == b""
    port.close()


def test_read_returns_as_soon_as_possible(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    begin = port.now()
    assert port.read(1, begin + 0.05) == b""
    assert port.now() - begin >= 0.05
    os.write(terminal.ours, b"x")
    assert port.read(1, port.now() + 60) == b"x"
    port.close()


def test_flush_discards_received_bytes(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    os.write(terminal.ours, b"old")
    assert port.read(1, port.now() + 10) == b"o"
    port.flush()
    os.write(terminal.ours, b"new")
    assert port.read(3, port.now() + 10) == b"new"
    port.close()


def test_a_port_is_opened_exclusively(terminal):
    first, second = (SerialPort(terminal.name, 1_000_000) for _ in range(2))
    first.open()
    with pytest.raises(DriverFault, match=r"lock|busy"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_an_open_port_is_busy_for_programs_without_locks(terminal):
    """Programs of root can open it anyway: checked is the terminal's exclusive flag."""
    port = SerialPort(terminal.name, 1_000_000)
    assert not terminal.exclusive()
    port.open()
    assert terminal.exclusive()
    port.close()
    assert not terminal.exclusive()
    port.open()
    terminal.unplug()
    port.close()


@pytest.mark.parametrize("name", ["/dev/no-such-port", "/dev/null"])
def test_a_device_that_is_not_a_port_is_named(name):
    with pytest.raises(DriverFault, match=name):
        SerialPort(name, 1_000_000).open()


def test_a_closed_port_is_a_fault():
    port = SerialPort("/dev/no-such-port", 1_000_000)
    for call in (lambda: port.read(1, 0.0), lambda: port.write(b"x"), port.flush):
        with pytest.raises(DriverFault, match="not open"):
            call()
    port.close()


def test_a_disconnected_port_is_a_fault_and_closes_without_error(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    terminal.unplug()
    with pytest.raises(DriverFault):
        port.read(1, port.now() + 10)
    with pytest.raises(DriverFault):
        port.write(b"x")
    port.close()
    port.close()
    with pytest.raises(DriverFault):
        port.open()


@pytest.mark.parametrize("call", ["write", "flush"])
def test_every_call_detects_a_disconnection(terminal, call):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    terminal.unplug()
    with pytest.raises(DriverFault):
        port.write(b"x") if call == "write" else port.flush()
    port.close()


def test_closing_ends_a_read_in_another_thread(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    raised = []

    def read():
        try:
            port.read(1, port.now() + 1.0)
        except DriverFault as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.05)
    port.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(raised) == 1


def test_a_bus_runs_on_a_serial_port(terminal):
    motors = six()
    terminal.serve(motors)
    bus = Dynamixel(wiring(*["XM430-W350"] * 6), {**PATIENT, "port": terminal.name})
    bus.open()
    bus.discover()
    bus.prepare("effort")
    assert bus.enable_watchdog(2.0) == bus.enable(bus.motors) == set(range(1, 7))
    bus.write({id: MotorCommand("effort", 0.1 * id) for id in bus.motors})
    bus.read()  # the motors' loops run between two requests
    found = bus.read()
    assert [found[id].q for id in range(1, 7)] == pytest.approx(
        [0.1 * id for id in range(1, 7)], abs=1e-3
    )
    assert [found[id].tau for id in range(1, 7)] == pytest.approx(
        [0.1 * id for id in range(1, 7)], abs=3e-3
    )
    terminal.unplug()
    with pytest.raises(DriverFault):
        bus.read()
    bus.close()


def test_dynamixel_sdk_communicates_with_the_emulated_motors(terminal):
    motors = six()
    terminal.serve(motors)
    port, packets = PortHandler(terminal.name), Protocol2PacketHandler()
    port.openPort()
    port.setPacketTimeoutMillis(1000)
    number, result, error = packets.ping(port, 3)
    assert (number, result, error) == (1020, COMM_SUCCESS, 0)
    assert packets.write1ByteTxRx(port, 3, 11, 0) == (COMM_SUCCESS, 0)
    assert packets.write1ByteTxRx(port, 3, 64, 1) == (COMM_SUCCESS, 0)
    assert packets.write2ByteTxRx(port, 3, 102, 100) == (COMM_SUCCESS, 0)
    assert packets.write2ByteTxRx(port, 3, 102, 2000) == (COMM_SUCCESS, 6)  # its maximum
    assert packets.write1ByteTxRx(port, 3, 11, 3) == (COMM_SUCCESS, 7)  # torque enabled
    assert packets.read2ByteTxRx(port, 3, 102)[:2] == (100, COMM_SUCCESS)
    motors.trip(3, "overload")
    assert packets.read1ByteTxRx(port, 3, 70) == (0x20, COMM_SUCCESS, 0x80)
    for fast in (False, True):
        group = GroupSyncRead(port, packets, 126, 21)
        for id in range(1, 7):
            group.addParam(id)
        assert (group.fastSyncRead if fast else group.txRxPacket)() == COMM_SUCCESS
        ticks = [group.getData(id, 132, 4) for id in range(1, 7)]
        assert ticks == [round(0.1 * id / 6.283185307179586 * 4096) + 2048 for id in range(1, 7)]
    port.closePort()


def test_a_suspended_machine_does_not_cause_a_fault(terminal, monkeypatch):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    write = os.write

    def interrupted(descriptor, data):
        sent = write(descriptor, data)
        time.sleep(2 * WRITE_TIMEOUT)
        return sent

    monkeypatch.setattr(os, "write", interrupted)
    port.write(b"a frame")
    assert os.read(terminal.ours, 100) == b"a frame"


def test_a_port_that_accepts_no_bytes_is_a_fault_within_the_time_limit(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    started = time.monotonic()
    with pytest.raises(DriverFault, match="Write timeout"):
        port.write(bytes(1_000_000))
    assert time.monotonic() - started < 30.0
