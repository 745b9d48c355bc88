"""The ROS 2 side: messages to arrays and back, parameters, wiring."""
