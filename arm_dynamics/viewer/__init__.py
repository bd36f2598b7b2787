"""Viewer of an arm in a web browser: 3D scene, joint table, plots, path of the tool, sliders.

May import model, dynamics and below; requires viser and yourdfpy. Start with ``show``;
``ArmPage`` in ``page`` is the page, ``rviz`` writes the configuration of RViz.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.viewer.page import ArmPage
    from arm_dynamics.viewer.show import show

_MODULES = {"ArmPage": ".page", "show": ".show"}

__all__ = ["ArmPage", "show"]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
