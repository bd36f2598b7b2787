"""Emulated motors on one bus, and the simulated arm that they move.

May import hardware, simulation and below. Start with ``EmulatedMotors``, the interface of the
motors of each manufacturer, and ``serial_terminal``, which serves them at a pseudo terminal.
The motors are written from data sheets and manuals, not from the drivers that they test.
"""
