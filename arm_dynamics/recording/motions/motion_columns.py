"""Columns of a table as time, positions and efforts of an arm, found by their names.

A name is split into words: at every character other than a letter or digit, between letters and
digits, and before a capital after a small letter. Case does not count, and neither do the words
of ``IGNORED``. The name of a joint also counts without them if other words are left:
``shoulder_pan`` and ``A1`` belong to ``shoulder_pan_joint`` and ``joint_a1``. A column then belongs
to a quantity by the first of these rules that finds every joint; the third counts only where the
others find none, or where numbers from 0 meet joints from 1:

1. the words of the joint and one word of the quantity: ``position.J1``, ``J1_position``,
   ``/joint_states/J1/effort``;
2. for positions, the words of the joint alone: ``J1``;
3. one word of the quantity and a number, from 0 or 1 in the order of the joints: ``q1``, ``q[0]``,
   ``effort_1``, ``tau1``; rejected if the joints have other numbers, such as J2 and J3. For
   positions, if there are no such columns, the word joint, j or axis and a number: ``J1``.

Words of positions: position, pos, q, angle, theta. Of efforts: effort, torque, tau, eff, trq. Of
motor currents: current, curr, i. Of motor voltages: voltage, volt; columns with the word command
count where no others have voltages. Of target positions: target, action, command, goal, with or
without a word of positions: ``command.position.J1``, ``target_q_0``. Of the time: time, timestamp,
stamp, t. A unit in brackets at the end, ``q1 [deg]``, scales the values, and so does a last word
of ``LAST_UNITS``, ``q1_deg``; a column of time may end with any unit, ``time_ms``. A second one
adds nanoseconds to seconds: ``header.stamp.sec`` and ``header.stamp.nanosec``. Other words exclude
a column: ``command.effort.J1``. So do other units in brackets, which a message names if no other
columns belong to the quantity. If no columns of a quantity are found, names such as
``/drives/J1/effort`` count without their topic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arm_dynamics.core.errors import ConfigError, RecordingError

WORDS = {
    "position": {"position", "positions", "pos", "q", "angle", "theta"},
    "effort": {"effort", "efforts", "torque", "torques", "tau", "eff", "trq"},
    "target": {"target", "targets", "action", "command", "goal"},
    "current": {"current", "currents", "curr", "i"},
    "voltage": {"voltage", "voltages", "volt", "volts"},
    "time": {"time", "timestamp", "stamp", "t"},
}
"""Quantity → words that name it."""
IGNORED = {
    "joint", "joints", "j", "axis", "motor", "actuator", "arm", "main", "follower", "robot",
    "state", "states", "observation", "actual", "act", "measured", "present", "feedback", "header",
    "field", "ros", "meas", "msr", "jnt",
}  # fmt: skip
POSITION_UNITS = {
    "rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "°": math.pi / 180, "rev": 2 * math.pi,
    "turn": 2 * math.pi, "turns": 2 * math.pi, "m": 1.0, "cm": 1e-2, "mm": 1e-3,
}  # fmt: skip
UNITS = {
    "position": POSITION_UNITS,
    "target": POSITION_UNITS,
    "effort": {
        "nm": 1.0, "n": 1.0, "ncm": 1e-2, "nmm": 1e-3, "mnm": 1e-3, "knm": 1e3, "kn": 1e3,
        "kgfcm": 0.0980665, "kgcm": 0.0980665,
    },
    "current": {"a": 1.0, "ma": 1e-3},
    "voltage": {"v": 1.0, "mv": 1e-3},
    "time": {
        "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6,
        "ns": 1e-9, "nsec": 1e-9, "nsecs": 1e-9, "nanosec": 1e-9, "nanoseconds": 1e-9,
        "min": 60.0,
    },
}  # fmt: skip
"""Quantity → unit in a name → factor to SI units."""
ACCEPTED = {
    "position": "rad, mrad, deg, rev, turn, m, cm or mm",
    "target": "rad, mrad, deg, rev, turn, m, cm or mm",
    "effort": "N·m, N·cm, N·mm, mN·m, kN·m, kgf·cm, N or kN",
    "current": "A or mA",
    "voltage": "V or mV",
    "time": "s, ms, µs, ns or min",
}
"""Quantity → units in messages."""
LAST_UNITS = {"rad", "mrad", "deg", "nm", "ncm", "nmm", "mnm", "kgfcm", "kgcm", "ma", "mm"}
"""Units that are also read without brackets, as the last word of a name."""
OTHER_LAST_UNITS = {"pct", "percent", "count", "counts", "tick", "ticks", "lsb"}
"""Units that cannot be converted, as the last word of a name."""
NOT_MEASURED = {
    "limit", "limits", "max", "min", "desired", "des", "ref", "reference", "error", "commands",
    "cmd", "setpoint", "planned",
}  # fmt: skip
"""Words of values that are not measured."""
BRACKET = re.compile(r"[\[(]([^\[\]()]+)[\])]\s*$")
REMEDY = "name the columns with --column {key}=COLUMN (columns={{'{key}': COLUMN}})"


@dataclass(frozen=True, slots=True)
class MotionColumns:
    """Names of the columns of a motion: of the time, the others one per joint.

    ``nanoseconds`` is a column of integers that are added to seconds in ``time``.
    """

    time: str
    position: tuple[str, ...]
    effort: tuple[str, ...] | None
    target: tuple[str, ...] | None
    current: tuple[str, ...] | None = None
    voltage: tuple[str, ...] | None = None
    nanoseconds: str | None = None


def words_of(name: str) -> tuple[str, ...]:
    """Return the lower-case words and numbers of a name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return tuple(word.lower() for word in re.findall(r"[^\W\d_]+|\d+", spaced))


def unit_scale(quantity: str, name: str) -> float | None:
    """Return the factor to SI units by the unit in a column's name, None if it has none."""
    units = UNITS[quantity]
    bracket = BRACKET.search(name)
    if bracket:
        return units.get(re.sub(r"[\s·⋅*.-]", "", bracket[1]).lower())
    last = _last_word(name)
    return units.get(last) if quantity == "time" or last in LAST_UNITS else None


def _last_word(name: str) -> str:
    """Return the last word of a name in lower case; ``mNm`` is one word, ``TorqueNm`` two."""
    last = re.findall(r"[^\W\d_]+", name)[-1:] if not name[-1:].isdecimal() else []
    whole = last[0].lower() if last else ""
    return whole if whole in LAST_UNITS else "".join(words_of(name)[-1:])


def other_unit(quantity: str, name: str, joints: Sequence[str]) -> str | None:
    """Return the unit at the end of a name if it is not one of the quantity.

    It is in brackets or a word of ``OTHER_LAST_UNITS``. None for ``q[0]``, ``position[J1]`` and
    ``J1 (position)``: a number, a joint and common words are not units.
    """
    bracket = BRACKET.search(name)
    if not bracket:
        last = _last_word(name)
        is_joint = any(last in words_of(joint) for joint in joints)
        return last if last in OTHER_LAST_UNITS and not is_joint else None
    if unit_scale(quantity, name) is not None:
        return None
    words = [word for word in words_of(bracket[1]) if word not in IGNORED]
    own = ([word for word in words_of(joint) if word not in IGNORED] for joint in joints)
    common = set().union(*WORDS.values()) - {"i", "t", "q"}
    is_known = words_of(bracket[1]) and all(word.isdecimal() or word in common for word in words)
    return None if is_known or (words and words in own) else bracket[1].strip()


def find_columns(
    joints: Sequence[str],
    names: Iterable[str],
    source: str,
    columns: Mapping[str, str] | None = None,
) -> MotionColumns:
    """Return the columns of time, positions and efforts by the rules of this module.

    Parameters
    ----------
    joints : Sequence[str]
        Joints of the arm in their order.
    names : Iterable[str]
        Columns of the file.
    source : str
        File in messages.
    columns : Mapping[str, str], optional
        Columns by ``"time"``, ``"position.JOINT"``, ``"effort.JOINT"``, ``"target.JOINT"``,
        ``"current.JOINT"`` or ``"voltage.JOINT"``, before the rules.

    Returns
    -------
    MotionColumns
        Members other than ``time`` and ``position``: None without such columns. Targets, currents
        and voltages are optional: also None if only some joints have one, or if several columns
        fit.

    Raises
    ------
    ConfigError
        For an entry of ``columns`` that names no quantity or no column.
    RecordingError
        If no column, or more than one, belongs to the time or to a joint, and for an unknown unit.

    """
    known = tuple(names)
    chosen = dict(columns or {})
    parts = "position", "effort", "target", "current", "voltage"
    keys = ("time", *(f"{part}.{joint}" for part in parts for joint in joints))
    for key, name in chosen.items():
        if key not in keys:
            raise ConfigError(f"columns: key = '{key}'; expected one of {', '.join(keys)}")
        if name not in known:
            raise ConfigError(f"columns: {key} = '{name}'; expected one of {listed(known)}")
    free = [name for name in known if name not in chosen.values()]
    nanoseconds = None
    if "time" in chosen:
        time = chosen["time"]
    else:
        time, nanoseconds = _time_columns(free, source)
    position = _columns_of("position", joints, free, source, chosen)
    target = _optional_columns("target", joints, free, source, chosen)
    current = _optional_columns("current", joints, free, source, chosen)
    columns_of = _fitting_columns if target or current else _columns_of
    effort = columns_of("effort", joints, free, source, chosen)
    measured = [name for name in free if "command" not in words_of(name)]
    voltage = _optional_columns("voltage", joints, measured, source, chosen)
    voltage = voltage or _optional_columns("voltage", joints, free, source, chosen)
    if position is None:
        raise RecordingError(
            f"{source}: no columns of positions for joints {listed(joints)}; columns ="
            f" {listed(known)}; expected names such as position.{joints[0]} or q1;"
            f" {REMEDY.format(key=f'position.{joints[0]}')}"
        )
    if effort is None and current is None and target is None:
        for quantity in ("target", "current"):
            _reject_other_units(quantity, joints, free, source)
        efforts = other_efforts(free, position)
        if len(efforts) >= len(joints):
            raise RecordingError(
                f"{source}: columns of efforts = {listed(efforts)}, with other words; expected one"
                f" per joint; {REMEDY.format(key=f'effort.{joints[0]}')}"
            )
    return MotionColumns(time, position, effort, target, current, voltage, nanoseconds)


def other_efforts(names: Iterable[str], used: Iterable[str]) -> list[str]:
    """Return the columns other than ``used`` with a word of measured efforts, "TorqueSm1"."""
    excluded = WORDS["target"] | NOT_MEASURED
    return [
        name
        for name in names
        if name not in used
        and WORDS["effort"] & (words := set(words_of(name)))
        and not words & excluded
    ]


def _time_columns(names: Sequence[str], source: str) -> tuple[str, str | None]:
    """Return the column of the time, and the one of the nanoseconds of its seconds or None."""
    found = []
    for name in names:
        words = [word for word in words_of(name) if word not in IGNORED]
        if other_unit("time", name, ()):
            continue
        if len(words) == 2 and words[1] in UNITS["time"]:
            words.pop()
        if len(words) == 1 and words[0] in WORDS["time"]:
            found.append(name)
    if len(found) == 2:  # sec and nanosec of the same stamp
        seconds, nanoseconds = sorted(found, key=lambda name: -(unit_scale("time", name) or 0.0))
        scales = unit_scale("time", seconds), unit_scale("time", nanoseconds)
        if scales == (1.0, 1e-9) and words_of(seconds)[:-1] == words_of(nanoseconds)[:-1]:
            return seconds, nanoseconds
    if not found:
        _reject_other_units("time", (), names, source)
    if len(found) != 1:
        what = listed(found) if found else f"none of {listed(names)}"
        raise RecordingError(
            f"{source}: columns of time = {what}; expected one, such as time, t, stamp or"
            f" timestamp; {REMEDY.format(key='time')}"
        )
    return found[0], None


def _optional_columns(
    quantity: str,
    joints: Sequence[str],
    names: Sequence[str],
    source: str,
    chosen: Mapping[str, str],
) -> tuple[str, ...] | None:
    """Return the column of each joint, or None; raises only if some were chosen."""
    try:
        return _fitting_columns(quantity, joints, names, source, chosen)
    except RecordingError:
        if any(key.startswith(f"{quantity}.") for key in chosen):
            raise
        return None


def _columns_of(
    quantity: str,
    joints: Sequence[str],
    names: Sequence[str],
    source: str,
    chosen: Mapping[str, str],
) -> tuple[str, ...] | None:
    """Return the column of each joint, or None; raises if an unknown unit is the reason."""
    try:
        columns_of = _fitting_columns(quantity, joints, names, source, chosen)
    except RecordingError:
        _reject_other_units(quantity, joints, names, source)
        raise
    if columns_of is None:
        _reject_other_units(quantity, joints, names, source)
    return columns_of


def _reject_other_units(
    quantity: str, joints: Sequence[str], names: Sequence[str], source: str
) -> None:
    """Raise RecordingError for a column that would belong to a quantity without its unit."""
    for name in names:
        unit = other_unit(quantity, name, joints)
        if unit is None:
            continue
        end = BRACKET if BRACKET.search(name) else re.compile(rf"{unit}[\W_]*$", re.IGNORECASE)
        bare = [end.sub("", name)]
        words = [word for word in words_of(bare[0]) if word not in IGNORED]
        if quantity == "time":
            key, fits = "time", len(words) == 1 and words[0] in WORDS["time"]
        else:
            is_foreign = any(unit_scale(other, name) is not None for other in UNITS)
            is_bare = quantity == "position" and not is_foreign
            named = _by_joint(quantity, joints, bare, bare=False)
            named = named or (_by_joint(quantity, joints, bare, bare=True) if is_bare else {})
            numbered = any(word in WORDS[quantity] for word in words) or is_bare
            key = f"{quantity}.{next(iter(named), joints[0])}"
            fits = bool(named or (numbered and _numbered(quantity, bare)))
        if fits:
            raise RecordingError(
                f"{source}: column '{name}': unit of {quantity} = {unit}; expected"
                f" {ACCEPTED[quantity]}; convert and rename the column, or, if its values are in"
                f" SI units, pass --column '{key}={name}' (columns={{'{key}': '{name}'}})"
            )


def _fitting_columns(
    quantity: str,
    joints: Sequence[str],
    names: Sequence[str],
    source: str,
    chosen: Mapping[str, str],
) -> tuple[str, ...] | None:
    """Return the column of each joint, or None without columns of this quantity."""
    names = [name for name in names if other_unit(quantity, name, joints) is None]
    found = _named_columns(quantity, joints, names, source, chosen)
    for parts in (2, 1):
        if found is not None:
            break
        fields = {name: _message_field(name, parts) for name in names}
        if list(fields.values()) == names:
            break
        of = {field: name for name, field in fields.items()}
        if len(of) < len(fields):
            continue
        chosen_fields = {key: fields.get(name, name) for key, name in chosen.items()}
        short = _named_columns(quantity, joints, list(of), source, chosen_fields)
        found = None if short is None else tuple(of.get(name, name) for name in short)
    return found


def _message_field(name: str, parts: int) -> str:
    """Return the last parts of "/topic/J1/effort", which are a joint and a field of a message.

    Topics with words of targets or of values that are not measured count as a whole.
    """
    split = name.split("/")
    words = set(words_of(" ".join(split[:-parts])))
    is_topic = name.startswith("/") and len(split) > parts + 1
    is_topic &= not words & (WORDS["target"] | NOT_MEASURED)
    return "/".join(split[-parts:]) if is_topic else name


def _named_columns(
    quantity: str,
    joints: Sequence[str],
    names: Sequence[str],
    source: str,
    chosen: Mapping[str, str],
) -> tuple[str, ...] | None:
    """Return the column of each joint by the rules of this module, or None."""
    given = {j: [chosen[f"{quantity}.{j}"]] for j in joints if f"{quantity}.{j}" in chosen}
    rules = [{**_by_joint(quantity, joints, names, bare=False), **given}]
    if quantity == "position":
        rules.append({**_by_joint(quantity, joints, names, bare=True), **given})
    found = max(rules, key=len)
    numbered = _numbered(quantity, names)
    counts_from_zero = 0 in numbered and bool(_ends(joints)) and 0 not in _ends(joints)
    if not found or (counts_from_zero and not given):
        found = _by_number(quantity, joints, numbered, source)
    if not found:
        return None
    for joint in joints:
        key, matches = f"{quantity}.{joint}", found.get(joint, [])
        if not matches:
            missing = listed(j for j in joints if j not in found)
            columns_found = listed(name for columns in found.values() for name in columns)
            raise RecordingError(
                f"{source}: columns of {quantity}s = {columns_found}; expected also"
                f" joints {missing}; columns = {listed(names)};"
                f" {REMEDY.format(key=key)}, or lock these joints"
            )
        if len(matches) > 1:  # "q1_deg" next to "q1"
            plain = [name for name in matches if _last_word(name) not in LAST_UNITS]
            found[joint] = matches = plain if len(plain) == 1 else matches
        if len(matches) > 1:
            raise RecordingError(
                f"{source}: {quantity} of joint '{joint}' = columns {listed(matches)}; expected"
                f" one; {REMEDY.format(key=key)}"
            )
    return tuple(found[joint][0] for joint in joints)


def _by_joint(
    quantity: str, joints: Sequence[str], names: Sequence[str], *, bare: bool
) -> dict[str, list[str]]:
    """Return the columns with the words of each joint, and one word of the quantity if not bare."""
    by_joint: dict[str, list[str]] = {}
    split = []
    for joint in joints:
        own = words_of(joint)
        split.append((joint, own, True))
        short = tuple(word for word in own if word not in IGNORED)
        if short != own and any(word.isalpha() for word in short):
            split.append((joint, short, False))
    for name in names:
        words = _words(quantity, name)
        matches = []
        for joint, own, is_whole in split:
            for i in range(len(words) - len(own) + 1 if own else 0):
                rest = _counted(quantity, words[:i] + words[i + len(own) :])
                fits = not rest if bare else len(rest) == 1 and rest[0] in WORDS[quantity]
                if words[i : i + len(own)] == own and fits:
                    matches.append(((is_whole, len(own), joint in name), joint))
                    break
        best = [joint for rank, joint in matches if rank == max(matches)[0]]
        if len(best) == 1:
            by_joint.setdefault(best[0], []).append(name)
    return by_joint


def _ends(joints: Sequence[str]) -> list[int]:
    """Return the numbers at the ends of joint names."""
    return [int(word) for joint in joints for word in words_of(joint)[-1:] if word.isdecimal()]


def _numbered(quantity: str, names: Sequence[str]) -> dict[int, list[str]]:
    """Return the columns with one word of the quantity and one number, by this number."""
    numbered: dict[int, list[str]] = {}
    for name in names:
        words = _counted(quantity, _words(quantity, name))
        numbers = [word for word in words if word.isdecimal()]
        others = [word for word in words if not word.isdecimal()]
        if len(numbers) == 1 and len(others) == 1 and others[0] in WORDS[quantity]:
            numbered.setdefault(int(numbers[0]), []).append(name)
    if not numbered and quantity == "position":
        for name in names:
            own = _words(quantity, name)
            if len(own) == 2 and own[0] in ("joint", "j", "axis") and own[1].isdecimal():
                numbered.setdefault(int(own[1]), []).append(name)
    return numbered


def _by_number(
    quantity: str, joints: Sequence[str], numbered: Mapping[int, list[str]], source: str
) -> dict[str, list[str]]:
    """Return the columns of each joint by its number in the order of the joints."""
    if not numbered:
        return {}
    order, size, ends = sorted(numbered), len(joints), _ends(joints)
    bases = [list(range(size)), list(range(1, size + 1))]
    if order not in bases or (ends and ends not in bases):  # locked joints: the order is unknown
        columns_found = listed(name for number in order for name in numbered[number])
        raise RecordingError(
            f"{source}: columns of {quantity}s = {columns_found}; expected one per joint"
            f" {listed(joints)}, by name or numbered from 0 or 1;"
            f" {REMEDY.format(key=f'{quantity}.{joints[0]}')}"
        )
    return {joint: numbered[number] for joint, number in zip(joints, order, strict=True)}


def _counted(quantity: str, words: Iterable[str]) -> list[str]:
    """Return the words that count.

    A target may also have a word of positions, a voltage the word command.
    """
    more = {"target": WORDS["position"], "voltage": {"command"}}.get(quantity, set())
    return [word for word in words if word not in IGNORED | more]


def _words(quantity: str, name: str) -> tuple[str, ...]:
    """Return the words of a column without its unit."""
    if unit_scale(quantity, name) is None:
        return words_of(name)
    if BRACKET.search(name):
        return words_of(BRACKET.sub("", name))
    return words_of(re.sub(rf"{re.escape(_last_word(name))}[\W_]*$", "", name, flags=re.I))


def listed(names: Iterable[str]) -> str:
    """Return names for a message: at most 24, of at most 60 printable characters each."""
    printable = ("".join(x if x.isprintable() else " " for x in name) for name in names)
    found = [name if len(name) <= 60 else f"{name[:57]}..." for name in printable]
    return ", ".join([*found[:24], *(["..."] if len(found) > 24 else [])]) or "none"
