"""Dynamixel X motors, protocol 2.0: everything that is particular to them is in this folder."""
