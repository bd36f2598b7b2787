"""Bundled arms, one module each: published tables as values, and the URDF written from them.

``ideal_arm`` contains the common parts of the arms without motors.
"""
