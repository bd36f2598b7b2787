"""Motor models: one class per file, found by name through ``arm_dynamics.core.plugins``."""
