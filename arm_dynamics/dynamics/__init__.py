"""Rigid-body dynamics and kinematics of an arm."""
