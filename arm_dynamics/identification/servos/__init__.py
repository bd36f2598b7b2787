"""Position servos from target and measured positions: loop, motor, friction, backlash.

May import efforts, parameters, results and below. Start reading at ``servo_identification.py``.
"""
