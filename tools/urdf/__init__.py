"""The built-in arms, one module each: their published tables as values, and their URDF.

``ideal`` holds what the arms without motors have in common.
"""
