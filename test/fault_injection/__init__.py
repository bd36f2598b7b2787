"""Fault injection: emulated arms of all manufacturers and their reactions."""
