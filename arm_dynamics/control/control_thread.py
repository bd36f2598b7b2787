"""A control loop in a thread, for programs that send positions at a rate of their own."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread

from numpy.typing import ArrayLike

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.target_follower import TargetFollower
from arm_dynamics.core.arrays import check_float, check_vector
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.safety.events import Events

READY_CYCLES = 3
"""Control cycles before commands are enabled, as the activation of motors requires."""
MAX_AGE = 0.5
"""Age [s] above which a state is not returned."""
RECOVERY_TIME = 0.3
"""Time [s] for which a missing state is awaited: communication may recover."""


class ControlThread:
    """Control loop of an arm in a thread; the arm follows positions from another thread.

    The first positions, and those after an interruption, are approached with ``approach_speed``.
    Then the arm follows within the velocity limits of its joints. After the last positions it holds
    its configuration. ``start`` and ``close`` begin and end the thread; call all methods from one
    other thread.

    Parameters
    ----------
    driver : Driver
        The arm, simulated or physical.
    controller : Controller
        Controller with an interface of the driver.
    period : float
        Control period [s].
    approach_speed : float
        Velocity [rad/s or m/s] of the approach.
    events : Events, optional
        Receives all events of the loop.

    Raises
    ------
    InvalidValue
        For a period or speed that is not positive.

    """

    def __init__(
        self,
        driver: Driver,
        controller: Controller,
        period: float,
        *,
        approach_speed: float = 0.5,
        events: Events | None = None,
    ) -> None:
        self.loop = ControlLoop(driver, controller, events)
        self.period = check_float("period [s]", period, above=0)
        self._follower = TargetFollower(self.loop, approach_speed)
        self._end = Event()
        self._thread = Thread(target=self._run, name=f"control of {driver.arm.name}", daemon=True)
        self._fault = ""
        self._measured = 0.0

    def start(self) -> State:
        """Connect, enable commands where the arm stands, and start the thread; nothing moves.

        Returns
        -------
        State
            The measured state.

        Raises
        ------
        DriverFault
            If the arm is not ready. It is closed.

        """
        driver, simulated = self.loop.driver, isinstance(self.loop.driver, SimulationDriver)
        try:
            driver.configure()
            warm_up_controller(self.loop.controller, every_function=not simulated)
            pacer = Pacer(self.period)
            for _ in range(READY_CYCLES):
                self._cycle()
                pacer.wait()
            driver.activate()
            self._cycle()
            if self._fault:
                raise DriverFault(f"not activated: {self._fault}")
        except BaseException:
            driver.close()
            raise
        self._thread.start()
        return self.state()

    def state(self) -> State:
        """Return the state that was measured last; wait at most RECOVERY_TIME for one.

        Raises
        ------
        DriverFault
            Without a current state of every joint, and while commands are not executed.

        """
        end = time.monotonic() + RECOVERY_TIME
        while fault := self._present_fault():
            if time.monotonic() > end:
                raise DriverFault(fault)
            time.sleep(self.period)
        return self.loop.present()[0]

    def _present_fault(self) -> str:
        """Return why the last state is not current or commands are not executed; "" if they are."""
        age = time.monotonic() - self._measured
        old = f"age of the state = {age:.2f} s; expected at most {MAX_AGE} s"
        return self._fault or self.loop.driver.inactive or (old if age > MAX_AGE else "")

    def command(self, positions: ArrayLike) -> None:
        """Follow positions (nv,) [rad or m], limited to the ranges of the joints.

        Positions that lead to a self-collision are not followed, and the event
        ``trajectory_rejected`` names the links: the arm comes to rest at the last ones.

        Raises
        ------
        InvalidValue
            For another number of values than joints, or a value that is not finite.
        DriverFault
            As ``state``.

        """
        target = check_vector("positions", positions, self.loop.arm.nv)
        self.state()
        self._follower.follow(target, time.monotonic())

    def move(self, positions: ArrayLike, speed: float | None = None) -> None:
        """Move to positions (nv,) [rad or m] and wait until the reference rests there.

        Parameters
        ----------
        positions : (nv,) array
            Positions, limited to the ranges of the joints.
        speed : float, optional
            Maximum velocity [rad/s or m/s]; default: ``approach_speed``.

        Raises
        ------
        InvalidValue, DriverFault
            As ``command``; DriverFault also during the motion.

        """
        target = check_vector("positions", positions, self.loop.arm.nv)
        self.state()
        self._follower.move(target, speed)
        generator = self.loop.reference_generator
        while generator.pending or not self._rests():
            self.state()
            time.sleep(self.period)

    def _rests(self) -> bool:
        state, trajectory = self.loop.state, self.loop.trajectory
        return state is not None and trajectory is not None and state.time >= trajectory.end

    def close(self) -> None:
        """End the thread, disable commands and close the driver; never raises."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(DriverFault):  # reported by close
            self.loop.driver.deactivate()
        self.loop.driver.close()

    def _run(self) -> None:
        pacer = Pacer(self.period)
        try:
            while not self._end.is_set():
                pacer.wait()
                self._cycle()
        except Exception as error:
            self._fault = f"the control thread has ended: {type(error).__name__}: {error}"
            self.loop.events.report("control_thread_failed", self._fault)
            self.loop.driver.controlled_stop()

    def _cycle(self) -> None:
        """Run one control cycle; note whether the state was measured or rejected."""
        loop = self.loop
        before, counts = loop.state, dict(loop.events.counts)
        loop.step()
        if loop.state is not None and loop.state is not before:
            self._measured, self._fault = time.monotonic(), ""
            return
        latest = loop.events.latest.items()
        texts = [text for kind, text in latest if loop.events.counts[kind] != counts.get(kind)]
        if isinstance(loop.driver, MotorBusDriver):
            texts += [str(trip) for trip in loop.driver.trips]
        if texts:  # without one, no new reading has arrived in this cycle
            self._fault = texts[-1]
