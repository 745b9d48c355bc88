# SPDX-License-Identifier: Apache-2.0
"""ik_goals: the goals it publishes lie on the track asked for, and it takes another one while it runs."""

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from stepped import World, world
from visualization_msgs.msg import Marker, MarkerArray

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros.conversions import pose_matrix, seconds
from ik_node.ros.interfaces import LATCHED
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.share import share_path
from ik_node.solver.solver import IkSolver
from ik_node.startup.arguments import SUFFIX
from ik_node.tracks import TRACKS, Place, Track, TrackSettings, can_follow, place_track


class Listener:
    """A goal publisher and what it publishes; armed: an arm says where it is."""

    def __init__(self, world: World, *, armed: bool = True, **parameters) -> None:
        self.world = world
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.goals = GoalsNode(context=world.context, parameter_overrides=overrides)
        self.ears = Node('ears', context=world.context)
        self.heard: list[PoseStamped] = []
        self.ears.create_subscription(PoseStamped, 'goal_pose', self.heard.append, 100)
        self.arm = self.ears.create_publisher(JointState, 'joint_states', 10)
        if armed:
            self.ears.create_timer(0.05, self.tell)

    def tell(self) -> None:
        """Say where the arm is."""
        self.arm.publish(JointState(name=['yaw'], position=[0.0]))

    def wait(self, count: int) -> list[PoseStamped]:
        """That many goals, from now on."""
        mark = len(self.heard)
        self.world.wait(lambda: len(self.heard) >= mark + count, f'{count} goals')
        return self.heard[mark:]

    def set(self, **parameters):
        return self.goals.set_parameters_atomically(
            [Parameter(name, value=value) for name, value in parameters.items()]
        )


@pytest.fixture
def listen():
    with world() as here:
        made = []
        yield lambda **parameters: made.append(Listener(here, **parameters)) or made[-1]
        for listener in made:
            listener.ears.destroy_node()
            listener.goals.close()


def test_the_tool_is_on_the_circle_and_points_along_the_direction(listen):
    axis, point = np.array([1.0, 0.0, 0.0]), np.array([0.05, 0.0, 0.01])
    tool = {'tool_axis': axis.tolist(), 'tool_point': point.tolist()}
    direction = [0.0, 0.6, -0.8]
    listener = listen(centre=[0.3, 0.1, 0.2], size=0.05, speed=0.2, direction=direction, frame='stand', **tool)
    goals = listener.wait(30)
    places = []
    for goal in goals:
        T = pose_matrix(goal.pose)
        assert goal.header.frame_id == 'stand'
        assert T[:3, :3] @ axis == pytest.approx(direction)
        places.append(T[:3, :3] @ point + T[:3, 3])
        assert np.linalg.norm(places[-1] - [0.3, 0.1, 0.2]) == pytest.approx(0.05)
    stamps = [seconds(goal.header.stamp) for goal in goals]
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(stamps)
    assert speed == pytest.approx(0.2, rel=0.05)


def test_every_track_can_be_chosen_while_it_runs_and_is_drawn(listen):
    listener = listen(track='none', centre=[0.3, 0.1, 0.2], size=0.05, frame='stand')
    drawn: list[Marker] = []
    listener.ears.create_subscription(
        MarkerArray, 'ik_goals/markers', lambda message: drawn.append(message.markers[0]), LATCHED
    )
    listener.world.run(0.5)
    assert not listener.heard
    for track in TRACKS:
        assert listener.set(track=track).successful
        assert pose_matrix(listener.wait(5)[0].pose)[:3, 2] == pytest.approx([0.0, 0.0, -1.0])
        curve = drawn[-1]
        assert (curve.header.frame_id, curve.action) == ('stand', Marker.ADD)
        points = np.array([[p.x, p.y, p.z] for p in curve.points])
        if track == 'circle':
            assert np.linalg.norm(points - (0.3, 0.1, 0.2), axis=1) == pytest.approx(0.05)
    assert listener.set(track='none').successful
    mark = len(listener.heard)
    listener.world.run(0.5)
    assert len(listener.heard) <= mark + 1  # one may have been on its way
    assert drawn[-1].action == Marker.DELETE


def test_it_waits_for_an_arm_and_then_starts_at_the_start(listen):
    """A goal before that would be rejected, and the track would be under way when the arm comes."""
    listener = listen(armed=False, track='line', speed=0.05)
    listener.world.run(3.0)
    assert not listener.heard
    listener.tell()
    listener.wait(3)
    settings = TrackSettings()
    start = Track('line', settings.centre, settings.size, 0.05, (0.0, 0.0, -1.0)).position(0.0)
    assert pose_matrix(listener.heard[0].pose)[:3, 3] == pytest.approx(start, abs=1e-3)


def test_nonsense_is_rejected_and_the_goal_travels_on(listen):
    listener = listen()
    for given in ({'track': 'square'}, {'direction': [0.0] * 3}, {'size': -1.0}, {'frame': ''}):
        result = listener.set(**given)
        assert not result.successful
        assert next(iter(given)) in result.reason
    listener.wait(3)
    with pytest.raises(InputError, match='track'):
        listen(track='square')


def test_the_seed_arm_can_follow_the_default_circle():
    solver = IkSolver(Arm.from_file(share_path('urdf', 'seed_arm.urdf.xacro')))
    settings = TrackSettings()
    assert can_follow(solver, 'circle', Place(settings.centre, settings.size, settings.direction))
    assert not can_follow(solver, 'circle', Place((0.8, 0.0, 0.2), settings.size, settings.direction))


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'prismatic_arm', 'ball_joint_arm'])
def test_a_place_for_every_track_is_found_for_an_arm(name):
    solver = IkSolver(Arm.from_file(share_path('urdf', f'{name}{SUFFIX}')), restarts=20)
    for track in TRACKS:
        place = place_track(solver, track)
        assert place is not None, track
        assert place.size > 0.02 * solver.arm.reach
        assert can_follow(solver, track, place)
