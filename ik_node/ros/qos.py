# SPDX-License-Identifier: Apache-2.0
"""Quality of service profiles."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# One message that late subscribers also receive: robot_description, markers.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Goals. The newest is used, but an invalid one must not displace the valid one before it.
GOAL_QOS = QoSProfile(depth=16)

# Only the newest is used: published goals.
NEWEST = QoSProfile(depth=1)

# A stream; slow subscribers may miss messages: joint_states, diagnostics.
STREAM = QoSProfile(depth=10)

# Late subscribers also receive the last report.
REPORTS = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Compatible with reliable and best-effort publishers; several drivers may each publish some joints.
MEASURED = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
