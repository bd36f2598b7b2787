"""Puma 560 on a page: sliders command six servos of limited speed; their limits are editable.

``arm-dynamics demo puma560 [--port N] [--duration S]``. Source: the MCA2 tutorial's simulation
of a Puma 560, whose joints run from 0 to 2 pi whatever the limits of the arm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from math import inf, isfinite

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.demos.servos import Servos
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.state import State
from arm_dynamics.viewer import ArmPage

ARM = "puma560"
LABELS = {
    "min [rad]": "minimum",
    "max [rad]": "maximum",
    "velocity [rad/s]": "angular_velocity",
}
PERIOD = 1 / 60
"""Time [s] that the page is left between two states."""


def run(arguments: Sequence[str]) -> int:
    """Show the page until Ctrl-C or the end of --duration; 0 either way."""
    options = _parser().parse_args(arguments)
    servos = Servos(servo_arm())
    try:
        with open_page(servos, options.port) as page:
            print(f"the sliders are at {page.url} (Ctrl-C ends)", flush=True)
            play(servos, lambda state: show(page, servos, state), options.duration)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    return 0


def servo_arm() -> ArmModel:
    """The arm with a rate-limited servo in every joint, and no stops in their way."""
    arm = load_arm(ARM).with_actuator("rate_limited")
    for name in arm.joint_names:
        arm = arm.with_joint(name, stop_stiffness=0.0, stop_damping=0.0)
    return arm


def open_page(servos: Servos, port: int) -> ArmPage:
    """The page of ``servos``: sliders and parameters act on them at once."""
    arm = servos.arm
    page = ArmPage(
        arm.urdf,
        arm.joint_names,
        limits=[(p["minimum"], p["maximum"]) for p in servos.parameters.values()],
        tool_frame=arm.tool_frame,
        folder=arm.source.parent if arm.source else None,
        title=arm.name,
        port=port,
        interactive=True,
        initial=servos.state.q,
    )

    def accept(joint: str, label: str, number: float) -> None:
        servos.change(joint, LABELS[label], number)
        now = servos.parameters[joint]
        page.set_range(joint, now["minimum"], now["maximum"])

    page.on_target(servos.follow)
    fields = {j: {k: p[n] for k, n in LABELS.items()} for j, p in servos.parameters.items()}
    page.add_parameters("Parameters", fields, accept)
    return page


def show(page: ArmPage, servos: Servos, state: State) -> None:
    """The state, its desired angles as a ghost, and which joints are on their way."""
    desired = servos.desired
    moving = [n for n, away in zip(page.joint_names, desired != state.q, strict=True) if away]
    status = {"time": f"{state.time:.1f} s", "on the way": " ".join(moving) or "none"}
    page.show(state.q, state.v, _known(state.tau), status, desired, time=state.time)


def play(
    servos: Servos,
    show: Callable[[State], None],
    duration: float = inf,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Move ``servos`` by the time that really passes on ``clock`` [s], and show each state."""
    before, passed = clock(), 0.0
    while passed < duration:
        show(servos.state)
        wait(PERIOD)
        now = clock()
        passed += max(0.0, now - before)
        servos.advance(now - before)
        before = now
    show(servos.state)


def _known(effort: Vector) -> Vector | None:
    """The efforts, or None before anything has moved."""
    return effort if np.isfinite(effort).all() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics demo puma560", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="port of the page; 0: any")
    parser.add_argument("--duration", type=_seconds, default=inf, help="[s]; default: Ctrl-C")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not (isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text}: a positive number of seconds is expected")
    return value
