"""Result of an identification as plain values, and its report as text, tables and HTML.

May import core only. Start reading at ``fit_summary.py``, which the other packages fill.
"""
