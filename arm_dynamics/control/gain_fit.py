"""A loop's gains against its driver's timing: slowed down, or rejected, before torque is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from arm_dynamics.control.controller_switch import ActiveController
from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.timed_gains import MARGIN, TimedArm, fit_gains
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import CommandRejected, InvalidValue
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.safety.events import Events

ASSUMED = LoopTiming(0.01, 1.0)
"""Timing that default gains are fitted to while an arm is driven whose own is not known."""


class GainFit:
    """Fits the active controller whenever the driver asks, and when the loop gets another one."""

    def __init__(self, driver: Driver, laws: ActiveController, events: Events) -> None:
        self._driver, self._laws, self._events = driver, laws, events
        self.fault = ""
        """Why the gains are rejected; no command is computed then."""
        self._pending = False
        self._unknown = False  # whether the timing was not known when gains were fitted
        driver.fit = self.run
        if driver.timing is not None or driver.command_epoch:
            self.run()

    def run(self, q: Vector | None = None) -> None:
        """Fit the active controller for an arm at q (nv,); raises InvalidValue as ``check``.

        No command is computed from then on, until gains are stable.
        """
        try:
            self.check(self._laws.controller, q)
        except InvalidValue as error:
            self.fault = str(error)
            raise
        self.fault = ""

    def check(self, controller: Controller, q: Vector | None = None) -> None:
        """Fit a controller; raises InvalidValue where no gains are stable, or the fit fails.

        Without a timing default gains are fitted to ASSUMED, and given ones are not checked.
        """
        known = self._driver.timing
        self._unknown = known is None
        if known is None and any(controller.given.values()):
            return
        try:
            said = fit_gains(controller, self._driver.arm, known or ASSUMED, q)
        except InvalidValue as error:
            self._events.report("gains_rejected", str(error))
            raise
        except Exception as error:  # of a controller from outside, or of numbers that overflow
            text = (
                f"{type(controller).__name__}: gains not checked: {type(error).__name__}: {error}"
            )
            self._events.report("gains_rejected", text)
            raise InvalidValue(text) from error
        if said:
            self._events.report("gains_slowed", said)

    def take(self, gains: Gains) -> None:
        """Configure the newest controller; raises InvalidValue for gains that are unstable.

        The old gains then stay in force. While a controller fades out, the newest one may wait.
        """
        law = self._laws.newest
        if self._driver.timing is None:
            law.set_gains(gains)
        else:
            trial = type(law)(law.arm)
            trial.slow_down(law.scale)  # so that slowed defaults are still known as defaults
            trial.set_gains(gains)
            self.check(trial)
            law.scale = trial.scale
            law.set_gains(trial.given)
        self.fault = ""

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """No command is computed meanwhile: another thread than the loop's fits the gains."""
        self._pending = True
        try:
            yield
        finally:
            self._pending = False

    def require(self, q: Vector) -> None:
        """Raise CommandRefused while the gains are rejected.

        Once a timing is known that was not, gains are looked at again, at q (nv,) alone: torque is
        on, and a longer look would be a pause of the loop.
        """
        timing = self._driver.timing if self._unknown else None
        if timing is not None:
            self._unknown = False
            self._look_again(timing, q)
        if self.fault or self._pending:
            raise CommandRejected(self.fault or "the gains are being fitted to the arm's timing")

    def _look_again(self, timing: LoopTiming, q: Vector) -> None:
        law = self._laws.controller
        if not any(law.given.values()):
            law.slow_down(law.scale * min(1.0, ASSUMED.period / timing.period))
        elif law.interface == "effort":
            self.fault = TimedArm(self._driver.arm, timing, [q]).oscillation(law, MARGIN)
            if self.fault:
                self._events.report("gains_rejected", self.fault)
