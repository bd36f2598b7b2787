"""Driver of a physical arm: motors on a bus, with safety functions between command and motor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import warm_up
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, DriverFault
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import LoopTiming, PeriodMeter
from arm_dynamics.hardware.driver import ArmFeedback, Driver, DriverState
from arm_dynamics.hardware.driver_lifecycle import CLOSED, DriverLifecycle, as_driver_fault
from arm_dynamics.hardware.feedback_buffer import TEMPERATURE, FeedbackBuffer, Q
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.safety_supervisor import SafetySupervisor
from arm_dynamics.hardware.transmission import Transmission, joint_interface
from arm_dynamics.model.arm_argument import require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.safety.braking import BrakingMonitor
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.events import Events, Trip, Trips
from arm_dynamics.safety.safety_settings import SafetySettings

MAX_RESET_READINGS = 5
"""Readings until a reset fails: a motor may miss a cycle and report its old fault."""
REACTION_TIMES = {"effort": 0.015, "position": 0.02, "velocity": 0.08}
"""Times [s] until joints brake: the last effort fades out, servos follow with a lag."""


class MotorBusDriver(Driver):
    """Drive an arm's motors on one bus; the only place that decides what motors receive.

    A control cycle is ``read``, then ``write`` or ``idle``. ``read`` calls ``idle`` after some
    reads without one. ``read`` and the lifecycle transitions raise DriverFault only; ``write``,
    ``idle`` and ``close`` raise nothing if the bus fails. Call all methods from one thread, except
    ``emergency_stop`` and ``close``.

    Parameters
    ----------
    arm : ArmModel
        The arm with its joint limits and actuators.
    bus : MotorBus
        The motors.
    wiring : Sequence[JointMotor], optional
        Motor of each joint; by default that of the URDF's <ros2_control> block.
    interface : str
        Command interface: "effort", "voltage", "position" or "velocity".
    safety : SafetySettings
        Time-outs, limits and the stop policy.
    events : Events, optional
        Receives every trip and event; by default they are logged.
    period : float
        Configured control period [s]; 0 uses the measured one only.

    Raises
    ------
    ConfigError
        Motors do not accept ``interface`` or the stop policy.

    """

    def __init__(
        self,
        arm: ArmModel,
        bus: MotorBus,
        *,
        wiring: Sequence[JointMotor] | None = None,
        interface: str = "effort",
        safety: SafetySettings = SafetySettings(),  # noqa: B008  # frozen
        events: Events | None = None,
        period: float = 0.0,
    ) -> None:
        super().__init__(arm)
        self.bus, self.interface, self.safety = bus, interface, safety
        self.wiring = tuple(read_hardware_info(arm).motors if wiring is None else wiring)
        self.events = events or Events()
        self.extra_interfaces = (interface,)
        self._joint_interface = joint_interface(interface)
        if self._joint_interface == "effort":
            _require_effort_control(arm, interface)
        self._transmission = Transmission(arm, self.wiring, bus, interface)
        self.capabilities = self._transmission.capabilities
        """Command interfaces of each joint, and the source of its effort."""
        self._period = PeriodMeter(period, bus.feedback_delay)
        self._feedback = FeedbackBuffer(self._transmission, safety)
        self._limiter = CommandLimiter(arm, safety, bus.feedback_delay)
        self._trips = Trips(self.events)
        self._lifecycle = DriverLifecycle(
            self._transmission, bus, safety.reconnect_period,
            self._feedback, self._period, self._trips, self.events,
        )  # fmt: skip
        self._supervisor = SafetySupervisor(
            arm, safety, interface,
            feedback=self._feedback, limiter=self._limiter, period=self._period,
            lifecycle=self._lifecycle, trips=self._trips,
        )  # fmt: skip
        self._sent_time = 0.0
        self._reads_without_command = 0

    def read(self) -> State:
        """Read all motors once; NaN for joints whose feedback is missing.

        Raises
        ------
        DriverFault
            No state is known: before ``configure``, while the connection is lost (a new connection
            is tried every ``reconnect_period``), and if feedback of all joints is missing.

        """
        with self._lifecycle.lock:
            self._lifecycle.require_open()
            self._period.start_cycle(self.bus.now())
            return self._read()

    def write(self, command: Command) -> None:
        """Submit a command and send what the safety functions make of it."""
        if self.status.torque_enabled:
            self._supervisor.submit(command, self.bus.now())
        self.idle()

    def idle(self) -> None:
        """Send the active command, a stop motion, or the request to disable torque."""
        lifecycle, supervisor = self._lifecycle, self._supervisor
        with lifecycle.lock:
            self._reads_without_command = 0
            try:
                supervisor.trip_on_emergency_stop(self.bus.now())
                if lifecycle.torque_off.pending:
                    lifecycle.send_torque_off()
                elif lifecycle.state.torque_enabled:
                    self._send(self.bus.now())
            except DriverFault:
                pass  # the connection is lost, which has been reported
            except Exception as error:
                supervisor.trip_on_error(error, self.bus.now())

    def _read(self) -> State:
        """Read and check; unlike ``read`` not a control cycle of the host."""
        start = self.bus.now()
        readings = self._lifecycle.call(self.bus.read)
        now = self.bus.now()
        self._period.read_time = now - start
        self._feedback.update(readings, now, torque_enabled=self.status.torque_enabled)
        for message in self._feedback.implausible_messages():
            self.events.report("implausible_reading", message)
        feedback = self._feedback.publish(now)
        try:
            self._supervisor.check(now, feedback)
        except Exception as error:
            self._supervisor.trip_on_error(error, now)
        self.command_epoch = self._supervisor.command_epoch
        self._reads_without_command += 1
        if self._reads_without_command > max(1, self.safety.max_missed_cycles):
            self.idle()  # reads alone reset watchdogs: the last command would stay active
        if self._feedback.freshness.missing.all():
            jumped = self._feedback.plausibility.jumped.any()
            cause = "the position of no joint is known" if jumped else "no motor replies"
            raise DriverFault(f"{cause}; {self.bus.remedies}")
        return State(feedback.time, feedback.q, feedback.v, feedback.tau)

    def _send(self, now: float) -> None:
        """Send command or stop motion -> limits -> transmission -> motors."""
        freshness, temperature = self._feedback.freshness, self._feedback.table[TEMPERATURE]
        command, state = self._supervisor.command(now)
        value: Vector = command.value.copy()
        if command.interface == "voltage":
            value = self._transmission.efforts(value, state.v, temperature)
        if self._joint_interface == "effort" and not freshness.complete:
            value = value * self._feedback.confidence(value, state.v, now)
        dt, self._sent_time = now - self._sent_time, now
        value = self._limiter.apply(self._joint_interface, value, state.q, state.v, temperature, dt)
        feeds = self._transmission.accepts_feedforward
        gravity = self._limiter.gravity_effort(state.q, temperature) if feeds else None
        commands = self._transmission.motor_commands(
            self._joint_interface, value, state.v, temperature, gravity
        )
        self._lifecycle.call(self.bus.write, commands)

    def check_collisions(self, scene: Scene = EMPTY_SCENE) -> None:
        """Trip where a link would touch another one or an object, from the next cycle on.

        For commands of other programs: a ControlLoop checks its own. May be called in any thread.
        """
        self._supervisor.braking = BrakingMonitor(
            self.arm, scene=scene, reaction_time=REACTION_TIMES[self._joint_interface]
        )

    def configure(self) -> None:
        """Open the port, check every motor, disable torque; nothing moves."""
        with self._lifecycle.lock:
            if self.status is DriverState.UNCONFIGURED:
                self._lifecycle.closing = False
                warm_up()  # up to a minute on a new machine: long before torque
                if self.timing is not None:
                    self._require_stable_gains()
                self._lifecycle.open()

    def activate(self, between: Callable[[], object] = lambda: None) -> None:
        """Enable torque at the measured configuration; raises DriverFault, torque disabled.

        ``between`` is called every few milliseconds; it must not use this driver.
        """
        with self._lifecycle.lock:
            if self.status is not DriverState.ACTIVE:
                self._lifecycle.require_inactive()
                self._require_stable_gains()
                self._lifecycle.enable_torque(self._limiter, self._joint_interface, between)
                self._sent_time = self.bus.now()
                self._supervisor.restart(self._sent_time)
                self.command_epoch = self._supervisor.command_epoch

    def deactivate(self) -> None:
        """Disable torque; reading continues.

        Raises DriverFault naming motors that have not confirmed; further cycles repeat the request.
        """
        with self._lifecycle.lock:
            if self.status not in CLOSED:
                self._lifecycle.confirm_torque_off()

    def controlled_stop(self) -> None:
        """Execute the stop policy until ``reset``."""
        if self.status.torque_enabled:
            self._supervisor.trip(Trip("controlled_stop", "", 0, 0, "", self.bus.now()))

    def emergency_stop(self, source: str) -> None:
        """Latch: torque is disabled from the next cycle until ``reset``; from any thread."""
        self._lifecycle.emergency_stop.engage(source)

    def reset(self) -> None:
        """Disable torque, then clear motor faults, latched trips and the emergency stop.

        An active arm is left as it is. Raises DriverFault naming the causes that persist.
        """
        with self._lifecycle.lock:
            if self.status is DriverState.ACTIVE and not self.emergency_stopped:
                return
            lifecycle = self._lifecycle
            lifecycle.require_not_closed()
            press = lifecycle.emergency_stop.press
            self._supervisor.trip_on_emergency_stop(self.bus.now())
            lifecycle.confirm_torque_off()
            cleared = set[int]()
            for _ in range(MAX_RESET_READINGS):
                self._read()
                persisting = self._supervisor.check_reset(self.bus.now(), self.feedback)
                faults = zip(self._transmission.ids, self.feedback.fault, strict=True)
                tripped = {id for id, fault in faults if fault} - cleared
                if tripped:
                    lifecycle.call(self.bus.clear_faults, sorted(tripped))
                    cleared |= tripped
                elif not persisting:
                    break
            if persisting:
                raise DriverFault("not reset: " + "; ".join(str(trip) for trip in persisting))
            if not lifecycle.emergency_stop.release(press):
                raise DriverFault("not reset: the emergency stop was pressed again")
            self._trips.clear()

    def close(self) -> None:
        """Disable torque as far as the port allows and release it; from any thread."""
        self._lifecycle.close()

    def _require_stable_gains(self) -> None:
        """Raise DriverFault if the gains of the controller are unstable."""
        if self.check_gains is not None:
            try:
                self.check_gains(self._feedback.table[Q])
            except ArmDynamicsError as error:
                self.events.report("activation_rejected", str(error))
                raise as_driver_fault(error) from error

    @property
    def status(self) -> DriverState:
        """Lifecycle state."""
        return self._lifecycle.state

    @property
    def feedback(self) -> ArmFeedback:
        """Last feedback of all joints."""
        return self._feedback.latest

    @property
    def trips(self) -> tuple[Trip, ...]:
        """Active trips, newest last."""
        return tuple(self._trips)

    @property
    def held(self) -> Vector | None:
        """Position commands sent last, while torque is enabled; None on other interfaces."""
        holds = self._joint_interface == "position" and self.status.torque_enabled
        return as_readonly(self._limiter.last) if holds else None

    @property
    def inactive(self) -> str:
        """Lifecycle state and its cause while commands are not executed; "" while they are.

        A stop that ends when communication recovers counts as execution: commands then continue.
        """
        state, latched = self.status, self._trips.latched
        if state.torque_enabled and not latched and not self.emergency_stopped:
            return ""
        trips = latched or self.trips
        torque = ", torque disabled" if state is DriverState.INACTIVE else ""
        cause = f": {trips[0]}" if trips else ""
        if self.emergency_stopped:
            cause = f": emergency stop by {self._lifecycle.emergency_stop.source}"
        return f"hardware {state.value}{torque}{cause}"

    @property
    def commanded(self) -> bool:
        """Whether a command is executed."""
        return self.status is DriverState.ACTIVE and self._supervisor.commanded

    @property
    def emergency_stopped(self) -> bool:
        """Whether the emergency stop is latched."""
        return self._lifecycle.emergency_stop.engaged

    @property
    def timing(self) -> LoopTiming | None:
        """Longer of the configured and the measured control period, and the feedback's delay."""
        return self._period.timing


def _require_effort_control(arm: ArmModel, interface: str) -> None:
    """Raise ConfigError unless the masses are known and no actuator prescribes the motion."""
    require_masses(arm, f"interface '{interface}'")
    for actuator in arm.actuators:
        if actuator.prescribes_motion:
            raise ConfigError(
                f"joint '{actuator.joint}': interface = 'effort'; expected"
                f" {' or '.join(map(repr, actuator.interfaces))} (prescribed motion)"
            )
