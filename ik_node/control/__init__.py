# SPDX-License-Identifier: Apache-2.0
"""From requests to motion within limits, without ROS and without a wall clock."""
