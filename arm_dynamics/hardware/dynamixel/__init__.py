"""Dynamixel X motors, protocol 2.0: ``Dynamixel`` is the motor bus.

May import the modules of ``arm_dynamics.hardware`` above and what these may import. Start reading
in ``bus.py``; ``packets.py`` and ``control_table.py`` follow the e-manual.
"""

from arm_dynamics.hardware.dynamixel.bus import Dynamixel

__all__ = ["Dynamixel"]
