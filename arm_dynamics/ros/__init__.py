"""The ROS 2 face: nodes, conversions, parameters. The only place that imports rclpy."""

import sys

from arm_dynamics.ros.shutdown_flag import end_on_signals

# `python -m arm_dynamics.ros.<node>`: Python imports this package before the node.
if sys.argv[:1] == ["-m"] and any(word.startswith(f"{__name__}.") for word in sys.orig_argv):
    end_on_signals()
