"""From a URDF, or a table of links, to an ArmModel."""
