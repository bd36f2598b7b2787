"""Measure the signs and offsets of an arm's joints, moved by hand with torque disabled."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.hardware import options as hardware_options
from arm_dynamics.cli.hardware.keyboard import ENDS, Keyboard, confirm, require_terminal
from arm_dynamics.cli.terminal import StatusLine
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.files import output_file
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.calibration import (
    MIN_SHAFT_TURN,
    CalibrationPoints,
    calibrate,
    calibration_warnings,
)
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.urdf_text import with_params
from arm_dynamics.model.urdf_writer import format_number

MEASURE, ENTER = "m", ("\n", "\r")
COUNT = 10
"""Readings that a measured position is the mean of."""
MAX_SPREAD = 0.02
"""Largest difference [rad] between the readings of a measured position."""
PERIOD = 0.02
"""Time [s] between two readings."""
TORQUE_OFF = (
    "This disables the torque of all motors, and an unsupported arm falls. Support the arm, and\n"
    "stop every other program that controls it."
)


class CalibrationPrompt:
    """Prompts that measure the shaft position of a motor when a key is pressed."""

    def __init__(self, bus: MotorBus, keys: Keyboard) -> None:
        self._bus, self._keys = bus, keys
        self._readings: deque[float] = deque(maxlen=COUNT)

    def at(self, id: int, instruction: str) -> float | None:
        """Print an instruction and measure the shaft of motor ``id`` when MEASURE is pressed.

        Each cycle reads all motors, which counts their turns.

        Returns
        -------
        float or None
            The shaft position [rad]; None for Enter, which skips the position.

        Raises
        ------
        ConfigError
            If QUIT is pressed.
        DriverFault
            If the port is lost.

        """
        self._key()  # pressed before the instruction
        print(f"{instruction}  [m] measure   [Enter] skip   [q] quit")
        readings = self._readings
        readings.clear()
        with StatusLine() as line:
            while True:
                key = self._key(PERIOD)
                if key in ENTER:
                    line.end("  skipped")
                    return None
                reading = self._bus.read().get(id)
                if reading is None:
                    readings.clear()
                    line.show(f"  motor {id} does not reply")
                else:
                    readings.append(reading.q)
                    line.show(f"  motor at {reading.q:.4f} rad")
                if key == MEASURE:
                    if len(readings) == COUNT and max(readings) - min(readings) < MAX_SPREAD:
                        position = sum(readings) / len(readings)
                        line.end(f"  measured: {position:.4f} rad at the motor")
                        return position
                    line.end("  the joint moves: hold it still, then press m again")

    def _key(self, wait: float = 0.0) -> str:
        """Return the first key pressed within ``wait`` [s], or ""; raise ConfigError after QUIT."""
        keys = self._keys.pressed(wait)
        if ENDS & {*keys}:
            raise ConfigError("calibration ended before its last joint: nothing is written")
        return next(iter(keys), "")


def run(arguments: Sequence[str]) -> int:
    """Measure the joints and write a copy of the URDF; return 0 if it is without a warning."""
    parser = hardware_options.make_parser("calibrate", __doc__)
    hardware_options.add_arm(parser)
    add = parser.add_argument
    add("--output", type=path_argument, required=True, metavar="FILE", help="calibrated URDF")
    text = "joint to calibrate; repeat the option for each joint (default: all)"
    add("--joint", action="append", default=[], metavar="JOINT", help=text)
    args = parser.parse_args(arguments)
    require_terminal("calibrate")
    arm = hardware_options.arm_with_hardware(args)
    joints = [arm.joints[arm.index(name)] for name in args.joint] or list(arm.joints)
    hardware_options.require_output_folder(args.output)
    bus = hardware_options.motors(args, arm)
    if not confirm(TORQUE_OFF):
        print("nothing was changed")
        return 1
    before = {motor.joint: motor for motor in read_hardware_info(arm).motors}
    measured: list[JointMotor] = []
    uncertain: list[str] = []
    try:
        _prepare(bus)
        with Keyboard() as keys:
            prompt = CalibrationPrompt(bus, keys)
            for joint in joints:
                motor, warnings = calibrate_joint(prompt, joint, before[joint.name])
                measured.append(motor)
                uncertain += [joint.name] if warnings else []
    finally:
        bus.close()
    changed = [motor for motor in measured if motor != before[motor.joint]]
    written = _write_urdf(arm, changed, args.output)
    if written and uncertain:
        print(f"WARNING, see above: {hardware_options.comma_list(uncertain)}")
    return 0 if written and not uncertain else 1


def _prepare(bus: MotorBus) -> None:
    """Open the bus and set up its motors, which reading requires, with torque disabled."""
    bus.open()
    bus.discover()
    shared = set.intersection(*(set(bus.interfaces(id)) for id in bus.motors))
    if not shared:
        each = [
            f"motor {id} (joint '{motor.joint}') = {', '.join(bus.interfaces(id)) or 'none'}"
            for id, motor in bus.motors.items()
        ]
        raise DriverFault(
            f"command interfaces: {'; '.join(each)}; expected one that all motors have; calibrate"
            " the joints of one kind and lock the others with --lock"
        )
    bus.prepare(min(shared, key=("position", "velocity", "effort", "voltage").index))


def calibrate_joint(
    prompt: CalibrationPrompt, joint: Joint, motor: JointMotor
) -> tuple[JointMotor, list[str]]:
    """Measure the positions of a joint; return its motor with sign and offset, and warnings."""
    unit, bounded = joint.unit, isfinite(joint.lower) and isfinite(joint.upper)
    limits = f"{joint.lower:.3f} … {joint.upper:.3f} {unit}" if bounded else "without limits"
    print(f"\nJoint '{joint.name}' (motor {motor.id}), {limits}")
    hold = f"  Hold '{joint.name}'"
    instructions = {}
    if joint.lower <= 0 <= joint.upper:
        instructions["zero"] = f"{hold} at its zero mark."
    if bounded:
        instructions["lower"] = f"{hold} at its lower end ({joint.lower:.3f} {unit})."
        instructions["upper"] = f"{hold} at its upper end ({joint.upper:.3f} {unit})."
    else:
        instructions["positive"] = (
            f"{hold} about a quarter turn further in its positive direction"
            f" (more than {MIN_SHAFT_TURN:g} rad of the motor)."
        )
    points = CalibrationPoints(
        **{name: prompt.at(motor.id, text) for name, text in instructions.items()}
    )
    result = calibrate(motor, joint, points)
    before = f"sign {motor.sign:g}, offset {motor.offset:.4f}"
    after = f"sign {result.sign:g}, offset {result.offset:.4f} {unit}"
    print(f"  {before} -> {after}" if result != motor else f"  {before}: kept")
    warnings = list(calibration_warnings(result, joint, points))
    for warning in warnings:
        print(f"  WARNING: {warning}")
    return result, warnings


def _write_urdf(arm: ArmModel, changed: Sequence[JointMotor], output: Path) -> bool:
    """Write the URDF with new signs and offsets; an existing file requires a separate yes."""
    if not changed:
        print("\nno sign or offset changed: nothing is written")
        return False
    params = {
        motor.joint: {"sign": format_number(motor.sign), "offset": format_number(motor.offset)}
        for motor in changed
    }
    text = with_params(arm.urdf, params)
    parse_arm(text, arm.source)  # raises if the text is not a valid arm
    print(f"\nchanged: {hardware_options.comma_list(list(params))}")
    if output.exists() and not confirm(f"{output} exists. Overwrite it?"):
        print("nothing is written")
        return False
    with output_file(output) as file:
        file.write_text(text, encoding="utf-8")
    print(f"{output} is written: arm-dynamics hardware check {output}")
    return True
