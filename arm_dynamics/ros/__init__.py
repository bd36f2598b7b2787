"""ROS 2 interface: nodes, topics, services and parameters.

The only package that imports rclpy; it may import every other package, and computes nothing itself.
Its packages, from the top: ``nodes`` (one module per executable), ``runtime`` (processes,
lifecycle, launch files), ``topics`` (topics, services, actions), ``parameters``, ``messages``.
Start reading in ``nodes/simulator.py``, ``nodes/hardware.py`` and ``nodes/joint_controller.py``.
"""

import sys

from arm_dynamics.core.signals import end_on_signals

# `python -m arm_dynamics.ros.nodes.<node>`: Python imports this package before the node.
if sys.argv[:1] == ["-m"] and any(word.startswith(f"{__name__}.") for word in sys.orig_argv):
    end_on_signals()
