"""The arm in a web browser: drawing, joint table, plots, tool trace, optional sliders."""

from arm_dynamics.viewer.page import ArmPage

__all__ = ["ArmPage"]
