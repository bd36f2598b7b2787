"""Actuators, controllers and drivers by name: built-ins, then installed entry points.

Only the chosen one is imported. A plugin that fails to import raises for its own name and
leaves the others alone; a plugin that takes a built-in's name is ignored with a warning.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from arm_dynamics.errors import ArmDynamicsError, UnknownName
from arm_dynamics.expect import expect

BUILT_IN: dict[str, dict[str, str]] = {
    "actuators": {
        "ideal": "arm_dynamics.actuators.ideal:Ideal",
        "dc_motor": "arm_dynamics.actuators.dc_motor:DcMotor",
        "rate_limited": "arm_dynamics.actuators.rate_limited:RateLimited",
    },
    "controllers": {
        "pid": "arm_dynamics.controllers.pid:Pid",
        "gravity_compensation": "arm_dynamics.controllers.gravity_compensation:GravityCompensation",
        "pid_gravity": "arm_dynamics.controllers.pid_gravity:PidGravity",
        "position": "arm_dynamics.controllers.position:Position",
        "velocity_pid": "arm_dynamics.controllers.velocity_pid:VelocityPid",
        "computed_torque": "arm_dynamics.controllers.computed_torque:ComputedTorque",
        "lqr": "arm_dynamics.controllers.lqr:Lqr",
        "resolved_rate": "arm_dynamics.controllers.resolved_rate:ResolvedRate",
        "task_space": "arm_dynamics.controllers.task_space:TaskSpace",
        "impedance": "arm_dynamics.controllers.impedance:Impedance",
    },
    "drivers": {
        "simulated": "arm_dynamics.drivers.simulated:Simulated",
        "topic": "arm_dynamics.ros.topic_driver:TopicDriver",
        "mit_can": "arm_dynamics.drivers.mit_can.bus:MitCan",
        "dynamixel": "arm_dynamics.drivers.dynamixel.bus:Dynamixel",
        "feetech": "arm_dynamics.drivers.feetech:Feetech",
    },
}


class PluginError(ArmDynamicsError):
    """A plugin, built in or installed, that cannot be imported."""


def names(kind: str) -> tuple[str, ...]:
    """Registered names of ``kind`` ("actuators", "controllers", "drivers"), built-ins first."""
    return (*BUILT_IN[kind], *_installed(kind))


def load(kind: str, name: str) -> Any:
    """Return the class registered as ``name``; import nothing else.

    Raises UnknownName listing the registered names, PluginError when its import fails.
    """
    target = BUILT_IN[kind].get(expect(str, kind.removesuffix("s"), name))
    try:
        if target is not None:
            module, attribute = target.split(":")
            return getattr(import_module(module), attribute)
        entry = _installed(kind).get(name)
        if entry is not None:
            target = entry.value
            return entry.load()
    except Exception as error:
        raise PluginError(f"{kind} plugin '{name}' ({target}) failed: {error}") from error
    raise UnknownName(kind.removesuffix("s"), name, names(kind))


@cache
def _installed(kind: str) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"arm_dynamics.{kind}"):
        if entry.name in BUILT_IN[kind] or entry.name in found:
            warnings.warn(
                f"{kind} plugin '{entry.name}' ({entry.value}) ignored: the name is taken",
                RuntimeWarning,
                stacklevel=3,
            )
        else:
            found[entry.name] = entry
    return found
