"""Check every motor of an arm: replies, limits, temperature, torque. Nothing is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arm_dynamics.cli.hardware import options as hardware_options
from arm_dynamics.cli.terminal import number_text
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.number_option import Number
from arm_dynamics.hardware.motor_bus import MotorBus, Reading, StoredRange
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.hardware_info import JointMotor
from arm_dynamics.safety.safety_settings import SafetySettings

DURATION = 1.0
"""Time [s] of reading."""
MIN_CYCLES = 5
"""Fewest cycles of reading, even if they take longer."""
MAX_MISSED_FRACTION = 0.05
"""Fraction of the cycles that may lack a reply."""
MAX_LINE_WIDTH = 132
"""Characters of a line if no terminal sets the width."""
SUPPLY = (0.8, 1.25)
"""Supply voltage as a fraction of the URDF's: batteries of a nominal voltage have 0.82 to 1.05."""
UNREACHED = 0.1
"""Part [rad] of a joint's range that a servo may exclude: a range moved by hand ends there."""
NO_REPLY = (
    "no motor replies: check power, cable, port and baud rate; arm-dynamics hardware scan tries"
    " all baud rates"
)
DISABLE_TORQUE = (
    "disable it with hardware jog --clear-faults or the switch of the supply: support the arm"
)
YES_NO = {True: "yes", False: "no", None: "?"}
ON_OFF = {True: "ON", False: "off", None: "?"}


@dataclass(frozen=True, slots=True)
class BusSurvey:
    """Result of reading all motors of a bus for some cycles.

    Attributes
    ----------
    fault : str
        Errors of the motors' identities, separated by "; "; empty without errors.
    cycles : int
        Number of cycles.
    rate : float
        Cycles per second [Hz].
    replies : mapping of int to int
        Cycles with a reply, by motor id.
    last : mapping of int to Reading
        Last reply by motor id.
    gap : mapping of int to float
        Longest time [s] without a reply by motor id; inf without any reply.
    ranges : mapping of int to StoredRange
        Position ranges stored in motors by id.

    """

    fault: str
    cycles: int
    rate: float
    replies: Mapping[int, int]
    last: Mapping[int, Reading]
    gap: Mapping[int, float]
    ranges: Mapping[int, StoredRange]


def survey_bus(bus: MotorBus, duration: float) -> BusSurvey:
    """Open the bus, discover its motors, read them for ``duration`` [s] and close the bus.

    Raises
    ------
    DriverFault
        If the port cannot be opened, or is lost.

    """
    fault = ""
    try:
        bus.open()
        try:
            bus.discover()
        except DriverFault as error:
            fault = str(error)
        ranges = bus.stored_ranges()
        start, cycles = bus.now(), 0
        replies: Counter[int] = Counter()
        last: dict[int, Reading] = {}
        since, gap = dict.fromkeys(bus.motors, start), dict.fromkeys(bus.motors, 0.0)
        while cycles < MIN_CYCLES or bus.now() < start + duration:
            readings, cycles = bus.read(), cycles + 1
            for id, reading in readings.items():
                if id not in last or reading.time > last[id].time:
                    replies[id] += 1
                    gap[id] = max(gap[id], reading.time - since[id])
                    since[id], last[id] = reading.time, reading
        end = bus.now()
    finally:
        bus.close()
    for id in bus.motors:
        gap[id] = max(gap[id], end - since[id]) if id in last else inf
    return BusSurvey(fault, cycles, cycles / max(end - start, 1e-9), replies, last, gap, ranges)


class Health:
    """Table of the joints of an arm, and their problems, from a survey of its motors."""

    def __init__(
        self, arm: ArmModel, bus: MotorBus, survey: BusSurvey, recovery_margin: float = 0.0
    ) -> None:
        """Use ``survey`` of the motors of ``arm``, which are those of ``bus``.

        Joints up to ``recovery_margin`` [rad or m] beyond a position limit are not a problem.
        """
        self._bus, self._survey, self._recovery_margin = bus, survey, recovery_margin
        self._safety = SafetySettings()
        by_joint = {motor.joint: motor for motor in bus.motors.values()}
        self._pairs = [(joint, by_joint[joint.name]) for joint in arm.joints]

    def problems(self) -> list[str]:
        """Return one line for each problem; an empty list for a healthy arm."""
        if not self._survey.replies:
            return [NO_REPLY]
        faults = self._survey.fault.split("; ") if self._survey.fault else []
        return [*faults, *self._named(self._joint_problems)]

    def warnings(self) -> list[str]:
        """Return one line for each supply and servo setting that contradicts the URDF."""
        return [f"warning: {line}" for line in self._named(self._joint_warnings)]

    def _named(self, lines: Callable[[Joint, JointMotor], Iterator[str]]) -> list[str]:
        """Return the ``lines`` of every joint, with its name and its motor."""
        return [
            f"joint '{joint.name}' (motor {motor.id}): {text}"
            for joint, motor in self._pairs
            for text in lines(joint, motor)
        ]

    def _joint_warnings(self, joint: Joint, motor: JointMotor) -> Iterator[str]:
        reading, stored = self._survey.last.get(motor.id), self._survey.ranges.get(motor.id)
        nominal = joint.constants.get("supply_voltage", nan)
        supply = nan if reading is None else reading.supply
        low, high = (fraction * nominal for fraction in SUPPLY)
        if supply < low or supply > high:
            yield (
                f"supply = {supply:.1f} V; expected {low:.3g} to {high:.3g} V, for the"
                f" supply_voltage of {nominal:g} V in the URDF; correct one of them"
            )
        if stored is None or joint.kind == "continuous":
            return
        lower, upper = sorted(motor.position(end) for end in (stored.lower, stored.upper))
        if lower <= joint.lower + UNREACHED and upper >= joint.upper - UNREACHED:
            return
        found = (
            f"position limits in the servo = {lower:.3g} to {upper:.3g} {joint.unit} (homing offset"
            f" {stored.homing_offset:.3g} rad); expected {joint.lower:.3g} to {joint.upper:.3g}"
            f" {joint.unit}, as in the URDF"
        )
        if upper - lower < joint.upper - joint.lower - UNREACHED:
            yield f"{found}; the servo stops within the joint's range: correct one of them"
        else:
            yield (
                f"{found}; they are shifted: correct the servo's homing offset, or the offset in"
                " the URDF with arm-dynamics hardware calibrate"
            )

    def _joint_problems(self, joint: Joint, motor: JointMotor) -> Iterator[str]:
        reading, survey = self._survey.last.get(motor.id), self._survey
        if reading is None:
            yield (
                f"replies = 0 of {survey.cycles} cycles; expected all; check its cable, power and"
                " id; arm-dynamics hardware scan lists the ids"
            )
            return
        missed = survey.cycles - survey.replies[motor.id]
        if missed > MAX_MISSED_FRACTION * survey.cycles:
            yield (
                f"replies = {survey.replies[motor.id]} of {survey.cycles} cycles; expected at least"
                f" {1 - MAX_MISSED_FRACTION:.0%}; check its cable and connectors for noise"
            )
        if reading.fault:
            yield f"fault: {reading.fault}; hardware jog --clear-faults clears faults that can pass"
        if reading.enabled:
            yield (
                "torque = enabled; expected disabled: another program controls it, or left it"
                f" enabled; {DISABLE_TORQUE}"
            )
        q, margin = motor.position(reading.q), self._safety.position_margin + self._recovery_margin
        if not joint.lower - margin <= q <= joint.upper + margin:
            yield (
                f"position = {q:.4g} {joint.unit}; expected {joint.lower:.4g} to"
                f" {joint.upper:.4g} {joint.unit}; move it within its limits, or calibrate"
            )
        if reading.temperature >= self._safety.max_temperature:
            limit = self._safety.max_temperature
            temperature = f"{reading.temperature:.0f} °C"
            yield f"temperature = {temperature}; expected below {limit:g} °C; let it cool down"

    def table(self) -> Table:
        """Return a table with one row for each joint."""
        unit = "/".join(sorted({joint.unit for joint, _ in self._pairs}))
        columns = (
            *("joint", "motor", "re-\nplies", "gap\n[ms]", f"joint\n[{unit}]", "motor\n[rad]"),
            *(f"limits\n[{unit}]", "°C", "V", "tor-\nque", "watch\ndog"),
        )
        table = Table(
            *map(escape, columns), box=SIMPLE_HEAD, padding=0, collapse_padding=True, pad_edge=False
        )
        survey = self._survey
        for joint, motor in self._pairs:
            reading = survey.last.get(motor.id)
            limits = f"{joint.lower:.2f}…{joint.upper:.2f}" if isfinite(joint.lower) else "none"
            replies = f"{survey.replies.get(motor.id, 0) / survey.cycles:.0%}"
            gap = position = shaft = temperature = supply = torque = ""
            if reading is not None:
                gap, torque = f"{1e3 * survey.gap[motor.id]:.0f}", ON_OFF[reading.enabled]
                position, shaft = f"{motor.position(reading.q):.3f}", f"{reading.q:.3f}"
                temperature = number_text(reading.temperature, ".0f")
                supply = number_text(reading.supply, ".1f")
            table.add_row(
                *(joint.name, f"{motor.id} {motor.motor}", replies, gap, position, shaft, limits),
                *(temperature, supply, torque, YES_NO[self._bus.has_watchdog(motor.id)]),
            )
        return table


def run(arguments: Sequence[str]) -> int:
    """Print a table of the joints and their problems; return 0 without problems, else 1."""
    parser = hardware_options.make_parser("check", __doc__)
    hardware_options.add_arm(parser)
    duration = Number("--duration", 0, 3600, "s")
    text = f"duration of reading [s] (default: {DURATION:g})"
    parser.add_argument("--duration", type=duration, default=DURATION, metavar="S", help=text)
    args = parser.parse_args(arguments)
    arm = hardware_options.arm_with_hardware(args)
    return 0 if check_health(arm, hardware_options.motors(args, arm), args.duration) else 1


def check_health(
    arm: ArmModel, bus: MotorBus, duration: float = DURATION, recovery_margin: float = 0.0
) -> bool:
    """Read the motors of an arm and print their table, problems and warnings.

    Parameters
    ----------
    arm : ArmModel
        The arm, whose motors are those of ``bus``.
    bus : MotorBus
        A closed bus; it is opened for the check and closed again.
    duration : float
        Time of reading [s].
    recovery_margin : float
        Distance [rad or m] beyond a position limit that is not a problem.

    Returns
    -------
    bool
        True without problems.

    """
    survey = survey_bus(bus, duration)
    health = Health(arm, bus, survey, recovery_margin)
    console = Console()
    if not console.is_terminal:
        console = Console(width=MAX_LINE_WIDTH)
    console.print(health.table())
    print(f"{survey.cycles} cycles of reading, {survey.rate:.0f} per second")
    problems = health.problems()
    warnings = health.warnings()
    print("\n".join([*problems, *warnings]) or "no problems found")
    return not problems
