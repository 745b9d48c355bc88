"""Qualities of service: how much of each topic is kept, and for whom."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# One message that also reaches those who come later: robot_description, markers.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Goals. The newest counts, but a bad one must not push out the good one before it: the inbox handles both.
GOAL_QOS = QoSProfile(depth=16)

# Only the newest counts: goals on their way out.
NEWEST = QoSProfile(depth=1)

# A stream of which a slow reader may miss some: joint_states, diagnostics.
STREAM = QoSProfile(depth=10)

# The last report also reaches those who come later.
REPORTS = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# From any sender, reliable or not: drivers publish joint states either way, several may have some each.
MEASURED = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
