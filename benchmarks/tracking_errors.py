"""Tracking error of each controller along a square, with a model equal to the arm.

pip install 'arm_dynamics[bench]' && python benchmarks/tracking_errors.py

The arms are those of the control benchmark.
"""

from __future__ import annotations

from control import tracking
from square import CASES


def main() -> None:
    """Print the table: controller, and root mean square distance of the tool per arm."""
    arms = {name: (case.load(), case.posture) for name, case in CASES.items()}
    found = {name: tracking(arm, arm, posture) for name, (arm, posture) in arms.items()}
    print("| rms distance from the square [mm] |", " | ".join(found), "|")
    print("|---" * (len(found) + 1) + "|")
    for kind in next(iter(found.values())):
        cells = " | ".join(f"{1e3 * row[kind]:.3f}" for row in found.values())
        print(f"| `{kind}` | {cells} |")


if __name__ == "__main__":
    main()
