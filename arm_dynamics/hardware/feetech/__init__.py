"""Feetech STS servos (SO-100, SO-101): ``Feetech`` is the motor bus.

May import the modules of ``arm_dynamics.hardware`` above and what these may import. Start reading
in ``bus.py``; ``packets.py`` and ``registers.py`` follow the manufacturer's documents.
"""

from arm_dynamics.hardware.feetech.bus import Feetech

__all__ = ["Feetech"]
