"""The browser viewer: one more ROS node that talks topics only."""
