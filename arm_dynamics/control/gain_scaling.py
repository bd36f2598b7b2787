"""Scaling of gains to a loop's timing: defaults are slowed down, unstable gains are rejected.

The check runs before torque is enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from arm_dynamics.control.controller_switch import ActiveController
from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.stability_margins import (
    MARGIN,
    TimedArm,
    check_configurations,
    copied,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import CommandRejected, InvalidValue
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events

ASSUMED_TIMING = LoopTiming(0.01, 1.0)
"""Timing that default gains are scaled to while the driver's is unknown."""
DESIGN_MARGIN = 2.0
"""Gain margin that defaults are slowed down to."""
MIN_BANDWIDTH_FACTOR = 1e-3
"""Minimum factor on the full bandwidth of defaults."""
BANDWIDTH_STEP, BISECTIONS = 0.6, 4
"""Steps in which that factor is lowered, and bisections of the last one."""


def scale_gains(
    controller: Controller, arm: ArmModel, timing: LoopTiming, q: Vector | None = None
) -> str:
    """Slow the controller's default gains down as far as ``timing`` requires.

    Given gains stay. The defaults get the largest bandwidth, at most the full one, at which no mode
    oscillates with all gains 1 to DESIGN_MARGIN times as large. If some gains were given, the
    factor is MARGIN. The loop is linear about the initial configuration, ``q`` and random ones,
    with zero-order hold and motors without dynamics.

    Parameters
    ----------
    controller : Controller
        Controller whose defaults are changed.
    arm : ArmModel
        Controlled arm.
    timing : LoopTiming
        Control period and delay.
    q : (nv,) array, optional
        Present configuration [rad or m].

    Returns
    -------
    str
        Message if the defaults were slowed down; else "".

    Raises
    ------
    InvalidValue
        If no such bandwidth exists; the controller is unchanged.

    """
    if controller.interface != "effort" or timing.period <= 0:
        return ""
    sampled, trial = TimedArm(arm, timing, check_configurations(arm, q)), copied(controller)

    def oscillation(scale: float, margin: float) -> str:
        trial.slow_down(scale)
        return sampled.oscillation(trial, margin)

    scalable = any(p.order for group in controller.parameter_groups.values() for p in group)
    margin = DESIGN_MARGIN if scalable and not any(controller.given.values()) else MARGIN
    at_full = oscillation(1.0, margin)
    factor = 1.0 if not at_full else max_stable_factor(lambda x: bool(oscillation(x, margin)))
    if factor == 0.0:
        raise InvalidValue(
            f"{type(controller).__name__}: gains unstable with {timing}: {at_full}; expected no"
            f" oscillation at up to {margin:g} times the gains; lower the gains or the period"
            f" (`arm-dynamics stability ARM --period {timing.period:.4g} --delay"
            f" {timing.delay:.3g}`)"
        )
    controller.slow_down(factor)
    if not at_full:
        return ""
    return (
        f"{type(controller).__name__}: default gains of {factor:.3g} times the full bandwidth, for"
        f" {timing}: with the full one an {at_full}"
    )


def max_stable_factor(oscillates: Callable[[float], bool]) -> float:
    """Return the largest factor found without oscillation; 0 if all above the minimum oscillate."""
    low = high = 1.0
    while oscillates(low := low * BANDWIDTH_STEP):
        high = low
        if low < MIN_BANDWIDTH_FACTOR:
            return 0.0
    for _ in range(BISECTIONS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if oscillates(middle) else (middle, high)
    return low


class GainScaling:
    """Scales the gains of the active controller on request of the driver, and of each new one.

    Parameters
    ----------
    driver : Driver
        Driver with arm and timing; its ``check_gains`` is set.
    active : ActiveController
        Active and requested controller.
    events : Events
        Receives ``gains_slowed`` and ``gains_rejected``.

    """

    def __init__(self, driver: Driver, active: ActiveController, events: Events) -> None:
        self._driver, self._active, self._events = driver, active, events
        self.fault = ""
        """Reason why the gains are rejected; no command is computed then."""
        self._pending = False
        self._is_assumed = False  # whether the timing was unknown when gains were scaled
        driver.check_gains = self.run
        if driver.timing is not None or driver.command_epoch:
            self.run()

    def run(self, q: Vector | None = None) -> None:
        """Scale and check the active controller at q (nv,); raises InvalidValue as ``check``.

        After an error no command is computed until the gains are stable.
        """
        try:
            self.check(self._active.controller, q)
        except InvalidValue as error:
            self.fault = str(error)
            raise
        self.fault = ""

    def check(self, controller: Controller, q: Vector | None = None) -> None:
        """Scale and check the gains of a controller at q (nv,).

        Without a known timing defaults are scaled to ASSUMED_TIMING; given gains are not checked.

        Raises
        ------
        InvalidValue
            If no gains are stable, or the computation fails.

        """
        timing = self._driver.timing
        self._is_assumed = timing is None
        if timing is None and any(controller.given.values()):
            return
        try:
            message = scale_gains(controller, self._driver.arm, timing or ASSUMED_TIMING, q)
        except InvalidValue as error:
            self._events.report("gains_rejected", str(error))
            raise
        except Exception as error:  # of an external controller, or an overflow
            text = (
                f"{type(controller).__name__}: gains not checked: {type(error).__name__}: {error}"
            )
            self._events.report("gains_rejected", text)
            raise InvalidValue(text) from error
        if message:
            self._events.report("gains_slowed", message)

    def take(self, gains: Gains) -> None:
        """Set the gains of the newest controller, which may wait for a switch.

        Raises
        ------
        InvalidValue
            For unstable gains; the previous gains stay active.

        """
        controller = self._active.newest
        if self._driver.timing is None:
            controller.set_gains(gains)
        else:
            trial = type(controller)(controller.arm)
            trial.slow_down(controller.scale)  # so that slowed defaults still count as defaults
            trial.set_gains(gains)
            self.check(trial)
            controller.scale = trial.scale
            controller.set_gains(trial.given)
        self.fault = ""

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Block commands while another thread than the loop's scales the gains."""
        self._pending = True
        try:
            yield
        finally:
            self._pending = False

    def require(self, q: Vector) -> None:
        """Raise CommandRejected while the gains are rejected or being scaled.

        When an unknown timing becomes known, the gains are checked again, at q (nv,) only: torque
        is enabled, and a longer check would pause the loop.
        """
        timing = self._driver.timing if self._is_assumed else None
        if timing is not None:
            self._is_assumed = False
            controller = self._active.controller
            if not any(controller.given.values()):
                controller.slow_down(
                    controller.scale * min(1.0, ASSUMED_TIMING.period / timing.period)
                )
            elif controller.interface == "effort":
                self.fault = TimedArm(self._driver.arm, timing, [q]).oscillation(controller, MARGIN)
                if self.fault:
                    self._events.report("gains_rejected", self.fault)
        if self.fault or self._pending:
            raise CommandRejected(self.fault or "gains: being scaled to the loop's timing")
