"""Enabled torque on a physical arm: check, confirmation, control cycles, stop, torque disabled."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np

from arm_dynamics.cli.hardware.check import check_health
from arm_dynamics.cli.hardware.keyboard import ENDS, Keyboard, confirm
from arm_dynamics.cli.terminal import StatusLine
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.background_output import output_in_background
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.signals import STOP_SIGNALS, EndProcess, ShutdownFlag, handling
from arm_dynamics.core.state import Command
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.safety.events import Events, Throttle

CHECK_DURATION = 0.5
"""Time [s] for which the motors are checked before torque is enabled."""
REST_VELOCITY = 0.02
"""Speed [rad/s or m/s] below which a joint is at rest."""
MAX_STOP_TIME = 1.0
"""Longest time [s] to wait for rest before torque is disabled."""
MAX_CYCLE = 2.0
"""Longest time [s] of the loop's reaction to a signal; after it another thread disables torque."""
STILL_ENABLED = "SWITCH THE MOTORS' POWER OFF"
NO_REACTION = (
    "the control loop did not react to a signal: torque was disabled; if a motor still holds, "
    + STILL_ENABLED
)


def printed_events() -> Events:
    """Return events that are printed above the status line."""
    above_status = SimpleNamespace(warning=lambda text: print(f"\r\x1b[K{text}", flush=True))
    return Events(Throttle(above_status).warn)


def motors_are_healthy(driver: MotorBusDriver) -> bool:
    """Check the motors of a closed driver; print their table and problems."""
    margin = driver.safety.limit_recovery_margin
    if check_health(driver.arm, driver.bus, CHECK_DURATION, margin):
        return True
    print("torque was not enabled: the check found problems")
    return False


def confirm_torque(warning: str) -> bool:
    """Return whether the user types yes after the warning."""
    if confirm(warning):
        return True
    print("torque was not enabled: nothing was changed")
    return False


class TorqueSession:
    """Control cycles with enabled torque; ``torque_session`` begins and ends them.

    ``command`` is what the last cycle returned, None without a command. ``trips`` are the texts of
    ``latched_trips`` of all arms. ``line`` is the status line.
    """

    def __init__(
        self,
        cycle: Callable[[], Command | None],
        drivers: Mapping[str, MotorBusDriver],
        pacer: Pacer,
        stopped: Callable[[], bool],
    ) -> None:
        self.command: Command | None = None
        self.trips: list[str] = []
        self.line = StatusLine()
        self._cycle, self._drivers, self._pacer, self._stopped = cycle, drivers, pacer, stopped

    def step(self, status: Callable[[], str]) -> bool:
        """Wait for the next period, run a control cycle and show the status after it.

        Returns
        -------
        bool
            False after QUIT, a closed terminal, a signal or a trip.

        """
        self._pacer.wait()
        self.command = self._cycle()
        self.line.show(status())
        self.read_trips()
        return not (self._stopped() or self.trips)

    def read_trips(self) -> None:
        """Set ``trips``, each with the name of its arm, if that has one."""
        self.trips = [
            f"{name}: {text}" if name else text
            for name, driver in self._drivers.items()
            for text in latched_trips(driver)
        ]


@contextmanager
def torque_session(
    loops: Mapping[str, ControlLoop], cycle: Callable[[], Command | None], period: float
) -> Iterator[TorqueSession]:
    """Enable torque; at the end stop the motion, wait for rest, then disable torque.

    Torque is disabled in every case; after an exception without waiting. Until then
    ``torque_guard`` handles signals and output. Without a terminal no keys are read.

    Parameters
    ----------
    loops : Mapping[str, ControlLoop]
        Control loops by the name of their arm, "" for a single one. Their drivers are closed, and
        are closed again at the end.
    cycle : callable
        Runs a control cycle of all loops.
    period : float
        Control period [s].

    """
    drivers = {n: x.driver for n, x in loops.items() if isinstance(x.driver, MotorBusDriver)}
    try:
        for loop in loops.values():
            loop.driver.configure()  # compiles; torque is disabled
    except BaseException:
        for driver in drivers.values():
            driver.close()
        raise
    with torque_guard(*drivers.values()) as stopped:
        try:
            with Keyboard() if sys.stdin.isatty() else nullcontext() as keys:
                pacer = Pacer(period)
                for _ in range(3):
                    cycle()
                _activate(loops)  # q during it counts
                print("q or Ctrl-C: disable torque" if drivers else "q or Ctrl-C: end")

                def ended() -> bool:
                    return stopped() or (keys is not None and bool(ENDS & {*keys.pressed()}))

                session = TorqueSession(cycle, drivers, pacer, ended)
                with session.line:
                    yield session
                for loop in loops.values():
                    loop.request_stop()
                for driver in drivers.values():
                    wait_for_rest(driver, cycle, pacer)
                session.read_trips()  # also those after q
        finally:
            for name, driver in drivers.items():
                disable_torque(driver, name)


def _activate(loops: Mapping[str, ControlLoop]) -> None:
    """Enable the torque of one arm after the other; those with torque continue to be controlled."""
    active: list[ControlLoop] = []

    def control_others() -> None:
        for other in active:
            other.step()

    for loop in loops.values():
        if isinstance(loop.driver, MotorBusDriver):
            loop.driver.activate(control_others)
            active.append(loop)


def wait_for_rest(
    driver: MotorBusDriver,
    cycle: Callable[[], object],
    pacer: Pacer,
    *,
    joints: slice = slice(None),
    min_time: float = 0.0,
    max_time: float = MAX_STOP_TIME,
) -> None:
    """Run control cycles until ``joints`` are at rest or torque is disabled.

    Parameters
    ----------
    driver : MotorBusDriver
        The driver, with enabled torque.
    cycle : callable
        Runs one control cycle.
    pacer : Pacer
        Clock of the cycles.
    joints : slice
        Joints whose velocities count; those without feedback do not.
    min_time, max_time : float
        Shortest and longest duration [s].

    """
    start = time.monotonic()
    while driver.status.torque_enabled and time.monotonic() < start + max_time:
        cycle()
        speed = np.fmax.reduce(np.abs(driver.feedback.v[joints]))
        if speed < REST_VELOCITY and time.monotonic() >= start + min_time:
            break
        pacer.wait()


def exit_code(trips: list[str]) -> int:
    """Print the trips that ended a session; return 1 after trips, else 0."""
    if trips:
        print("stopped:", *trips, sep="\n  ")
    return 1 if trips else 0


def latched_trips(driver: MotorBusDriver) -> list[str]:
    """Return texts of the latched trips, or of all trips if torque is disabled.

    The list is empty while the motion may continue.
    """
    latched = [str(trip) for trip in driver.trips if not trip.self_clearing]
    if not latched and driver.status in (DriverState.ERROR, DriverState.INACTIVE):
        return [*map(str, driver.trips)] or [f"the arm is {driver.status.value}"]
    return latched


def disable_torque(driver: MotorBusDriver, name: str = "") -> None:
    """Disable torque, print whether the motors of the arm ``name`` confirm it, close the port."""
    owner = f"{name}: " if name else ""
    try:
        if driver.status in (DriverState.UNCONFIGURED, DriverState.ERROR):
            print(f"{owner}connection lost: torque may still be enabled: {STILL_ENABLED}")
        else:
            driver.deactivate()
            print(f"{owner}torque is disabled")
    except DriverFault as error:
        print(f"{owner}{error}: {STILL_ENABLED}")
    finally:
        driver.close()


class _StopSignal(ShutdownFlag):
    """Flag of the signals that end a session; SIGUSR1 is also the emergency stop."""

    def __init__(self, drivers: Sequence[MotorBusDriver]) -> None:
        super().__init__(EndProcess(1, NO_REACTION), self._close, MAX_CYCLE)
        self._drivers = drivers

    def __call__(self, number: int = 0, frame: Any = None) -> None:
        """Set the flag."""
        if number == signal.SIGUSR1:
            for driver in self._drivers:
                driver.emergency_stop("signal SIGUSR1")
        self.set()

    def _close(self) -> None:
        """Disable the torque of all arms, in parallel: one port may hang."""
        threads = [Thread(target=driver.close, daemon=True) for driver in self._drivers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def torque_guard(*drivers: MotorBusDriver) -> Iterator[Callable[[], bool]]:
    """Catch signals and write output in the background while torque may be enabled.

    The stop signals and SIGTSTP (Ctrl-Z) request the end, and so does SIGUSR1, the emergency stop.
    A terminal cannot stop the process. If the loop does not react within MAX_CYCLE, another thread
    disables torque and ends the process.

    Parameters
    ----------
    *drivers : MotorBusDriver
        Drivers of the arms.

    Yields
    ------
    callable
        Returns whether the session must end; the loop calls it in each cycle.

    """
    stop = _StopSignal(drivers)
    ending = handling(stop, *STOP_SIGNALS, signal.SIGTSTP, signal.SIGUSR1)
    with ending, handling(signal.SIG_IGN, signal.SIGTTIN, signal.SIGTTOU), output_in_background():
        try:
            yield stop.is_set
        finally:
            stop.is_set()  # the last cycle may have come before the signal
