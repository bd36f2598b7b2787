"""The built-in arms, one module each: their published tables as values, and their URDF."""
