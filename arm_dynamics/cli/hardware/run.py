"""Run a controller on a physical arm in plain Python, and show the arm in the viewer."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from importlib.util import find_spec
from math import degrees, isfinite

import numpy as np

from arm_dynamics.cli import arm_options
from arm_dynamics.cli.hardware import options as hardware_options
from arm_dynamics.cli.hardware.keyboard import require_terminal
from arm_dynamics.cli.hardware.torque_session import (
    TorqueSession,
    confirm_torque,
    exit_code,
    motors_are_healthy,
    printed_events,
    torque_session,
)
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.collision_avoidance import UNCHECKED, CollisionAvoidance
from arm_dynamics.control.config import (
    build_controller,
    controller_name,
    node_parameters,
    parameter_file,
)
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import Number, port, seconds
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.identification.excitation.excitation_start import (
    checked_excitation,
    excitation_motion,
)
from arm_dynamics.identification.page.recorders import LoopRecorder
from arm_dynamics.identification.page.workbench import Workbench
from arm_dynamics.recording.recorder import StateLog
from arm_dynamics.viewer import ArmPage
from arm_dynamics.viewer.loop_controls import LoopControls
from arm_dynamics.viewer.page import PERIOD as PAGE_PERIOD
from arm_dynamics.viewer.show import open_page

RATE = 200.0
"""Control rate [Hz] if neither --rate nor the parameter file sets one."""
SETTLING_TIME = 0.5
"""Time [s] from the last restart of the loop to the excitation: it restarts where torque came on.
"""
WARNING = """
Torque will be enabled: '{arm}' {motion} under the controller {controller}.
Stay clear of the arm. Torque is disabled at the end (q, Ctrl-C, a trip), and an unsupported arm
falls: support it.
Enable torque?"""
HOLD = "holds its configuration"
PAGE = "moves to the targets of the page, and along the motions that it starts,"
EXCITATION = (
    "moves to the start configuration of {file}, runs its {duration:g} s and holds. The floor and"
    " objects around the arm are checked as far as --scene contains them. It runs"
)
REPEAT = "the excitation has ended; q ends the run, then run it again"


def run(arguments: Sequence[str]) -> int:
    """Check the arm, confirm, run the controller; return 0 after a run without a trip, else 1."""
    args = command_parser().parse_args(arguments)
    if args.control and (args.headless or args.excitation is not None):
        raise ConfigError("--control: expected a page; omit --headless and --excitation")
    require_terminal("run")
    scene = arm_options.scene_of(args)
    arm = hardware_options.arm_with_hardware(args)
    file = args.gains or parameter_file(args.arm)
    node = node_parameters(file, "hardware") if file else {}
    if args.controller is None and node.get("command_interface") == "position":
        args.controller = "position"
    controller = build_controller(arm, args.controller, file, period=None)
    if args.payload and args.payload_modeled:
        controller.set_model(arm_options.with_payload(arm, args))
    period = 1 / (args.rate or float(node.get("update_rate", RATE)))
    excitation, motion = None, PAGE if args.control else HOLD
    if args.excitation is not None:
        with waiting(f"checking {args.excitation}"):
            excitation = checked_excitation(arm, Excitation.load(args.excitation))
            if args.self_collision:
                CollisionAvoidance(arm, scene=scene).check(excitation, 0.0)
        motion = EXCITATION.format(file=args.excitation, duration=excitation.end)
    events = printed_events()
    driver = hardware_options.build_motor_driver(
        args, arm, interface=controller.interface, period=period, events=events
    )
    if not motors_are_healthy(driver):
        return 1
    name = controller_name(arm, args.controller, file)
    with waiting(f"compiling the controller {name}"):
        warm_up_controller(controller)
    if not args.self_collision:
        print(f"warning: {UNCHECKED}")
    if not confirm_torque(WARNING.format(arm=arm.name, motion=motion, controller=name)):
        return 1
    with ExitStack() as stack:
        log, page = None, None
        if args.record is not None:
            log = stack.enter_context(closing(StateLog(arm, args.record, events)))
        if not args.headless and find_spec("viser") is not None:
            stop = partial(driver.emergency_stop, "the viewer")
            page = stack.enter_context(
                open_page(
                    arm,
                    args.page_port,
                    control=args.control,
                    control_hint="run the command with --control",
                    on_emergency=stop,
                )
            )
            page.show_scene(scene)
            print(page.url)
        loop = ControlLoop(
            driver, controller, events, self_collision=args.self_collision, scene=scene
        )
        duration = args.duration or float("inf")
        controls = None
        if page is not None and args.control:
            controls = stack.enter_context(closing(PageControls(page, loop)))
        with torque_session({"": loop}, loop.step, period) as session:
            interrupted = not run_cycles(
                session, loop, driver, duration, excitation=excitation, page=page, log=log,
                controls=controls,
            )  # fmt: skip
        return exit_code(session.trips) or int(interrupted)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = hardware_options.make_parser("run", __doc__)
    arm_options.add_arm(parser)
    arm_options.add_options(
        parser,
        only=("lock", "payload", "gains", "controller"),
        controllers=arm_options.joint_controllers,
        modeled=True,
    )
    add = parser.add_argument
    arm_options.add_excitation(parser)
    arm_options.add_scene(parser)
    text = "record states and commands: a new folder"
    add("--record", type=arm_options.path_argument, metavar="FOLDER", help=text)
    text = f"control rate [Hz] (default: the parameter file's, else {RATE:g})"
    add("--rate", type=Number("--rate", 1, 1e4, "Hz"), metavar="HZ", help=text)
    text = "duration [s] (default: until q)"
    add("--duration", type=seconds("--duration"), metavar="S", help=text)
    add("--headless", action="store_true", help="without the viewer")
    text = "do not stop the arm before its links touch each other or objects"
    add("--no-self-collision", dest="self_collision", action="store_false", help=text)
    text = "the page moves, records and identifies the arm; its address then contains a token"
    add("--control", action="store_true", help=text)
    text = "port of the viewer; 0 for any free one (default: 8080)"
    add("--page-port", type=port("--page-port"), default=8080, metavar="PORT", help=text)
    return parser


class PageControls:
    """Targets, recording, identification and gravity calibration from a page with control."""

    def __init__(self, page: ArmPage, loop: ControlLoop) -> None:
        self._controls = LoopControls(page, loop, self._end_motion)
        requests = self._controls.requests
        self._recorder = LoopRecorder(loop, requests)
        self._workbench = Workbench(page, loop, self._recorder, requests, self._controls.reset)
        self._due = 0.0

    def _end_motion(self) -> None:
        self._workbench.stop("another target", halt=False)

    def update(self) -> None:
        """Record the cycle, continue motions and serve the page; after each cycle of the loop."""
        self._recorder.record()
        self._workbench.advance()
        self._controls.update()
        now = time.monotonic()
        if now >= self._due:
            self._due = now + PAGE_PERIOD
            self._workbench.update()

    def close(self) -> None:
        """End recording, motion and background processes."""
        self._workbench.close()


def run_cycles(
    session: TorqueSession,
    loop: ControlLoop,
    driver: MotorBusDriver,
    duration: float,
    *,
    excitation: JointTrajectory | None = None,
    page: ArmPage | None = None,
    log: StateLog | None = None,
    controls: PageControls | None = None,
) -> bool:
    """Run control cycles for ``duration`` [s] or until the session ends.

    If the loop restarts during the excitation, the arm holds its configuration until the end, and
    the event ``excitation_interrupted`` names the cause.

    Parameters
    ----------
    session : TorqueSession
        Session of ``loop`` and ``driver``.
    loop : ControlLoop
        Control loop of ``driver``.
    driver : MotorBusDriver
        The driver, with enabled torque.
    duration : float
        Longest duration [s].
    excitation : JointTrajectory, optional
        Result of ``checked_excitation``, which starts SETTLING_TIME after the last restart;
        default: the arm holds its configuration.
    page : ArmPage, optional
        Page that shows the measured state unless a joint has no feedback.
    log : StateLog, optional
        Recording of states and commands.
    controls : PageControls, optional
        Targets and motions from the page.

    Returns
    -------
    bool
        False if the excitation was interrupted.

    """
    start = settled = time.monotonic()
    restarts, motion, interrupted = loop.restart_count, None, False
    while session.step(lambda: _status(loop, driver)) and time.monotonic() <= start + duration:
        state = loop.state
        if state is None:
            continue
        if log is not None and session.command is not None:
            log.cycle(state, loop.reference, session.command)
        if loop.restart_count != restarts:
            restarts, settled = loop.restart_count, time.monotonic()
            if motion is not None and not interrupted and state.time < motion.end:
                interrupted = True
                cause = loop.events.latest["control_restarted"]
                loop.events.report("excitation_interrupted", f"{cause}; {REPEAT}")
        elif (
            excitation is not None and motion is None and time.monotonic() > settled + SETTLING_TIME
        ):
            _, reference = loop.present()
            motion = excitation_motion(loop.arm, excitation, reference.q, state.time)
            loop.follow(motion)
        if page is not None and np.isfinite([state.q, state.v]).all():
            effort = state.tau if np.isfinite(state.tau).all() else None
            desired = None if loop.reference is None else loop.reference.q
            feedback = driver.feedback
            page.show(
                state.q, state.v, effort, reference=desired, time=state.time,
                voltage=feedback.supply, temperature=feedback.temperature,
                motors=_motor_states(driver),
            )  # fmt: skip
        if controls is not None:
            controls.update()
    session.line.end(_status(loop, driver))
    return not interrupted


def _motor_states(driver: MotorBusDriver) -> dict[str, tuple[str, bool]]:
    """Return the fault or the torque of each motor, and whether it is OK."""
    names = driver.arm.joint_names
    rows = zip(names, driver.feedback.fault, driver.feedback.enabled, strict=True)
    torque = {True: "torque on", False: "torque off", None: ""}
    return {name: (fault or torque[enabled], not fault) for name, fault, enabled in rows}


def _status(loop: ControlLoop, driver: MotorBusDriver) -> str:
    """Return the driver's state, the largest joint error and the highest temperature."""
    state, reference = loop.state, loop.reference
    error, joint = float("nan"), ""
    if state is not None and reference is not None:
        errors = np.abs(reference.q - state.q)
        worst = int(np.nanargmax(errors))
        error, joint = float(errors[worst]), loop.arm.joint_names[worst]
    shown = f"{error:.4f} rad ({degrees(error):.1f}°) of {joint}" if isfinite(error) else "unknown"
    temperature = driver.feedback.temperature
    highest = f"  {np.nanmax(temperature):.0f} °C" if np.isfinite(temperature).any() else ""
    status = driver.status.value if not driver.trips else str(driver.trips[-1])
    return f"{status}  largest error {shown}{highest}"
