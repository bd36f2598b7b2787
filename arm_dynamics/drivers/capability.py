"""What one joint's motor takes and tells."""

from __future__ import annotations

from dataclasses import dataclass

MEASURED, ESTIMATED, NONE = "measured", "estimated", "none"


@dataclass(frozen=True, slots=True)
class Capability:
    """Command ``interfaces`` of one joint, and how its effort is known.

    ``effort`` is "measured" (from a current with a known constant), "estimated" (by the motor's
    law from its voltage) or "none".
    """

    joint: str
    interfaces: tuple[str, ...]
    effort: str = NONE
