"""The simulated arm: plant, motors, integrators, forward model and linearization."""
