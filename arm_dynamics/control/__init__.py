"""Control loop, controllers, trajectories, goals and their configuration."""
