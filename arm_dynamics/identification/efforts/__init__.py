"""Parameters from recorded efforts, currents or voltages.

Recorded motion → ``motion_preparation.py`` → ``effort_equations.py`` → ``torque_fit.py`` →
``output_error_refinement.py`` → ``arm_identification.py``, where to start reading. May import
excitation, parameters, results and below.
"""
