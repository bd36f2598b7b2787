"""Three-joint arm on ideal emulated motors, on virtual time."""

from functools import cache

import numpy as np
from conftest import chain
from emulators.ideal import IdealBus, IdealMotors, ideal_shafts

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import JointMotor
from arm_dynamics.safety.safety_settings import SafetySettings

PERIOD = 2e-3
START = (0.3, 0.5, -0.4)
SIGN, OFFSET, RATIO = (1.0, -1.0, 1.0), (0.1, 0.0, -0.2), (1.0, 2.0, 5.0)
SAFETY = SafetySettings(velocity_limit_scale=0.06)  # 6 rad/s


@cache
def arm():
    """Return an arm that falls under gravity, with some damping."""
    joint = {"effort": 40.0, "damping": 0.1}
    return chain({**joint, "mass": 2.0}, joint, {**joint, "mass": 0.5})


WIRING = tuple(
    JointMotor(f"J{i + 1}", i + 1, "ideal", SIGN[i], OFFSET[i], RATIO[i]) for i in range(3)
)


class Rig:
    """Arm, emulated motors, bus and driver; ``cycle`` is one cycle of the host."""

    def __init__(self, interface="effort", safety=SAFETY, q=START, takes=None, model=None, **more):
        gear = np.square(RATIO)
        motors = IdealMotors(ideal_shafts(3), 2000 / gear, np.array([110, 56, 20]) / gear)
        real = model or arm()
        self.body = EmulatedArm(real, motors, q, sign=SIGN, offset=OFFSET, ratio=RATIO, **more)
        self.bus = IdealBus(self.body, *([] if takes is None else [takes]))
        self.line, self.shafts = motors, motors.shafts
        self.driver = MotorBusDriver(
            real, self.bus, wiring=WIRING, interface=interface, safety=safety, period=PERIOD
        )
        self.state = None

    def up(self):
        """Configure, activate and read one state."""
        self.driver.configure()
        self.look()
        self.driver.activate()
        self.body.forget()
        return self

    def look(self):
        """Advance by one period and read, if feedback exists."""
        self.bus.pass_time(PERIOD)
        try:
            self.state = self.driver.read()
        except DriverFault:
            self.state = None

    def cycle(self, command=None):
        """Run one cycle of a host that commands (nv,) values, or nothing."""
        self.look()
        if command is None:
            self.driver.idle()
        else:
            self.driver.write(Command(self.driver.interface, np.array(command, float)))

    def cycles(self, count, command=None):
        for _ in range(count):
            self.cycle(command() if callable(command) else command)

    def steps(self, loop, count):
        """Run cycles of a control loop on the driver."""
        for _ in range(count):
            self.bus.pass_time(PERIOD)
            loop.step()

    @property
    def torque(self):
        return [self.line.torque_is_on(shaft.id) for shaft in self.shafts]

    @property
    def kinds(self):
        return [trip.kind for trip in self.driver.trips]

    @property
    def counts(self):
        return dict(self.driver.events.counts)


def weight(rig, first=0.0, second=0.0, third=0.0):
    """Return the gravity torque at the true configuration, plus an offset for each joint."""
    return np.add(gravity(arm(), rig.body.state.q), (first, second, third))
