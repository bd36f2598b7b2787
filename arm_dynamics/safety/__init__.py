"""What stands between a control law and a motor; on by default, no plugin can skip it."""
