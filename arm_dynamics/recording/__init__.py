"""Recordings of simulations and arms as rosbag2 folders, and their replay by the forward model.

May import control, hardware, simulation and all below. Start reading at ``recorder.py``;
``table.py`` reads a recording as arrays, ``replay.py`` runs it again, ``bag.py`` lists the topics.
``motions`` reads the motion of an arm from recordings, tables and datasets of others.

``/recording`` (std_msgs/String) describes the arm, the time step and the initial state, again after
each change of the arm and each jump of its state. ``/joint_commands`` (sensor_msgs/JointState),
``/voltage_commands`` or ``/mixed_commands`` (std_msgs/Float64MultiArray) hold the command at the
begin of each period. ``/joint_states`` holds the state at its end, ``/actuator_states``
(std_msgs/Float64MultiArray) the actuator states, if any. ``/joint_references``
(sensor_msgs/JointState) holds the reference of the controller for the state of the same stamp, if
the recorder receives it. Recordings of hardware contain ``/robot_description``
(std_msgs/String) instead of ``/recording``. ``/recording_gaps`` (std_msgs/String)
marks periods dropped by a full or slow disk: first and last time [ns], and their number.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.recording.motions.motion_data import MotionData
    from arm_dynamics.recording.motions.motion_readers import load_motion
    from arm_dynamics.recording.recorder import Recorder
    from arm_dynamics.recording.table import Recording

_MODULES = {
    "MotionData": ".motions.motion_data",
    "Recorder": ".recorder",
    "Recording": ".table",
    "load_motion": ".motions.motion_readers",
}

__all__ = [
    "MotionData",
    "Recorder",
    "Recording",
    "load_motion",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
