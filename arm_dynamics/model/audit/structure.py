"""Structure: named once, joined into one tree with one root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from arm_dynamics.model.audit.fault import Fault, suggest, title
from arm_dynamics.model.audit.robot import Edge, Robot, end
from arm_dynamics.model.xml_source import Node

_SINGLE = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}


def check(robot: Robot) -> Iterator[Fault]:
    """Yield the faults of names, references and the tree."""
    if not robot.root.get("name"):
        yield Fault(robot.root.line, "<robot name>", "", "the robot has no name", 'write name="…"')
    if not robot.all_links:
        remedy = "write at least a base link"
        yield Fault(robot.root.line, title(robot.root), "", "it has no <link>", remedy)
    yield from _names(robot.all_links)
    yield from _names(robot.all_joints)
    yield from _xacro(robot.root)
    yield from _namespace(robot.root)
    yield from _repeated(robot)
    for joint in robot.all_joints:
        yield from _reference(robot, joint, "parent")
        yield from _reference(robot, joint, "child")
    yield from _parents(robot)
    yield from _loops(robot)
    yield from _roots(robot)


def _names(nodes: tuple[Node, ...]) -> Iterator[Fault]:
    seen: dict[str, Node] = {}
    for node in nodes:
        name = node.get("name")
        if not name:
            yield Fault(node.line, f"<{node.tag} name>", "", "the name is missing", 'add name="…"')
        elif node.tag == "joint" and name == "universe":
            problem = "is Pinocchio's name of the world"
            yield Fault(node.line, f"{title(node)} name", name, problem, "rename the joint")
        elif name in seen:
            problem = f"is already the name of the {node.tag} on line {seen[name].line}"
            yield Fault(node.line, f"{title(node)} name", name, problem, "rename one of them")
        else:
            seen[name] = node


def _xacro(root: Node) -> Iterator[Fault]:
    for node in root.walk():
        if node.tag.startswith("xacro:"):
            remedy = "expand the file with xacro first"
            yield Fault(node.line, f"<{node.tag}>", "", "is xacro, not yet URDF", remedy)


def _namespace(root: Node) -> Iterator[Fault]:
    """A default namespace gives plain tags another meaning; prefixes (xmlns:…) do not."""
    for node in root.walk():
        if node.get("xmlns"):
            problem = "is a namespace of its own: URDF's elements have none"
            element = f"<{node.tag} xmlns>"
            yield Fault(node.line, element, node.get("xmlns") or "", problem, "remove xmlns")


def _repeated(robot: Robot) -> Iterator[Fault]:
    for owner in (*robot.all_links, *robot.all_joints):
        for node in (owner, *owner.find_all("inertial")):
            for tag in _SINGLE.get(node.tag, ()):
                for extra in node.find_all(tag)[1:]:
                    problem = "it is given twice, and the second one is ignored"
                    element = f"{title(owner)} <{tag}>"
                    yield Fault(extra.line, element, "", problem, "remove one", "warning")


def _reference(robot: Robot, joint: Node, which: str) -> Iterator[Fault]:
    node, name = joint.find(which), end(joint, which)
    element = f"{title(joint)} <{which} link>"
    if not name:
        remedy = f'write <{which} link="…"/>'
        line = node.line if node else joint.line
        yield Fault(line, element, "", f"the {which} link is missing", remedy)
    elif node and name not in robot.links:
        remedy = suggest(name, robot.links, "the links are")
        yield Fault(node.line, element, name, "is not a link of this robot", remedy)


def _parents(robot: Robot) -> Iterator[Fault]:
    """Each link has one joint above it; a second one may also close a loop."""
    for edge in robot.edges:
        first = robot.parent_joint[edge.child]
        if edge is not first:
            if robot.is_above(edge.child, edge.parent):
                yield _loop_fault(edge)
            else:
                where = f"joint '{first.joint.get('name')}' on line {first.joint.line}"
                problem = f"already is the child of {where}"
                remedy = "a link has one parent: remove one of the joints"
                element = f"{title(edge.joint)} <child link>"
                yield Fault(_child_line(edge), element, edge.child, problem, remedy)


def _loops(robot: Robot) -> Iterator[Fault]:
    """Links that have only each other above them: reported once, at the loop's last joint."""
    for top in dict.fromkeys(robot.top.values()):
        if top in robot.parent_joint:
            ring = [top]
            while robot.parent_joint[ring[-1]].parent != top:
                ring.append(robot.parent_joint[ring[-1]].parent)
            yield _loop_fault(
                max((robot.parent_joint[n] for n in ring), key=lambda e: e.joint.line)
            )


def _roots(robot: Robot) -> Iterator[Fault]:
    """One root; the links orphaned by a joint's unknown child are that joint's fault."""
    children = {end(joint, "child") for joint in robot.all_joints}
    roots = [name for name in robot.links if name not in children]
    orphans = sum(end(joint, "child") not in robot.links for joint in robot.all_joints)
    sizes = Counter(robot.top.values())
    roots.sort(key=lambda name: -sizes[name])
    if len(roots) <= 1 + orphans:
        return
    for name in roots[1:]:
        problem = f"is a second root beside '{roots[0]}'"
        remedy = f"join it to the tree of '{roots[0]}' by a joint, or remove it"
        yield Fault(robot.links[name].line, f"link '{name}'", name, problem, remedy)


def _loop_fault(edge: Edge) -> Fault:
    problem = f"is also above '{edge.parent}': the joints form a cycle"
    element = f"{title(edge.joint)} <child link>"
    remedy = "the links must form a tree: remove or redirect this joint"
    return Fault(_child_line(edge), element, edge.child, problem, remedy)


def _child_line(edge: Edge) -> int:
    node = edge.joint.find("child")
    return node.line if node else edge.joint.line
