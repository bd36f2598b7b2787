"""LQR gains about a configuration, and tables of them."""
