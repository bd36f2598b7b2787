"""ROS 2 parameter files, read without ROS: the same gains in plain Python and in the nodes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from arm_dynamics.control.controllers.controller import AXES, Controller
from arm_dynamics.control.controllers.pid import FEEDFORWARD
from arm_dynamics.control.stability_margins import thin_margin
from arm_dynamics.core import plugins, resources
from arm_dynamics.core.errors import ConfigError, UnknownName, did_you_mean
from arm_dynamics.core.yaml_file import read_yaml
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit.fault import suggest
from arm_dynamics.model.audit.robot import ONE_COORDINATE, Robot
from arm_dynamics.model.description_file import read_urdf
from arm_dynamics.model.load import find_urdf
from arm_dynamics.model.model_error import overload_text
from arm_dynamics.model.xml_source import parse_xml

CONTROLLER_NODE = "joint_controller"
READ_PARAMETERS = ("controller", "payload_mass", "gains")
"""Parameters of the node that are read here."""
NAMELESS = "pid_gravity"
"""Controller of a parameter file without the entry ``controller``."""
DEFAULTS = ("computed_torque", "position")
"""Controllers of an arm without a parameter file: the first with a supported interface."""
PERIOD = 2e-3
"""Control period of a simulation [s]."""
SIMILAR_NAME_RATIO = 0.85
"""Similarity of two names from which one is a misspelling of the other."""


def parameter_file(arm: str | Path | ArmModel) -> Path | None:
    """Return the parameter file of a bundled arm, or None.

    The file has the name of the arm's URDF and belongs to a robot of the same name and joints. A
    different robot in a file of that name has other motors and masses.

    Parameters
    ----------
    arm : str, Path or ArmModel
        Name of a bundled arm, its URDF, or a copy of that.

    Raises
    ------
    UnknownName, ConfigError
        As ``find_urdf`` and ``read_urdf``.

    """
    source = (arm.source or arm.name) if isinstance(arm, ArmModel) else arm
    name = Path(source).stem
    path = resources.resource_folder("config") / f"{name}.yaml"
    if not path.is_file():
        return None
    same = _identity(arm) == _identity(resources.resource_folder("urdf") / f"{name}.urdf")
    return path if same else None


def _identity(arm: str | Path | ArmModel) -> tuple[str | None, frozenset[str]]:
    """Return the names of the robot and of its moving joints, including locked ones."""
    if isinstance(arm, ArmModel):
        return arm.name, frozenset([*arm.joint_names, *arm.locked])
    robot = Robot(parse_xml(read_urdf(find_urdf(arm))))
    moving = (name for name, joint in robot.joints.items() if joint.get("type") in ONE_COORDINATE)
    return robot.root.get("name"), frozenset(moving)


def node_parameters(file: str | Path, node: str) -> dict[str, Any]:
    """Return the parameters of one node in a ROS 2 file: its entries override those of ``/**``.

    Names are dotted (``gains.R1.p``), whether the file has them so or as nested tables.

    Parameters
    ----------
    file : str or Path
        Parameter file.
    node : str
        Name of the node.

    Raises
    ------
    ConfigError
        If the file cannot be read or has another structure.

    """
    content = read_yaml(file) or {}
    sections = ("/**", node, f"/{node}")
    if isinstance(content, dict) and not {*sections} & {*content}:
        _reject_misspelled(content, (node,), f"{file}")
    merged: dict[str, Any] = {}
    for name in sections:
        section = content.get(name, {}) if isinstance(content, dict) else None
        if isinstance(section, dict) and section:
            section = section.get("ros__parameters")
        if not isinstance(section, dict):
            raise ConfigError(f"{file}: {name}: expected ros__parameters with entries")
        parameters: dict[str, Any] = {}
        for key, value in _dotted(section):
            if key in parameters:
                raise ConfigError(f"{file}: {name}: {key} is given twice; remove one of them")
            parameters[key] = value
        merged.update(parameters)
    return merged


def _reject_misspelled(names: Iterable[str], accepted: Collection[str], where: str) -> None:
    """Raise ConfigError for a name that is similar to one of the ``known`` ones."""
    for name in names:
        hint = "" if name in accepted else did_you_mean(name, accepted, SIMILAR_NAME_RATIO)
        if hint:
            raise ConfigError(f"{where}: '{name}' is unknown{hint}")


def _dotted(table: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def build_controller(
    arm: ArmModel,
    name: str | None = None,
    file: str | Path | None = None,
    *,
    period: float | None = PERIOD,
) -> Controller:
    """Return the controller that the joint controller node runs for an arm and parameter file.

    The controller takes its gains and the payload_mass from the file, and the other gains from the
    model. Without a file ff_acceleration_scale is 1, as in the bundled files. It warns of a small
    stability margin, and of an effort limit below the gravity torque.

    Parameters
    ----------
    arm : ArmModel
        Arm to control.
    name : str, optional
        Registered name; default: the file's entry ``controller``, else NAMELESS. Without a file:
        the first of DEFAULTS that the arm supports.
    file : str or Path, optional
        Parameter file; default: that of the bundled arm.
    period : float or None
        Control period for the stability margin [s]; None: no check.

    Raises
    ------
    ConfigError
        For a file that cannot be read, a gain that no controller has, or that is not a number.
    UnknownName
        For a controller or joint that does not exist.
    InvalidValue
        For a number out of its range.

    """
    file = parameter_file(arm) if file is None else file
    entries = node_parameters(file, CONTROLLER_NODE) if file is not None else {}
    name = controller_name(arm, name, file)
    controller_class = plugins.load_class("controllers", name)
    gains = _file_gains(entries, controller_class, arm, file)
    if file is None and FEEDFORWARD in _parameters(controller_class, ""):
        gains = {joint: {FEEDFORWARD: 1.0} for joint in arm.joint_names}
    with plugins.guarded("controllers", name):
        controller: Controller = controller_class(arm, gains)
    if "payload_mass" in entries:
        mass = _number(entries["payload_mass"], f"{file}: payload_mass")
        controller.set_model(arm.with_payload(mass))
    overload = overload_text(controller.arm)
    if overload:
        warnings.warn(overload, RuntimeWarning, stacklevel=2)
    if period is not None:
        warn_of_thin_margin(controller, controller.arm, period)
    return controller


def warn_of_thin_margin(controller: Controller, arm: ArmModel, period: float) -> None:
    """Warn if a stability margin of ``controller`` on ``arm`` is too small, naming the joint."""
    thin = thin_margin(controller, arm, period)
    if thin:
        warnings.warn(thin, RuntimeWarning, stacklevel=3)


def controller_name(arm: ArmModel, name: str | None = None, file: str | Path | None = None) -> str:
    """Return the registered name of the controller that ``build_controller`` builds.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    name : str, optional
        Registered name; default: that of the parameter file.
    file : str or Path, optional
        Parameter file; default: that of the arm.

    Raises
    ------
    ConfigError
        For a file that cannot be read or has misspelled parameters.

    """
    file = parameter_file(arm) if file is None else file
    entries = node_parameters(file, CONTROLLER_NODE) if file is not None else {}
    _reject_misspelled((key.partition(".")[0] for key in entries), READ_PARAMETERS, f"{file}")
    if file is None:
        usable = (
            default
            for default in DEFAULTS
            if all(
                plugins.load_class("controllers", default).interface in actuator.interfaces
                for actuator in arm.actuators
            )
        )
        return name or next(usable, DEFAULTS[0])
    named = entries.get("controller", NAMELESS)
    if not isinstance(named, str):
        raise ConfigError(f"{file}: controller = {named!r}; expected a registered name")
    return name or named


def _file_gains(
    entries: Mapping[str, Any],
    controller_class: type[Controller],
    arm: ArmModel,
    file: str | Path | None,
) -> dict[str, dict[str, float]]:
    """Return the entries ``gains.<group>.<name>`` that the controller has, by group."""
    gains: dict[str, dict[str, float]] = {}
    joints = (*arm.joint_names, *arm.locked)
    for entry, value in entries.items():
        head, _, rest = entry.partition(".")
        if head != "gains":
            continue
        group, _, gain = rest.rpartition(".")
        if not group:
            raise ConfigError(f"{file}: {entry} = {value}; expected a table of numbers per joint")
        require_gain(group, gain, controller_class, joints, f"{file}: {entry}")
        if group in arm.locked:
            continue
        number = _number(value, f"{file}: joint '{group}': gain {gain}")
        if gain in _parameters(controller_class, group):
            gains.setdefault(group, {})[gain] = number
    return gains


def require_gain(
    group: str,
    gain: str,
    controller_class: type[Controller],
    joints: Collection[str],
    where: str,
) -> None:
    """Raise for a gain that neither the controller nor another registered one has.

    A file may serve several controllers, each of which takes its gains from it.

    Parameters
    ----------
    group, gain : str
        Group and name of the gain.
    controller_class : type[Controller]
        Controller that reads the file.
    joints : Collection[str]
        Joint names.
    where : str
        Start of the error message.

    Raises
    ------
    ConfigError
        For a gain that no controller has.
    UnknownName
        For a group that is not a joint, a tool axis or "controller".

    """
    groups = ("controller", *(f"tool.{axis}" for axis in AXES), *joints)
    if group not in groups:
        raise UnknownName(f"joint (gains of {where})", group, tuple(groups))
    known = _parameters(controller_class, group)
    if gain in known or is_gain(group, gain):
        return
    remedy = "write decimals with a point" if gain.isdigit() else suggest(gain, known, "its gains")
    name = controller_class.__name__
    raise ConfigError(
        f"{where}: '{gain}' is not a gain of {name} or of another controller; {remedy}"
    )


def is_gain(group: str, gain: str) -> bool:
    """Return whether a registered controller that can be imported has such a gain."""
    for name in plugins.registered_names("controllers"):
        with suppress(plugins.PluginError):
            if gain in _parameters(plugins.load_class("controllers", name), group):
                return True
    return False


def _parameters(controller_class: type[Controller], group: str) -> set[str]:
    """Return the names of the controller's parameters in ``group``."""
    parameters = controller_class.parameters
    if group == "controller":
        parameters = controller_class.controller_parameters
    elif group.startswith("tool."):
        parameters = controller_class.axis_parameters
    return {parameter.name for parameter in parameters}


def _number(value: Any, where: str) -> float:
    """Return ``value`` as a number; text and booleans are rejected."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            return float(value)
    raise ConfigError(f"{where} = {value!r}; expected a number")
