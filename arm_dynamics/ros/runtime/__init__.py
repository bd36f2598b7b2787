"""Processes of nodes: signals, executors, lifecycle, ROS domain, transport, launch files.

May import topics, parameters and messages. Start reading at ``process.py``; ``start.py`` runs
the node of an executable, ``launch_parts.py`` holds the parts of the launch files.
"""
