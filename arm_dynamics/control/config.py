"""ROS 2 parameter files, read without ROS: the same gains in plain Python and in the nodes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from arm_dynamics.control.controllers.controller import AXES, Controller
from arm_dynamics.control.timed_gains import thin_margin
from arm_dynamics.core import plugins, resources
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.yaml_file import read_yaml
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit.fault import suggest
from arm_dynamics.model.audit.robot import ONE_COORDINATE, Robot
from arm_dynamics.model.load import find_urdf
from arm_dynamics.model.xml_source import parse_xml, read_text

CONTROLLER_NODE = "joint_controller"
READ = ("controller", "payload_mass", "gains")
"""What is read here of the node's parameters."""
NAMELESS = "pid_gravity"
"""Controller of a parameter file that names none: files give it gains."""
USUAL = ("computed_torque", "position")
"""Controllers of an arm without a parameter file; the first whose commands its actuators take."""
PERIOD = 2e-3
"""Control period [s] of a simulation."""
SIMILAR_NAME_RATIO = 0.85
"""Likeness of two names from which one is taken for a misspelt other."""


def parameter_file(arm: str | Path | ArmModel) -> Path | None:
    """Return the parameter file of a bundled arm, or None.

    ``arm`` is its name, its URDF or a copy of that: a file of the same name, for a robot of the
    same name and joints. Another robot in a file of that name has other motors and masses. Raises
    what ``find_urdf`` and ``read_text`` raise.
    """
    given = (arm.source or arm.name) if isinstance(arm, ArmModel) else arm
    name = Path(given).stem
    path = resources.resource_folder("config") / f"{name}.yaml"
    if not path.is_file():
        return None
    same = _identity(arm) == _identity(resources.resource_folder("urdf") / f"{name}.urdf")
    return path if same else None


def _identity(arm: str | Path | ArmModel) -> tuple[str | None, frozenset[str]]:
    """Names of the robot and of its moving joints, locked ones included."""
    if isinstance(arm, ArmModel):
        return arm.name, frozenset([*arm.joint_names, *arm.locked])
    robot = Robot(parse_xml(read_text(find_urdf(arm))))
    moving = (name for name, joint in robot.joints.items() if joint.get("type") in ONE_COORDINATE)
    return robot.root.get("name"), frozenset(moving)


def node_parameters(file: str | Path, node: str) -> dict[str, Any]:
    """Parameter name → value for one node in a ROS 2 file: its own entries over those of ``/**``.

    Names are dotted (``gains.R1.p``), whether the file has them so or as tables in tables.
    Raises ConfigError naming the file when it cannot be read or has another shape.
    """
    content = read_yaml(file) or {}
    sections = ("/**", node, f"/{node}")
    if isinstance(content, dict) and not {*sections} & {*content}:
        _require_no_near(content, (node,), f"{file}")
    merged: dict[str, Any] = {}
    for name in sections:
        section = content.get(name, {}) if isinstance(content, dict) else None
        if isinstance(section, dict) and section:
            section = section.get("ros__parameters")
        if not isinstance(section, dict):
            raise ConfigError(f"{file}: {name}: ros__parameters: with entries is expected")
        own: dict[str, Any] = {}
        for key, value in _dotted(section):
            if key in own:
                raise ConfigError(f"{file}: {name}: {key} is given twice; remove one of them")
            own[key] = value
        merged.update(own)
    return merged


def _require_no_near(given: Iterable[str], known: Collection[str], where: str) -> None:
    """Raise ConfigError for a name that is nearly one of the ``known`` ones."""
    for name in given:
        near = (
            [] if name in known else get_close_matches(name, known, n=1, cutoff=SIMILAR_NAME_RATIO)
        )
        if near:
            raise ConfigError(f"{where}: '{name}' is unknown; did you mean '{near[0]}'?")


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
    """The control law that the joint controller node runs for this arm and parameter file.

    ``file`` defaults to the arm's bundled parameter file, ``name`` to what it says there, else
    NAMELESS; without a file to the first of USUAL that the arm takes. As in the node, the
    controller takes those of the file's gains that it has, finds
    the others from the model, and knows the file's payload_mass. Raises ConfigError for a file
    that cannot be read, a gain that no controller has or that is no number, UnknownName for a law
    or joint that does not exist, InvalidValue for a number out of its range. Warns of a thin
    stability margin in a loop with a control ``period`` [s]; None: it is checked elsewhere.
    """
    file = parameter_file(arm) if file is None else file
    given = node_parameters(file, CONTROLLER_NODE) if file is not None else {}
    name = controller_name(arm, name, file)
    law = plugins.load_class("controllers", name)
    gains = _gains(given, law, arm, file)
    with plugins.guarded("controllers", name):
        controller: Controller = law(arm, gains)
    if "payload_mass" in given:
        mass = _number(given["payload_mass"], f"{file}: payload_mass")
        controller.set_model(arm.with_payload(mass))
    if period is not None:
        warn_of_thin_margin(controller, controller.arm, period)
    return controller


def warn_of_thin_margin(controller: Controller, arm: ArmModel, period: float) -> None:
    """Warn where a stability margin of ``controller`` on ``arm`` is thin, naming the joint."""
    thin = thin_margin(controller, arm, period)
    if thin:
        warnings.warn(thin, RuntimeWarning, stacklevel=3)


def controller_name(arm: ArmModel, name: str | None = None, file: str | Path | None = None) -> str:
    """The registered name of the law that ``build_controller`` builds; errors as there."""
    file = parameter_file(arm) if file is None else file
    given = node_parameters(file, CONTROLLER_NODE) if file is not None else {}
    _require_no_near((key.partition(".")[0] for key in given), READ, f"{file}")
    if file is None:
        return name or _usual(arm)
    named = given.get("controller", NAMELESS)
    if not isinstance(named, str):
        raise ConfigError(f"{file}: controller: {named!r}: a registered name is expected")
    return name or named


def _usual(arm: ArmModel) -> str:
    """The first of USUAL that every actuator takes, else the first of all."""
    for name in USUAL:
        interface = plugins.load_class("controllers", name).interface
        if all(interface in actuator.interfaces for actuator in arm.actuators):
            return name
    return USUAL[0]


def _gains(
    given: Mapping[str, Any], law: type[Controller], arm: ArmModel, file: str | Path | None
) -> dict[str, dict[str, float]]:
    """Those of the entries ``gains.<group>.<name>`` that the law has, by group."""
    gains: dict[str, dict[str, float]] = {}
    for entry, value in given.items():
        head, _, rest = entry.partition(".")
        if head != "gains":
            continue
        group, _, gain = rest.rpartition(".")
        if not group:
            raise ConfigError(f"{file}: {entry}: {value}: a table of numbers per joint is expected")
        require_gain(group, gain, law, (*arm.joint_names, *arm.locked), f"{file}: {entry}")
        if group in arm.locked:
            continue
        number = _number(value, f"{file}: joint '{group}': gain {gain}")
        if gain in _parameters(law, group):
            gains.setdefault(group, {})[gain] = number
    return gains


def require_gain(
    group: str, gain: str, law: type[Controller], joints: Collection[str], where: str
) -> None:
    """Raise ConfigError for a gain that neither ``law`` nor another registered controller has.

    A file may serve several controllers, each of which takes its own gains from it; a misspelt
    one is no controller's. Raises UnknownName for a group that is no joint, tool axis or "law".
    """
    groups = ("law", *(f"tool.{axis}" for axis in AXES), *joints)
    if group not in groups:
        raise UnknownName(f"joint (gains of {where})", group, tuple(groups))
    known = _parameters(law, group)
    if gain in known or is_gain(group, gain):
        return
    remedy = "write decimals with a point" if gain.isdigit() else suggest(gain, known, "its gains")
    name = law.__name__
    raise ConfigError(
        f"{where}: '{gain}' is not a gain of {name} or of another controller; {remedy}"
    )


def is_gain(group: str, gain: str) -> bool:
    """Whether a registered controller has such a gain; one that cannot be imported has none."""
    for name in plugins.registered_names("controllers"):
        with suppress(plugins.PluginError):
            if gain in _parameters(plugins.load_class("controllers", name), group):
                return True
    return False


def _parameters(law: type[Controller], group: str) -> set[str]:
    """Names of the law's parameters in ``group``."""
    own = law.parameters
    if group == "law" or group.startswith("tool."):
        own = law.controller_parameters if group == "law" else law.axis_parameters
    return {parameter.name for parameter in own}


def _number(value: Any, where: str) -> float:
    """``value`` as a number; neither text nor a truth value is one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            return float(value)
    raise ConfigError(f"{where}: {value!r}: a number is expected")
