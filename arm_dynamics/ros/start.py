"""Start of a node, which Ctrl-C ends at any time.

Importing a node takes seconds, and an interrupt during the import would print a traceback.
Therefore this module imports only the standard library. It imports a node after the signal
handlers are installed.
"""

from importlib import import_module

from arm_dynamics.core.signals import end_on_signals


def run(node: str) -> None:
    """Run the node of the module ``arm_dynamics.ros.<node>``; the executables in nodes/ do this."""
    end_on_signals()
    import_module(f"arm_dynamics.ros.{node}").main()
