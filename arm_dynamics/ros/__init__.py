"""ROS 2 interface: nodes, topics, services and parameters.

The only package that imports rclpy; it may import every other package, and computes nothing itself.
Start reading in ``simulator``, ``hardware`` and ``joint_controller``: one module per node.
``arm_topics`` and ``topic_driver`` hold the joint_states and joint_commands of both sides,
``ros_parameters``, ``arm_parameters`` and ``controller_parameters`` all parameters.
"""

import sys

from arm_dynamics.core.signals import end_on_signals

# `python -m arm_dynamics.ros.<node>`: Python imports this package before the node.
if sys.argv[:1] == ["-m"] and any(word.startswith(f"{__name__}.") for word in sys.orig_argv):
    end_on_signals()
