"""Nodes: one module per executable, and the parts that a single node uses.

May import runtime, topics, parameters and messages. Start reading at ``simulator.py`` and
``joint_controller.py``.
"""
