"""Rollouts: many simulations of one arm, under given commands or under a controller.

Two backends, the same results: generated kernels and ``Plant``. Imports: kernels, and simulation,
control and below. Start reading at ``open_loop.py`` and ``closed_loop.py``; ``task_runner.py``
distributes the work, ``backends.py`` advances the states.
"""
