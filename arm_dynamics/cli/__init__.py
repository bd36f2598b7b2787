"""The command ``arm-dynamics``: one module per sub-command.

Each module has ``run(arguments) -> int``; most have ``command_parser()``. May import every package;
``sim`` is in ``ros``. Start with ``main``; ``arm_options`` contains the common options,
``hardware_options`` those of physical arms.
"""
