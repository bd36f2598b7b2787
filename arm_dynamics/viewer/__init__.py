"""Viewer of an arm in a web browser: 3D scene, joint table, plots, path of the tool, sliders.

May import model, dynamics and below; requires viser and yourdfpy. Start with ``show``;
``ArmPage`` in ``page`` is the page, ``ArmRenderer`` computes images without a browser, ``rviz``
writes the configuration of RViz.
"""

from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.rendering import ArmRenderer
from arm_dynamics.viewer.show import show

__all__ = ["ArmPage", "ArmRenderer", "show"]
