"""Hardware node with motors from a driver plugin outside of the package."""

import os
import re
import time
from pathlib import Path

from std_msgs.msg import Bool

from .driven import Driven
from .link import INTRODUCTION, ROOT

ENTRY = "[arm_dynamics.drivers]\ntoy = toy_motors:ToyMotors\n"
WIRED = '<param name="actuator">ideal</param>'
RATE = 200.0
JOINTS = ("J1", "J2")


class Motors(Driven):
    """ROS domain with a hardware node on toy motors, and fault injection."""

    def __init__(self, folder, fresh=False, **parameters):
        super().__init__(fresh)
        self.port = folder / "port"
        self.port.mkdir()
        self.arm = _wired_arm(folder)
        paths = [str(_installed(folder)), os.environ.get("PYTHONPATH", "")]
        self._environment = {"PYTHONPATH": os.pathsep.join(paths), "TOY_ARM": str(self.arm)}
        self.drives(self.start("hardware", **self._own(parameters)))

    def _own(self, parameters):
        own = {"driver": "toy", "port": self.port, "update_rate": RATE}
        return {**own, **parameters}

    def start(self, module, **parameters):
        before = {name: os.environ.get(name) for name in self._environment}
        os.environ.update(self._environment)
        try:
            return self.ros.start(module, arm=self.arm, **parameters)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def restart(self, **parameters):
        """Start a new hardware node after the end of the previous one."""
        assert self.process.code is not None
        self.drives(self.start("hardware", **self._own(parameters)))

    def controller(self, name="pid_gravity"):
        """Start a controller; its default gains are adapted to the period and delay of the node."""
        return self.start("joint_controller", controller=name)

    def page(self):
        """Start a viewer; return the address of its page after the nodes have discovered it."""
        viewer = self.start("viewer", port=0)
        found = self.ros.wait_for(
            lambda: re.search(r"http://\S+", viewer.output), "the page has no address"
        )
        presses = self.ros.record(Bool, "emergency_stop")
        self.ros.wait_for(lambda: presses.publishers, "no button")
        time.sleep(INTRODUCTION)
        return found.group()

    @property
    def is_disabled(self):
        """Whether the torque of all motors has been disabled since this was set to False."""
        return (self.port / "disabled").exists()

    @is_disabled.setter
    def is_disabled(self, value):
        assert not value
        (self.port / "disabled").unlink(missing_ok=True)

    def broken(self, name):
        (self.port / name).touch()

    def mend(self, name):
        (self.port / name).unlink()


def _wired_arm(folder):
    text = (ROOT / "urdf" / "two_link.urdf").read_text()
    for number in (1, 2):
        wire = f'<param name="id">{number}</param>\n<param name="motor">toy</param>'
        text = text.replace(WIRED, f'<param name="actuator"> ideal </param>\n{wire}', 1)
    arm = folder / "toy.urdf"
    arm.write_text(text.replace('<param name="actuator"> ideal </param>', WIRED))
    return arm


def _installed(folder):
    """Return a folder for PYTHONPATH that contains an installed package with an entry point."""
    site = folder / "site"
    (site / "toy_motors-1.0.dist-info").mkdir(parents=True)
    (site / "toy_motors-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toy_motors\nVersion: 1.0\n"
    )
    (site / "toy_motors-1.0.dist-info" / "entry_points.txt").write_text(ENTRY)
    (site / "toy_motors.py").write_text(Path(__file__).with_name("toy_motors.py").read_text())
    return site
