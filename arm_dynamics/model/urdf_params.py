"""Changes of params of <ros2_control> joints in the text of a URDF; the other text is preserved."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.urdf_text import Element, UrdfText, element_text


def with_params(urdf: str, changes: Mapping[str, Mapping[str, str]]) -> str:
    """Return the URDF's text with changed <param>s of joints.

    Comments, order and blanks are preserved.

    Parameters
    ----------
    urdf : str
        Text of the URDF.
    changes : Mapping[str, Mapping[str, str]]
        ``changes[joint][name]``: new text of a param. A param that a joint does not have is added
        after its others.

    Returns
    -------
    str
        The changed text.

    Raises
    ------
    ConfigError
        For a joint that the <ros2_control> block does not have, and for one without params.

    """
    text = UrdfText(urdf)
    joints = control_joints(text)
    missing = [joint for joint in changes if joint not in joints]
    if missing:
        raise ConfigError(
            f"<ros2_control>: joints = {', '.join(sorted(joints)) or 'none'}; expected also"
            f" {', '.join(missing)}"
        )
    for joint, params in changes.items():
        if params and not joints[joint].elements:
            raise ConfigError(f"<ros2_control> joint '{joint}' is empty; expected a motor")
        set_params(text, joints[joint], params)
    return text.text()


def control_joints(text: UrdfText) -> dict[str, Element]:
    """Return the joints of the <ros2_control> blocks; of a repeated name the first one."""
    found: dict[str, Element] = {}
    for block in text.root.find_all("ros2_control"):
        for joint in block.find_all("joint"):
            found.setdefault(joint.name, joint)
    return found


def set_params(
    text: UrdfText, joint: Element, params: Mapping[str, str], removed: Collection[str] = ()
) -> None:
    """Replace the text of params of a <ros2_control> joint; add missing ones after the others."""
    present = {param.name: param for param in reversed(list(joint.find_all("param")))}
    for name in present.keys() & set(removed):
        text.remove(present[name])
    for name, value in params.items():
        param = element_text("param", {"name": name}, value)
        if name in present:
            text.replace(present[name], param)
        else:
            text.append(joint, param)
