"""Programs for the developers of the package."""
