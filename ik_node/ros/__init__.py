"""The ROS 2 nodes: message conversion, parameters, topics and services."""
