"""Processes of nodes: signals, executors, lifecycle, ROS domain, transport, launch files.

May import topics, parameters and messages. Start reading at ``process.py``; ``start.py`` holds the
executables, ``launch_parts.py`` the parts of the launch files.
"""
