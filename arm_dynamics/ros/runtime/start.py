"""Executables of the nodes, which Ctrl-C ends at any time.

Importing a node takes seconds, and an interrupt during the import would print a traceback.
Therefore this module imports only the standard library. It imports a node after the signal
handlers are installed.
"""

from importlib import import_module

from arm_dynamics.core.signals import end_on_signals


def simulator() -> None:
    """Run the simulator."""
    _run("simulator")


def hardware() -> None:
    """Run the hardware node of a physical arm."""
    _run("hardware")


def joint_controller() -> None:
    """Run the joint controller."""
    _run("joint_controller")


def task_space_controller() -> None:
    """Run the task-space controller."""
    _run("task_space_controller")


def composed() -> None:
    """Run simulator and joint controller in one process."""
    _run("composed")


def task_space_composed() -> None:
    """Run simulator and task-space controller in one process."""
    _run("task_space_composed")


def viewer() -> None:
    """Run the browser viewer of an arm."""
    _run("viewer")


def rviz_controls() -> None:
    """Run the interactive markers of RViz."""
    _run("rviz_controls")


def joint_sliders() -> None:
    """Run the browser page with joint sliders."""
    _run("joint_sliders")


def excitation() -> None:
    """Run an excitation trajectory on an active arm."""
    _run("excitation")


def _run(node: str) -> None:
    end_on_signals()
    import_module(f"arm_dynamics.ros.nodes.{node}").main()
