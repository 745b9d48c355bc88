"""From requests to motion within limits. No ROS, no wall clock."""
