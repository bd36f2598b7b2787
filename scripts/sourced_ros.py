"""Exit with 1 and print the alternatives if a ROS 2 installation is sourced.

The wheels in .venv contain ROS 2 and Pinocchio. Two installations must not meet in one process.
"""

import glob
import os
import sys

ADVICE = """\
A ROS 2 installation is sourced in this shell ({found}).
`make` uses a separate ROS 2, installed from wheels. Two ROS 2 or two Pinocchio installations in
one process do not work. Use the sourced one from the workspace that contains this package:

  rosdep install --from-paths . -y
  colcon build
  source install/setup.bash
  ros2 launch arm_dynamics simulation.launch.py

Alternatively run `make sim` in a shell without a sourced ROS 2.
"""


def sourced(environment: dict) -> str:
    """Return the evidence of a sourced ROS 2, or "" without one."""
    if environment.get("ROS_DISTRO"):
        return "ROS_DISTRO={}".format(environment["ROS_DISTRO"])
    for prefix in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix and glob.glob(os.path.join(prefix, "l*", "python3*", "*-packages", "rclpy")):
            return f"rclpy in {prefix}"
    return ""


def main() -> int:
    """Print the advice if a ROS 2 is sourced; return the exit code."""
    found = sourced(dict(os.environ))
    if found:
        sys.stderr.write(ADVICE.format(found=found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
