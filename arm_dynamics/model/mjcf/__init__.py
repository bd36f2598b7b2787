"""MJCF, the format of MuJoCo: read as URDF, and written from an arm.

May import ``model``. Start with ``reader`` and ``writer``.
"""
