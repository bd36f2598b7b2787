"""Values, errors, plugins and the compiled mathematics that every other package uses."""
