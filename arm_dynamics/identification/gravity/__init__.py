"""Gravity parameters from poses at rest: choice, measurement, calibration.

May import efforts, excitation, parameters and below. Start reading at ``gravity_calibration.py``.
"""
