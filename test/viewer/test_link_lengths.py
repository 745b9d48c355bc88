# SPDX-License-Identifier: Apache-2.0
"""Sliders for link lengths: the description is rebuilt, the arm goes on, a real arm stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
import pytest
import rclpy
from desk import LATCHED, ROOT, SEED_ARM, Page, desk
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.node import IkNode

pytestmark = pytest.mark.slow

FILE = ROOT / 'urdf' / 'seed_arm.urdf.xacro'
LONGER = load_description(FILE, {'upper_arm_length': '0.4'})
SLIDER = 'upper arm [mm]'


class Listener:
    """Keeps the newest description and joints; it publishes nothing unless asked to."""

    def __init__(self, context: rclpy.Context) -> None:
        self.node = Node('listener', context=context)
        self.description = ''
        self.joints: dict[str, float] = {}
        self.node.create_subscription(String, 'robot_description', self._describe, LATCHED)
        self.node.create_subscription(JointState, 'joint_states', self._move, 10)

    def _describe(self, message: String) -> None:
        self.description = message.data

    def _move(self, message: JointState) -> None:
        self.joints = dict(zip(message.name, message.position, strict=True))

    def close(self) -> None:
        self.node.destroy_node()


@contextmanager
def started(**parameters: Any) -> Iterator[tuple[Page, Listener]]:
    """ik_node with the seed arm as a parameter, and the viewer that knows its file."""
    given = {'robot_description': SEED_ARM, 'home': [0.1, 0.2, 0.3, 0.4, 0.5], **parameters}
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    with desk() as table, ExitStack() as stack:
        node = IkNode(context=table.context, parameter_overrides=overrides)
        table.world.drive(node)
        stack.enter_context(closing(node))
        stack.enter_context(closing(table.make('ik_viewer', 'page_port:=0', f'description_file:={FILE}')))
        listener = stack.enter_context(closing(Listener(table.context)))
        page = stack.enter_context(closing(Page(table)))
        page.wait(lambda: folder_of(page)['visible'], 'the sliders')
        page.wait(lambda: not page.control('Solver')['disabled'], 'ik_node')
        yield page, listener


def folder_of(page: Page) -> dict[str, Any]:
    return page.control('Link lengths')


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Page, Listener]]:
    with started() as both:
        yield both


def test_a_slider_makes_the_arm_longer_and_its_joints_stay(running: tuple[Page, Listener]) -> None:
    page, listener = running
    page.wait(lambda: listener.joints, 'joint_states')
    before = dict(listener.joints)
    assert before['joint2'] == pytest.approx(0.2)
    page.choose(SLIDER, 400.0)
    page.wait(lambda: listener.description == LONGER, 'the description')
    tip = read_urdf(LONGER).link_pose('tool0', before)
    page.wait(lambda: np.allclose(page.pose('/tip'), tip, atol=1e-6), 'the longer arm on the page')
    page.wait(lambda: page.control(SLIDER)['value'] == 400.0, 'the slider')
    assert listener.joints == pytest.approx(before)
    assert folder_of(page)['visible']
    goal = np.array([[1, 0, 0, 0.4], [0, -1, 0, 0.1], [0, 0, -1, 0.2], [0, 0, 0, 1.0]])

    page.run(1.0)  # ik_node builds the arm anew
    page.drag(goal)
    page.wait(lambda: 'Arrived' in page.text(), 'the longer arm at a goal')
    page.choose(SLIDER, 320.3)
    page.wait(lambda: '0.3203' in listener.description, 'the arm as it was')


def test_sliders_reject_once_somebody_else_publishes_joints(running: tuple[Page, Listener]) -> None:
    page, listener = running
    page.wait(lambda: listener.description, 'the description')
    driver = listener.node.create_publisher(JointState, 'measured_joint_states', 10)
    page.wait(lambda: driver.get_subscription_count() > 0, 'ik_node')

    def slider_is_true() -> bool:
        return f'{page.control(SLIDER)["value"] / 1000.0:.4f}' in listener.description

    page.run(1.5)  # the viewer looks for publishers
    page.choose(SLIDER, 301.5)
    page.wait(lambda: 'measured by /listener' in page.words(), 'the rejection')
    page.wait(slider_is_true, 'the slider to go back')
    description = listener.description
    page.choose(SLIDER, 290.5)
    page.wait(slider_is_true, 'the slider to go back')
    assert listener.description == description
    listener.node.destroy_publisher(driver)


def test_sliders_reject_while_somebody_else_publishes_a_description(running: tuple[Page, Listener]) -> None:
    page, listener = running
    other = listener.node.create_publisher(String, 'robot_description', LATCHED)
    page.wait(lambda: other.get_subscription_count() > 0, 'the viewer')
    page.run(1.5)  # the viewer looks for publishers
    page.choose(SLIDER, 310.0)
    page.wait(lambda: 'its publishers: ' in page.words(), 'the rejection')


@pytest.mark.parametrize('given', [{'output': 'joint_trajectory'}, {'wait_for_measured': 'true'}])
def test_a_real_arm_keeps_its_links(given: dict[str, Any]) -> None:
    with started(**given) as (page, listener):
        page.choose(SLIDER, 400.0)
        page.wait(
            lambda: 'link lengths cannot be changed while ik_node commands a real or simulated arm' in page.words(),
            'the rejection',
        )
        page.wait(lambda: page.control(SLIDER)['value'] == 320.3, 'the slider to go back')
        page.wait(lambda: listener.description, 'the description')
        assert listener.description == SEED_ARM
