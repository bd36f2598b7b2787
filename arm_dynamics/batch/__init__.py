"""Many arms at once: rollouts, stability, gain tuning and Monte Carlo analysis."""
