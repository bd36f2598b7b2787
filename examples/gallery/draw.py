"""Draw figures of the gallery; without NAME, list them.

python examples/gallery/draw.py [NAME] [--output FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from arm_dynamics.cli import demo
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.demos.registry import Demo

PROGRAM = "draw.py"
GALLERY = {
    "two_link": Demo(
        "two_link", "a swing, joint-space control, lines of the tool, gravity compensation"
    ),
    "four_joint": Demo("four_joint", "a turning arm falls; LQR with a gain table"),
    "five_dof": Demo("five_dof", "a fall braked by back-EMF, and with motors disconnected"),
    "five_dof_task": Demo("five_dof_task", "the tool draws a square, empty and with a payload"),
    "puma560_fall": Demo("puma560_fall", "a fall: stuck joints, back-EMF, supply limit"),
    "identification": Demo(
        "identified_square", "a square with a wrong and with an identified model"
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Draw the figures of one subject; return the exit code, 2 for invalid input."""
    try:
        return demo.run(arguments, GALLERY, PROGRAM)
    except ArmDynamicsError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
