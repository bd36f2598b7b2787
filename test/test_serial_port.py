"""SerialPort on a pseudo terminal, with emulated motors or nothing at its other end."""

import os
import pty
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import suppress
from fcntl import ioctl

import pytest
from dynamixel_line import wiring
from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, PortHandler, Protocol2PacketHandler
from emulators.base import Shaft
from emulators.dynamixel import EmulatedDynamixels

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.dynamixel.bus import Dynamixel
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.serial_port import WRITE_TIMEOUT, SerialPort

pytestmark = pytest.mark.hardware

TIOCGEXCL = 0x80045440  # Linux, asm-generic/ioctls.h
PATIENT = {"baud": "1000000", "latency": "0.1"}  # a busy machine is no fault of the motors


class Terminal:
    """A pseudo terminal; ``serve`` has motors answer at its other end, in a thread."""

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
        """Whether it is closed to whoever wants to open it now."""
        return ioctl(self._theirs, TIOCGEXCL, bytes(4)) != bytes(4)

    def unplug(self) -> None:
        """As a cable that is pulled: the device has nothing behind it any more."""
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


def test_bytes_go_both_ways(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    port.write(b"\x00\xff\x11\x13\r\n")
    assert os.read(terminal.ours, 100) == b"\x00\xff\x11\x13\r\n"
    os.write(terminal.ours, b"abcdef\r\n\x03")
    assert port.read(4, port.now() + 10) == b"abcd"
    assert port.read(100, port.now() + 0.02) == b"ef\r\n\x03"
    assert port.read(1, port.now()) == b""
    port.close()


def test_read_waits_no_longer_than_it_must(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    begin = port.now()
    assert port.read(1, begin + 0.05) == b""
    assert port.now() - begin >= 0.05
    os.write(terminal.ours, b"x")
    assert port.read(1, port.now() + 60) == b"x"
    port.close()


def test_what_came_is_forgotten(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    os.write(terminal.ours, b"old")
    assert port.read(1, port.now() + 10) == b"o"
    port.flush()
    os.write(terminal.ours, b"new")
    assert port.read(3, port.now() + 10) == b"new"
    port.close()


def test_a_port_belongs_to_one_program(terminal):
    first, second = (SerialPort(terminal.name, 1_000_000) for _ in range(2))
    first.open()
    with pytest.raises(DriverFault, match=r"lock|busy"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_a_port_is_busy_for_programs_that_lock_nothing(terminal):
    """Root's are let in all the same: what is asked is the terminal's own mark."""
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
def test_what_is_no_port_is_named(name):
    with pytest.raises(DriverFault, match=name):
        SerialPort(name, 1_000_000).open()


def test_a_port_that_is_not_open_is_a_fault():
    port = SerialPort("/dev/no-such-port", 1_000_000)
    for call in (lambda: port.read(1, 0.0), lambda: port.write(b"x"), port.flush):
        with pytest.raises(DriverFault, match="not open"):
            call()
    port.close()


def test_an_unplugged_port_is_a_fault_and_closes_in_peace(terminal):
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
def test_every_call_notices_that_the_line_is_gone(terminal, call):
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


def test_a_bus_runs_on_a_port_of_its_own(terminal):
    motors = six()
    terminal.serve(motors)
    bus = Dynamixel(wiring(*["XM430-W350"] * 6), {**PATIENT, "port": terminal.name})
    bus.open()
    bus.identify()
    bus.prepare("effort")
    assert bus.enable_watchdog(2.0) == bus.enable(bus.motors) == set(range(1, 7))
    bus.write({id: MotorCommand("effort", 0.1 * id) for id in bus.motors})
    bus.read()  # the motors' loops run between two questions
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


def test_the_makers_own_software_understands_the_emulated_motors(terminal):
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
    assert packets.write2ByteTxRx(port, 3, 102, 2000) == (COMM_SUCCESS, 6)  # its limit
    assert packets.write1ByteTxRx(port, 3, 11, 3) == (COMM_SUCCESS, 7)  # torque is on
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


def test_a_machine_that_stood_still_is_no_fault_of_the_line(terminal, monkeypatch):
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


def test_a_line_that_takes_nothing_is_a_fault_within_the_time_limit(terminal):
    port = SerialPort(terminal.name, 1_000_000)
    port.open()
    started = time.monotonic()
    with pytest.raises(DriverFault, match="Write timeout"):
        port.write(bytes(1_000_000))
    assert time.monotonic() - started < 30.0
