# SPDX-License-Identifier: Apache-2.0
"""ik_goals: publish a goal pose that moves along a track.

It starts after the first joint_states message, i.e. once an arm is running.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from ik_node.ros.conversions import NS_PER_S, matrix_pose
from ik_node.ros.interfaces import LATCHED, MEASURED, NEWEST, subscribe
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.parameters import declare, on_change
from ik_node.ros.run import ClosableNode, run
from ik_node.ros.tool_interface import track_marker
from ik_node.tracks import NO_TRACK, Track, TrackSettings, tip_pose

CURVE_POINTS = 400  # of the line that shows a track


class GoalsNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_goals', **options)
        self._goals = self.create_publisher(PoseStamped, 'goal_pose', NEWEST)
        self._markers = self.create_publisher(MarkerArray, '~/markers', LATCHED)
        self._settings = declare(self, TrackSettings)
        self._timer: Timer | None = None
        self._track: Track | None = None
        self._armed = False  # an arm is running
        self._refused = ''  # why no goals are sent
        self._met = Neighbours(self, 'ik_goals', sends=['goal_pose'])
        self._joint_states: Subscription | None = subscribe(
            self, JointState, 'joint_states', self._on_joint_states, MEASURED
        )
        self.get_logger().info('waiting for joint_states')
        self._apply(self._settings)
        on_change(self, lambda: self._settings, track_of, self._apply)

    def _apply(self, settings: TrackSettings) -> None:
        """Move as in settings, from the start of the track."""
        self._track = track_of(settings)
        if self._timer is None or settings.goal_rate != self._settings.goal_rate:
            if self._timer is not None:
                self.destroy_timer(self._timer)
            self._timer = self.create_timer(1.0 / settings.goal_rate, self._publish)
        self._settings = settings
        self._start = self.get_clock().now()
        self._markers.publish(track_marker(settings.frame, self._curve(), settings.size))
        self.get_logger().info(f'track: {settings.track}')

    def _curve(self) -> list[NDArray[np.float64]]:
        """Return points (3,) along one lap of the track, none without a track."""
        track = self._track
        if track is None:
            return []
        return [track.position(time) for time in np.linspace(0.0, track.lap, CURVE_POINTS + 1)]

    def _on_joint_states(self, _: JointState) -> None:
        self._armed = True

    def _publish(self) -> None:
        if not (self._armed and self._met.settled):
            return
        before, self._refused = self._refused, self._met.foreign()
        if self._refused:
            if self._refused != before:
                self.get_logger().warning(self._refused)
            return
        if self._joint_states is not None:
            self.destroy_subscription(self._joint_states)
            self._joint_states = None
            self._start = self.get_clock().now()
        if self._track is None:
            return
        now = self.get_clock().now()
        place = self._track.position((now - self._start).nanoseconds / NS_PER_S)
        settings = self._settings
        T = tip_pose(place, settings.direction, settings.tool_axis, settings.tool_point, settings.roll)
        goal = PoseStamped(pose=matrix_pose(T))
        goal.header.stamp = now.to_msg()
        goal.header.frame_id = settings.frame
        self._goals.publish(goal)


def track_of(settings: TrackSettings) -> Track | None:
    """Return the track of settings, None for a goal at rest. Raises InputError."""
    if settings.track == NO_TRACK:
        return None
    return Track(settings.track, settings.centre, settings.size, settings.speed, settings.direction)


def main() -> int:
    """Run ik_goals."""
    return run('ik_goals', GoalsNode)
