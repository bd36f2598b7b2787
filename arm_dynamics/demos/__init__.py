"""Demonstrations of ``arm-dynamics demo``: one module per system.

Each module simulates its system without drawing (``simulate``) and returns figures and key figures
(``show``). ``registry`` lists the demonstrations, ``writer`` writes their figures. May import
every package but ``cli`` and ``ros``; requires matplotlib. Start with ``three_link``.
"""
