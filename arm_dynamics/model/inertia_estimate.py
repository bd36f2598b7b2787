"""Masses of links and the shapes of the URDF: estimates of one density, and the densities given.

Volume, center and second moments of mass of a closed mesh are sums over tetrahedra from a point to
its triangles a, b, c with D = det(a, b, c):  V = Σ D / 6,  V c = Σ D (a + b + c) / 24,
Σ D (a aᵀ + b bᵀ + c cᵀ + s sᵀ) / 120 with s = a + b + c. A mesh that is not closed counts as its
convex hull.

References
----------
B. Mirtich, Fast and accurate computation of polyhedral mass properties, Journal of Graphics Tools 1
(1996).

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arm_dynamics.core.arrays import IntArray, Matrix, as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.inertia import TENSOR, mass_of
from arm_dynamics.model.audit.proportion import moving_links
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.solids import Inertial, box, compose, cylinder, sphere
from arm_dynamics.model.urdf_text import UrdfText, comment_text, element_text
from arm_dynamics.model.urdf_writer import format_number, format_numbers
from arm_dynamics.model.visuals import Visual, link_shapes, load_mesh
from arm_dynamics.model.xml_source import parse_xml

SHAPES = ("visual", "collision")
"""Elements with the shapes of a link; the first with a volume counts."""
MIN_VOLUME = 1e-9
"""Volume over the cube of the size below which a mesh is flat."""

EXPORTED = {1000.0: "water", 2700.0: "aluminum", 7850.0: "steel", 8000.0: "steel"}
"""Density [kg/m³] of bodies without a material or of one metal in CAD programs."""
SAME = 0.02
"""Relative difference of densities that rounded masses and simplified meshes explain."""


@dataclass(frozen=True, slots=True)
class LinkEstimate:
    """Volume [m³] and estimated mass [kg] of a link; the root link's is not written."""

    link: str
    volume: float
    mass: float
    written: bool


def with_estimated_inertia(
    text: str, folder: Path | None, total: float
) -> tuple[str, tuple[LinkEstimate, ...]]:
    """Return a URDF with masses of links that have none, from their shapes.

    The density is that with which all links together have the mass ``total``. Links with a mass
    keep it. The root link has a part of it, and no ``<inertial>``: its inertia has no effect.

    Parameters
    ----------
    text : str
        Text of the URDF.
    folder : Path or None
        Folder of its meshes.
    total : float
        Mass of the arm with its base [kg].

    Returns
    -------
    str
        The text; everything but the ``<inertial>`` of the changed links is preserved.
    tuple of LinkEstimate
        Links without a mass that have a volume.

    Raises
    ------
    InvalidValue
        If no such link has a volume, or ``total`` does not exceed the mass of the others.

    """
    root = parse_xml(text)
    robot = Robot(root)
    known = sum(mass_of(link) or 0.0 for link in robot.all_links)
    rest = check_float("mass of the arm [kg]", total, above=known) - known
    bodies = _unit_bodies(robot, folder)
    volume = sum(body.mass for body in bodies.values())
    if not volume > 0:
        raise InvalidValue(
            "links without a mass: volume of their visual and collision shapes = 0 m³; expected"
            " above 0; add shapes, or correct the paths of the meshes"
        )
    density, edited, found = rest / volume, UrdfText(text), []
    for node, link in zip(robot.all_links, edited.root.find_all("link"), strict=True):
        body = bodies.get(link.name)
        if body is None or robot.links[link.name] is not node:
            continue
        written = link.name in robot.parent_joint
        found.append(LinkEstimate(link.name, body.mass, density * body.mass, written))
        if written:
            tensor = {
                name: format_number(density * body.inertia[at]) for name, at in TENSOR.items()
            }
            inertial = element_text(
                "inertial",
                {},
                children=[
                    comment_text(f"estimated from shapes of {density:.4g} kg/m³"),
                    element_text("origin", {"xyz": format_numbers(body.center), "rpy": "0 0 0"}),
                    element_text("mass", {"value": format_number(density * body.mass)}),
                    element_text("inertia", tensor),
                ],
            )
            old = link.find("inertial")
            if old is None:
                edited.append(link, inertial)
            else:
                edited.replace(old, inertial)
    return edited.text(), tuple(found)


def density_faults(robot: Robot, folder: Path | None) -> Iterator[Fault]:
    """Yield a warning if all moving links have one density of ``EXPORTED`` for their meshes.

    Masses of an exporter without materials have it. Arms with a link without a readable mesh
    are not checked, nor are boxes, cylinders and spheres: their uniform density may be intended.
    """
    masses = {link.get("name") or "": mass_of(link) or 0.0 for link in moving_links(robot)}
    heavy = {name: mass for name, mass in masses.items() if mass > 0}
    for element in SHAPES if len(heavy) > 1 else ():
        shapes = link_shapes(robot.root, folder, element)
        known, densities = list(EXPORTED), list[float]()
        for name, mass in heavy.items():
            meshes = [s for s in shapes if s.link == name and s.kind == "mesh"]
            body = _unit_body(meshes, folder)
            densities.append(mass / body.mass if body else 0.0)
            known = [one for one in known if abs(densities[-1] / one - 1) < SAME]
            if not known:  # large meshes take seconds
                break
        if known:
            problem = (
                f"all {len(heavy)} moving links have {min(densities):.4g} to {max(densities):.4g}"
                f" kg/m³ (mass over the volume of {element} meshes), the density that exporters"
                f" assume for {EXPORTED[known[0]]}"
            )
            remedy = "set the materials in the CAD program, weigh the links, or identify the arm"
            yield Fault(robot.root.line, title(robot.root), "", problem, remedy, "warning")
            return


def _unit_bodies(robot: Robot, folder: Path | None) -> dict[str, Inertial]:
    """Return the links without a mass as bodies of 1 kg/m³; those without a volume are omitted."""
    found: dict[str, Inertial] = {}
    for element in SHAPES:
        shapes = link_shapes(robot.root, folder, element)
        for name, link in robot.links.items():
            if name not in found and not mass_of(link):
                body = _unit_body([shape for shape in shapes if shape.link == name], folder)
                found.update({name: body} if body else {})
    return found


def _unit_body(shapes: Sequence[Visual], folder: Path | None) -> Inertial | None:
    """Return the shapes of a link as one body of 1 kg/m³, None if none has a volume."""
    solids = [solid for shape in shapes if (solid := shape_body(shape, folder)) is not None]
    return compose(solids) if solids else None


def shape_body(shape: Visual, folder: Path | None) -> Inertial | None:
    """Return a shape as a body of 1 kg/m³ in the link's axes, None if it has no volume."""
    x, y, z = shape.scale.tolist()
    if shape.kind == "mesh":
        mesh = load_mesh(shape.uri, folder)
        if mesh is None or not mesh.num_tris:
            return None
        indices = (mesh.tri_indices(i) for i in range(mesh.num_tris))
        triangles = np.array([(t[0], t[1], t[2]) for t in indices])
        body = mesh_body(np.array(mesh.vertices()) * shape.scale, triangles)
        if body is None:
            return None
        R = shape.rotation
        center = as_readonly(R @ body.center + shape.position)
        return Inertial(body.mass, center, as_readonly(R @ body.inertia @ R.T))
    if not min(x, y, z) > 0:
        return None
    solid = {
        "box": lambda: box((x, y, z), x * y * z),
        "cylinder": lambda: cylinder("z", z, x / 2, np.pi * x * x / 4 * z),
        "sphere": lambda: sphere(x / 2, np.pi * x**3 / 6),
    }[shape.kind]().transformed(shape.rotation, shape.position)
    return Inertial(solid.mass, solid.center, solid.inertia)


def mesh_body(vertices: Matrix, triangles: Matrix) -> Inertial | None:
    """Return a mesh as a body of 1 kg/m³, None if it is flat.

    Parameters
    ----------
    vertices : ndarray
        Points (n, 3) [m]; equal ones are one vertex.
    triangles : ndarray
        Indices (m, 3) of the vertices.

    """
    points, index = np.unique(vertices, axis=0, return_inverse=True)
    corners = index.reshape(-1)[triangles]
    size = float(np.ptp(points, axis=0).max())
    if _is_closed(corners, len(points)):
        body = _polyhedron(points, corners, size)
        if body is not None:
            return body
    outward = hull_triangles(points)
    return None if outward is None else _polyhedron(points, outward, size)


def hull_triangles(points: Matrix) -> IntArray | None:
    """Return the outward triangles (m, 3) of the convex hull of points (n, 3); None if flat."""
    from scipy.spatial import ConvexHull, QhullError  # noqa: PLC0415 - slow to import

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):  # flat, or less than four points
        return None
    outward: IntArray = hull.simplices.astype(np.int64)
    a, b, c = np.moveaxis(points[outward], 1, 0)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    outward[inward] = outward[inward][:, ::-1]
    return outward


def _is_closed(corners: Matrix, count: int) -> bool:
    """Return whether each edge of the triangles has one in the opposite direction."""
    start, end = corners.ravel(), np.roll(corners, -1, axis=1).ravel()
    proper = start != end
    start, end = start[proper].astype(np.int64), end[proper].astype(np.int64)
    return bool(np.array_equal(np.sort(start * count + end), np.sort(end * count + start)))


def _polyhedron(points: Matrix, corners: IntArray | Matrix, size: float) -> Inertial | None:
    """Return a closed polyhedron as a body of 1 kg/m³, None if it encloses no volume."""
    middle = points.mean(axis=0)
    tetrahedra = (points - middle)[corners]
    D, sums = np.linalg.det(tetrahedra), tetrahedra.sum(axis=1)
    if D.sum() < 0:  # inward triangles, or a mirrored mesh
        D = -D
    volume = float(D.sum() / 6)
    if not volume > MIN_VOLUME * size**3:
        return None
    center = D @ sums / (24 * volume)
    second = np.einsum("i,ijk,ijl->kl", D, tetrahedra, tetrahedra)
    second = (second + np.einsum("i,ik,il->kl", D, sums, sums)) / 120
    second = second - volume * np.outer(center, center)
    if not np.linalg.eigvalsh(second)[0] > 0:  # parts with opposite directions
        return None
    inertia = np.trace(second) * np.eye(3) - second
    return Inertial(volume, as_readonly(middle + center), as_readonly(inertia))
