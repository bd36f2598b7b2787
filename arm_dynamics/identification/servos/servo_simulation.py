"""Simulated positions of an arm whose servos follow recorded target positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.output_injection import OutputInjection
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.identification.servos.position_loops import ServoLoops
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

PERIOD = 1e-3
"""Largest period of a servo's position loop, and largest time step [s]."""
RECORD_PERIOD = 5e-3
"""Largest time [s] between two simulated positions, which are interpolated to the samples."""
CORRECTION_PERIOD = 0.02
"""Shortest time [s] between two corrections by injection."""
CONTACT_STEPS = 2
"""Time steps in a period of an arm with backlash, whose tooth contact is stiff."""
START_TIME = 0.15
"""Time [s] over which the velocity at the start is measured."""


class ServoSimulation:
    """Closed loops of servos, motors and bodies along the targets of one recorded segment.

    Parameters
    ----------
    arm : ArmModel
        The arm, with motors and dry friction in every joint.
    loops : ServoLoops
        Position loops.
    motion : MotionData
        Segment with ``command_position``, the target before each sample.
    injection : float, optional
        Time constant τ [s] with which the recorded positions correct the simulated states, see
        ``OutputInjection``; by default they do not.

    """

    def __init__(
        self,
        arm: ArmModel,
        loops: ServoLoops,
        motion: MotionData,
        injection: float | None = None,
    ) -> None:
        self.motion = motion
        self._arm, self._controller = arm, loops.controller(arm)
        self._time = time = motion.time - motion.time[0]
        between = max(1, int(np.ceil(motion.period / RECORD_PERIOD)))
        per_record = max(1, int(np.ceil(motion.period / between / PERIOD)))
        self._step = motion.period / between / per_record
        self._every = per_record
        self._periods = per_record * int(np.ceil(time[-1] / (self._step * per_record)))
        targets = _targets(motion)
        self._integral = np.concatenate(
            (np.zeros((1, targets.shape[1])), np.cumsum(targets[1:] * np.diff(time)[:, None], 0))
        )
        self._ends = targets[0], targets[-1]
        self._rotors, self._gaps = (_state_columns(arm, name) for name in ("rotor_velocity", "gap"))
        self._steps = CONTACT_STEPS if self._gaps else 1
        start = motion.q[0], _start_velocity(motion), arm.initial_act
        self._start = np.concatenate(start)[None]
        first = time <= START_TIME
        self._pushed = np.sign(np.mean((targets - motion.q)[first], axis=0))
        self._injection = None
        if injection is not None:
            every = per_record * between * samples_in(CORRECTION_PERIOD, motion)
            self._injection = self._output_injection(every, injection)

    def _output_injection(self, every: int, time_constant: float) -> OutputInjection:
        """Return the corrections by the recorded positions after each ``every`` periods."""
        interval = every * self._step
        at = interval * np.arange(1, 1 + self._periods // every)
        columns = [np.interp(at, self._time, column) for column in self.motion.q.T]
        rotors = {column - 2 * self._arm.nv: i for column, i in self._rotors.items()}
        measured = np.stack(columns, axis=-1)
        return OutputInjection.of(measured, every, interval, time_constant, rotors)

    def positions(self, varied: Mapping[str, Matrix], delay: Vector) -> FloatArray:
        """Return simulated positions (batch, n, nv) [rad or m] at the samples.

        With injection they are predictions from the samples before. NaN after a simulation
        diverged.

        Parameters
        ----------
        varied : Mapping[str, Matrix]
            As ``vary`` of ``rollout_closed_loop``, (batch, nv) or (batch,).
        delay : Vector
            Time (batch,) [s] from a recorded target to its effect.

        """
        delays = delay[:1] if (delay == delay[0]).all() else delay
        result = rollout_closed_loop(
            self._arm, self._starts(varied), self._controller, self._reference(delays),
            self._step / self._steps, self._step, self._step * self._periods,
            interface="voltage",
            vary=varied, injection=self._injection,
            record_every=self._every, outputs=("q",),
        )  # fmt: skip
        start = np.broadcast_to(self.motion.q[0], (len(delay), 1, self._arm.nv))
        q = np.concatenate((start, result.q), axis=1)
        at = self._time / (self._step * self._every)
        low = np.minimum(at.astype(int), q.shape[1] - 2)
        part = (at - low)[:, None]
        positions: FloatArray = (1 - part) * q[:, low] + part * q[:, low + 1]
        return positions

    def _starts(self, varied: Mapping[str, Matrix]) -> Matrix:
        """Return initial states (batch or 1, 2 nv + na); teeth touch on the side of the target."""
        play = varied.get("motor.backlash")
        if play is None:
            play = np.array([[m.constants.get("backlash", 0.0) for m in self._arm.actuators]])
        start = np.repeat(self._start, len(play), axis=0)
        for column, i in self._rotors.items():
            start[:, column] = start[:, self._arm.nv + i]
        for column, i in self._gaps.items():
            start[:, column] = 0.5 * self._pushed[i] * play[:, i]
        return start

    def _reference(self, delay: Vector) -> FloatArray:
        """Return the mean target (batch, periods, nv) of each period of the position loop.

        The mean changes continuously with the delay.
        """
        edges = self._step * np.arange(self._periods + 1) - delay[:, None]
        before, after = self._ends
        inside = np.clip(edges, self._time[0], self._time[-1])
        integral = np.stack(
            [np.interp(inside, self._time, column) for column in self._integral.T], axis=-1
        )
        integral += before * np.minimum(edges - self._time[0], 0)[..., None]
        integral += after * np.maximum(edges - self._time[-1], 0)[..., None]
        reference: FloatArray = np.diff(integral, axis=1) / self._step
        return reference


def _state_columns(arm: ArmModel, name: str) -> dict[int, int]:
    """Return the columns of the actuator states of this name, and their joints."""
    states = [(i, state.name) for i, motor in enumerate(arm.actuators) for state in motor.states]
    return {2 * arm.nv + k: i for k, (i, kind) in enumerate(states) if kind == name}


def samples_in(time: float, motion: MotionData) -> int:
    """Return the number of samples in a ``time`` [s], at least 1."""
    return max(1, int(time / motion.period + 0.5))


def _targets(motion: MotionData) -> Matrix:
    """Return the targets (n, nv) without gaps: the last known one continues."""
    given: Any = motion.command_position
    known = np.isfinite(given)
    rows = np.where(known, np.arange(len(given))[:, None], -1)
    latest = np.maximum.accumulate(rows, axis=0)
    latest = np.where(latest < 0, known.argmax(axis=0), latest)
    targets: Matrix = np.take_along_axis(np.nan_to_num(given), latest, axis=0)
    return targets


def _start_velocity(motion: MotionData) -> Vector:
    """Return the velocity (nv,) [rad/s or m/s] at the start: the slope of the first samples."""
    time = motion.time - motion.time[0]
    count = max(3, int(np.searchsorted(time, START_TIME)))
    if len(time) < count:
        return np.zeros(motion.q.shape[1])
    start_velocity: Vector = np.polyfit(time[:count], motion.q[:count], 2)[1]
    return start_velocity
