"""Commands of ``arm-dynamics hardware``: one module per sub-command, with a function ``run``.

May import ``cli`` and what it may import, but not ``ros``. Start reading at ``command``, which
finds the sub-command. ``torque_session`` enables torque and disables it at every end,
``keyboard`` reads keys while an arm moves, ``options`` holds the common options.
"""
