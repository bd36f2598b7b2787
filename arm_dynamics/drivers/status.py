"""The states of life of a physical arm."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """What a physical arm does now."""

    UNCONFIGURED = "unconfigured"
    """Nothing is open."""
    INACTIVE = "inactive"
    """Reading only: torque is off."""
    ACTIVE = "active"
    """Torque is on and commands are obeyed."""
    STOPPED = "stopped"
    """Torque is on, commands are not obeyed: the stop policy acts because of a trip."""
    ERROR = "error"
    """The port is gone; it is tried again."""

    @property
    def drives(self) -> bool:
        """Whether torque is on."""
        return self is Status.ACTIVE or self is Status.STOPPED
