"""Arms of every maker that are broken on purpose, and what comes of it."""
