"""Many arms at once: one straight-line kernel an arm, traced from the plant's own laws."""
