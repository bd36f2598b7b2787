"""Goals as joint_trajectory_controller knows them: asked for, judged at every tick, ended."""
