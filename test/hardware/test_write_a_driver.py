"""The page "write a driver in 60 lines": its driver moves an arm and tolerates noise."""

import random
import re
import types
import warnings
from binascii import crc_hqx
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import chain_urdf

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import NAMES, JointMotor, read_hardware_info
from arm_dynamics.model.load import parse_arm

pytestmark = pytest.mark.hardware

PAGE = (Path(__file__).parents[2] / "docs" / "write_a_driver.md").read_text("utf-8")
(SOURCE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(XML,) = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
MODULE = types.ModuleType("tiny_bus_of_the_page")
exec(compile(SOURCE, "write_a_driver.md", "exec"), MODULE.__dict__)
TinyBus = MODULE.TinyBus

JOINT = """<joint name="J{0}"><param name="id">{0}</param><param name="motor">tiny</param>
<param name="sign">{1}</param><command_interface name="position"/></joint>"""
BLOCK = f"""<ros2_control name="c" type="system"><hardware><param name="driver">tiny</param>
<param name="port">/dev/null</param></hardware>{JOINT.format(1, 1)}{JOINT.format(2, -1)}
</ros2_control>"""


class TinyMotor:
    """Fictitious motor that reaches its goal immediately."""

    def __init__(self, q):
        self.q, self.on, self.limit, self.since = q, False, float("inf"), 0.0
        self.model, self.silent = "tiny", False

    def answer(self, letter, id, values, now):
        if now - self.since > self.limit:
            self.on = False
        if letter == "G":
            self.since, self.q = now, float(values[0]) if self.on else self.q
            return ""
        if letter == "T":
            self.on, self.since = values[0] == "1", now
        elif letter == "W":
            self.limit = float(values[0])
        state = f"{self.q:.6f} 0.0 31.5 {int(self.on)} ok"
        replies = {"I": self.model, "R": state, "T": f"{int(self.on)}", "W": " ".join(values)}
        return f"{letter} {id} {replies[letter]}"


class TinyPort(Port):
    """Port of motors by id, on virtual time; ``spoil`` changes the replies."""

    name = "line"

    def __init__(self, motors):
        self.motors, self.time, self.coming, self.gone = motors, 0.0, b"", False
        self.distort = lambda data: data

    def now(self):
        return self.time

    def open(self):
        self._require()

    def write(self, data):
        self._require()
        for text in data.decode().splitlines():
            body, _, check = text.partition("*")
            letter, id, *values = body.split()
            assert check == f"{crc_hqx(body.encode(), 0):04X}"
            motor = self.motors[int(id)]
            reply = "" if motor.silent else motor.answer(letter, int(id), values, self.time)
            good = f"{reply}*{crc_hqx(reply.encode(), 0):04X}\n" if reply else ""
            self.coming += self.distort(good.encode())

    def read(self, size, until):
        self._require()
        got, self.coming = self.coming[:size], self.coming[size:]
        self.time = self.time + 1e-5 * len(got) if len(got) == size else max(self.time, until)
        return got

    def flush(self):
        self.coming = b""

    def close(self):
        pass

    def _require(self):
        if self.gone:
            raise DriverFault("port 'line' is gone")


def tiny_arm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the driver is not installed here
        return parse_arm(chain_urdf({}, {}, more=BLOCK))


def bus_on(*positions):
    line = TinyPort({id: TinyMotor(q) for id, q in enumerate(positions, 1)})
    bus = TinyBus([JointMotor(f"J{id}", id, "tiny") for id in line.motors], {}, line)
    bus.open()
    return bus, line


def test_the_driver_has_60_lines():
    assert sum(bool(line.strip()) for line in SOURCE.splitlines()) <= 60
    assert not TinyBus.__abstractmethods__


def test_the_urdf_of_the_page_contains_every_param_name():
    block = ElementTree.fromstring(XML)
    assert {param.get("name") for param in block.iterfind("joint/param")} == set(NAMES)


def test_the_page_names_the_entry_point_group():
    assert '[project.entry-points."arm_dynamics.drivers"]' in PAGE


def test_it_registers_as_an_entry_point_and_builds_an_arm(monkeypatch):
    entry = types.SimpleNamespace(name="tiny", value="my_package:TinyBus", load=lambda: TinyBus)
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [entry] if group.endswith("drivers") else []
    )
    plugins._installed.cache_clear()
    try:
        driver = build_driver(
            parse_arm(chain_urdf({}, {}, more=BLOCK)), "tiny", interface="position"
        )
    finally:
        monkeypatch.undo()
        plugins._installed.cache_clear()
    assert isinstance(driver, MotorBusDriver)
    assert isinstance(driver.bus, TinyBus)
    assert driver.status is DriverState.UNCONFIGURED


def test_an_arm_with_this_driver_is_activated_moves_and_stops():
    arm = tiny_arm().with_gravity([0, 0, 0])
    wiring = read_hardware_info(arm)
    line = TinyPort({1: TinyMotor(0.3), 2: TinyMotor(-0.2)})
    driver = MotorBusDriver(
        arm, TinyBus(wiring.motors, wiring.settings, line), interface="position"
    )
    driver.configure()
    driver.read()
    driver.activate()
    assert [line.motors[id].q for id in (1, 2)] == pytest.approx([0.3, -0.2], abs=1e-6)
    assert all(motor.on and motor.limit < 1 for motor in line.motors.values())
    for k in range(100):
        line.time += 0.01
        state = driver.read()
        driver.write(Command("position", np.array([0.3 + 0.001 * k, 0.2 + 0.001 * k])))
    np.testing.assert_allclose(state.q, [0.398, 0.298], atol=0.01)
    assert line.motors[2].q == pytest.approx(-state.q[1], abs=0.01)
    driver.deactivate()
    assert not any(motor.on for motor in line.motors.values())
    driver.close()


def test_a_motor_without_reply_does_not_delay_the_other():
    bus, line = bus_on(0.1, 0.2)
    line.motors[1].silent = True
    assert {id: replies.q for id, replies in bus.read().items()} == {2: 0.2}
    assert bus.enable((1, 2)) == {2}
    with pytest.raises(DriverFault, match=r"motors \[1\] do not confirm torque off"):
        bus.prepare("position")


def test_a_wrong_model_is_named():
    bus, line = bus_on(0.1, 0.2)
    bus.discover()
    line.motors[2].model = "huge"
    with pytest.raises(DriverFault, match=r"motors \[2\].*huge"):
        bus.discover()


def test_the_watchdog_is_enabled_and_confirmed():
    bus, line = bus_on(0.1, 0.2)
    assert bus.enable_watchdog(0.1) == {1, 2}
    bus.enable((1, 2))
    bus.write({1: MotorCommand("position", 0.15)})
    line.time += 0.2
    assert {id: replies.enabled for id, replies in bus.read().items()} == {1: False, 2: False}


@pytest.mark.parametrize("seed", range(3))
def test_noise_gives_no_reading_and_raises_nothing(seed):
    bus, line = bus_on(0.1, 0.2)
    rng = random.Random(seed)

    def noise(data):
        return bytes(b ^ 1 << rng.randrange(8) if rng.random() < 0.01 else b for b in data)

    line.distort, good = noise, 0
    for _ in range(200):
        found = bus.read()
        assert all(replies.q == pytest.approx(0.1 * id) for id, replies in found.items())
        good += len(found)
    assert 100 < good < 400


def test_a_disconnected_port_is_a_fault_and_reconnects():
    bus, line = bus_on(0.1)
    line.gone = True
    with pytest.raises(DriverFault, match="is gone"):
        bus.read()
    line.gone = False
    bus.open()
    assert set(bus.read()) == {1}
