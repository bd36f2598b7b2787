"""Physical and simulated arms behind one ``Driver`` interface, and the motor protocols.

Create a driver with ``build_driver``; a motor bus becomes a ``MotorBusDriver`` with its safety
functions. May import simulation, safety, dynamics, model and core. Start reading in ``driver.py``
(interface and lifecycle states) and ``motor_bus_driver.py`` (the control cycle of a physical arm);
``motor_bus.py`` is the interface of new motor protocols.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.hardware.build import build_driver
    from arm_dynamics.hardware.driver import Driver
    from arm_dynamics.hardware.emulation.emulator_process import EmulatorProcess
    from arm_dynamics.hardware.feetech.lerobot_calibration import (
        LeRobotCalibration,
        ServoCalibration,
    )
    from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorBus, MotorCommand, Reading
    from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
    from arm_dynamics.hardware.serial_port import Port, SerialPort
    from arm_dynamics.hardware.simulation_driver import SimulationDriver

_MODULES = {
    "DiscoveredMotor": ".motor_bus",
    "Driver": ".driver",
    "EmulatorProcess": ".emulation.emulator_process",
    "LeRobotCalibration": ".feetech.lerobot_calibration",
    "MotorBus": ".motor_bus",
    "MotorBusDriver": ".motor_bus_driver",
    "MotorCommand": ".motor_bus",
    "Port": ".serial_port",
    "Reading": ".motor_bus",
    "SerialPort": ".serial_port",
    "ServoCalibration": ".feetech.lerobot_calibration",
    "SimulationDriver": ".simulation_driver",
    "build_driver": ".build",
}

__all__ = [
    "DiscoveredMotor",
    "Driver",
    "EmulatorProcess",
    "LeRobotCalibration",
    "MotorBus",
    "MotorBusDriver",
    "MotorCommand",
    "Port",
    "Reading",
    "SerialPort",
    "ServoCalibration",
    "SimulationDriver",
    "build_driver",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
