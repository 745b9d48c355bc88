# SPDX-License-Identifier: Apache-2.0
"""ik_servo_check: the first ten minutes with an arm of servos. It needs no ROS."""
