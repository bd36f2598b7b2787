"""Plausibility of recorded motion: stamps, units, saturation, speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

MIN_MOTION = 1e-3
"""Range of a position [rad or m] below which a joint is at rest."""
SATURATED, EXCEEDED = 0.98, 1.2
"""Effort over effort limit at which a motor is saturated, and above which the limit is wrong."""
MIN_SAMPLES = 10
MAX_ANGLE = 4 * np.pi
"""Position [rad] beyond which, and beyond its limits, a joint is recorded in degrees."""
MAX_EXCESS = 2.0
"""Distance from the limits of a prismatic joint, over its range, above which it is in mm."""
GLITCH_FRACTION = 0.01
"""Fraction of implausible samples up to which these are glitches instead of another unit."""
MAX_SPEED = 3.0
"""Plausible speed over velocity limit."""
SPEED_TIME = 0.02
"""Time [s] over which speeds are compared with velocity limits."""
MAX_EFFORT, MIN_EFFORT = 20.0, 1e-3
"""Plausible effort over effort limit."""
ABSENT_FRACTION = 0.5
"""Fraction of samples with effort 0 above which a drive does not report small efforts."""
MIN_SCALE, MAX_SCALE, SAME_SHAPE = 0.3, 3.0, 0.8
"""Plausible measured effort over the nominal one, where their cosine is at least the last.
"""
EFFORT_SCALES = {"kgf·cm": 10.2, "N·cm": 100.0, "N·mm or mN·m": 1e3, "kN·m": 1e-3}
"""Unit → measured effort over the nominal one if the unit is read as N·m."""
SATURATED_FRACTION = 0.2
"""Fraction of saturated samples above which the efforts do not show the dynamics."""
LEVEL = 0.999
"""Effort over its largest value above which it is constant."""
INTERLEAVED = 0.005
"""Fraction of samples that jump there and back above which these are rows of two sequences."""
JUMP_RATIO, JUMP_RANGE, MIN_JUMP = 5.0, 0.1, 0.02
"""Jump over the distance of its neighbors, over the recorded range, and in rad or m."""
JUMP_SPEED = 10.0
"""Speed [rad/s or m/s] there and back above which any joint jumps."""
MAX_VALUE = 1e9
"""Size of a recorded value above which the file is damaged, in any unit of SI."""
STRIDE_TIME = 0.1
"""Time [s] over which speeds are measured."""
MIN_SERVO_MOTION, MAX_TARGET_ERROR = 0.05, 0.5
"""Smallest motion, and largest median distance from a target [rad or m], of position servos."""
SAME_SPEED = 0.1
"""Spread of the speeds over their median below which a joint has one speed only."""


def increasing_rows(time: Vector, source: str) -> IntArray:
    """Return the rows whose stamps increase; rows with the stamp of the row before are dropped.

    Parameters
    ----------
    time : Vector
        Stamps (n,) [s].
    source : str
        File in messages.

    Returns
    -------
    IntArray
        Indices of rows (m,), m <= n.

    Raises
    ------
    InvalidValue
        For a stamp that is not finite, or earlier than the one before. Many of these have another
        cause than a single one.

    """
    if not np.isfinite(time).all():
        row = int(np.argmin(np.isfinite(time)))
        raise InvalidValue(f"{source}: row {row + 1}: time = {time[row]}; expected a finite time")
    steps = np.diff(time)
    back = np.flatnonzero(steps < 0)
    if back.size:
        k = int(back[0])
        cause = (
            f"this is so in {back.size} rows: two publishers on one topic, or two runs in one file;"
            " record one of them"
            if back.size > INTERLEAVED * len(time)
            else "the clock stepped back (a restart, a repeated simulation or a new time"
            " synchronization); split the file at this row"
        )
        raise InvalidValue(
            f"{source}: row {k + 2}: time = {time[k + 1]:.6f} s after the first sample, but"
            f" {time[k]:.6f} s in the row before; expected increasing stamps; {cause}"
        )
    return np.flatnonzero(np.concatenate(([True], steps > 0)))


def check_single_sequence(arm: ArmModel, time: Vector, q: Matrix, source: str) -> None:
    """Raise InvalidValue for rows that alternate between two sequences of positions.

    Two publishers on one topic, and two runs sorted by their stamps, give rows that differ from
    both neighbors, which agree with each other: farther than JUMP_RATIO times their distance and
    than JUMP_RANGE of the recorded range, and faster than JUMP_SPEED or the velocity limit.

    Parameters
    ----------
    arm : ArmModel
        The arm, for its velocity limits.
    time : Vector
        Stamps (n,) [s], not decreasing.
    q : Matrix
        Positions (n, nv) [rad or m].
    source : str
        File in messages.

    """
    if len(q) < MIN_SAMPLES:
        return
    angular = [joint.unit == "rad" for joint in arm.joints]
    x = np.where(angular, np.unwrap(q, axis=0), q)  # a recorded angle may step by a turn
    distance = np.abs(x[2:] - x[:-2])
    jump = np.abs(x[1:-1] - (x[2:] + x[:-2]) / 2)
    speeds = np.array([joint.velocity for joint in arm.joints])
    limit = np.minimum(np.where(speeds > 0, speeds, np.inf), JUMP_SPEED)
    possible = limit * (time[2:] - time[:-2])[:, None] / 2
    least = np.maximum(MIN_JUMP, JUMP_RANGE * np.ptp(x, axis=0))
    jumps = (jump > JUMP_RATIO * distance) & (jump > least) & (jump > possible)
    fraction = jumps.mean(axis=0)
    i = int(np.argmax(fraction))
    if fraction[i] > INTERLEAVED:
        k = 1 + int(np.argmax(jumps[:, i]))
        unit = arm.joints[i].unit
        raise InvalidValue(
            f"{source}: position of joint '{arm.joint_names[i]}' = {q[k - 1, i]:.4g},"
            f" {q[k, i]:.4g}, {q[k + 1, i]:.4g} {unit} in successive samples, and such jumps in"
            f" {100 * fraction[i]:.0f} % of the samples; expected one sequence; the rows are those"
            " of two publishers on one topic, or of two runs sorted by their stamps, or readings"
            " are wrong; record one publisher (ros2 topic info -v lists them), or separate the rows"
        )


def require_samples(time: Vector, source: str) -> None:
    """Raise InvalidValue for fewer than MIN_SAMPLES stamps (n,)."""
    if len(time) < MIN_SAMPLES:
        raise InvalidValue(
            f"{source}: samples = {len(time)}; expected at least {MIN_SAMPLES} with increasing"
            " stamps and finite positions"
        )


def require_different(motions: Sequence[MotionData]) -> None:
    """Raise InvalidValue if two of the motions have the same samples."""
    for one, other in combinations(motions, 2):
        pairs = ((getattr(one, x), getattr(other, x)) for x in ("time", "q", "effort", "current"))
        if all(np.array_equal(x, y) for x, y in pairs):
            sources = f"{one.source} and {other.source}"
            raise InvalidValue(
                f"{sources}: two recordings are identical; a fitted"
                " motion does not check the result, and a repeated one counts twice; omit one"
                " (without --held-out, the last 30 % of each recording check the result)"
            )


def check_sizes(values: Mapping[str, Matrix | None], joints: Sequence[str], source: str) -> None:
    """Raise InvalidValue for a finite value beyond MAX_VALUE, by quantity and joint.

    Parameters
    ----------
    values : Mapping[str, Matrix or None]
        Quantity → values (n, nv).
    joints : Sequence[str]
        Joints (nv,).
    source : str
        File in messages.

    """
    for quantity, found in values.items():
        if found is None:
            continue
        beyond = np.isfinite(found) & (np.abs(found) > MAX_VALUE)
        if beyond.any():
            k, i = (int(x) for x in np.argwhere(beyond)[0])
            raise InvalidValue(
                f"{source}: {quantity.replace('_', ' ')} of joint '{joints[i]}' ="
                f" {found[k, i]:.4g} in sample {k + 1} of {len(found)}; expected at most"
                f" {MAX_VALUE:g}; delete these samples"
            )


def check_positions(arm: ArmModel, q: Matrix, source: str) -> None:
    """Raise InvalidValue for positions (n, nv) [rad or m] that are degrees or mm, or glitches."""
    for i, joint in enumerate(arm.joints):
        is_angle = joint.unit == "rad"
        margin = 0.0 if is_angle else MAX_EXCESS * (joint.upper - joint.lower)
        beyond = (q[:, i] < joint.lower - margin) | (q[:, i] > joint.upper + margin)
        beyond &= np.abs(q[:, i]) > MAX_ANGLE * is_angle
        if not beyond.any():
            continue
        limits = f"expected {joint.lower:.4g} to {joint.upper:.4g} {joint.unit}"
        k = int(np.argmax(beyond))
        is_jump = abs(q[k, i] - q[k - 1 if k else 1, i]) > 0.5 * abs(q[k, i])
        if beyond.mean() <= GLITCH_FRACTION and is_jump:
            raise InvalidValue(
                f"{source}: position of joint '{joint.name}' = {q[k, i]:.4g} {joint.unit} in sample"
                f" {k + 1} of {len(q)}, and implausible in {beyond.sum()} samples; {limits}; delete"
                " these samples"
            )
        remedy = (
            "pass --degrees (degrees=True) if the file has degrees, but not for values from -100 to"
            " 100 of a range, which need its ends to be converted to rad; convert raw counts to rad"
            if is_angle
            else "convert the file to m, or put the unit into the names of its columns, as in"
            f" 'position.{joint.name} [mm]'"
        )
        raise InvalidValue(
            f"{source}: position of joint '{joint.name}' = {q[:, i].min():.4g} to"
            f" {q[:, i].max():.4g} {joint.unit}; {limits}; {remedy}"
        )


def _speed_warnings(arm: ArmModel, data: MotionData) -> list[str]:
    """Return sentences about joints much faster than their limits, which may be placeholders."""
    stride = int(np.clip(round(SPEED_TIME / data.period), 1, len(data.time) - 1))
    steps = (data.time[stride:] - data.time[:-stride])[:, None]
    speed = np.percentile(np.abs(data.q[stride:] - data.q[:-stride]) / steps, 99, axis=0)
    warnings = []
    for joint, value in zip(arm.joints, speed.tolist(), strict=True):
        if not joint.velocity or value <= MAX_SPEED * joint.velocity:
            continue
        warnings.append(
            f"{data.source}: velocity of joint '{joint.name}' = {value:.4g} {joint.unit}/s, which"
            f" 1 % of the samples exceed; expected at most its limit of {joint.velocity:.3g}"
            f" {joint.unit}/s; check the unit of the stamps (period = {data.period:.3g} s) and of"
            " the positions, and the limit in the URDF"
        )
    return warnings


def check_targets(data: MotionData) -> None:
    """Raise InvalidValue unless a motion has targets that its positions follow.

    Parameters
    ----------
    data : MotionData
        Recorded positions and target positions.

    """
    if data.command_position is None:
        missing = "target positions" if data.effort is not None else "efforts or target positions"
        raise InvalidValue(
            f"{data.source}: no {missing} in the recording,"
            " and positions alone determine no parameter: they give"
            " ranges and speeds only; record efforts, or the target positions of position servos"
            " (columns target.JOINT, or --column target.JOINT=COLUMN)"
        )
    known = np.asarray(np.isfinite(data.command_position).any(axis=0))
    if not known.all():
        names = [name for name, x in zip(data.joint_names, known, strict=True) if not x]
        raise InvalidValue(
            f"{data.source}: no target positions of joints {', '.join(names)} in the"
            " recording; lock these joints"
        )
    motion = np.ptp(data.q, axis=0).max()
    if motion < MIN_SERVO_MOTION:
        raise InvalidValue(
            f"{data.source}: motion = {motion:.2g} rad; expected more than"
            f" {MIN_SERVO_MOTION:g} rad in at least one joint; record a larger motion"
        )
    distance = np.nanmedian(np.abs(data.command_position - data.q), axis=0)
    for i in np.flatnonzero(distance > MAX_TARGET_ERROR):
        raise InvalidValue(
            f"{data.source}: median distance of joint '{data.joint_names[i]}' from its target ="
            f" {distance[i]:.3g} rad; expected at most {MAX_TARGET_ERROR:g} rad; check the"
            " order of the joints and the units of the targets"
        )


def check_units(arm: ArmModel, data: MotionData) -> tuple[str, ...]:
    """Return warnings about the units and the efforts of a recorded motion.

    Parameters
    ----------
    arm : ArmModel
        The arm, for its position and effort limits.
    data : MotionData
        Recorded positions and efforts.

    Returns
    -------
    tuple of str
        One sentence for each joint with one speed only or much faster than its limit, for efforts
        that are very small, and for each moving joint with effort 0 in most of the samples or at
        its largest value in many.

    Raises
    ------
    InvalidValue
        For other joints than those of the arm, positions in degrees or mm, efforts above 20 times
        their limit, also single ones, efforts that are all zero, and efforts at their limit in more
        than 20 % of samples.

    """
    if data.joint_names != arm.joint_names:
        raise InvalidValue(
            f"{data.source}: joints = {', '.join(data.joint_names)}; expected"
            f" {', '.join(arm.joint_names)}"
        )
    check_positions(arm, data.q, data.source)
    fast, efforts = _speed_warnings(arm, data), _effort_warnings(arm, data)
    speeds = [
        f"{data.source}: joint '{data.joint_names[i]}': speed = {speed:.3g} only; viscous"
        " and Coulomb friction are not distinguished; record several speeds"
        for i, speed in _only_speeds([data]).items()
    ]
    return (*fast, *efforts, *speeds)


def _effort_warnings(arm: ArmModel, data: MotionData) -> list[str]:
    if data.effort is None:
        return []
    size, limit = np.abs(data.effort), arm.effort_limit
    if not size.any():
        raise InvalidValue(
            f"{data.source}: efforts = 0 in all samples; expected measured efforts; record with a"
            " driver that reports them, or leave the efforts out"
        )
    limited = np.isfinite(limit) & (limit > 0)
    ratio = np.where(limited, np.percentile(size, 99, axis=0) / np.where(limited, limit, 1), np.nan)
    for i in np.flatnonzero(ratio > MAX_EFFORT):
        joint = arm.joints[i]
        unit = joint.effort_unit
        raise InvalidValue(
            f"{data.source}: effort of joint '{joint.name}' = {ratio[i] * limit[i]:.4g} {unit},"
            f" {ratio[i]:.3g} times its limit; expected at most {joint.effort:.4g} {unit}; convert"
            " the file to SI units (N·mm, raw motor units or percent are likely)"
        )
    beyond = limited & (size > MAX_EFFORT * limit)
    if beyond.any():
        k, i = np.argwhere(beyond)[0]
        joint = arm.joints[int(i)]
        unit, count = joint.effort_unit, beyond[:, i].sum()
        raise InvalidValue(
            f"{data.source}: effort of joint '{joint.name}' = {data.effort[k, i]:.4g} {unit} at t ="
            f" {data.time[k]:.4g} s, more than {MAX_EFFORT:g} times its limit of"
            f" {joint.effort:.4g} {unit} in {count} of {len(size)} samples; expected at most"
            f" {MAX_EFFORT * joint.effort:.4g} {unit}; delete these samples"
        )
    saturated: Vector = (size > saturation_limit(arm, data.effort)).mean(axis=0)
    for i in np.flatnonzero(limited & (saturated > SATURATED_FRACTION)):
        joint = arm.joints[i]
        raise InvalidValue(
            f"{data.source}: effort of joint '{joint.name}' = its limit of"
            f" {limit[i]:.4g} {joint.effort_unit} in {100 * saturated[i]:.0f} % of the samples;"
            f" expected at most {100 * SATURATED_FRACTION:.0f} %; record a slower motion, or with"
            " less load"
        )
    absent = (size == 0).mean(axis=0) * (np.ptp(data.q, axis=0) > MIN_MOTION)
    warnings = [
        f"{data.source}: effort of joint '{arm.joint_names[i]}' = 0 in {100 * absent[i]:.0f} % of"
        " the samples; the drive may not report small currents; its friction and inertia are not"
        " determined"
        for i in np.flatnonzero(absent > ABSENT_FRACTION)
    ]
    largest = size.max(axis=0)
    at_largest = (size >= LEVEL * largest).mean(axis=0) * (np.ptp(data.q, axis=0) > MIN_MOTION)
    warnings += [
        f"{data.source}: effort of joint '{arm.joint_names[i]}' = ±{largest[i]:.4g}"
        f" {arm.joints[i].effort_unit}, its largest value, in {100 * at_largest[i]:.0f} % of the"
        " samples; the drive may be saturated below the effort limit in the URDF; record a"
        " slower motion, or set the limit"
        for i in np.flatnonzero(
            (at_largest > SATURATED_FRACTION) & (largest > 0) & ~(limited & (largest > limit))
        )
    ]
    if limited.any() and (size.max(axis=0) < MIN_EFFORT * limit)[limited].all():
        warnings.append(
            f"{data.source}: efforts = at most {np.nanmax(ratio):.2g} of their limits; they may be"
            " currents [A] or in kN·m"
        )
    return warnings


def effort_scale_warning(
    joint_names: Sequence[str], measured: Matrix, predicted: Matrix
) -> str | None:
    """Return a warning about the unit of efforts that all have another scale than the nominal ones.

    The scale of joint i is the least-squares factor k_i of τ_measured = k_i τ_predicted. Joints
    with other curves do not count. More than half of the joints must count.

    Parameters
    ----------
    joint_names : Sequence[str]
        Joints (nv,).
    measured, predicted : Matrix
        Recorded efforts and those of the nominal model (n, nv) [N·m or N].

    Returns
    -------
    str or None
        Sentence with the scale, its limits and the likely unit; None if the scale is plausible.

    """
    product, size = np.sum(measured * predicted, axis=0), np.sum(predicted**2, axis=0)
    cosine = product / np.maximum(np.sqrt(size * np.sum(measured**2, axis=0)), 1e-12)
    alike = cosine >= SAME_SHAPE
    if 2 * alike.sum() <= len(joint_names):
        return None
    scales = product[alike] / size[alike]
    if scales.min() <= MAX_SCALE and scales.max() >= MIN_SCALE:
        return None
    scale = float(np.median(scales))
    likely = [unit for unit, x in EFFORT_SCALES.items() if 0.6 < scale / x < 1.7]
    causes = f"{likely[0]} is likely" if likely else "motor currents or raw units are possible"
    listed = ", ".join(np.array(joint_names)[alike].tolist())
    return (
        f"efforts of joints {listed} = {scale:.3g} times those of the nominal model; expected"
        f" {MIN_SCALE:g} to {MAX_SCALE:g} times; check the unit ({causes}) and convert the"
        f" file to N·m, or put the unit into the names of its columns, as in"
        f" 'effort.{joint_names[0]} [kgf.cm]'; check the masses in the URDF"
    )


def require_speeds(motions: Sequence[MotionData]) -> None:
    """Raise InvalidValue if every joint that moves does so with one speed in all motions.

    Parameters
    ----------
    motions : Sequence[MotionData]
        Motions of the same arm that are fitted together.

    """
    found = _only_speeds(motions)
    moves = np.any([np.ptp(motion.q, axis=0) >= MIN_MOTION for motion in motions], axis=0)
    if found and len(found) == moves.sum():
        listed = ", ".join(f"{motions[0].joint_names[i]} {x:.3g}" for i, x in found.items())
        raise InvalidValue(
            f"{', '.join(motion.source for motion in motions)}: speeds [rad/s or m/s] = {listed}"
            " only; expected several for each joint, because viscous and Coulomb friction are not"
            " distinguished; record the trajectory of arm-dynamics excite"
        )


def _only_speeds(motions: Sequence[MotionData]) -> dict[int, float]:
    """Return the speed of each joint that moves with one speed only [rad/s or m/s].

    Speeds are means over STRIDE_TIME.
    """
    parts = []
    for motion in motions:
        time, q = motion.time, motion.q
        stride = int(np.clip(round(STRIDE_TIME / motion.period), 1, max(1, len(time) // 4)))
        parts.append(np.abs((q[stride:] - q[:-stride]) / (time[stride:] - time[:-stride])[:, None]))
    speeds = np.concatenate(parts)
    moves = np.any([np.ptp(motion.q, axis=0) >= MIN_MOTION for motion in motions], axis=0)
    only_speeds = {}
    for i in np.flatnonzero(moves).tolist():
        moving = speeds[speeds[:, i] > 0.1 * speeds[:, i].max(), i]
        low, middle, high = np.percentile(moving, (10, 50, 90))
        if high - low < SAME_SPEED * middle:
            only_speeds[i] = float(middle)
    return only_speeds


def saturation_limit(arm: ArmModel, effort: Matrix) -> Vector:
    """Return the efforts (nv,) [N·m or N] above which motors are saturated; infinite if unknown.

    Motors do not saturate at a limit that recorded efforts (n, nv) exceed by more than EXCEEDED.
    """
    limit = arm.effort_limit
    is_limit = (limit > 0) & (np.abs(effort).max(axis=0) <= EXCEEDED * limit)
    saturation_limit: Vector = np.where(is_limit, SATURATED * limit, np.inf)
    return saturation_limit
