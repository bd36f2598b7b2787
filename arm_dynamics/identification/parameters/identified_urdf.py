"""URDF of an identified arm: the arm's own text with other inertia, friction and motor constants.

The ten inertial parameters of a joint belong to its body: the joint's child link and the links
that fixed and locked joints attach to it. The child link receives them, less those of the attached
links:

π_link = π_body - s Σ π_attached,   s = 1, or the first of SCALES with a physically consistent link

With s < 1 mass and inertia of the attached links are multiplied by s, about the same centers of
mass. Pinocchio adds all of them up again.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Mapping, Sequence
from textwrap import wrap
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix, Vector, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.parameters.dynamic_parameters import (
    INERTIAL,
    JOINT_TERMS,
    ParameterLayout,
    nominal_parameters,
    with_parameters,
)
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.audit.inertia import MIN_MASS, POINT, TENSOR
from arm_dynamics.model.audit.robot import MANY_COORDINATES, ONE_COORDINATE, Robot, end
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.ros2_control import control_joint
from arm_dynamics.model.urdf_text import (
    Element,
    UrdfText,
    comment_text,
    control_joints,
    element_text,
    set_params,
)
from arm_dynamics.model.urdf_writer import (
    ROS2_CONTROL_PLUGIN,
    ROS2_CONTROL_TOPICS,
    format_number,
    format_numbers,
)
from arm_dynamics.model.xml_source import parse_xml

SCALES = (1.0, 0.5, 0.2, 0.1, 0.01, 0.0)
"""Factors s of the attached links; with 0 the child link receives the whole body."""
MIN_FRACTION = 0.01
"""Smallest mass of the child link as a fraction of its body, unless the file's is smaller."""
DIGITS = 12
"""Significant digits of a written number."""
ROUNDING = 1e-9
"""Relative difference below which a value is unchanged and a moment as 0."""
MARK = "identified"
"""First word of the comments, which a later identification replaces."""
NO_DEVIATIONS: Mapping[str, float] = MappingProxyType({})
ASCII = str.maketrans({"·": " ", "²": "^2", "Ω": "ohm"})
INERTIAL_UNITS = ("kg", *["kg m"] * 3, *["kg m^2"] * 6)
TERM_UNITS = {
    "armature": ("kg m^2", "kg"),
    "viscous": ("N m s/rad", "N s/m"),
    "coulomb": ("N m", "N"),
    "offset": ("N m", "N"),
}
"""Units of the terms of a revolute and of a prismatic joint."""


class _Change(NamedTuple):
    """Old and new value of a parameter, and its standard deviation (None if not given)."""

    name: str
    unit: str
    old: float
    new: float
    deviation: float | None

    def __str__(self) -> str:
        text = f"{self.name} [{self.unit}] {self.old:.6g} -> {self.new:.6g}"
        if self.deviation is None:
            return text
        if not np.isfinite(self.deviation):
            return f"{text} (not determined)"
        if self.deviation >= 10 * abs(self.new):
            return f"{text} (sd {self.deviation:.3g})"
        return f"{text} ({100 * self.deviation / abs(self.new):.3g} %)"


@requires_arm
def identified_urdf(
    arm: ArmModel,
    values: Vector,
    *,
    deviations: Vector | None = None,
    date: str | datetime.date,
    sources: Sequence[str],
    remarks: Sequence[str] = (),
    constant_deviations: Mapping[str, float] = NO_DEVIATIONS,
) -> str:
    """Return the arm's URDF with identified inertia, friction, rotor inertia and motor constants.

    Written are ``<inertial>`` of the links, ``<dynamics>`` of the joints and ``<param>``s of the
    ``<ros2_control>`` block; comments, order, meshes and blanks are preserved. Rotor inertia of a
    joint with an ideal actuator becomes its param ``armature``; an arm without a
    ``<ros2_control>`` block receives one with effort commands, the plugin of the bundled arms and
    ``armature``: there a user of ros2_control expects constants of a motor, and a rotor inertia in
    ``<inertial>`` would also change the efforts of the other joints. Motor constants of ``arm``
    that differ from the text (``with_motor``) are written too. Effort offsets are not part of a
    URDF: the header lists them. Links and joints without a change keep their text.

    Parameters
    ----------
    arm : ArmModel
        The nominal arm; its ``urdf`` is edited. Locked joints remain movable in the text.
    values : Vector
        Parameters (14 nv,) in the order of ``parameter_names``.
    deviations : Vector, optional
        Standard deviations (14 nv,) in the units of ``values``; NaN or infinite for parameters
        that the motion does not determine.
    date : str or date
        Date of the identification.
    sources : Sequence[str]
        Names of the recordings.
    remarks : Sequence[str]
        Further sentences of the header.
    constant_deviations : Mapping[str, float]
        Standard deviations of fitted motor constants [%], for example of "J1.backlash".

    Returns
    -------
    str
        The text; ``load_arm`` of it has ``nominal_parameters`` equal to ``values``, except for the
        offsets.

    Raises
    ------
    InvalidValue
        For a wrong size, negative friction or rotor inertia, and a body that is not physically
        consistent.

    Notes
    -----
    A payload of ``arm`` is part of ``values`` and becomes part of its link.

    """
    values, spread = checked_parameters(arm, values, deviations)
    layout, file = ParameterLayout(arm.nv), _nominal_file(arm)
    target, old = with_parameters(arm, values), nominal_parameters(file)
    writer = _Writer(file, str(date))
    for i, joint in enumerate(arm.joints):
        rows = _rows(old, values, spread, layout.body(i))
        names = zip(INERTIAL, INERTIAL_UNITS, strict=True)
        writer.write_body(i, [_Change(*n, *row) for n, row in zip(names, rows, strict=True)])
        rows = _rows(old, values, spread, layout.joint_terms(i))
        units = [TERM_UNITS[name][joint.kind == "prismatic"] for name in JOINT_TERMS]
        names = zip(JOINT_TERMS, units, strict=True)
        terms = [_Change(*n, *row) for n, row in zip(names, rows, strict=True)]
        keys = ((key.rpartition("."), x) for key, x in constant_deviations.items())
        constants = {name: x for (owner, _, name), x in keys if owner == joint.name}
        writer.write_joint(i, target.joints[i], terms, constants)
    writer.write_header(sources, arm, values[layout.offset], remarks)
    return writer.text.text()


def checked_parameters(
    arm: ArmModel, values: Vector, deviations: Vector | None
) -> tuple[Vector, Vector | None]:
    """Return parameters and deviations (14 nv,); raises InvalidValue for another size."""
    values = check_vector("parameters", values, ParameterLayout(arm.nv).size)
    spread = None if deviations is None else np.asarray(deviations, dtype=float)
    if spread is not None and spread.shape != values.shape:
        raise InvalidValue(f"deviations: shape = {spread.shape}; expected {values.shape}")
    return values, spread


def _nominal_file(arm: ArmModel) -> ArmModel:
    """Return the arm of the URDF's text, without the changes of ``arm``."""
    joints = Robot(parse_xml(arm.urdf)).joints.items()
    moving = (*ONE_COORDINATE, *MANY_COORDINATES)
    locked = [n for n, j in joints if j.get("type") in moving and n not in arm.joint_names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return parse_arm(arm.urdf, arm.source, locked)


def _rows(old: Vector, new: Vector, spread: Vector | None, part: slice) -> list[Any]:
    """Return (old, new, deviation) of the parameters in ``part``."""
    deviations = [None] * len(new[part]) if spread is None else spread[part].tolist()
    return list(zip(old[part].tolist(), new[part].tolist(), deviations, strict=True))


class _Writer:
    """Edits of the text of ``file``."""

    def __init__(self, file: ArmModel, date: str) -> None:
        self.file, self.date, self.text = file, date, UrdfText(file.urdf)
        root = self.text.root
        self.links = {link.name: link for link in reversed(list(root.find_all("link")))}
        self.joints = {joint.name: joint for joint in reversed(list(root.find_all("joint")))}
        self.children = {
            name: end(joint, "child") for name, joint in Robot(parse_xml(file.urdf)).joints.items()
        }
        self._control: dict[str, tuple[Joint, dict[str, str], set[str]]] = {}

    def write_header(
        self, sources: Sequence[str], arm: ArmModel, offsets: Vector, remarks: Sequence[str]
    ) -> None:
        """Insert the comment above <robot>, and write the <ros2_control> block."""
        lines = [f"{MARK} {self.date} from {', '.join(map(str, sources)) or 'no recording'}"]
        lines += ["Values in comments: old -> new (standard deviation in per cent of the new one)."]
        if arm.locked:
            lines += [f"Locked joints: {', '.join(arm.locked)}."]
        if arm.payload.mass:
            lines += [
                f"The inertia of the tool's body contains the payload {arm.payload.mass:g} kg."
            ]
        given = [
            f"{joint.name} {value:.4g} {TERM_UNITS['offset'][joint.kind == 'prismatic']}"
            for joint, value in zip(arm.joints, offsets.tolist(), strict=True)
            if value
        ]
        if given:
            lines += [f"Effort offsets, not part of a URDF: {', '.join(given)}."]
        lines += remarks
        self._write_control()
        lines = [part for line in lines for part in wrap(line, 90, subsequent_indent="  ")]
        self.text.insert_before(self.text.root, comment_text("\n     ".join(lines)))

    def write_body(self, i: int, changes: Sequence[_Change]) -> None:
        """Write the ten inertial parameters of joint i's body."""
        old, new = (np.array([getattr(c, key) for c in changes]) for key in ("old", "new"))
        if _equal(old, new):
            return
        joint = self.file.joint_names[i]
        attached = [
            (self.children[frame.name], frame.inertia, frame.placement.act(frame.inertia))
            for frame in self.file.links.frames
            if frame.parentJoint == i + 1 and frame.type == pin.FIXED_JOINT and frame.inertia.mass
        ]
        rest = sum((part.toDynamicParameters() for _, _, part in attached), np.zeros(10))
        least = min(MIN_FRACTION, (old - rest)[0] / old[0]) * (1 - ROUNDING)
        bodies = ((s, new - s * rest) for s in SCALES)
        scale = next((s for s, own in bodies if _is_body(own) and own[0] >= least * new[0]), None)
        if scale is None:
            raise InvalidValue(
                f"joint '{joint}': inertial parameters of its body ="
                f" {' '.join(f'{x:.4g}' for x in new.tolist())}; expected a positive mass and a"
                " physically consistent tensor; fit with physical consistency"
            )
        names = [name for name, _, _ in attached]
        lines = [f"{MARK} {self.date}: body of joint '{joint}'", *map(str, changes)]
        if names and scale == 1:
            lines.insert(1, f"The unchanged links {', '.join(names)} are subtracted below.")
        elif names:
            lines.insert(1, f"Mass and inertia of {', '.join(names)} are multiplied by {scale:g}.")
        self._set_inertial(self.children[joint], new - scale * rest, lines)
        for name, inertia, _ in attached if scale < 1 else ():
            self._scale_inertial(name, inertia, scale, joint)

    def write_joint(
        self, i: int, target: Joint, terms: Sequence[_Change], deviations: Mapping[str, float]
    ) -> None:
        """Write friction, actuator and constants of joint i; ``deviations`` of constants [%]."""
        before = self.file.joints[i]
        lines = [str(c) for c in terms[:3] if not _equal(np.array(c.old), np.array(c.new))]
        changed = self._changed_constants(i, target)
        lines += self._constant_lines(i, changed, deviations)
        params = {name: format_number(_rounded(value)) for name, (_, value) in changed.items()}
        constants = target.constants
        dropped = before.constants.keys() - constants.keys()
        if target.actuator != before.actuator:
            params = {"actuator": target.actuator, **params}
        unwritten = terms[0].new and not (constants.keys() & {"armature", "rotor_inertia"})
        if unwritten and not _equal(np.array(terms[0].old), np.array(terms[0].new)):
            lines += [f"Actuator '{target.actuator}' has no rotor inertia: it is not written."]
        self._control[target.name] = (target, params, dropped)
        friction = {"damping": target.damping, "friction": target.friction}
        same = [_equal(np.array(getattr(before, key)), value) for key, value in friction.items()]
        if lines or not all(same):
            self._set_friction(before, friction, same, lines)

    def _changed_constants(self, i: int, target: Joint) -> dict[str, tuple[float, float]]:
        """Return old and new value of the constants of joint i that change."""
        defaults = {p.name: p.default for p in self.file.actuators[i].parameters}
        nominal = {name: np.nan if x is None else x for name, x in defaults.items()}
        nominal |= self.file.joints[i].constants
        pairs = {name: (nominal.get(name, np.nan), x) for name, x in target.constants.items()}
        return {name: x for name, x in pairs.items() if not _equal(np.array(x[0]), x[1])}

    def _constant_lines(
        self, i: int, changed: Mapping[str, tuple[float, float]], deviations: Mapping[str, float]
    ) -> list[str]:
        """Return comments on constants of joint i; ``deviations`` [%]."""
        units = {p.name: p.unit.translate(ASCII) for p in self.file.actuators[i].parameters}
        named = {*self.file.joints[i].constants, *deviations} - {"armature"}
        return [
            f"{name} [{units[name]}] {old:.6g} -> {new:.6g}"
            + (f" ({deviations[name]:.3g} %)" if name in deviations else "")
            for name, (old, new) in changed.items()
            if name in units and name in named
        ]

    def _set_inertial(self, name: str, own: Vector, lines: Sequence[str]) -> None:
        """Write the inertia of a link about its center of mass, in the axes of the link."""
        mass, center, tensor = _about_center(own)
        entries = {key: format_number(tensor[at]) for key, at in TENSOR.items()}
        parts = {
            "origin": {
                "xyz": format_numbers([_rounded(x) for x in center.tolist()]),
                "rpy": "0 0 0",
            },
            "mass": {"value": format_number(_rounded(mass))},
            "inertia": entries,
        }
        link, comment = self.links[name], comment_text("\n     ".join(lines))
        self._remove_comments(link)
        inertial = link.find("inertial")
        if inertial is None:
            inner = [element_text(tag, given) for tag, given in parts.items()]
            self.text.append(link, f"{comment}\n{element_text('inertial', {}, children=inner)}")
            return
        self.text.insert_before(inertial, comment)
        for tag, given in parts.items():
            self._set_child(inertial, tag, given)

    def _scale_inertial(self, name: str, inertia: Any, scale: float, joint: str) -> None:
        """Multiply mass and inertia of an attached link."""
        link = self.links[name]
        inertial = link.find("inertial")
        tensor = inertial.find("inertia") if inertial else None
        if inertial is None or tensor is None:  # the audit rejects both
            return
        self._remove_comments(link)
        text = f"{MARK} {self.date}: multiplied by {scale:g}; its body is that of joint '{joint}'"
        self.text.insert_before(inertial, comment_text(text))
        mass = {"value": format_number(_rounded(scale * inertia.mass))}
        entries = {
            key: format_number(_rounded(scale * float(tensor.attributes[key].strip())))
            for key in TENSOR
        }
        self._set_child(inertial, "mass", mass)
        self._set_child(inertial, "inertia", entries)

    def _set_friction(
        self, before: Joint, friction: dict[str, float], same: list[bool], lines: list[str]
    ) -> None:
        """Write <dynamics> of a joint, where it changes, and the comment."""
        joint = self.joints[before.name]
        dynamics = joint.find("dynamics")
        given = dict(dynamics.attributes) if dynamics else {}
        for (key, value), equal in zip(friction.items(), same, strict=True):
            if not equal or (dynamics is None and value):
                given[key] = format_number(_rounded(value))
        comment = comment_text("\n     ".join([f"{MARK} {self.date}", *lines]))
        self._remove_comments(joint)
        element = element_text("dynamics", given)
        if dynamics is None:
            self.text.append(joint, comment if all(same) else f"{comment}\n{element}")
            return
        self.text.insert_before(dynamics, comment)
        if not all(same):
            self.text.replace(dynamics, element)

    def _write_control(self) -> None:
        """Write params of the <ros2_control> joints, new joints and a new block where needed."""
        present, blocks = control_joints(self.text), list(self.text.root.find_all("ros2_control"))
        for name, (_, params, dropped) in self._control.items():
            if name in present:
                set_params(self.text, present[name], params, dropped)
        missing = [
            self._control_joint(joint, {"actuator": joint.actuator, **params})
            for name, (joint, params, _) in self._control.items()
            if name not in present and (params or not blocks)
        ]
        if blocks and missing:
            self.text.append(blocks[0], "\n".join(missing))
        elif any(params for _, params, _ in self._control.values()) and not blocks:
            hardware = [element_text("plugin", {}, ROS2_CONTROL_PLUGIN)]
            hardware += [
                element_text("param", {"name": n}, t) for n, t in ROS2_CONTROL_TOPICS.items()
            ]
            children = [element_text("hardware", {}, children=hardware), *missing]
            named = {"name": self.file.name, "type": "system"}
            block = element_text("ros2_control", named, children=children)
            self.text.append(self.text.root, block)

    def _control_joint(self, joint: Joint, params: dict[str, str]) -> str:
        """Return a <joint> of <ros2_control> with its interfaces."""
        command = "position" if joint.actuator == "rate_limited" else "effort"
        return control_joint(self.file.joints[self.file.index(joint.name)], command, params)

    def _set_child(self, parent: Element, tag: str, given: dict[str, str]) -> None:
        child, element = parent.find(tag), element_text(tag, given)
        if child is None:
            self.text.append(parent, element)
        else:
            self.text.replace(child, element)

    def _remove_comments(self, owner: Element) -> None:
        """Remove the comments of an earlier identification."""
        for comment in owner.find_all(""):
            if comment.attributes["text"].strip().startswith(MARK):
                self.text.remove(comment)


def _about_center(own: Vector) -> tuple[float, Vector, Matrix]:
    """Return mass, center of mass and the tensor about it of ten inertial parameters."""
    mass, (x, y, z) = float(own[0]), own[1:4] / own[0]
    xx, xy, yy, xz, yz, zz = own[4:]
    total = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    center = np.array([x, y, z])
    tensor = total - mass * ((center @ center) * np.eye(3) - np.outer(center, center))
    floor = 1e-14 * float(np.abs(total).max()) + 1e-12 * float(np.abs(tensor).max())
    tensor[np.abs(tensor) < floor] = 0.0
    center[np.abs(center) < 1e-14] = 0.0
    return mass, center, np.vectorize(_rounded)(tensor)


def _is_body(own: Vector) -> bool:
    """Return whether the mass is positive and the principal moments are those of a body."""
    if not own[0] > MIN_MASS:
        return False
    _, _, tensor = _about_center(own)
    low, middle, high = np.linalg.eigvalsh(tensor)
    slack = ROUNDING * high
    if high < POINT:
        return bool(low > -POINT)
    return bool(low >= -slack and low + middle >= high - slack)


def _equal(old: Vector, new: Vector | float) -> bool:
    """Return whether values differ by rounding only; parameters of a body have one scale each."""
    return bool(np.allclose(new, old, rtol=ROUNDING, atol=1e-15))


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
