"""Which trajectory a loop follows, and how laws and trajectories are changed without a step."""
