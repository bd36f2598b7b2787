"""Simulator and task-space controller in one process, under one control loop."""

from __future__ import annotations

import sys

from arm_dynamics.ros.nodes.composed import run_composed
from arm_dynamics.ros.nodes.task_space_controller import TaskSpaceControllerNode


def main() -> None:
    """Run the nodes until SIGINT or SIGTERM."""
    sys.exit(run_composed(TaskSpaceControllerNode))


if __name__ == "__main__":
    main()
