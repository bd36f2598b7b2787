"""Gains found by search, and what spreads of an arm's constants do to it."""
