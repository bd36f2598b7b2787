"""Motors with MIT-mode CAN, Damiao and CubeMars: ``MitCan`` is the motor bus.

May import the modules of ``arm_dynamics.hardware`` above and what these may import. Start reading
in ``bus.py``; ``can_frames.py`` and ``motors.py`` follow the manuals.
"""

from arm_dynamics.hardware.mit_can.bus import MitCan

__all__ = ["MitCan"]
