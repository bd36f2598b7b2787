"""Predictive control: plans of sampled or optimized commands, by generated kernels.

May import the kernels of ``batch`` and all below ``batch``. Start reading at ``planner.py``.
"""
