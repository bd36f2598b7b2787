"""The ``arm-dynamics`` command."""
