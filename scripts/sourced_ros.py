"""Exit with 1, and say what to do instead, where a ROS 2 installation is sourced.

The wheels in .venv are a whole ROS 2 and Pinocchio of their own: one process must not see two.
"""

import glob
import os
import sys

ADVICE = """\
A ROS 2 installation is sourced in this shell ({found}).
`make` runs the arm on a ROS 2 of its own, installed from wheels; two ROS 2 or two Pinocchio in
one process do not work, so use the installed one, from the workspace that holds this package:

  rosdep install --from-paths . -y
  colcon build
  source install/setup.bash
  ros2 launch arm_dynamics simulation.launch.py

or open a shell in which no ROS 2 is sourced and call `make sim` there.
"""


def sourced(environment: dict) -> str:
    """What shows that a ROS 2 is sourced, or "" when none is."""
    if environment.get("ROS_DISTRO"):
        return "ROS_DISTRO={}".format(environment["ROS_DISTRO"])
    for prefix in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix and glob.glob(os.path.join(prefix, "l*", "python3*", "*-packages", "rclpy")):
            return f"rclpy in {prefix}"
    return ""


def main() -> int:
    """Print the advice where it is due; return the exit code."""
    found = sourced(dict(os.environ))
    if found:
        sys.stderr.write(ADVICE.format(found=found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
