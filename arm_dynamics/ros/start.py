"""Executables of the nodes, which Ctrl-C ends at any time.

Importing a node takes seconds, and an interrupt during the import would print a traceback.
Therefore this module imports only the standard library. It imports a node after the signal
handlers are installed.
"""

from functools import partial
from importlib import import_module

from arm_dynamics.ros.shutdown_flag import end_on_signals


def start_node(module: str) -> None:
    """Run the node of a module of this package."""
    end_on_signals()
    import_module(f"arm_dynamics.ros.{module}").main()


simulator = partial(start_node, "simulator")
hardware = partial(start_node, "hardware")
joint_controller = partial(start_node, "joint_controller")
task_space_controller = partial(start_node, "task_space_controller")
composed = partial(start_node, "composed")
task_space_composed = partial(start_node, "task_space_composed")
viewer = partial(start_node, "viewer")
rviz_controls = partial(start_node, "rviz_controls")
joint_sliders = partial(start_node, "joint_sliders")
