"""Teleoperate an arm: FOLLOWER follows the joint positions of LEADER, which is guided by hand.

Both arms are physical, emulated or simulated. Torque of the leader is disabled, unless --bilateral
makes it weightless and returns the deviation of the follower as a force. The driver
ros:/NAMESPACE is an arm of other ROS nodes.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from math import ceil, degrees, isfinite, radians
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from arm_dynamics.cli.arm_options import (
    LOCK_HELP,
    add_scene,
    joint_controllers,
    named_values,
    path_argument,
    require_accepted,
    require_new_file,
    scene_of,
)
from arm_dynamics.cli.hardware.keyboard import require_terminal
from arm_dynamics.cli.hardware.options import NO_MOTORS, with_advice
from arm_dynamics.cli.hardware.torque_session import (
    MAX_STOP_TIME,
    TorqueSession,
    confirm_torque,
    exit_code,
    motors_are_healthy,
    printed_events,
    torque_session,
)
from arm_dynamics.cli.interrupt import interruption
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.collision.scene import Scene
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.force_feedback import ForceFeedback
from arm_dynamics.control.guided_arm import GuidedArm
from arm_dynamics.control.teleoperation import (
    Leader,
    PassiveLeader,
    Teleoperation,
    WeightlessLeader,
)
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.number_option import MAX_NUMBER, Number, seconds
from arm_dynamics.core.requirements import ros_missing
from arm_dynamics.core.signals import INTERRUPTS, STOP_SIGNALS, Interrupt, handling
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.hardware.build import WITHOUT_MOTORS, build_bus, build_driver
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.emulation.emulator_process import EmulatorProcess
from arm_dynamics.hardware.feetech.lerobot_calibration import LeRobotCalibration
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.model.load import load_arm
from arm_dynamics.recording.recorder import StateLog
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.simulation import Simulation

RATE = 100.0
"""Default rate of both arms [Hz]."""
APPROACH_SPEED = 30.0
"""Default speed of the approach [deg/s; mm/s]."""
SIMULATED, EMULATED, ROS = "simulated", "emulated", "ros:"
NAMESPACE = re.compile(r"/|(/[A-Za-z_]\w*)+")
SIDES = ("leader", "follower")
DT, MAX_PERIOD = 1e-4, 2e-3
"""Time step and longest control period [s] of a simulated arm."""
WARNING = """
Torque will be enabled: the follower '{follower}' moves to the configuration of the leader
'{leader}' at {speed:g} deg/s, then follows it.{bilateral}
Stay clear of the arms. Torque is disabled at the end (q, Ctrl-C, a trip), and an unsupported arm
falls: support it.
Enable torque?"""
REMOTE_WARNING = """
The follower '{follower}' of another ROS node moves to the configuration of the leader '{leader}' at
{speed:g} deg/s, then follows it. At the end (q, Ctrl-C) it holds: its node keeps the torque.
Stay clear of the arms.{bilateral}
Start?"""
BILATERAL = " The leader is weightless and is pulled toward the follower."


class RemoteArms(Protocol):
    """Arms of other ROS nodes, by their namespace; the methods raise DriverFault without one."""

    def leader(self, arm: ArmModel, namespace: str, events: Events) -> Driver:
        """Return a driver that reads the arm."""

    def follower(self, arm: ArmModel, namespace: str, events: Events) -> tuple[Driver, bool]:
        """Return a driver that accepts positions, and whether the arm has motors."""


def run(arguments: Sequence[str], remote: RemoteArms | None = None) -> int:
    """Teleoperate until q, Ctrl-C or a trip; return 1 after a trip, else 0."""
    args = command_parser().parse_args(arguments)
    try:
        with handling(Interrupt(interruption("teleop")), *STOP_SIGNALS, *INTERRUPTS):
            return _teleoperate(args, remote)
    except DriverFault as error:
        if remote is not None:
            raise
        raise with_advice(error) from error


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics teleop", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    names = [name for name in plugins.registered_names("drivers") if name not in WITHOUT_MOTORS]
    for side in SIDES:
        add(side, metavar=side.upper(), help=f"{side}: bundled arm or path of a URDF")
    for side in SIDES:
        text = f"driver: {', '.join([*names, EMULATED, SIMULATED])}, ros:/NAMESPACE (default: the"
        text += " URDF's)"
        add(f"--{side}-driver", metavar="NAME", help=text)
        text = "serial device or CAN channel (default: the URDF's)"
        add(f"--{side}-port", metavar="PORT", help=text)
        text = "setting of the driver; repeat the option for each setting"
        add(f"--{side}-set", action="append", default=[], metavar="NAME=VALUE", help=text)
        text = "calibration file of LeRobot, for Feetech servos (default: the URDF's offsets)"
        add(f"--{side}-calibration", type=path_argument, metavar="FILE", help=text)
    add_scene(parser)
    add("--lock", action="append", default=[], metavar="JOINT", help=f"{LOCK_HELP}, of both arms")
    text = "controller of the follower (default: position, if its motors accept positions)"
    add("--controller", metavar="NAME", help=text)
    text = "weightless leader with force feedback; its motors accept efforts"
    add("--bilateral", action="store_true", help=text)
    text = f"control rate of both arms [Hz] (default: {RATE:g})"
    add("--rate", type=Number("--rate", 10, 1e3, "Hz"), default=RATE, metavar="HZ", help=text)
    text = f"speed of the approach to the leader [deg/s; mm/s] (default: {APPROACH_SPEED:g})"
    number = Number("--approach-speed", 0.1, MAX_NUMBER, "deg/s")
    add("--approach-speed", type=number, default=APPROACH_SPEED, metavar="SPEED", help=text)
    text = "duration [s] (default: until q)"
    add("--duration", type=seconds("--duration"), metavar="S", help=text)
    text = "record both arms: a new folder with the recordings leader and follower"
    add("--record", type=path_argument, metavar="FOLDER", help=text)
    return parser


class _Side:
    """One arm of the command line: its model, driver and settings."""

    def __init__(self, args: argparse.Namespace, name: str, stack: ExitStack) -> None:
        def option(kind: str) -> object:
            return getattr(args, f"{name}_{kind}")

        self.name = name
        self.arm = load_arm(getattr(args, name), args.lock)
        port = {} if option("port") is None else {"port": str(option("port"))}
        given = named_values(f"--{name}-set", getattr(args, f"{name}_set"))
        self.settings = MappingProxyType({**port, **given})
        self.motors: tuple[JointMotor, ...] | None = None
        kind = option("driver")
        self.is_simulated, self.is_physical = kind == SIMULATED, kind not in (SIMULATED, EMULATED)
        self.namespace = ""
        if isinstance(kind, str) and kind.startswith(ROS):
            self.driver, self.is_physical = kind, False
            self.namespace = _namespace(f"--{name}-driver", kind)
            for setting in ("port", "set", "calibration"):
                if option(setting):
                    raise ConfigError(f"--{name}-{setting}: driver = {kind}; expected motors")
            return
        if self.is_simulated:
            self.driver = SIMULATED
            return
        try:
            usual = read_hardware_info(self.arm).settings.get("driver", "")
        except ConfigError as error:
            raise ConfigError(
                f"{name} '{self.arm.name}': {error}; {NO_MOTORS}, or use --{name}-driver"
                f" {SIMULATED}"
            ) from error
        self.driver = usual if kind in (None, EMULATED) else str(kind)
        if not self.driver:
            raise ConfigError(f"--{name}-driver is required: the URDF names no driver")
        file = option("calibration")
        if isinstance(file, Path):
            if self.driver != "feetech":
                raise ConfigError(f"--{name}-calibration: driver = {self.driver}; expected feetech")
            self.motors = LeRobotCalibration.read(self.arm, file).motors
        if kind == EMULATED:
            with waiting(f"starting the emulated {name}"):
                emulator = stack.enter_context(closing(EmulatorProcess(getattr(args, name))))
            self.settings = MappingProxyType({**emulator.settings, **given})

    @property
    def port(self) -> str:
        """Serial port of the motors; "" for a CAN bus, a simulated arm or one of other nodes."""
        if self.is_simulated or self.namespace:
            return ""
        return {**read_hardware_info(self.arm).settings, **self.settings}.get("port", "")

    def accepts(self, interface: str) -> bool:
        """Return whether the motors, or the actuators of a simulated arm, accept commands."""
        return not self.rejecting(interface)

    def rejecting(self, interface: str) -> str:
        """Return the first joint that does not accept an interface, with its interfaces."""
        if self.is_simulated:
            accepted = {a.joint: a.interfaces for a in self.arm.actuators}
        else:
            bus = build_bus(self.arm, self.driver, self.settings, self.motors)
            accepted = {m.joint: bus.interfaces(id) for id, m in bus.motors.items()}
        for joint, interfaces in accepted.items():
            if interface not in interfaces:
                return f"joint '{joint}' accepts {', '.join(interfaces)}"
        return ""

    def build_driver(self, interface: str, period: float, events: Events) -> MotorBusDriver:
        """Return the closed driver of the motors."""
        driver = build_driver(
            self.arm, self.driver, self.settings,
            interface=interface, period=period, events=events, motors=self.motors,
        )  # fmt: skip
        if not isinstance(driver, MotorBusDriver):
            raise ConfigError(f"--{self.name}-driver = {self.driver}; expected a driver of motors")
        return driver


def _namespace(option: str, driver: str) -> str:
    """Return the namespace of a driver ros:/NAMESPACE; "/" is the root."""
    namespace = driver.removeprefix(ROS)
    if not NAMESPACE.fullmatch(namespace):
        raise ConfigError(f"{option} = {driver}; expected ros:/NAMESPACE, such as ros:/leader")
    return namespace


def _teleoperate(args: argparse.Namespace, remote: RemoteArms | None) -> int:
    """Build both arms, request the permission, and run; return the exit code."""
    require_new_file("--record", args.record)
    period, scene = 1 / args.rate, scene_of(args)
    with ExitStack() as stack:
        sides = [_Side(args, name, stack) for name in SIDES]
        leader, follower = sides
        _require_reachable(leader, follower, args, remote)
        events = printed_events()
        device = _leader(leader, period, events, remote, bilateral=args.bilateral)
        loop, cycles = _follower(
            follower, args.controller, period, events, scene=scene, remote=remote
        )
        is_physical = any(side.is_physical for side in sides)
        units = [radians(1.0) if joint.unit == "rad" else 1e-3 for joint in follower.arm.joints]
        speeds = args.approach_speed * np.array(units)
        if not loop.controller.tracks_reference:
            raise ConfigError(
                f"--controller = {args.controller}: follows no reference; expected another one"
            )
        teleoperation = Teleoperation(device, loop, approach_speed=speeds, cycles=cycles)
        if leader.port and leader.port == follower.port:
            raise ConfigError(
                f"port of both arms = {leader.port}; expected two ports; use --leader-port and"
                " --follower-port"
            )
        if is_physical:
            require_terminal("keys")
        drivers = [_driver(device), loop.driver]
        for side, driver in zip(sides, drivers, strict=True):
            if side.is_physical and isinstance(driver, MotorBusDriver):
                print(f"{side.name} '{side.arm.name}' at {side.port or 'its CAN bus'}")
                if not motors_are_healthy(driver):
                    return 1
        question = (REMOTE_WARNING if follower.namespace else WARNING).format(
            leader=leader.arm.name,
            follower=follower.arm.name,
            speed=args.approach_speed,
            bilateral=BILATERAL if args.bilateral else "",
        )
        if is_physical and not confirm_torque(question):
            return 1
        loops = {"follower": loop}
        if isinstance(device, WeightlessLeader):
            loops = {"leader": device.loop, **loops}
        else:
            stack.callback(drivers[0].close)
            drivers[0].configure()
        logs = _Logs(args.record, teleoperation, events, stack)
        return _run(teleoperation, loops, period, args.duration, logs.add)


def _require_reachable(
    leader: _Side, follower: _Side, args: argparse.Namespace, remote: RemoteArms | None
) -> None:
    """Raise ConfigError for options that arms of other ROS nodes do not have."""
    for side in (leader, follower):
        if side.namespace and remote is None:
            raise ConfigError(f"--{side.name}-driver = {side.driver}: {ros_missing()}")
    if leader.namespace and leader.namespace == follower.namespace:
        raise ConfigError(
            f"namespace of both arms = {leader.namespace}; expected two; use another namespace"
        )
    if leader.namespace and args.bilateral:
        raise ConfigError(
            f"--bilateral: leader = {leader.driver}; expected motors or a simulated arm of this"
            " process; omit --bilateral"
        )
    if follower.namespace and args.controller is not None:
        raise ConfigError(
            f"--controller = {args.controller}: follower = {follower.driver}; expected no"
            " controller: its node has one; set the parameter controller of joint_controller"
        )


def _leader(
    side: _Side, period: float, events: Events, remote: RemoteArms | None, *, bilateral: bool
) -> Leader:
    """Return the leader, closed; raise ConfigError if it cannot apply the force feedback."""
    if remote is not None and side.namespace:
        with waiting(f"waiting for the leader in {side.namespace}"):
            return PassiveLeader(remote.leader(side.arm, side.namespace, events))
    cycles, simulated_period = _simulated_cycles(period)
    if (bilateral or side.is_simulated) and (rejecting := side.rejecting("effort")):
        raise ConfigError(
            f"{'--bilateral' if bilateral else '--leader-driver = simulated'}: {rejecting} of the"
            f" leader '{side.arm.name}'; expected effort"
            + ("; omit --bilateral, or use motors with current control" if bilateral else "")
        )
    if side.is_simulated:
        with waiting("compiling the simulated leader"):
            driver: Driver = GuidedArm(side.arm, simulated_period)
        if not bilateral:
            return PassiveLeader(_Repeated(driver, cycles))
    else:
        interface = next(
            x for x in ("effort", "position", "velocity", "voltage") if side.accepts(x)
        )
        driver, cycles = side.build_driver(interface, period, events), 1
        if not bilateral:
            return PassiveLeader(driver)
    loop = ControlLoop(driver, ForceFeedback(side.arm), events)
    stiffness = loop.controller.gains["p"]
    print(
        f"force feedback: stiffness {stiffness.min():.3g} to {stiffness.max():.3g} N·m/rad, at most"
        f" {loop.controller.gains['max_scale'].max():.0%} of the effort limits"
    )
    return WeightlessLeader(loop, cycles)


class _Repeated(Driver):
    """Driver whose ``idle`` runs several control periods of a simulated arm."""

    def __init__(self, driver: Driver, cycles: int) -> None:
        super().__init__(driver.arm)
        self._driver, self._cycles = driver, cycles

    def read(self) -> State:
        """Return the state."""
        return self._driver.read()

    def write(self, command: Command) -> None:
        """Apply a command for one period."""
        self._driver.write(command)

    def idle(self) -> None:
        """Advance all periods of a cycle."""
        for _ in range(self._cycles):
            self._driver.idle()


def _follower(
    side: _Side,
    name: str | None,
    period: float,
    events: Events,
    *,
    scene: Scene,
    remote: RemoteArms | None,
) -> tuple[ControlLoop, int]:
    """Return the control loop of the follower and its cycles in a cycle of the teleoperation.

    The loop of an arm of other nodes limits and checks the motion, and streams its reference.
    """
    if remote is not None and side.namespace:
        controller = build_controller(side.arm, "position", period=None)
        with waiting(f"waiting for the follower in {side.namespace}"):
            warm_up_controller(controller)
            driver, side.is_physical = remote.follower(side.arm, side.namespace, events)
        return ControlLoop(driver, controller, events, scene=scene), 1
    if side.is_simulated:
        cycles, own_period = _simulated_cycles(period)
        if name is not None:
            require_accepted(side.arm, name, joint_controllers())
        controller = build_controller(side.arm, name)
        with waiting("compiling the simulated follower"):
            warm_up_controller(controller, every_function=False)
            simulation = Simulation(side.arm, period=own_period, dt=DT)
        simulated = SimulationDriver(side.arm, simulation)
        return ControlLoop(simulated, controller, events, scene=scene), cycles
    if name is None and side.accepts("position"):
        name = "position"
    controller = build_controller(side.arm, name, period=None)
    driver = side.build_driver(controller.interface, period, events)
    with waiting("compiling the controller of the follower"):
        warm_up_controller(controller)
    return ControlLoop(driver, controller, events, scene=scene), 1


def _simulated_cycles(period: float) -> tuple[int, float]:
    """Return the control periods of a simulated arm in ``period`` [s], and their duration [s]."""
    cycles = ceil(period / MAX_PERIOD - 1e-9)
    return cycles, max(1, round(period / cycles / DT)) * DT


def _driver(leader: Leader) -> Driver:
    """Return the driver of a leader."""
    if isinstance(leader, WeightlessLeader):
        return leader.loop.driver
    assert isinstance(leader, PassiveLeader)
    return leader.driver


class _Logs:
    """Recordings of both arms, on one time base; none without a folder."""

    def __init__(
        self, folder: Path | None, teleoperation: Teleoperation, events: Events, stack: ExitStack
    ) -> None:
        self._teleoperation = teleoperation
        self._logs: dict[str, StateLog] = {}
        self._offsets: dict[str, float] = {}
        self._latest: dict[str, State | None] = {}
        if folder is not None:
            folder.mkdir()
            for side, arm in zip(
                SIDES, (teleoperation.leader.arm, teleoperation.follower.arm), strict=True
            ):
                log = StateLog(arm, folder / side, events)
                self._logs[side] = stack.enter_context(closing(log))

    def add(self, now: float) -> None:
        """Record the states, references and commands of the cycle at ``now`` [s]."""
        if not self._logs:
            return
        leader = self._teleoperation.leader
        if isinstance(leader, WeightlessLeader):
            self._add("leader", leader.loop.latest, now)
        elif (state := self._teleoperation.leader_state) is not None:
            self._add("leader", (state, None, None), now)
        self._add("follower", self._teleoperation.follower.latest, now)

    def _add(
        self, side: str, cycle: tuple[State, Reference | None, Command | None] | None, now: float
    ) -> None:
        if cycle is None or cycle[0] is self._latest.get(side):
            return
        state, reference, command = cycle
        self._latest[side], log = state, self._logs[side]
        stamp = state.time + self._offsets.setdefault(side, self._offset(side, state, now))
        if reference is not None:
            log.references.add(stamp, reference)
        log.state(stamp, state)
        if command is not None:
            log.command(stamp, command)

    def _offset(self, side: str, state: State, now: float) -> float:
        """Return the difference [s] of the clocks: motors have that of the host."""
        arm = self._teleoperation.follower.driver
        if side == "leader":
            arm = _driver(self._teleoperation.leader)
        return 0.0 if isinstance(arm, MotorBusDriver) else now - state.time


def _run(
    teleoperation: Teleoperation,
    loops: dict[str, ControlLoop],
    period: float,
    duration: float | None,
    record: Callable[[float], None],
) -> int:
    """Run until the end of the session; return the exit code."""

    def cycle() -> None:
        now = time.monotonic()
        teleoperation.step(now)
        record(now)

    with torque_session(loops, cycle, period) as session:
        _cycles(session, teleoperation, duration)
    _stop_streaming(teleoperation.follower, period)
    return exit_code(session.trips)


def _stop_streaming(loop: ControlLoop, period: float) -> None:
    """Run the stop of a follower that the end of the session does not wait for."""
    end = time.monotonic() + MAX_STOP_TIME
    while not isinstance(loop.driver, MotorBusDriver) and time.monotonic() < end:
        loop.step()
        if loop.reference is None or not loop.reference.v.any():
            return
        time.sleep(period)


def _cycles(session: TorqueSession, teleoperation: Teleoperation, duration: float | None) -> None:
    start = time.monotonic()
    while session.step(lambda: status_text(teleoperation)):
        if duration is not None and time.monotonic() > start + duration:
            break
    session.line.end(status_text(teleoperation))


def status_text(teleoperation: Teleoperation) -> str:
    """Return the state of the motion, the largest deviation and the state of the follower."""
    follower, deviation = teleoperation.follower, teleoperation.deviation
    if teleoperation.is_leader_silent:
        motion = "leader silent, follower holds"
    else:
        motion = "approaching" if teleoperation.is_approaching else "following"
    worst = int(np.nanargmax(np.abs(deviation))) if np.isfinite(deviation).any() else 0
    value = float(deviation[worst])
    text = "deviation unknown"
    if isfinite(value):
        joint = follower.arm.joints[worst]
        angle = f" ({degrees(value):.1f}°)" if joint.unit == "rad" else ""
        text = f"largest deviation {value:.4f} {joint.unit}{angle} of {joint.name}"
    parts = [motion, text]
    if isinstance(teleoperation.leader, WeightlessLeader):
        parts.append(f"force feedback {teleoperation.coupling.value:.0%}")
    driver = follower.driver
    if isinstance(driver, MotorBusDriver):
        parts.append(str(driver.trips[-1]) if driver.trips else driver.status.value)
    return "  ".join(parts)
