"""Actuators, controllers and drivers by name: built-ins, then installed entry points.

Only the chosen one is imported. A plugin that fails to import, ends the program or has another
type raises for its name and does not affect the others. A plugin with a built-in's name is ignored
with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from reprlib import repr as short
from typing import Any

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.errors import ArmDynamicsError, UnknownName
from arm_dynamics.core.parameters import Parameter

BUILT_IN: dict[str, dict[str, str]] = {
    "actuators": {
        "ideal": "arm_dynamics.simulation.actuators.ideal:Ideal",
        "dc_motor": "arm_dynamics.simulation.actuators.dc_motor:DcMotor",
        "rate_limited": "arm_dynamics.simulation.actuators.rate_limited:RateLimited",
    },
    "controllers": {
        "pid": "arm_dynamics.control.controllers.pid:Pid",
        "gravity_compensation": (
            "arm_dynamics.control.controllers.gravity_compensation:GravityCompensation"
        ),
        "pid_gravity": "arm_dynamics.control.controllers.pid:PidGravity",
        "position": "arm_dynamics.control.controllers.position:PositionController",
        "velocity_pid": "arm_dynamics.control.controllers.velocity_pid:VelocityPid",
        "computed_torque": "arm_dynamics.control.controllers.computed_torque:ComputedTorque",
        "lqr": "arm_dynamics.control.controllers.lqr:Lqr",
        "mpc": "arm_dynamics.batch.planning.joint_mpc:JointMpc",
        "resolved_rate": "arm_dynamics.control.controllers.resolved_rate:ResolvedRate",
        "task_space": "arm_dynamics.control.controllers.task_space:TaskSpace",
        "impedance": "arm_dynamics.control.controllers.impedance:Impedance",
        "task_space_mpc": "arm_dynamics.batch.planning.task_space_mpc:TaskSpaceMpc",
    },
    "drivers": {
        "simulated": "arm_dynamics.hardware.simulation_driver:SimulationDriver",
        "topic": "arm_dynamics.ros.topics.topic_driver:TopicDriver",
        "mit_can": "arm_dynamics.hardware.mit_can.bus:MitCan",
        "dynamixel": "arm_dynamics.hardware.dynamixel.bus:Dynamixel",
        "feetech": "arm_dynamics.hardware.feetech:Feetech",
    },
}


BASES = {
    "actuators": ("arm_dynamics.simulation.actuators.actuator:Actuator",),
    "controllers": ("arm_dynamics.control.controllers.controller:Controller",),
    "drivers": ("arm_dynamics.hardware.motor_bus:MotorBus", "arm_dynamics.hardware.driver:Driver"),
}
"""Base classes of the plugins of each kind."""


class PluginError(ArmDynamicsError):
    """A plugin, built in or installed, that cannot be imported, has the wrong type, or raises."""


def registered_names(kind: str) -> tuple[str, ...]:
    """Return the names of ``kind`` ("actuators", "controllers", "drivers"), built-ins first."""
    return (*BUILT_IN[kind], *_installed(kind))


def load_class(kind: str, name: str) -> Any:
    """Return the class registered as ``name``; import nothing else.

    Raises UnknownName with the registered names, PluginError if its import fails or it is not a
    complete class of this kind.
    """
    target = BUILT_IN[kind].get(check_type(str, kind.removesuffix("s"), name))
    if target is not None:
        try:
            return _import_attribute(target)
        except Exception as error:
            raise _failed(kind, name, target, error) from error
    entry = _installed(kind).get(name)
    if entry is None:
        raise UnknownName(kind.removesuffix("s"), name, registered_names(kind))
    with guarded(kind, name):
        plugin = entry.load()
        problem = _problem(kind, plugin)
    if problem:
        where = f"{kind} plugin '{name}' ({entry.value})"
        raise PluginError(f"{where}: {problem}")
    return plugin


def loadable_classes(kind: str) -> dict[str, Any]:
    """Return every class of ``kind`` that can be loaded, by name; warn of the others."""
    classes = {}
    for name in registered_names(kind):
        try:
            classes[name] = load_class(kind, name)
        except PluginError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
    return classes


@contextmanager
def guarded(kind: str, name: str) -> Iterator[None]:
    """Run code of the plugin ``name``: every exception becomes a PluginError.

    Also SystemExit and KeyboardInterrupt: a plugin does not end the program. Errors of this package
    and exceptions of built-ins pass unchanged.
    """
    try:
        yield
    except ArmDynamicsError:
        raise
    except BaseException as error:
        entry = None if name in BUILT_IN[kind] else _installed(kind).get(name)
        if entry is None:
            raise
        raise _failed(kind, name, entry.value, error) from error


def _failed(kind: str, name: str, target: str, error: BaseException) -> PluginError:
    message = " ".join(str(error).split())
    cause = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return PluginError(f"{kind} plugin '{name}' ({target}) failed: {cause}")


def _problem(kind: str, plugin: Any) -> str:
    """Return the constraint of ``kind`` that the plugin violates; "" if none."""
    bases = tuple(_import_attribute(base) for base in BASES[kind])
    expected = " or ".join(base.__name__ for base in bases)
    if not isinstance(plugin, type):
        return f"object = {short(plugin)}; expected a subclass of {expected}"
    if not issubclass(plugin, bases):
        return f"class = {plugin.__name__}; expected a subclass of {expected}"
    missing = sorted(getattr(plugin, "__abstractmethods__", ()))
    if missing:
        return f"class = {plugin.__name__}; expected the methods {', '.join(missing)}"
    parameters = getattr(plugin, "parameters", ())
    if not isinstance(parameters, tuple) or not all(isinstance(p, Parameter) for p in parameters):
        return f"parameters = {short(parameters)}; expected a tuple of Parameter"
    if kind == "actuators" and not getattr(plugin, "interfaces", ()):
        return f"interfaces = (); expected a tuple of names in class {plugin.__name__}"
    return ""


def _import_attribute(target: str) -> Any:
    module, attribute = target.split(":")
    return getattr(import_module(module), attribute)


@cache
def _installed(kind: str) -> dict[str, EntryPoint]:
    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"arm_dynamics.{kind}"):
        if entry.name in BUILT_IN[kind] or entry.name in entries:
            warnings.warn(
                f"{kind} plugin '{entry.name}' ({entry.value}) ignored: registered twice",
                RuntimeWarning,
                stacklevel=3,
            )
        else:
            entries[entry.name] = entry
    return entries
