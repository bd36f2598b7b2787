"""The published gain search of five_dof, reproduced."""
