"""Objects around an arm: ground, boxes, cylinders, spheres and convex meshes, in base axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import (
    FloatArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
)
from arm_dynamics.core.errors import InvalidValue, UnknownName, did_you_mean
from arm_dynamics.dynamics.kinematics.pose_target import (
    MAX_COORDINATE,
    check_coordinates,
    rotation_matrix,
)
from arm_dynamics.model.inertia_estimate import mesh_body
from arm_dynamics.model.solids import SHAPES, Inertial, Shape, box, cylinder, sphere

SCENE_SHAPES = {**SHAPES, "ground": (), "mesh": ()}
"""Shapes of objects and the names of their sizes [m].

A cylinder lies along z. A ground is the half space z <= 0 of its frame.
"""
FIXED_SHAPES = ("ground",)
"""Shapes without a mass."""


def check_shape(where: str, shape: Shape) -> Shape:
    """Return a shape of known kind with sizes above 0; else raise InvalidValue."""
    if not isinstance(shape, Shape):
        raise InvalidValue(f"{where}: shape = {shape!r}; expected a Shape")
    if shape.kind not in SCENE_SHAPES:
        known, hint = ", ".join(SCENE_SHAPES), did_you_mean(str(shape.kind), SCENE_SHAPES)
        raise InvalidValue(f"{where}: shape = '{shape.kind}'; expected one of {known}{hint}")
    names = SCENE_SHAPES[shape.kind]
    if len(shape.size) != len(names):
        sizes = ", ".join(names) or "nothing"
        raise InvalidValue(f"{where}: sizes of {shape.kind} = {shape.size}; expected ({sizes}) [m]")
    return Shape(
        shape.kind,
        tuple(
            _number(where, f"{shape.kind} {name}", size, "m", above=0, upper=MAX_COORDINATE)
            for name, size in zip(names, shape.size, strict=True)
        ),
    )


def check_vertices(where: str, vertices: Matrix) -> Matrix:
    """Return points (n, 3) [m] whose convex hull has a volume; else raise InvalidValue."""
    points = as_readonly(vertices)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4:
        raise InvalidValue(f"{where}: shape of vertices = {points.shape}; expected (n, 3), n >= 4")
    check_coordinates(f"{where}: vertices", points.ravel())
    if _hull_body(points) is None:
        raise InvalidValue(
            f"{where}: volume of the convex hull of {len(points)} vertices = 0 m³; expected above"
            " 0; give points that do not lie in a plane, or use a box"
        )
    return points


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "shape": check_shape,
    "position": lambda where, value: check_coordinates(f"{where}: position", value, 3),
    "rotation": lambda where, value: rotation_matrix(f"{where}: rotation", value),
    "mass": lambda where, value: _number(
        where, "mass", value, "kg", lower=0, remedy="0 is a fixed object"
    ),
    "friction": lambda where, value: _number(
        where, "friction", value, lower=0, remedy="0 is without friction"
    ),
    "restitution": lambda where, value: _number(
        where, "restitution", value, lower=0, upper=1, remedy="0 is without rebound"
    ),
    "compliance": lambda where, value: _number(
        where, "compliance", value, "m/N", lower=0, remedy="0 is rigid"
    ),
}
"""Check of each quantity of an object: returns the value, or raises InvalidValue."""


@dataclass(frozen=True, slots=True, eq=False)
class SceneObject:
    """Object in a scene, fixed or free.

    Attributes
    ----------
    name : str
        Name, unique in a scene.
    shape : Shape
        "box" (x, y, z), "cylinder" (radius, length; along z), "sphere" (radius,), "ground" () or
        "mesh" () [m].
    position : (3,) array
        Position [m] of the center of the shape in base axes.
    rotation : (3, 3) array
        Rotation of the axes of the shape into base axes.
    mass : float
        Mass [kg]; 0 is a fixed object.
    friction : float
        Coulomb coefficient.
    restitution : float
        Coefficient of restitution.
    compliance : float
        Compliance [m/N] of each point of contact along its normal; 0 is rigid.
    vertices : (n, 3) array, optional
        Points [m] of a mesh, in the axes of the shape; their convex hull is the object.

    Raises
    ------
    InvalidValue
        For a value out of its range, with the object, the quantity and the value.

    """

    name: str
    shape: Shape
    position: Vector = field(default_factory=lambda: as_readonly(np.zeros(3)))
    rotation: Matrix = field(default_factory=lambda: as_readonly(np.eye(3)))
    mass: float = 0.0
    friction: float = 0.5
    restitution: float = 0.0
    compliance: float = 0.0
    vertices: Matrix | None = None

    def __post_init__(self) -> None:
        """Check all quantities."""
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidValue(f"scene: name of an object = {self.name!r}; expected a name")
        where = f"scene object '{self.name}'"
        for quantity, check in CHECKS.items():
            object.__setattr__(self, quantity, check(where, getattr(self, quantity)))
        kind = self.shape.kind
        if kind in FIXED_SHAPES and self.mass > 0:
            raise InvalidValue(f"{where}: mass = {self.mass} kg; expected 0: a {kind} is fixed")
        if (self.vertices is not None) != (kind == "mesh"):
            expected = "points (n, 3) [m]" if kind == "mesh" else f"none for a {kind}"
            given = "none" if self.vertices is None else "given"
            raise InvalidValue(f"{where}: vertices = {given}; expected {expected}")
        if self.vertices is not None:
            object.__setattr__(self, "vertices", check_vertices(where, self.vertices))

    def moved(self, position: ArrayLike, rotation: ArrayLike) -> SceneObject:
        """Return the object moved by x -> R x + p, with p (3,) [m] and R (3, 3)."""
        p, R = np.asarray(position), np.asarray(rotation)
        return replace(self, position=p + R @ self.position, rotation=R @ self.rotation)

    def placed(self, position: ArrayLike, rotation: ArrayLike) -> SceneObject:
        """Return the object with its center at a position (3,) [m] and a rotation (3, 3)."""
        return replace(self, position=np.asarray(position), rotation=np.asarray(rotation))

    @property
    def is_fixed(self) -> bool:
        """Whether the object never moves."""
        return self.mass == 0

    def same_pose(self, other: SceneObject) -> bool:
        """Return whether another object has the same position and rotation."""
        return bool(
            (self.position == other.position).all() and (self.rotation == other.rotation).all()
        )

    def same_shape(self, other: SceneObject) -> bool:
        """Return whether another object has the same shape."""
        own, others = self.vertices, other.vertices
        same = np.array_equal(own, others)  # type: ignore[arg-type]  # or None
        return self.shape == other.shape and same

    @property
    def inertial(self) -> Inertial:
        """Mass properties of uniform density in the axes of the shape.

        Raises InvalidValue for a fixed object.
        """
        if self.is_fixed:
            raise InvalidValue(
                f"scene object '{self.name}': mass = 0 kg; expected above 0: a fixed object has no"
                " inertia"
            )
        if self.vertices is not None:
            body = _hull_body(self.vertices)
            assert body is not None  # checked on construction
            scaled = as_readonly(self.mass / body.mass * body.inertia)
            return Inertial(self.mass, body.center, scaled)
        size = self.shape.size
        solid = {
            "box": lambda: box(size, self.mass),
            "cylinder": lambda: cylinder("z", size[1], size[0], self.mass),
            "sphere": lambda: sphere(size[0], self.mass),
        }[self.shape.kind]()
        return Inertial(solid.mass, solid.center, solid.inertia)


class Scene:
    """Objects around an arm; a value that does not change.

    Parameters
    ----------
    objects : iterable of SceneObject
        Objects with different names.

    Raises
    ------
    InvalidValue
        For two objects of one name.

    """

    __slots__ = ("_objects",)

    def __init__(self, objects: Iterable[SceneObject] = ()) -> None:
        self._objects: dict[str, SceneObject] = {}
        for one in objects:
            if not isinstance(one, SceneObject):
                raise InvalidValue(f"scene: object = {one!r}; expected a SceneObject")
            if one.name in self._objects:
                raise InvalidValue(
                    f"scene: objects with the name '{one.name}' = 2; expected 1; rename one"
                )
            self._objects[one.name] = one

    @property
    def objects(self) -> tuple[SceneObject, ...]:
        """Objects in their order."""
        return tuple(self._objects.values())

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def __iter__(self) -> Iterator[SceneObject]:
        """Iterate over the objects."""
        return iter(self._objects.values())

    def __getitem__(self, name: str) -> SceneObject:
        """Return the object of this name; raises UnknownName."""
        if name not in self._objects:
            raise UnknownName("scene object", name, tuple(self._objects))
        return self._objects[name]

    def __contains__(self, name: object) -> bool:
        """Return whether an object has this name."""
        return name in self._objects

    def with_object(self, new: SceneObject) -> Scene:
        """Return the scene with one more object; raises InvalidValue if its name exists."""
        return Scene((*self, new))

    def without(self, name: str) -> Scene:
        """Return the scene without the object of this name; raises UnknownName."""
        removed = self[name]
        return Scene(one for one in self if one is not removed)

    def differs_in_poses_only(self, other: Scene) -> bool:
        """Return whether another scene has the same objects, with free ones at other poses."""
        return len(self) == len(other) and all(
            one.name == two.name
            and one.mass == two.mass
            and one.same_shape(two)
            and (not one.is_fixed or one.same_pose(two))
            for one, two in zip(self, other, strict=True)
        )

    def motion(self, other: Scene) -> float:
        """Return the largest displacement [m] of objects between two scenes of the same objects.

        That of a point within 0.1 m of the center of an object.
        """
        return max(
            (
                float(np.abs(one.position - two.position).max())
                + 0.1 * float(np.abs(one.rotation - two.rotation).max())
                for one, two in zip(self, other, strict=True)
                if not one.is_fixed
            ),
            default=0.0,
        )

    def __repr__(self) -> str:
        """Names of the objects."""
        return f"Scene({', '.join(self._objects)})"


EMPTY_SCENE = Scene()


def _number(
    where: str, name: str, value: float, unit: str = "", remedy: str = "", **limits: float
) -> float:
    try:
        return check_float(f"{where}: {name}", value, **limits)
    except InvalidValue as error:
        text = str(error).replace("; expected", f" {unit}; expected" if unit else "; expected", 1)
        raise InvalidValue(f"{text}; {remedy}" if remedy else text) from error


def _hull_body(points: FloatArray) -> Inertial | None:
    """Return the convex hull of points as a body of 1 kg/m³, None if it is flat."""
    return mesh_body(points, np.empty((0, 3), int))
