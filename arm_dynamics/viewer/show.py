"""Open the page of an ArmModel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import State
from arm_dynamics.core.status_summary import SUPPLY, TEMPERATURE, VOLTAGE, StatusSummary
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.named_configurations import named_configurations
from arm_dynamics.viewer.page import CONTROL_HINT, ArmPage

PORT = 8080


def show_state(
    page: ArmPage,
    state: State,
    error: Vector | None,
    status: StatusSummary,
    signals: Mapping[str, Vector] | None = None,
) -> None:
    """Show a state of the page's arm with its status, efforts and voltages as far as known.

    Parameters
    ----------
    page : ArmPage
        The page.
    state : State
        The state.
    error : (nv,) array, optional
        Reference minus position [rad or m].
    status : StatusSummary
        Status of the run.
    signals : mapping, optional
        Further quantities of the plots, (nv,) each, by name with unit.

    """
    names, motors = page.joint_names, status.motors
    page.show(
        state.q, state.v, state.tau if np.isfinite(state.tau).all() else None,
        status.status_values(), None if error is None else state.q + error, time=state.time,
        voltage=motors(names, VOLTAGE, SUPPLY), temperature=motors(names, TEMPERATURE),
        signals=signals, motors=status.motor_states(names),
    )  # fmt: skip


def open_page(
    arm: ArmModel,
    port: int = PORT,
    *,
    interactive: bool = False,
    control: bool = False,
    control_hint: str = CONTROL_HINT,
    embedded: bool = False,
    on_emergency: Callable[[], None] | None = None,
) -> ArmPage:
    """Open a page on 127.0.0.1 that shows ``arm``.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    port : int
        Port; the next free one if it is busy, 0 for any.
    interactive, control, control_hint, embedded
        As for ``ArmPage``.
    on_emergency : callable, optional
        Function of the emergency stop button; no button by default.

    Returns
    -------
    ArmPage
        The page.

    Raises
    ------
    ConfigError
        If viser or yourdfpy is missing.

    """
    return ArmPage(
        arm.urdf,
        arm.joint_names,
        limits=[(joint.lower, joint.upper) for joint in arm.joints],
        tool_frame=arm.tool_frame,
        folder=arm.source.parent if arm.source else None,
        title=arm.name,
        port=port,
        interactive=interactive,
        control=control,
        control_hint=control_hint,
        embedded=embedded,
        poses={name: q.tolist() for name, q in named_configurations(arm).items()},
        initial=arm.configuration("initial"),
        on_emergency_stop=on_emergency,
    )


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def show(
    arm: ArmModel, q: ArrayLike | None = None, *, port: int = PORT, interactive: bool = False
) -> ArmPage:
    """Show an arm in a browser: open its page on 127.0.0.1 and print the address.

    In a notebook the returned page is shown in the output of its cell.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    q : array_like, optional
        Configuration (nv,) [rad or m]; default: the initial configuration.
    port : int
        Port of the page; the next free one if it is busy, 0 for any.
    interactive : bool
        Whether the page has sliders; ``page.on_target`` sets the callback for their values. They
        follow the shown reference or configuration until a user moves one.

    Returns
    -------
    ArmPage
        The page: ``page.show(q, v, effort, time=t)`` shows another state, ``page.close()`` closes
        it. The end of the program also closes it.

    Raises
    ------
    ConfigError
        If viser or yourdfpy is missing.
    InvalidValue
        If the configuration has a wrong size or a non-finite entry.

    """
    page = open_page(arm, port, interactive=interactive, embedded=in_notebook())
    try:
        page.show(arm.configuration("initial") if q is None else q)
    except BaseException:
        page.close()
        raise
    print(f"{arm.name}: {page.url}", flush=True)
    return page
