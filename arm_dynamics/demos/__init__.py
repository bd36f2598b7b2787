"""Demonstrations: each system in figures of its own, one module a system.

A module computes a ``Trace`` (``simulate``: mathematics alone) and draws it (``show``).
"""
