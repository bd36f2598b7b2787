"""Gain tuning by optimization, and Monte Carlo analysis of arms drawn from tolerances."""
