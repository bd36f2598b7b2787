"""Dynamic parameters of an arm: regressor, base parameters, physical consistency, written URDF.

May import batch and all below. Start reading at ``dynamic_parameters.py`` (the linear equation of
the efforts) and ``base_parameter_set.py`` (what a motion determines).
"""
