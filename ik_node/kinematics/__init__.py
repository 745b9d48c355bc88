"""Kinematics: pure mathematics and URDF reading. Imports neither ROS nor the viewer."""
