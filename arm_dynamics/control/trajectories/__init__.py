"""Joint-space and Cartesian trajectories, their limits and their checks."""
