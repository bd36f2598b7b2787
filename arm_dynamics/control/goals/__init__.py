"""Goals and streams on a control loop, by the rules of joint_trajectory_controller."""
