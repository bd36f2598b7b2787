"""Start of a node that Ctrl-C ends at any time.

Importing a node takes seconds, and an interrupt during the import would print a traceback.
Therefore this module imports only the standard library. It imports a node after the signal
handlers are installed.
"""

from importlib import import_module

from arm_dynamics.core.signals import end_on_signals


def run_node(name: str) -> None:
    """Run the module of this name in ``arm_dynamics.ros.nodes``."""
    end_on_signals()
    import_module(f"arm_dynamics.ros.nodes.{name}").main()
