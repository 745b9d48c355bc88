"""Qualities of service: how much of each topic is kept, and for whom."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# One message that also reaches those who come later: robot_description, markers.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Goals. The newest counts, but a bad one must not push out the good one before it: the inbox sees to both.
GOALS = QoSProfile(depth=16)

# Only the newest counts: goals on their way out.
NEWEST = QoSProfile(depth=1)

# A stream of which a slow reader may miss some: joint_states, diagnostics.
STREAM = QoSProfile(depth=10)

# What was said last also reaches those who come later: status.
REPORTS = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# The newest from any sender, reliable or not: drivers publish joint states either way.
MEASURED = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
