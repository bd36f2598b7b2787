"""What is wrong with an arm's joints, from a look at its motors; a table of all of them.

``arm-dynamics hardware check ARM``: is every motor there and well? Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arm_dynamics.cli import hardware_options
from arm_dynamics.cli.bus_survey import BusSurvey, survey_bus
from arm_dynamics.core.number_option import Number
from arm_dynamics.hardware.motor_bus import MotorBus, Reading
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.hardware_info import JointMotor
from arm_dynamics.safety.safety_settings import SafetySettings

LOST = 0.05
"""Share of cycles without an answer that is too much."""
NOBODY = (
    "no motor answers: power, cable, port, or another rate; arm-dynamics hardware scan looks at all"
)
TAKES_OFF = (
    "hardware jog --clear-faults takes it off, and so does the supply's switch: hold the arm"
)
YES_NO = {True: "yes", False: "no", None: "?"}
ON_OFF = {True: "ON", False: "off", None: "?"}


class Health:
    """Problems and a table of what ``look`` saw of ``arm``, whose motors are those of ``bus``."""

    def __init__(
        self, arm: ArmModel, bus: MotorBus, look: BusSurvey, recovery_margin: float = 0.0
    ) -> None:
        """``recovery_margin``: way [rad or m] beyond a position limit that is no problem."""
        self._bus, self._look, self._led_back = bus, look, recovery_margin
        self._safety = SafetySettings()
        by_joint = {motor.joint: motor for motor in bus.motors.values()}
        self._pairs = [(joint, by_joint[joint.name]) for joint in arm.joints]

    def problems(self) -> list[str]:
        """One line each; empty where all is well."""
        if not self._look.heard:
            return [NOBODY]
        found = self._look.fault.split("; ") if self._look.fault else []
        for joint, motor in self._pairs:
            said = list(self._problems(joint, motor))
            found += [f"joint '{joint.name}' (motor {motor.id}): {one}" for one in said]
        return found

    def table(self) -> Table:
        """One row a joint."""
        unit = "/".join(sorted({joint.unit for joint, _ in self._pairs}))
        columns = (
            *("joint", "motor", "an-\nswers", "gap\n[ms]", f"joint\n[{unit}]", "motor\n[rad]"),
            *(f"limits\n[{unit}]", "°C", "V", "tor-\nque", "watch\ndog"),
        )
        table = Table(
            *map(escape, columns), box=SIMPLE_HEAD, padding=0, collapse_padding=True, pad_edge=False
        )
        for joint, motor in self._pairs:
            table.add_row(*self._row(joint, motor))
        return table

    def _row(self, joint: Joint, motor: JointMotor) -> tuple[str, ...]:
        told, look = self._look.last.get(motor.id), self._look
        limits = f"{joint.lower:.2f}…{joint.upper:.2f}" if isfinite(joint.lower) else "none"
        heard = f"{look.heard.get(motor.id, 0) / look.cycles:.0%}"
        watchdog = YES_NO[self._bus.has_watchdog(motor.id)]
        named = joint.name, f"{motor.id} {motor.motor}", heard
        if told is None:
            return (*named, "", "", "", limits, "", "", "", watchdog)
        return (
            *named,
            f"{1e3 * look.gap[motor.id]:.0f}",
            f"{motor.position(told.q):.3f}",
            f"{told.q:.3f}",
            limits,
            _number(told.temperature, ".0f"),
            _number(told.supply, ".1f"),
            ON_OFF[told.enabled],
            watchdog,
        )

    def _problems(self, joint: Joint, motor: JointMotor) -> Iterator[str]:
        told, look = self._look.last.get(motor.id), self._look
        if told is None:
            yield "told nothing"
            return
        missed = look.cycles - look.heard[motor.id]
        if missed > LOST * look.cycles:
            yield f"no answer in {missed} of {look.cycles} cycles: cable, connector or noise"
        if told.fault:
            yield f"fault: {told.fault}; hardware jog --clear-faults clears what can pass"
        if told.enabled:
            yield f"has torque already: somebody drives it, or left it so; {TAKES_OFF}"
        yield from self._limits(joint, motor, told)

    def _limits(self, joint: Joint, motor: JointMotor, told: Reading) -> Iterator[str]:
        q = motor.position(told.q)
        margin = self._safety.position_margin + self._led_back
        if not joint.lower - margin <= q <= joint.upper + margin:
            inside = f"[{joint.lower:.4g}, {joint.upper:.4g}] {joint.unit}"
            yield f"position {q:.4g} is outside {inside}: lead it inside, or calibrate"
        if told.temperature >= self._safety.max_temperature:
            limit = self._safety.max_temperature
            yield f"temperature {told.temperature:.0f} °C, limit {limit:g}: let it cool down"


def _number(value: float, form: str) -> str:
    return format(value, form) if isfinite(value) else "?"


SECONDS = 1.0
MAX_LINE_WIDTH = 132
"""Letters a line where no terminal sets a width."""


def run(arguments: Sequence[str]) -> int:
    """Print a table of the joints and what is wrong; 0 where all is well, else 1."""
    parser = hardware_options.make_parser("check", __doc__)
    hardware_options.add_arm(parser)
    parser.add_argument(
        "--duration",
        type=Number("--duration", 0, 3600, "s"),
        default=SECONDS,
        metavar="S",
        help="of reading",
    )
    given = parser.parse_args(arguments)
    arm = hardware_options.arm_with_hardware(given)
    return 0 if check_health(arm, hardware_options.motors(given, arm), given.duration) else 1


def check_health(
    arm: ArmModel, bus: MotorBus, seconds: float = SECONDS, led_back: float = 0.0
) -> bool:
    """Look at the joints, print what is seen; whether nothing is wrong.

    Joints may be ``led_back`` [rad or m] beyond a position limit.
    """
    seen = survey_bus(bus, seconds)
    health = Health(arm, bus, seen, led_back)
    console = Console()
    if not console.is_terminal:
        console = Console(width=MAX_LINE_WIDTH)
    console.print(health.table())
    print(f"{seen.cycles} cycles of reading, {seen.rate:.0f} a second")
    problems = health.problems()
    print("\n".join(problems) if problems else "no problems found")
    return not problems
