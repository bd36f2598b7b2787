"""An MJCF file: its elements with includes, default classes and the settings of its compiler.

References
----------
MuJoCo documentation, XML reference.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import pi, radians
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.audit.numbers import parse_number
from arm_dynamics.model.xml_source import Node, XmlSyntaxError, parse_xml, read_text

MAIN = "main"
"""Name of the default class of all elements."""
NO_EFFECT = {"boundmass": 0.0, "boundinertia": 0.0, "settotalmass": -1.0}
"""Settings of the compiler that change masses, and their values without effect."""
MAX_INCLUDES = 20
"""Depth of nested files."""


class MjcfFile:
    """Elements and settings of an MJCF file; raises ConfigError with the line of an error."""

    def __init__(self, path: Path) -> None:
        """Read the settings, the default classes and the assets."""
        self.path = path
        self.notes: dict[str, None] = {}
        """What URDF lacks, in the order of the file."""
        self.root = self._with_includes(self.path, 0)
        if self.root.tag != "mujoco":
            raise self.error(self.root, "is not the root element of MJCF", "write <mujoco>")
        self.compiler = {
            k: v for n in self.root.find_all("compiler") for k, v in n.attributes.items()
        }
        for name, value in NO_EFFECT.items():
            if float(self.compiler.get(name, value)) > value:
                text = f"<compiler {name}> = {self.compiler[name]} changes masses"
                raise self.error(self.root, text, "write the masses into the bodies")
        self.degrees = self.compiler.get("angle", "degree") == "degree"
        self.classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        for node in self.root.find_all("default"):
            self._read_defaults(node, {}, node.get("class") or MAIN)
        self.assets = {
            asset_key(node): self.attributes(node)
            for group in self.root.find_all("asset")
            for node in group.children
        }

    def _with_includes(self, path: Path, depth: int) -> Node:
        """Return the root element of a file with the elements of the files that it includes."""
        if depth > MAX_INCLUDES:
            raise ConfigError(f"{path}: <include> is nested more than {MAX_INCLUDES} deep")
        try:
            root = parse_xml(read_text(path))
        except XmlSyntaxError as error:
            raise ConfigError(f"{path}: {error}") from error

        def expanded(node: Node) -> Node:
            children: list[Node] = []
            for child in node.children:
                if child.tag == "include":
                    file = self.path.parent / (child.get("file") or "")
                    children += self._with_includes(file, depth + 1).children
                else:
                    children.append(expanded(child))
            return replace(node, children=tuple(children))

        return expanded(root)

    def _read_defaults(self, node: Node, above: Mapping[str, dict[str, str]], name: str) -> None:
        """Store a default class: its attributes of each element over those of the class above."""
        own = {tag: dict(values) for tag, values in above.items()}
        for child in node.children:
            if child.tag != "default":
                own.setdefault(child.tag, {}).update(child.attributes)
        self.classes[name] = own
        for child in node.find_all("default"):
            self._read_defaults(child, own, child.get("class") or "")

    def attributes(
        self, node: Node, childclass: str = "", also: Iterable[str] = ()
    ) -> dict[str, str]:
        """Return the attributes of an element over those of its default class.

        ``also`` are elements whose defaults apply too.
        """
        name = node.get("class") or childclass or MAIN
        if name not in self.classes:
            raise self.error(node, f"has the class '{name}', which does not exist", "define it")
        defaults = self.classes[name]
        shared = {k: v for tag in also if tag in defaults for k, v in defaults[tag].items()}
        return {**shared, **defaults.get(node.tag, {}), **node.attributes}

    def is_limited(self, given: Mapping[str, str], flag: str, values: str) -> bool:
        """Return whether a range applies: by its flag, or if it is given."""
        setting = given.get(flag, "auto")
        automatic = self.compiler.get("autolimits", "true") == "true" and values in given
        return automatic if setting == "auto" else setting == "true"

    def angle(self, given: Mapping[str, str], name: str, kind: str) -> float:
        """Return an angle [rad] of a hinge, or a distance [m] of a slide; 0 if it is not given."""
        value = float(given.get(name, "0"))
        return radians(value) if kind == "hinge" and self.degrees else value

    def pose(self, element: Node | Mapping[str, str]) -> Any:
        """Return the pose of ``pos`` and one of the five orientations."""
        given = element.attributes if isinstance(element, Node) else element

        def numbers(name: str) -> Any:
            return np.array([float(word) for word in given[name].split()])

        position = numbers("pos") if "pos" in given else np.zeros(3)
        turn = 1.0 if not self.degrees else pi / 180
        R: Matrix = np.eye(3)
        if "quat" in given:
            w, x, y, z = numbers("quat") / np.linalg.norm(numbers("quat"))
            R = pin.Quaternion(w, x, y, z).matrix()
        elif "axisangle" in given:
            *axis, angle = numbers("axisangle")
            R = pin.AngleAxis(angle * turn, np.array(axis) / np.linalg.norm(axis)).matrix()
        elif "euler" in given:
            for letter, angle in zip(
                self.compiler.get("eulerseq", "xyz"), numbers("euler"), strict=True
            ):
                step = pin.AngleAxis(angle * turn, np.eye(3)["xyz".index(letter.lower())]).matrix()
                R = R @ step if letter.islower() else step @ R
        elif "xyaxes" in given:
            x, y = numbers("xyaxes").reshape(2, 3)
            x = x / np.linalg.norm(x)
            y = y - x * (x @ y)
            y = y / np.linalg.norm(y)
            R = np.stack([x, y, np.cross(x, y)], axis=1)
        elif "zaxis" in given:
            up = np.array([0.0, 0.0, 1.0])
            R = pin.Quaternion.FromTwoVectors(up, numbers("zaxis")).matrix()
        return pin.SE3(R, position)

    def numbers(
        self, node: Node, given: Mapping[str, str], name: str, default: tuple[float, ...]
    ) -> tuple[float, ...]:
        """Return the numbers of an attribute; as many as ``default`` has, if it has any."""
        if name not in given:
            return default
        values = [parse_number(word) for word in given[name].split()]
        known = tuple(value for value in values if value is not None)
        if len(known) != len(values) or (default and len(known) != len(default)):
            count = f"{len(default)} numbers" if default else "numbers"
            raise self.error(node, f"has {name} = '{given[name]}'", f"expected {count}")
        return known

    def error(self, node: Node, problem: str, remedy: str) -> ConfigError:
        """Return the error of an element, with its line."""
        name = f" '{node.get('name')}'" if node.get("name") else ""
        return ConfigError(f"{self.path}: line {node.line}: <{node.tag}>{name} {problem}; {remedy}")


def asset_key(node: Node) -> tuple[str, str]:
    """Return tag and name of an asset; a mesh without a name has that of its file."""
    return node.tag, node.get("name") or Path(node.get("file") or "").stem
