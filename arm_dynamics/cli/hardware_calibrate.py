"""Positions of motors while somebody leads the arm by hand, torque off.

``arm-dynamics hardware calibrate ARM``: signs and offsets of an arm led by hand, torque off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from arm_dynamics.cli import hardware_options
from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.keyboard import GONE, Keyboard, confirm, require_terminal
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
from arm_dynamics.model.urdf_params import with_params
from arm_dynamics.model.urdf_writer import format_number

TAKE, QUIT, ENTER = "m", "q", ("\n", "\r")
COUNT = 10
"""Readings that a position is the mean of."""
SHAKE = 0.02
"""Largest difference between them [rad]."""
PERIOD = 0.02
"""Between two readings [s]."""


class CalibrationPrompt:
    """Asks for a place and takes the shaft's position there when the key is pressed."""

    def __init__(self, bus: MotorBus, keys: Keyboard) -> None:
        self._bus, self._keys = bus, keys
        self._seen: deque[float] = deque(maxlen=COUNT)

    def at(self, id: int, question: str) -> float | None:
        """The shaft of motor ``id`` [rad] where TAKE is pressed; None for Enter.

        Raises ConfigError for QUIT, DriverFault where the port is lost.
        """
        print(f"{question}  [m] measure   [Enter] skip   [q] quit")
        self._seen.clear()
        with StatusLine() as line:
            while True:
                key = self._keys.latest_key(PERIOD)
                if key in ENTER:
                    line.end("  skipped")
                    return None
                if key in (QUIT, GONE):
                    raise ConfigError("calibration was left: nothing is written")
                line.show(self._read(id))
                if key == TAKE and self._still:
                    found = sum(self._seen) / len(self._seen)
                    line.end(f"  measured: {found:.4f} rad at the motor")
                    return found
                if key == TAKE:
                    line.end("  not yet: hold it still, then press m again")

    @property
    def _still(self) -> bool:
        seen = self._seen
        return len(seen) == COUNT and max(seen) - min(seen) < SHAKE

    def _read(self, id: int) -> str:
        """One cycle of all motors, which keeps count of their turns."""
        told = self._bus.read().get(id)
        if told is None:
            self._seen.clear()
            return f"  motor {id} does not answer"
        self._seen.append(told.q)
        return f"  motor at {told.q:.4f} rad"


OFF = (
    "Torque goes off, and stays off: an arm that its motors hold falls. Hold it, and switch off\n"
    "whatever else drives it."
)
QUARTER = "turned on by about a quarter turn in its positive direction"


def run(arguments: Sequence[str]) -> int:
    """Ask for places of each joint, write a copy of the URDF; 0 where nothing in it is in doubt."""
    parser = hardware_options.make_parser("calibrate", __doc__)
    hardware_options.add_arm(parser)
    add = parser.add_argument
    add("--output", type=path_argument, required=True, metavar="FILE", help="the calibrated URDF")
    add("--joint", action="append", default=[], help="this joint alone; give it once for each")
    given = parser.parse_args(arguments)
    require_terminal("calibrate")
    arm = hardware_options.arm_with_hardware(given)
    chosen = [arm.joints[arm.index(name)] for name in given.joint] or list(arm.joints)
    _require_folder(given.output)
    bus = hardware_options.motors(given, arm)
    if not confirm(OFF):
        print("nothing was done")
        return 1
    found = _measured(bus, arm, chosen)
    written = _written(arm, [motor for motor, _ in found], given.output)
    doubtful = [motor.joint for motor, sure in found if not sure]
    if written and doubtful:
        print(f"WARNING, see above: {hardware_options.comma_list(doubtful)}")
    return 0 if written and not doubtful else 1


def _measured(
    bus: MotorBus, arm: ArmModel, chosen: Sequence[Joint]
) -> list[tuple[JointMotor, bool]]:
    """The motors of the chosen joints with what was measured, and whether that is sure."""
    motors = {motor.joint: motor for motor in read_hardware_info(arm).motors}
    try:
        bus.open()
        bus.identify()
        bus.prepare(_interface(bus))
        with Keyboard() as keys:
            measure = CalibrationPrompt(bus, keys)
            return [_joint(measure, joint, motors[joint.name]) for joint in chosen]
    finally:
        bus.close()


def _interface(bus: MotorBus) -> str:
    """Any that all motors take: none gets a command, but reading needs motors that are set up."""
    shared = set.intersection(*(set(bus.interfaces(id)) for id in bus.motors))
    if not shared:
        raise DriverFault("the motors have no command interface in common")
    return min(shared, key=("position", "velocity", "effort", "voltage").index)


def _joint(measure: CalibrationPrompt, joint: Joint, motor: JointMotor) -> tuple[JointMotor, bool]:
    """Ask for a joint's places; say what follows from them, and whether without doubt."""
    limits = f"{joint.lower:.3f} … {joint.upper:.3f} {joint.unit}"
    bounded = isfinite(joint.lower) and isfinite(joint.upper)
    print(f"\nJoint '{joint.name}' (motor {motor.id}), {limits if bounded else 'without limits'}")
    marks = CalibrationPoints(**{name: measure.at(motor.id, text) for name, text in _places(joint)})
    found = calibrate(motor, joint, marks)
    before = f"sign {motor.sign:g}, offset {motor.offset:.4f}"
    after = f"sign {found.sign:g}, offset {found.offset:.4f} {joint.unit}"
    print(f"  {before} -> {after}" if found != motor else f"  {before}: kept")
    doubted = list(calibration_warnings(found, joint, marks))
    for doubt in doubted:
        print(f"  WARNING: {doubt}")
    return found, not doubted


def _places(joint: Joint) -> list[tuple[str, str]]:
    """Names of Marks and what to do for each."""
    held = f"  Hold '{joint.name}'"
    asked = []
    if joint.lower <= 0 <= joint.upper:
        asked.append(("zero", f"{held} at its zero mark."))
    if not (isfinite(joint.lower) and isfinite(joint.upper)):
        return [
            *asked,
            ("ahead", f"{held} {QUARTER} (more than {MIN_SHAFT_TURN:g} rad of the motor)."),
        ]
    asked.append(("lower", f"{held} at its lower end ({joint.lower:.3f} {joint.unit})."))
    return [*asked, ("upper", f"{held} at its upper end ({joint.upper:.3f} {joint.unit}).")]


def _written(arm: ArmModel, found: Sequence[JointMotor], output: Path) -> bool:
    """Write the URDF with the new numbers; an existing file needs a yes of its own."""
    before = {motor.joint: motor for motor in read_hardware_info(arm).motors}
    changed = [motor for motor in found if motor != before[motor.joint]]
    if not changed:
        print("\nnothing has changed: nothing is written")
        return False
    text = with_params(
        arm.urdf,
        {
            m.joint: {"sign": format_number(m.sign), "offset": format_number(m.offset)}
            for m in changed
        },
    )
    parse_arm(text, arm.source)  # what is written can be read
    names = hardware_options.comma_list([motor.joint for motor in changed])
    print(f"\nchanged: {names}")
    if output.exists() and not confirm(f"{output} exists. Overwrite it?"):
        print("nothing is written")
        return False
    with output_file(output) as file:
        file.write_text(text, encoding="utf-8")
    print(f"{output} is written: arm-dynamics hardware check {output}")
    return True


def _require_folder(output: Path) -> None:
    """Raises ConfigError before anything is measured for a file that cannot be written."""
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise ConfigError(f"--output {output}: a file in a folder that exists is expected")
