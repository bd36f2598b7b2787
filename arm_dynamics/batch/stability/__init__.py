"""Stability analysis of sampled control loops; see ``stability_report.py``."""
