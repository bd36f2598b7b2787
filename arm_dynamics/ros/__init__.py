"""The ROS 2 face: nodes, conversions, parameters. The only place that imports rclpy."""
