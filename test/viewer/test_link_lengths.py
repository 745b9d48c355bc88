# SPDX-License-Identifier: Apache-2.0
"""Sliders for link lengths: the description is rebuilt, the arm goes on, a real arm stays as it is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
import yaml
from node_harness import new_domain
from page import Page
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from viewer_harness import LATCHED, ROOT, SEED_ARM, Process

from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf

FILE = ROOT / 'urdf' / 'seed_arm.urdf.xacro'
LONGER = load_description(FILE, {'upper_arm_length': '0.4'})
SLIDER = 'upper arm [mm]'


class Listener:
    """Keeps the newest description and joints; it publishes nothing unless asked to."""

    def __init__(self, domain: int) -> None:
        self._context = rclpy.Context()
        self._context.init(domain_id=domain)
        self.node = rclpy.create_node('listener', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.description = ''
        self.joints: dict[str, float] = {}
        self.node.create_subscription(String, 'robot_description', self._describe, LATCHED)
        self.node.create_subscription(JointState, 'joint_states', self._move, 10)

    def _describe(self, message: String) -> None:
        self.description = message.data

    def _move(self, message: JointState) -> None:
        self.joints = dict(zip(message.name, message.position, strict=True))

    def spin(self) -> bool:
        self._executor.spin_once(timeout_sec=0.05)
        return True

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()


@contextmanager
def started(folder: Path, **parameters: Any) -> Iterator[tuple[Page, Listener]]:
    """ik_node with the seed arm as a parameter, and the viewer that knows its file."""
    domain = new_domain()
    file = folder / 'ik_node.yaml'
    given = {'robot_description': SEED_ARM, 'home': [0.1, 0.2, 0.3, 0.4, 0.5], **parameters}
    file.write_text(yaml.safe_dump({'ik_node': {'ros__parameters': given}}))
    with ExitStack() as stack:
        node = Process('ik_node', domain, '--ros-args', '--params-file', str(file))
        stack.callback(node.end)
        arguments = ('-p', 'port:=0', '-p', f'description_file:={FILE}')
        viewer = Process('ik_viewer', domain, '--ros-args', *arguments)
        stack.callback(viewer.end)
        listener = Listener(domain)
        stack.callback(listener.close)
        page = Page(viewer.url())
        stack.callback(page.close)
        page.wait(lambda: folder_of(page)['visible'], 'the sliders')
        page.wait(lambda: not page.control('Solver')['disabled'], 'ik_node')
        yield page, listener
    assert 'Traceback' not in node.said + viewer.said


def folder_of(page: Page) -> dict[str, Any]:
    return page.control('Link lengths')


@pytest.fixture(scope='module')
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Listener]]:
    with started(tmp_path_factory.mktemp('lengths')) as both:
        yield both


def test_a_slider_makes_the_arm_longer_and_its_joints_stay(running: tuple[Page, Listener]) -> None:
    page, listener = running
    page.wait(lambda: listener.spin() and listener.joints, 'joint_states')
    before = dict(listener.joints)
    assert before['joint2'] == pytest.approx(0.2)
    page.choose(SLIDER, 400.0)
    page.wait(lambda: listener.spin() and listener.description == LONGER, 'the description')
    tip = read_urdf(LONGER).link_pose('tool0', before)
    page.wait(lambda: np.allclose(page.pose('/tip'), tip, atol=1e-6), 'the longer arm on the page')
    page.wait(lambda: listener.spin() and page.control(SLIDER)['value'] == 400.0, 'the slider')
    assert listener.joints == pytest.approx(before)
    assert folder_of(page)['visible']
    goal = np.array([[1, 0, 0, 0.4], [0, -1, 0, 0.1], [0, 0, -1, 0.2], [0, 0, 0, 1.0]])

    def arrived() -> bool:
        if 'Rejected' in page.text() or 'Ready' in page.text():  # ik_node still had the arm from before
            page.drag(goal)
            time.sleep(0.5)
        return 'Arrived' in page.text()

    page.wait(arrived, 'the longer arm at a goal')
    page.choose(SLIDER, 320.3)
    page.wait(lambda: listener.spin() and '0.3203' in listener.description, 'the arm as it was')


def test_sliders_reject_once_somebody_else_publishes_joints(running: tuple[Page, Listener]) -> None:
    page, listener = running
    page.wait(lambda: listener.spin() and listener.description, 'the description')
    driver = listener.node.create_publisher(JointState, 'measured_joint_states', 10)
    page.wait(lambda: driver.get_subscription_count() > 0, 'ik_node')

    def rejected() -> bool:  # once the viewer knows of the publisher
        page.choose(SLIDER, 301.5)
        time.sleep(0.5)
        return 'the joints are measured by /listener' in page.words()

    def slider_is_true() -> bool:
        listener.spin()
        return f'{page.control(SLIDER)["value"] / 1000.0:.4f}' in listener.description

    page.wait(rejected, 'the rejection')
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
    lengths = itertools.cycle([310.0, 312.0])

    def rejected() -> bool:  # once the viewer knows of the publisher
        page.choose(SLIDER, next(lengths))
        time.sleep(0.5)
        return 'its publishers: ' in page.words()

    page.wait(rejected, 'the rejection')


@pytest.mark.parametrize('given', [{'output': 'joint_trajectory'}, {'wait_for_measured': 'true'}])
def test_a_real_arm_keeps_its_links(tmp_path: Path, given: dict[str, Any]) -> None:
    with started(tmp_path, **given) as (page, listener):
        page.choose(SLIDER, 400.0)
        page.wait(lambda: 'whose links do not change' in page.words(), 'the rejection')
        page.wait(lambda: page.control(SLIDER)['value'] == 320.3, 'the slider to go back')
        page.wait(lambda: listener.spin() and listener.description, 'the description')
        assert listener.description == SEED_ARM
