"""Demonstrations of ``arm-dynamics demo``: one module each.

Each module simulates its system without drawing (``simulate``) and returns figures and key figures
(``show``). ``registry`` lists the demonstrations, ``writer`` writes their figures;
``examples/gallery`` uses both for other arms. May import every package but ``cli`` and ``ros``;
requires matplotlib. Start with ``three_link``.
"""
