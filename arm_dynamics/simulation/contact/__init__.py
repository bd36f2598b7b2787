"""Contact of an arm with objects: impulses, points of contact, free bodies.

Start with ``ContactPlant``, a ``Plant`` in a scene; ``ContactDynamics`` is the motion of the
objects, with or without an arm; ``solve_contact_problem`` is the mathematics.
"""
