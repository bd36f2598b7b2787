"""Order of the parts on the panel, from the top."""

from __future__ import annotations

EMERGENCY, STATUS, ACTIONS, GOALS, EDITED, TABLE, PLOT, FOLDED, TRACE = map(float, range(9))
"""EDITED are parameters in view, FOLDED those that a user opens."""
