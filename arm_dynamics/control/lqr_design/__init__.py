"""Linear-quadratic gains about a pose, and tables of them."""
