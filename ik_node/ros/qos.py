# SPDX-License-Identifier: Apache-2.0
"""Quality of service profiles."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# One message that late subscribers also receive: robot_description, markers, the last report.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Goals. The newest is used, but an invalid one must not displace the valid one before it.
GOAL_QOS = QoSProfile(depth=16)

# Only the newest is used: published goals.
NEWEST = QoSProfile(depth=1)

# Each, after a pause of the subscriber too: the reference of a controller at up to 1 kHz.
BURST = QoSProfile(depth=100)

# A stream; slow subscribers may miss messages: joint_states, diagnostics.
STREAM = QoSProfile(depth=10)

# Compatible with reliable and best-effort publishers; several drivers may each publish some joints.
MEASURED = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
