"""Result of an identification as plain values, and its report as text, tables and HTML.

May import core only; the other rooms fill ``fit_summary.py``, where to start reading.
"""
