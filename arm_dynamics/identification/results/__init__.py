"""Result of an identification: parameters, warnings, report as text, tables and HTML, URDF.

May import parameters and below. Start reading at ``identification_result.py``.
"""
