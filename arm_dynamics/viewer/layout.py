"""Order of the parts of the panel, from the top."""

from __future__ import annotations

EMERGENCY, STATUS, ACTIONS, GOALS, EDITED, TABLE, PLOT, FOLDED, TRACE = map(float, range(9))
"""EDITED are open parameter fields, FOLDED are closed ones."""
