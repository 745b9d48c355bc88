# SPDX-License-Identifier: Apache-2.0
"""Console scripts that need no ROS: ik_solve, ik_inspect, ik_reach."""
