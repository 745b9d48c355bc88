# SPDX-License-Identifier: Apache-2.0
"""One node with several tools: two arms side by side, and two arms on one torso."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseArray, TwistStamped
from node_harness import Client
from rclpy.parameter import Parameter
from std_msgs.msg import Int8, String
from stepped import World, world

from ik_node import client as goto
from ik_node.control.requests import HomeRequest, Request
from ik_node.errors import IkError
from ik_node.model.tree import Tool, Tree
from ik_node.model.urdf.description import load_description
from ik_node.ros.goals import JointsRequest
from ik_node.ros.interfaces import LATCHED
from ik_node.ros.node import IkNode
from ik_node.ros.parameters import RemoteSettings
from ik_node.share import share_path

pytestmark = pytest.mark.slow

TIPS = {'left.tip_link': 'left_tool0', 'right.tip_link': 'right_tool0'}
TOOLS = {'left': Tool('left_tool0'), 'right': Tool('right_tool0')}


def text_of(name: str) -> str:
    return load_description(share_path('urdf', f'{name}.urdf.xacro'))


class Robot:
    """A node with two tools, and a client of each."""

    def __init__(self, world: World, node: IkNode, text: str) -> None:
        self.node, self.world = node, world
        self.clients = {tool: Client(world.context, tool=tool, world=world) for tool in TOOLS}
        self.left, self.right = self.clients.values()
        self.tree = Tree.from_urdf(text, TOOLS)

    def values(self, sample: Any) -> np.ndarray:
        named = dict(zip(sample.name, sample.position, strict=True))
        return np.array([named[name] for name in self.tree.joint_names])

    def places(self) -> dict[str, np.ndarray]:
        """Where the tool points are."""
        q = self.values(self.left.samples[-1])
        return {name: point for name, (point, _) in self.tree.fk(q).items()}

    def still(self) -> None:
        mark = len(self.left.samples)
        self.left.wait(
            lambda: len(self.left.samples) > mark + 5 and not any(any(s.velocity) for s in self.left.samples[-5:]),
            'rest',
        )


@contextmanager
def robot(name: str, **parameters: Any) -> Iterator[Robot]:
    text = text_of(name)
    given = {'robot_description': text, 'tools': list(TOOLS), 'speed_scaling': 1.0, **TIPS, **parameters}
    with world() as here:
        overrides = [Parameter(k, value=v) for k, v in given.items()]
        node = IkNode(context=here.context, parameter_overrides=overrides)
        here.drive(node)
        served = Robot(here, node, text)
        try:
            if given['robot_description'] and 'joint_states' in parameters.get('output', 'joint_states'):
                served.left.wait(lambda: served.left.samples, 'joint_states')
            yield served
        finally:
            for client in served.clients.values():
                client.close()
            node.close()


def test_each_arm_has_goals_a_stop_and_reports_of_its_own():
    with robot('two_arms') as two:
        assert two.left.answer('goal_joints', two.left.joints(left_joint1=1.0)).message.startswith('solved')
        two.left.wait_said('arrived')
        two.still()
        assert not two.right.about('goal_joints')
        sample = two.left.samples[-1]
        assert sorted(sample.name) == sorted(two.tree.joint_names)  # one message with all joints, each once
        named = dict(zip(sample.name, sample.position, strict=True))
        assert named['left_joint1'] == pytest.approx(1.0)
        assert named['right_joint1'] == pytest.approx(0.0)
        two.right.answer('goal_joints', two.right.joints(right_joint1=-1.5))
        assert two.left.call('ik_node/left/stop').success
        two.right.wait_said('arrived')  # the other arm goes on
        assert 'stopped' in two.left.answer('goal_joints', two.left.joints(left_joint1=0.0)).message
        assert two.left.call('ik_node/stop').success
        assert 'stopped' in two.right.answer('goal_joints', two.right.joints(right_joint1=0.0)).message
        answer = two.left.call('ik_node/resume')
        assert answer.success
        assert 'left: ' in answer.message
        assert 'right: ' in answer.message
        assert two.left.call('ik_node/home').success
        for client in two.clients.values():
            client.wait_said('arrived')
        foreign = two.left.answer('goal_joints', two.left.joints(right_joint1=0.3))
        assert 'joint "right_joint1" is commanded by another tool' in foreign.message


def test_what_waits_behind_another_arm_does_not_move_after_a_stop_and_a_resume():
    """The goal thread has taken both requests together, and the first one takes its time."""
    with robot('two_arms') as two:
        two.right.answer('goal_joints', two.right.joints(right_joint1=-0.5))
        two.right.wait_said('arrived')
        left, right = two.node._tools
        submit = left.own_controller.submit

        def busy(*requests: Request) -> None:
            if requests:
                assert two.right.call('ik_node/stop').success
                assert two.right.call('ik_node/resume').success
            submit(*requests)

        left.own_controller.submit = busy
        late = JointsRequest('late', two.right.joints(right_joint1=0.5), right.goals)
        two.node._inbox.put(HomeRequest('left'))
        two.node._inbox.put(late)
        two.right.wait_said('late rejected: the goal was sent before the arm was resumed')
        two.still()
        assert two.values(two.right.samples[-1])[two.tree.joint_names.index('right_joint1')] == -0.5
        assert two.right.answer('goal_joints', two.right.joints(right_joint1=0.1)).message.startswith('solved')


def test_the_arms_of_one_robot_do_not_collide():
    pytest.importorskip('coal')
    with robot('two_arms') as two:
        middle = two.left.point([0.35, 0.0, 0.25])
        assert two.left.answer('goal_point', middle).message.startswith('solved')
        two.left.wait_said('arrived')
        two.still()
        status = two.right.answer('goal_point', middle)
        assert 'link "left_' in status.message or 'link "right_' in status.message
        # Both on their way at once, towards each other: the second one is checked along the first one's way.
        two.left.call('ik_node/home')
        two.left.wait_said('arrived')
        mark = len(two.left.samples)
        two.left.send('goal_point', two.left.point([0.35, -0.05, 0.25]))
        two.right.send('goal_point', two.right.point([0.35, 0.05, 0.25]))
        two.right.wait(lambda: len(two.right.about('goal_point')) > 1, 'an answer')
        two.still()
        collision = two.node._tools[0].controller.snapshot('left').model.collision
        joints = two.node._tools[0].controller.snapshot('left').model.joints
        for sample in two.left.samples[mark::5]:
            values = joints.filled(dict(zip(sample.name, sample.position, strict=True)))
            assert collision.distance(values)[0] > 0.0


def test_tools_that_share_a_torso_meet_their_goals_and_stop_together():
    with robot('torso_arms', self_collision='false') as torso:
        drawn = torso.tree.sample(np.random.default_rng(5), 1)[0]
        goals = {name: point for name, (point, _) in torso.tree.fk(drawn).items()}
        for name, client in torso.clients.items():
            answer = client.answer('goal_point', client.point(goals[name]))
            assert answer.message.startswith('solved'), answer.message
        torso.still()
        for name, place in torso.places().items():
            assert np.linalg.norm(place - goals[name]) < 2e-4
        assert torso.left.call('ik_node/right/stop').success
        for client in torso.clients.values():
            client.wait_said('stopped')
        assert torso.left.call('ik_node/resume').success


def test_tools_that_share_joints_have_neither_paths_nor_twists():
    with robot('torso_arms', self_collision='false') as torso:
        path = PoseArray()
        path.poses.append(torso.left.pose(np.eye(4)).pose)
        assert 'another tool shares some of these joints' in torso.left.answer('goal_path', path).message
        twists = torso.left.node.create_publisher(TwistStamped, 'ik_node/left/delta_twist_cmds', 10)
        codes: list[int] = []
        torso.left.node.create_subscription(
            Int8, 'ik_node/left/servo_status', lambda message: codes.append(message.data), LATCHED
        )
        before = torso.values(torso.left.samples[-1])

        def rejected() -> bool:
            twist = TwistStamped()
            twist.twist.linear.z = 1.0
            twists.publish(twist)
            return -1 in codes

        torso.left.wait(rejected, 'the rejection of a twist')
        assert torso.values(torso.left.samples[-1]) == pytest.approx(before, abs=1e-12)


@pytest.mark.usefixtures('terminal')
@pytest.mark.parametrize(('speed', 'share'), [(1.0, 0.3), (0.5, 0.3), (0.2, 0.2)])
def test_a_client_of_one_tool_makes_no_other_one_faster(speed: float, share: float):
    with robot('two_arms') as two:
        two.left.set_together(goal_speed=0.3)  # of a program that moves the other arm
        two.left.answer('goal_joints', two.left.joints(left_joint1=2.0))
        with goto.ArmClient('right') as arm:
            arm.move((0.3, 0.1, 0.2), speed=speed, timeout=1.0)
        assert two.node.get_parameter('goal_speed').value == share


def test_a_workspace_that_has_no_effect_is_named(capfd):
    """Tools that share joints have the workspace of the first of them."""
    box = [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]
    words = 'right.workspace is not used: right shares joints with left'
    with robot('torso_arms', self_collision='false', **{'right.workspace': box}) as torso:
        assert words in capfd.readouterr().err
        torso.left.set_together(speed_scaling=0.5)
        assert torso.left.set_together(**{'left.workspace': box}).successful
        assert words not in capfd.readouterr().err
        assert torso.left.set_together(**{'left.workspace': [0.0] * 6}).successful
        assert words in capfd.readouterr().err
    with robot('two_arms', **{'right.workspace': box}):
        assert words not in capfd.readouterr().err


def test_a_resume_that_is_rejected_forgets_no_stop():
    """Before the first robot each tool is stopped alone; the robot has one controller for both."""
    with robot('torso_arms', robot_description='', self_collision='false') as torso:
        assert torso.right.call('ik_node/right/stop').success
        assert not torso.right.call('ik_node/right/resume').success
        torso.left.description.publish(String(data=text_of('torso_arms')))
        torso.left.wait(lambda: torso.left.samples, 'joint_states')
        goal = torso.left.joints(left_joint1=0.1)
        assert 'rejected: stopped' in torso.left.answer('goal_joints', goal).message
        assert torso.right.call('ik_node/right/resume').success
        goal = torso.left.joints(left_joint1=0.1)
        assert torso.left.answer('goal_joints', goal).message.startswith('solved')


@pytest.mark.parametrize(
    ('parameters', 'says'),
    [
        ({'tools': ['left', 'left']}, 'tools'),
        ({'tools': ['left arm', 'right']}, 'tools'),
        ({'left.tool_axis': [0.0, 0.0, 0.0]}, 'tool left: .*tool_axis'),
        ({'right.tip_link': 'hand'}, 'tool right: .*"hand"'),
        ({'left.tip_link': ''}, 'tool left: .*tip_link'),
    ],
)
def test_wrong_tools_are_rejected_at_start(parameters, says):
    with pytest.raises(IkError, match=says), robot('two_arms', **parameters):
        pass


def test_other_programs_read_the_settings_of_each_tool():
    with robot('two_arms', **{'right.workspace': [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]}) as two:
        settings = RemoteSettings(two.left.node)
        two.left.wait(lambda: settings.refresh() or settings.reading, 'ik_node')
        two.left.wait(lambda: settings.current, 'the settings')
        own = two.node._settings.arms
        assert settings.current.arms == {tool: replace(own[tool], robot_description='') for tool in TOOLS}
        settings.reset()
        assert settings.current is None


def test_the_goal_and_the_point_of_one_tool(capsys):
    with robot('two_arms') as two:
        assert goto.main(['0.3', '0.4', '0.2', '--tool', 'middle', '--direction', '1', '0', '0']) == 2
        assert 'ik_node has no parameter middle.tool_axis' in capsys.readouterr().err
        assert goto.main(['0.3', '0.4', '0.2', '--tool', 'left', '--direction', '1', '0', '0']) == 0
        assert goto.main(['0.3', '0.4', '0.2', '--tool', 'left']) == 0
        before = two.places()
        assert np.linalg.norm(before['left'] - [0.3, 0.4, 0.2]) < 2e-4
        assert not two.right.about('goal_point')
        assert two.left.set_together(**{'left.tool_point': [0.0, 0.0, 0.05]}).successful
        assert two.left.answer('goal_point', two.left.point(before['left'])).message.startswith('solved')
        two.still()
        after = two.places()
        assert np.linalg.norm(after['left'] - before['left']) == pytest.approx(0.05, abs=1e-3)
        assert np.linalg.norm(after['right'] - before['right']) < 1e-9
        result = two.left.set_together(**{'left.tip_link': 'elsewhere'})
        assert not result.successful
        assert '"elsewhere"' in result.reason


@contextmanager
def simulated(name: str) -> Iterator[Robot]:
    """The robot in a physics engine, commanded by trajectories through a controller for each arm."""
    pytest.importorskip('mujoco')
    from ik_node.sim.node import PlantNode

    with robot(name, output='joint_trajectory') as served:
        given = {'robot_description': text_of(name), 'tools': list(TOOLS), 'noise': 1e-4}
        overrides = [Parameter(k, value=v) for k, v in given.items()]
        plant = PlantNode(context=served.world.context, parameter_overrides=overrides)
        served.left.wait(lambda: served.left.samples, 'measured joints')
        yield served
        plant.destroy_node()


@pytest.mark.parametrize('name', ['two_arms', 'torso_arms'])
def test_simulated_arms_get_to_their_goals_at_the_same_time(name):
    with simulated(name) as both:
        for client in both.clients.values():
            client.wait_said('joints')  # measured, and ready
        goals = {'left': [0.3, 0.35, 0.5], 'right': [0.35, -0.3, 0.6]}

        for tool, client in both.clients.items():
            assert client.answer('goal_point', client.point(goals[tool])).message.startswith('solved')
        for client in both.clients.values():
            client.wait_said('arrived at the goal')
        both.left.wait(
            lambda: all(np.linalg.norm(both.places()[tool] - goals[tool]) < 2e-3 for tool in TOOLS),
            'the tools at their goals, as measured',
        )
