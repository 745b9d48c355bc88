"""From requests to motion within limits, without ROS and without a wall clock."""
