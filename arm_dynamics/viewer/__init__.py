"""The arm in a web browser: drawing, joint table, plots, tool trace, optional sliders."""

from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.show import open_page, show

__all__ = ["ArmPage", "open_page", "show"]
