"""Between the package's values and ROS messages; joints are always matched by name."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory_parsing import (
    NO_OPTIONS,
    Options,
    parse_trajectory,
)
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import CommandRejected, DriverFault, InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.joint_state_serialization import JointStateContent, split_time


def to_seconds(stamp: Time) -> float:
    """A message's time in seconds."""
    return float(stamp.sec + stamp.nanosec * 1e-9)


def to_time(seconds: float) -> Time:
    """Seconds as a message's time, to the nearest nanosecond."""
    sec, nanosec = split_time(seconds)
    return Time(sec=sec, nanosec=nanosec)


def to_duration(seconds: float) -> Duration:
    """Seconds as a message's duration, to the nearest nanosecond; may be negative."""
    sec, nanosec = split_time(seconds)
    return Duration(sec=sec, nanosec=nanosec)


def header(frame: str, time: float) -> Header:
    """Return the header of something in ``frame`` at ``time`` [s]."""
    return Header(stamp=to_time(time), frame_id=frame)


def to_double_array(values: Vector) -> array[float]:
    """A vector as the array that rclpy takes without looking at every entry."""
    return array("d", values.tobytes())


def read_state(names: tuple[str, ...], message: JointStateContent) -> State:
    """Joint states in the order of ``names``; raises DriverFault naming what is missing.

    Velocity and effort may be left out as a whole (velocity is then 0, effort unknown: NaN); a
    wrong length may not. Other joints than ``names`` are left alone.
    """
    try:
        pick = _order(names, message.names)
        q = _pick("position", message.position, message.names, pick)
        still, unknown = np.zeros(len(message.names)), np.full(len(message.names), np.nan)
        v = _pick("velocity", _given(message.velocity, still), message.names, pick)
        tau = _pick("effort", _given(message.effort, unknown), message.names, pick)
    except InvalidValue as error:
        raise DriverFault(str(error)) from error
    return State(message.time, q, v, tau)


def read_command(names: tuple[str, ...], message: JointStateContent) -> Command:
    """An effort command from joint_commands, or a position command where it holds positions alone.

    Raises CommandRefused naming the fault.
    """
    positions = message.position.size and not message.effort.size
    try:
        odd = [name for name in message.names if name not in names]
        if odd:
            raise InvalidValue(f"unknown joint '{odd[0]}'; known: {', '.join(names)}")
        pick = _order(names, message.names)
        interface = "position" if positions else "effort"
        values = message.position if positions else message.effort
        value = _pick(interface, values, message.names, pick)
    except InvalidValue as error:
        raise CommandRejected(f"joint_commands: {error}") from error
    return Command(interface, value, message.time)


def read_voltage(
    names: Sequence[str], order: Sequence[str], message: Float64MultiArray, now: float
) -> Command:
    """A voltage command for ``names`` from values that stand in ``order``.

    Labels, where the layout has one per joint, must be the joints in that order.
    """
    labels = [dimension.label for dimension in message.layout.dim]
    if len(labels) == len(names) and all(labels) and labels != list(order):
        raise CommandRejected(f"labels {labels}, expected {list(order)}")
    if len(message.data) != len(names):
        raise CommandRejected(
            f"{len(message.data)} values, expected {len(names)} ({', '.join(order)})"
        )
    by_name = dict(zip(order, message.data, strict=True))
    return Command("voltage", as_readonly([by_name[name] for name in names]), now)


def read_trajectory(
    arm: ArmModel, message: JointTrajectoryMessage, now: float, options: Options = NO_OPTIONS
) -> JointTrajectory:
    """A checked trajectory; stamp 0 means now. Raises TrajectoryRefused."""
    points = message.points
    return parse_trajectory(
        arm,
        message.joint_names,
        [p.time_from_start.sec + p.time_from_start.nanosec * 1e-9 for p in points],
        [p.positions for p in points],
        [p.velocities for p in points],
        [p.accelerations for p in points],
        start=to_seconds(message.header.stamp) or now,
        efforts=[p.effort for p in points],
        options=options,
    )


def _order(names: tuple[str, ...], given: tuple[str, ...]) -> list[int] | None:
    """Index in ``given`` of each name; None when the order is the same already."""
    if given == names:
        return None
    missing = [name for name in names if name not in given]
    if missing:
        raise InvalidValue(f"joint '{missing[0]}' is missing; got {list(given)}")
    if len(set(given)) != len(given):
        raise InvalidValue(f"a joint is named twice: {list(given)}")
    return [given.index(name) for name in names]


def _given(values: Vector, otherwise: Vector) -> Vector:
    return values if values.size else otherwise


def _pick(
    field: str,
    values: Vector,
    given: tuple[str, ...],
    pick: list[int] | None,
) -> Vector:
    if values.size != len(given):
        raise InvalidValue(f"{values.size} {field} entries for {len(given)} names")
    vector = values if pick is None else values[pick]
    vector.flags.writeable = False
    return vector
