"""Simulations written to rosbag2 folders, and run again from there with the forward model.

A recording has three topics or more: ``/recording`` (std_msgs/String) describes the arm, the
time step and the state from which everything follows, anew after each change of the arm and each
jump of its state; ``/joint_commands`` (sensor_msgs/JointState), ``/voltage_commands`` or
``/mixed_commands`` (std_msgs/Float64MultiArray) has each period's command at its beginning;
``/joint_states`` has the state at its end, and ``/actuator_states`` (std_msgs/Float64MultiArray)
the actuators' own states where there are any. ``/recording_gaps`` (std_msgs/String) stands where
the disk was too full or too slow: first and last time [ns] of what was dropped, and how much.

``Recording.load(folder)`` reads any of them as numpy arrays, a DataFrame, CSV or Parquet.
"""

from arm_dynamics.recording.table import Recording

__all__ = ["Recording"]
