"""Tracking error of each controller along a square: exact model, and wrong friction of the arm.

pip install 'arm_dynamics[bench]' && python benchmarks/tracking_errors.py

The arms are those of the control benchmark. The model of the controller is nominal; the simulated
arm has the nominal friction, then viscous and dry friction that differ by ERROR.
"""

from __future__ import annotations

from control import tracking
from square import CASES

from arm_dynamics.model.model_error import with_model_error

ERROR = 30.0
"""Error of the friction [%]."""


def main() -> None:
    """Print the table: controller, and root mean square distance of the tool per arm."""
    columns = {
        name: [
            tracking(with_model_error(arm, friction=error), arm, case.posture)
            for error in (0.0, ERROR, -ERROR)
        ]
        for name, case in CASES.items()
        for arm in [case.load()]
    }
    title = f"rms distance from the square [mm], nominal / friction +{ERROR:g} / -{ERROR:g} %"
    print(f"| {title} |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for kind in next(iter(columns.values()))[0]:
        cells = (" / ".join(f"{1e3 * x[kind]:.3f}" for x in rows) for rows in columns.values())
        print(f"| `{kind}` |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
