"""The page of an arm, opened from an ArmModel."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.page import ArmPage

PORT = 8080


def open_page(
    arm: ArmModel,
    port: int = PORT,
    *,
    interactive: bool = False,
    on_emergency: Callable[[], None] | None = None,
) -> ArmPage:
    """A page on 127.0.0.1 that shows ``arm``."""
    return ArmPage(
        arm.urdf,
        arm.joint_names,
        limits=[(joint.lower, joint.upper) for joint in arm.joints],
        tool_frame=arm.tool_frame,
        folder=arm.source.parent if arm.source else None,
        title=arm.name,
        port=port,
        interactive=interactive,
        initial=arm.configuration("initial"),
        on_emergency_stop=on_emergency,
    )


def show(
    arm: ArmModel, q: ArrayLike | None = None, *, port: int = PORT, interactive: bool = False
) -> ArmPage:
    """Show an arm in a browser: open its page on 127.0.0.1 and print the address.

    Parameters
    ----------
    arm
        The arm to show.
    q
        Configuration (nv,) [rad or m]; default: the initial pose.
    port
        Port of the page; the next free one if it is taken, 0 for any.
    interactive
        Sliders for the joints; ``page.on_target`` passes their values on.

    Returns
    -------
    ArmPage
        ``page.show(q, v, effort, time=t)`` shows another state, ``page.close()`` ends it. The page
        ends with the program, too.

    Raises
    ------
    ConfigError
        Without viser and yourdfpy.
    InvalidValue
        For a configuration of another size, or that is not finite.

    """
    page = open_page(arm, port, interactive=interactive)
    try:
        page.show(arm.configuration("initial") if q is None else q)
    except BaseException:
        page.close()
        raise
    print(f"{arm.name}: {page.url}", flush=True)
    return page
