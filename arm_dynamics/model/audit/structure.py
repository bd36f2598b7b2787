"""Structure: unique names, plain URDF elements, and one tree with one root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from arm_dynamics.model.audit.fault import Fault, suggest, title
from arm_dynamics.model.audit.robot import Edge, Robot, end
from arm_dynamics.model.xml_source import Node, double_hyphens

_SINGLE = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}


def naming_faults(robot: Robot) -> Iterator[Fault]:
    """Yield missing, reserved and repeated names of the robot, its links and its joints."""
    if not robot.root.get("name"):
        yield Fault(robot.root.line, "<robot name>", "", "the robot has no name", 'write name="…"')
    if not robot.all_links:
        remedy = "write at least a base link"
        yield Fault(robot.root.line, title(robot.root), "", "it has no <link>", remedy)
    seen: dict[tuple[str, str], int] = {}
    for node in (*robot.all_links, *robot.all_joints):
        name, element = node.get("name"), f"{title(node)} name"
        if not name:
            yield Fault(node.line, f"<{node.tag} name>", "", "the name is missing", 'add name="…"')
        elif node.tag == "joint" and name == "universe":
            problem = "is Pinocchio's name of the world"
            yield Fault(node.line, element, name, problem, "rename the joint")
        elif (node.tag, name) in seen:
            problem = f"is already the name of the {node.tag} on line {seen[node.tag, name]}"
            yield Fault(node.line, element, name, problem, "rename one of them")
        else:
            seen[node.tag, name] = node.line


def markup_faults(robot: Robot) -> Iterator[Fault]:
    """Yield xacro elements, default namespaces, and elements given twice.

    A default namespace gives plain tags another meaning; prefixes (xmlns:…) do not.
    """
    for node in robot.root.walk():
        if node.tag.startswith("xacro:"):
            remedy = "expand the file with xacro first"
            yield Fault(node.line, f"<{node.tag}>", "", "is xacro, not yet URDF", remedy)
        if node.get("xmlns"):
            problem = "is a default namespace, which URDF elements do not have"
            element = f"<{node.tag} xmlns>"
            yield Fault(node.line, element, node.get("xmlns") or "", problem, "remove xmlns")
    for owner in (*robot.all_links, *robot.all_joints):
        for node in (owner, *owner.find_all("inertial")):
            for tag in _SINGLE.get(node.tag, ()):
                for extra in node.find_all(tag)[1:]:
                    problem = "it is given twice, and the second one is ignored"
                    element = f"{title(owner)} <{tag}>"
                    yield Fault(extra.line, element, "", problem, "remove one", "warning")


def comment_faults(text: str) -> Iterator[Fault]:
    """Yield a warning for the comments with double hyphens: many programs reject the file."""
    for line, *others in filter(None, [double_hyphens(text)]):
        count = f" (and in {len(others)} more)" if others else ""
        problem = f"is not allowed in an XML comment{count}: other programs reject the file"
        yield Fault(line, "comment", "--", problem, "write single hyphens", "warning")


def reference_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield a parent or child link that is missing or does not exist."""
    for which in ("parent", "child"):
        node, name = joint.find(which), end(joint, which)
        element = f"{title(joint)} <{which} link>"
        if not name:
            remedy = f'write <{which} link="…"/>'
            line = node.line if node else joint.line
            yield Fault(line, element, "", f"the {which} link is missing", remedy)
        elif node and name not in robot.links:
            remedy = suggest(name, robot.links, "the links are")
            yield Fault(node.line, element, name, "is not a link of this robot", remedy)


def parent_faults(robot: Robot) -> Iterator[Fault]:
    """Yield second parents of a link, and each loop once, at the joint that closes it."""
    for edge in robot.edges:
        first = robot.parent_joint[edge.child]
        if edge is not first and robot.is_above(edge.child, edge.parent):
            yield _loop_fault(edge)
        elif edge is not first:
            where = f"joint '{first.joint.get('name')}' on line {first.joint.line}"
            problem = f"already is the child of {where}"
            remedy = "a link has one parent: remove one of the joints"
            element = f"{title(edge.joint)} <child link>"
            yield Fault(_child_line(edge), element, edge.child, problem, remedy)
    for top in dict.fromkeys(robot.top.values()):
        if top in robot.parent_joint:  # links that have only each other above them
            ring = [top]
            while robot.parent_joint[ring[-1]].parent != top:
                ring.append(robot.parent_joint[ring[-1]].parent)
            edges = (robot.parent_joint[name] for name in ring)
            yield _loop_fault(max(edges, key=lambda edge: edge.joint.line))


def root_faults(robot: Robot) -> Iterator[Fault]:
    """Yield every root but that of the largest tree.

    Links without a parent because of a joint's unknown child are that joint's fault.
    """
    children = {end(joint, "child") for joint in robot.all_joints}
    roots = [name for name in robot.links if name not in children]
    orphans = sum(end(joint, "child") not in robot.links for joint in robot.all_joints)
    sizes = Counter(robot.top.values())
    roots.sort(key=lambda name: -sizes[name])
    for name in roots[1:] if len(roots) > 1 + orphans else ():
        problem = f"is a second root in addition to '{roots[0]}'"
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
