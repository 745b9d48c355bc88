# SPDX-License-Identifier: Apache-2.0
"""ik_goals: the goals it publishes lie on the track asked for, and it takes another one while it runs."""

import time

import numpy as np
import pytest
import rclpy
from domains import new_domain
from geometry_msgs.msg import PoseStamped
from node_harness import TIMEOUT
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from spinning import Spinning
from visualization_msgs.msg import Marker, MarkerArray
from waiting import wait_for

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros.conversions import pose_matrix, seconds
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.ros.qos import LATCHED
from ik_node.share import share_path
from ik_node.solver.solver import IkSolver
from ik_node.startup.robots import ARMS, SUFFIX
from ik_node.tracks.curves import TRACKS, Track
from ik_node.tracks.placement import Place, can_follow, place_track
from ik_node.tracks.settings import TrackSettings


class Listener:
    """A goal publisher and what it publishes; armed: an arm says where it is."""

    def __init__(self, *, armed: bool = True, **parameters) -> None:
        self.context = rclpy.Context()
        self.context.init(domain_id=new_domain())
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.goals = GoalsNode(context=self.context, parameter_overrides=overrides)
        self.ears = Node('ears', context=self.context)
        self.heard: list[PoseStamped] = []
        self.ears.create_subscription(PoseStamped, 'goal_pose', self.heard.append, 100)
        self.arm = self.ears.create_publisher(JointState, 'joint_states', 10)
        if armed:
            self.ears.create_timer(0.05, self.tell)
        self.spinning = Spinning(self.goals, self.ears)

    def tell(self) -> None:
        """Say where the arm is."""
        self.arm.publish(JointState(name=['yaw'], position=[0.0]))

    def wait(self, count: int) -> list[PoseStamped]:
        """That many goals, from now on."""
        mark = len(self.heard)
        wait_for(
            lambda: len(self.heard) >= mark + count,
            f'{count} goals',
            TIMEOUT,
            context=lambda: f'{len(self.heard) - mark} came',
        )
        return self.heard[mark:]

    def set(self, **parameters):
        return self.goals.set_parameters_atomically(
            [Parameter(name, value=value) for name, value in parameters.items()]
        )

    def close(self) -> None:
        self.spinning.end()
        self.ears.destroy_node()
        self.goals.close()
        self.context.try_shutdown()


@pytest.fixture
def listen():
    made = []

    def make(**parameters):
        made.append(Listener(**parameters))
        return made[-1]

    yield make
    for listener in made:
        listener.close()


def test_the_tool_is_on_the_circle_and_points_along_the_direction(listen):
    axis, point = np.array([1.0, 0.0, 0.0]), np.array([0.05, 0.0, 0.01])
    listener = listen(
        centre=[0.3, 0.1, 0.2],
        size=0.05,
        speed=0.2,
        direction=[0.0, 0.6, -0.8],
        frame='stand',
        tool_axis=axis.tolist(),
        tool_point=point.tolist(),
    )
    goals = listener.wait(30)
    places = []
    for goal in goals:
        T = pose_matrix(goal.pose)
        assert goal.header.frame_id == 'stand'
        assert T[:3, :3] @ axis == pytest.approx([0.0, 0.6, -0.8])
        places.append(T[:3, :3] @ point + T[:3, 3])
        assert np.linalg.norm(places[-1] - [0.3, 0.1, 0.2]) == pytest.approx(0.05)
    stamps = [seconds(goal.header.stamp) for goal in goals]
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(stamps)
    assert np.median(speed) == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize('track', TRACKS)
def test_every_track_can_be_chosen_while_it_runs(listen, track):
    listener = listen(track='none')
    assert listener.set(track=track).successful
    first = listener.wait(5)
    assert pose_matrix(first[0].pose)[:3, 2] == pytest.approx([0.0, 0.0, -1.0])


def test_the_curve_is_drawn_for_all_who_look(listen):
    listener = listen(track='circle', centre=[0.3, 0.1, 0.2], size=0.05, frame='stand')
    drawn = []
    listener.ears.create_subscription(MarkerArray, 'ik_goals/markers', drawn.append, LATCHED)

    def wait(condition):
        end = time.monotonic() + TIMEOUT
        while not (drawn and condition(drawn[-1].markers[0])):
            assert time.monotonic() < end
            time.sleep(0.01)
        return drawn[-1].markers[0]

    curve = wait(lambda marker: marker.action == Marker.ADD)
    assert curve.header.frame_id == 'stand'
    points = np.array([[p.x, p.y, p.z] for p in curve.points])
    assert np.linalg.norm(points - (0.3, 0.1, 0.2), axis=1) == pytest.approx(0.05)
    assert points[0] == pytest.approx(points[-1])
    assert listener.set(track='none').successful
    wait(lambda marker: marker.action == Marker.DELETE)


def test_none_publishes_nothing(listen):
    listener = listen()
    listener.wait(3)
    assert listener.set(track='none').successful
    time.sleep(0.2)  # what was on its way
    mark = len(listener.heard)
    time.sleep(0.5)
    assert len(listener.heard) == mark
    assert listener.set(track='line', goal_rate=100.0).successful
    listener.wait(3)


def test_it_waits_for_an_arm_and_then_starts_at_the_start(listen):
    """A goal before that would be rejected, and the track would be under way when the arm comes."""
    listener = listen(armed=False, track='line', speed=0.05)
    wait_for(listener.arm.get_subscription_count, 'ik_goals to listen to joint_states', TIMEOUT)
    wait_for(lambda: listener.goals.count_subscribers('goal_pose'), 'a reader of goal_pose', TIMEOUT)
    time.sleep(0.5)
    assert not listener.heard
    listener.tell()
    listener.wait(3)
    centre = TrackSettings().centre
    start = Track('line', centre, TrackSettings().size, 0.05, (0.0, 0.0, -1.0)).position(0.0)
    assert pose_matrix(listener.heard[0].pose)[:3, 3] == pytest.approx(start, abs=1e-3)


def test_nonsense_is_rejected_and_the_goal_travels_on(listen):
    listener = listen()
    assert 'circle' in listener.set(track='square').reason
    assert 'direction must be a unit vector' in listener.set(direction=[0.0, 0.0, 0.0]).reason
    assert not listener.set(size=-1.0).successful
    assert 'frame' in listener.set(frame='').reason
    listener.wait(3)


def test_it_does_not_start_with_nonsense(listen):
    with pytest.raises(InputError, match='one of none, circle'):
        listen(track='square')


def test_the_seed_arm_can_follow_the_default_circle():
    solver = IkSolver(Arm.from_file(share_path('urdf', 'seed_arm.urdf.xacro')))
    settings = TrackSettings()
    assert can_follow(solver, 'circle', Place(settings.centre, settings.size, settings.direction))
    assert not can_follow(solver, 'circle', Place((0.8, 0.0, 0.2), settings.size, settings.direction))


@pytest.mark.parametrize('name', ARMS)
def test_a_place_for_every_track_is_found_for_every_shipped_arm(name):
    solver = IkSolver(Arm.from_file(share_path('urdf', f'{name}{SUFFIX}')), restarts=20)
    for track in TRACKS:
        place = place_track(solver, track)
        assert place is not None, track
        assert place.size > 0.02 * solver.arm.reach
        assert can_follow(solver, track, place)
