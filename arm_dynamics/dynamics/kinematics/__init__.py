"""Forward, differential and inverse kinematics of the frames of an arm."""
