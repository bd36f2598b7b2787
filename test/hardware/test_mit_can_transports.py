"""The MIT driver on real transports of python-can: virtual, UDP multicast, slcan on a pty."""

import fcntl
import os
import pty
import socket
import threading
import tty
import uuid
from contextlib import contextmanager
from types import SimpleNamespace

import can
import pytest

from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.mit_motors import MitMotors
from arm_dynamics.hardware.mit_can import MitCan
from arm_dynamics.hardware.mit_can.transport import PythonCanTransport, SlcanTransport
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.model.hardware_info import JointMotor

pytestmark = pytest.mark.hardware

ARM = ((1, "DM8009"), (2, "DM4340"), (3, "AK80-9"))
SLOW = {"reply_timeout": "0.25"}  # a busy machine delays replies
CODECS = pytest.mark.parametrize("codec", ["native", "python-can"])
GROUP = {"interface": "udp_multicast", "channel": "239.74.163.2"}


def emulated():
    return MitMotors([Shaft(id, model, q=id / 10) for id, model in ARM])


@contextmanager
def running(work):
    """Call ``work`` in a thread until the block ends."""
    stop = threading.Event()

    def run():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def on_bus(**options):
    """Emulate motors on a python-can bus."""
    motors = emulated()
    with can.Bus(**options) as bus:

        def work():
            got = bus.recv(0.02)
            if got is None or got.timestamp in seen:
                return
            data = bytes(got.data)
            if (got.arbitration_id, data) in echoes:
                echoes.remove((got.arbitration_id, data))
                return
            for id, answer in motors.frame(got.arbitration_id, data, 0.0):
                if options["interface"] == "udp_multicast":
                    echoes.append((id, answer))
                bus.send(can.Message(arbitration_id=id, data=answer, is_extended_id=False))

        seen, echoes = set(), []
        with running(work):
            yield motors


@contextmanager
def on_pty():
    """Emulate motors and adapter behind a pseudo terminal; yield the path of its other end."""
    motors, (near, far) = emulated(), pty.openpty()
    tty.setraw(far)
    path = os.ttyname(far)
    os.close(far)  # the driver opens it exclusively
    os.set_blocking(near, False)
    ends = {"near": near}

    def work():
        try:
            data = os.read(ends["near"], 4096)
        except OSError:
            threading.Event().wait(0.001)
            return
        back = motors.receive(data, 0.0)
        if back:
            os.write(ends["near"], back)

    with running(work):
        yield motors, path, ends
    os.close(near)


def driver(settings):
    bus = MitCan([JointMotor(f"J{id}", id, m) for id, m in ARM], {**SLOW, **settings})
    bus.open()
    return bus


def run_lifecycle(bus, motors):
    """Run all functions of a bus, from discovery to disabling torque."""
    bus.discover()
    assert [bus.read()[id].q for id in (1, 2, 3)] == pytest.approx([0.1, 0.2, 0.3], abs=1e-3)
    bus.prepare("effort")
    assert set(bus.enable_watchdog(0.5)) == {1, 2}
    assert set(bus.enable(bus.motors)) == {1, 2, 3}
    for i in range(20):
        bus.write({id: MotorCommand("effort", 0.1 * i) for id in bus.motors})
        readings = bus.read()
        assert set(readings) == {1, 2, 3}
        assert all(0 <= bus.now() - r.time < 1.0 for r in readings.values())
    assert readings[2].enabled
    assert [s.effort for s in motors.shafts] == pytest.approx([1.9] * 3, abs=0.02)
    assert set(bus.disable(bus.motors)) == {1, 2, 3}
    assert not any(motors.torque_is_on(id) for id, _ in ARM)


def test_virtual_bus():
    channel = str(uuid.uuid4())
    with on_bus(interface="virtual", channel=channel) as motors:
        bus = driver({"interface": "virtual", "channel": channel})
        run_lifecycle(bus, motors)
        bus.close()


def test_udp_multicast_on_this_machine():
    """The sender receives its own frames; a CubeMars motor replies with the request's id."""
    options = {**GROUP, "hop_limit": 0, "fd": False, "port": 43117}
    with on_bus(**options) as motors:
        bus = driver({**GROUP, "udp_port": "43117"})
        run_lifecycle(bus, motors)
        bus.close()


def test_udp_multicast_does_not_leave_this_machine():
    line = PythonCanTransport({**GROUP, "udp_port": "43118"})
    line.open()
    sending = line._bus._multicast._socket
    assert sending.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 0
    line.close()


@CODECS
def test_slcan_on_a_pty(codec):
    with on_pty() as (motors, path, _):
        bus = driver({"interface": "slcan", "port": path, "codec": codec})
        run_lifecycle(bus, motors)
        bus.close()


@CODECS
def test_slcan_port_is_for_one_program(codec):
    with on_pty() as (_, path, _):
        first = driver({"interface": "slcan", "port": path, "codec": codec})
        with pytest.raises(DriverFault, match=r"in use|exclusively lock"):
            driver({"interface": "slcan", "port": path, "codec": codec})
        first.discover()
        first.close()
        second = driver({"interface": "slcan", "port": path, "codec": codec})
        second.discover()
        second.close()


@CODECS
def test_slcan_discards_invalid_input(codec):
    """Bytes that are not text, half a frame, an invalid identifier: discarded; later frames are
    read.
    """
    with on_pty() as (_, path, ends):
        bus = driver({"interface": "slcan", "port": path, "codec": codec})
        for rubbish in (b"\xff\xfe\x80\r", b"tXYZ8" + b"0" * 16 + b"\r", b"t01180102\r", b"\x07"):
            bus.discover()
            os.write(ends["near"], rubbish)
            received = {id for _ in range(3) for id in bus.read()}
            assert received == {1, 2, 3}
        bus.close()


@CODECS
def test_disconnection_is_a_fault_and_close_is_not(codec):
    with on_pty() as (_, path, ends):
        bus = driver({"interface": "slcan", "port": path, "codec": codec})
        bus.discover()
        near, spare = ends["near"], os.dup(ends["near"])
        ends["near"] = -1
        os.close(near)
        os.close(spare)
        with pytest.raises(DriverFault, match="connection lost"):
            bus.read()
        with pytest.raises(DriverFault):
            bus.open()
        bus.close()
        bus.close()
        ends["near"] = os.open(os.devnull, os.O_RDWR)
        os.dup2(ends["near"], near)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"interface": "carrier_pigeon"}, "expected one of socketcan, slcan"),
        ({"interface": "slcan", "port": "/dev/no_such_port"}, "no_such_port"),
        ({"interface": "slcan", "port": "/dev/null", "bitrate": "fast"}, "fast"),
        ({"interface": "socketcan", "channel": "nocan0"}, "nocan0"),
    ],
)
def test_a_failing_open_states_the_cause(settings, text):
    line = PythonCanTransport(settings)
    with pytest.raises(DriverFault, match=text):
        line.open()
    line.close()


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"interface": "socketcan", "channel": "can3"}, {"channel": "can3"}),
        (
            {"interface": "slcan", "port": "/dev/no", "baud": "115200", "bitrate": "500000"},
            {"channel": "/dev/no", "tty_baudrate": 115200, "bitrate": 500000},
        ),
        (
            {"interface": "slcan", "port": "/dev/no", "sleep_after_open": "0.5"},
            {"sleep_after_open": 0.5, "tty_baudrate": 1000000, "bitrate": 1000000},
        ),
        ({"interface": "udp_multicast", "udp_port": "5000"}, {"port": 5000, "hop_limit": 0}),
    ],
)
def test_settings_are_passed_to_python_can(monkeypatch, settings, given):
    opened = {}
    monkeypatch.setattr(can, "Bus", opened.update)
    PythonCanTransport(settings).open()
    assert opened == opened | given | {"interface": settings["interface"]}


def test_a_missing_library_leaves_the_port_free(monkeypatch):
    """A driver of python-can may lack its own library, such as pyserial for slcan."""

    def without_library(**_options):
        raise ModuleNotFoundError("No module named 'serial'")

    monkeypatch.setattr(can, "Bus", without_library)
    near, far = pty.openpty()
    path = os.ttyname(far)
    with open(path, "rb", buffering=0) as other:
        transport = PythonCanTransport({"interface": "slcan", "port": path})
        with pytest.raises(DriverFault, match="pip install"):
            transport.open()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while the port is locked
    os.close(near)
    os.close(far)


def test_a_bit_rate_without_slcan_command_is_rejected():
    with pytest.raises(ConfigError, match="bitrate = 300000 bit/s; expected one of 10000, 20000"):
        driver({"interface": "slcan", "port": "/dev/null", "bitrate": "300000"})


def test_an_unknown_codec_is_rejected():
    with pytest.raises(ConfigError, match="codec = 'mine'; expected native or python-can"):
        driver({"interface": "slcan", "port": "/dev/null", "codec": "mine"})


def test_close_shuts_the_bus_of_the_library_down():
    transport = PythonCanTransport({"interface": "virtual", "channel": "closed"})
    transport.open()
    bus = transport._bus
    transport.close()
    transport.close()
    with pytest.raises(can.CanError, match="closed"):
        bus.recv(0.0)


def test_every_method_raises_before_open_and_after_close():
    line = PythonCanTransport({"interface": "virtual", "channel": str(uuid.uuid4())})
    for call in (lambda: line.send((1, bytes(8))), lambda: line.receive(0.0)):
        with pytest.raises(DriverFault, match="not open"):
            call()
    line.open()
    line.send((1, bytes(8)))
    assert line.receive(line.now()) is None
    line.close()
    with pytest.raises(DriverFault, match="not open"):
        line.receive(0.0)


def test_frames_of_other_kinds_are_ignored():
    channel = str(uuid.uuid4())
    line = PythonCanTransport({"interface": "virtual", "channel": channel})
    line.open()
    with can.Bus(interface="virtual", channel=channel) as other:
        for options in (
            {"data": b"123"},
            {"data": bytes(8), "is_extended_id": True},
            {"is_remote_frame": True, "dlc": 8},
            {"data": bytes(8), "is_error_frame": True},
            {"data": b"12345678"},
        ):
            other.send(can.Message(arbitration_id=5, **{"is_extended_id": False, **options}))
        assert line.receive(line.now() + 1.0) == (5, b"12345678")
        assert line.receive(line.now()) is None
    line.close()


def test_the_default_bit_rate_is_that_of_the_motors():
    """S8: 1 Mbit/s, the factory setting of Damiao and CubeMars motors."""
    written = []
    port = SimpleNamespace(open=lambda: None, flush=lambda: None, write=written.append)
    SlcanTransport(port).open()
    assert written == [b"C\rS8\rO\r"]
