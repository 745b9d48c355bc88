"""The browser viewer: a ROS node that uses topics, services and parameters only."""
