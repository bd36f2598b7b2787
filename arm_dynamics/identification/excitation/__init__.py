"""Excitation trajectories: search, information, limits, and self-collision.

May import parameters and below. Start reading at ``excitation.py`` (the Fourier series) and
``excitation_search.py`` (the choice of its coefficients).
"""
