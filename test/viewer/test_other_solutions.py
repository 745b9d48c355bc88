# SPDX-License-Identifier: Apache-2.0
"""Solutions of arms with a joint to spare, with tied directions, and of two arms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from desk import ROOT, Page, RobotSide, viewer
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from spare_arm import WITH_SPARE

from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf, rotation
from ik_node.ros.conversions import matrix_pose
from ik_node.solver.solver import IkSolver
from ik_node.viewer.scene.visuals import extent_of
from ik_node.viewer.solutions.why import possible_directions
from ik_node.viewer.solutions.why_scene import SPHERE_RADIUS


@contextmanager
def shown(text: str, arm: Arm, q: tuple[float, ...], *given: str) -> Iterator[tuple[Page, RobotSide]]:
    """A page that lists the solutions where the arm stands at q."""
    with viewer(*given, page=False) as (table, robot):
        page = Page(table)
        robot.describe(text)
        page.wait(lambda: page.labels(), 'the arm')
        joints = dict.fromkeys(arm.robot.joints, 0.1)
        robot.move(**{**joints, **dict(zip(arm.joint_names, q, strict=True))})
        page.choose('Show solutions', True)
        page.wait(lambda: rows(page), 'the solutions')
        page.run(2.0)  # users have had time to read the list
        yield page, robot
        page.close()


def rows(page: Page) -> list[str]:
    buttons = [one for one in page.controls.values() if one['kind'] == 'GuiButtonMessage']
    return [one['label'] for one in buttons if one['visible'] and '·' in one['label']]


def joints(message: JointState, arm: Arm) -> np.ndarray:
    values = dict(zip(message.name, message.position, strict=True))
    return np.array([values[name] for name in arm.joint_names])


def test_the_slider_along_a_self_motion_moves_a_ghost_and_its_button_the_arm() -> None:
    arm, q = Arm(read_urdf(WITH_SPARE)), (0.3, 0.3, 0.7, 0.5, 0.6, -0.4)
    with shown(WITH_SPARE, arm, q) as (page, robot):
        page.wait(lambda: page.control('Along the curve [%]')['visible'], 'the slider')
        (link,) = [name for name in page.nodes if name.startswith('/self_motion/')][-1:]
        before = page.pose(link)
        page.choose('Along the curve [%]', 10.0)
        page.wait(lambda: not np.allclose(page.pose(link), before, atol=1e-3), 'the ghost')
        page.run(1.0)
        assert not robot.joint_goals
        page.choose('Go to the ghost', True)
        robot.wait(lambda: robot.joint_goals, 'a goal')
        target = joints(robot.joint_goals[-1], arm)
        assert np.allclose(arm.fk(target), arm.fk(np.array(q)), atol=2e-3)
        assert np.abs(target - q).max() > 0.05


def test_a_spare_joint_that_is_held_stays() -> None:
    arm, q = Arm(read_urdf(WITH_SPARE)), (0.3, 0.3, 0.7, 0.5, 0.6, -0.4)
    with shown(WITH_SPARE, arm, q) as (page, robot):
        page.choose('Hold j0', True)
        page.run(2.0)
        page.choose(rows(page)[1], True)
        robot.wait(lambda: robot.joint_goals, 'a goal')
        target = joints(robot.joint_goals[-1], arm)
        assert abs(target[0] - q[0]) < 2e-3
        assert np.abs(target - q).max() > 0.02


def test_possible_directions_are_marked_where_the_position_ties_them() -> None:
    text = load_description(ROOT / 'urdf' / 'xarm5_like.urdf.xacro')
    arm, q = Arm(read_urdf(text)), (1.5, 0.2, -1.0, 0.5, 0.2)
    with shown(text, arm, q) as (page, robot):
        T = arm.robot.link_pose(arm.tip_link, dict(zip(arm.joint_names, q, strict=True)))
        T[:3, :3] = T[:3, :3] @ rotation(0.7, 0.0, 0.0)
        robot.want(T, arm.robot.root)
        page.wait(lambda: 'direction off by' in page.words(), 'the nearest direction')
        page.wait(lambda: page.nodes['/why/directions']['visible'], 'the marks')
        marks = page.nodes['/why/directions']
        directions = possible_directions(IkSolver(arm), T[:3, 3], np.array(q))
        assert len(directions) > 20
        places = marks['batched_positions'].view(np.float32).reshape(-1, 3)[: len(directions)]
        radius = SPHERE_RADIUS * extent_of(arm.robot, arm.tip_link)
        assert np.allclose(places, T[:3, 3] + radius * directions, atol=1e-4)


def test_the_list_is_of_the_tool_with_the_newest_goal() -> None:
    text = load_description(ROOT / 'urdf' / 'two_arms.urdf.xacro')
    arm, q = Arm(read_urdf(text), 'right_tool0'), (-0.3, 0.5, 0.9, 0.6, 0.4)
    tools = ('tools:=[left, right]', 'left.tip_link:=left_tool0', 'right.tip_link:=right_tool0')
    with shown(text, arm, q, *tools) as (page, robot):
        goals: list[JointState] = []
        robot.node.create_subscription(JointState, 'right/goal_joints', goals.append, 10)
        publisher = robot.node.create_publisher(PoseStamped, 'right/goal_pose', 10)
        T = arm.robot.link_pose('right_tool0', dict(zip(arm.joint_names, q, strict=True)))
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = arm.robot.root
        publisher.publish(message)
        page.run(4.0)
        page.choose(rows(page)[1], True)
        robot.wait(lambda: goals, 'a goal of the right arm')
        assert set(goals[-1].name) == set(arm.joint_names)
        assert np.allclose(arm.fk(joints(goals[-1], arm))[0], arm.fk(np.array(q))[0], atol=1e-3)
        assert not robot.joint_goals
