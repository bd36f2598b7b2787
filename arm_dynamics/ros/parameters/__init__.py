"""ROS parameters: declaration, checks, live changes of arms and controllers.

May import messages. Start reading at ``ros_parameters.py``.
"""
