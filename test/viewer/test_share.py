# SPDX-License-Identifier: Apache-2.0
"""Links to an arm at its joints and goal: what they say, and that none moves the arm by itself."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest
from desk import SEED_ARM, SEED_JOINTS, TIMEOUT, Page, RobotSide, showing

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.viewer.share import Link

pytestmark = pytest.mark.slow

Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
OTHER = dict(zip(SEED_JOINTS, (0.8, 0.3, 0.7, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)


@pytest.mark.parametrize('directed', [True, False])
def test_a_link_says_what_it_was_made_of(directed: bool) -> None:
    T = ARM.robot.link_pose('tool0', Q)
    odd = {'a/b c': 1.0, 'ü=&': -2.5}
    link = Link.read(Link('arm & co', 'left', {**Q, **odd}, T, directed).text())
    assert (link.robot, link.tool, link.directed) == ('arm & co', 'left', directed)
    assert link.joints == pytest.approx({**Q, **odd}, abs=1e-5)
    assert link.T_base_goal is not None
    assert np.allclose(link.T_base_goal, T, atol=2e-5)
    assert Link.read(Link('a', '', Q).text()).T_base_goal is None


@pytest.mark.parametrize(
    'text',
    [
        '',
        'v=2&robot=a',
        'v=1&joint.a=nan',
        'v=1&joint.a=inf',
        'v=1&joint.a=1e9',
        'v=1&joint.a=<script>',
        'v=1&goal=0,0,0,0,1,1,1',
        'v=1&goal=1,0,0,0,1,1',
        'v=1&goal=1,0,0,0,1,1,nan',
        'v=1&robot=' + 5000 * 'a',
    ],
)
def test_what_is_no_link_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match='link'):
        Link.read(text)


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Page, RobotSide]]:
    with showing(SEED_ARM, **Q) as (page, robot):
        page.wait(lambda: get(page, 'alive'), 'a link')
        yield page, robot
        assert not robot.goals


def get(page: Page, path: str) -> str:
    """What the viewer answers to a request of the page around it."""
    with urllib.request.urlopen(f'{page.url}{path}', timeout=TIMEOUT) as answer:
        return answer.read().decode()


def folder(page: Page) -> bool:
    folders = [c for c in list(page.controls.values()) if c['kind'] == 'GuiFolderMessage']
    return any(one['label'] == 'Link' and one['visible'] for one in folders)


def test_the_address_follows_the_arm(running: tuple[Page, RobotSide]) -> None:
    page, robot = running
    robot.move(**OTHER)
    page.wait(
        lambda: Link.read(get(page, 'alive')).joints == pytest.approx(OTHER, abs=1e-4), 'the new joints'
    )
    assert Link.read(get(page, 'alive')).robot == ARM.robot.name


@pytest.mark.parametrize('more', [{}, {'another': 0.5}])
def test_a_link_moves_the_arm_only_after_a_click(
    running: tuple[Page, RobotSide], more: dict[str, float]
) -> None:
    page, robot = running
    robot.move(**Q)
    text = Link(ARM.robot.name, '', {**OTHER, **more}, ARM.robot.link_pose('tool0', OTHER)).text()
    get(page, f'open?{text}')
    page.wait(lambda: folder(page), 'the proposal')
    page.wait(lambda: any(name.startswith('/link/') for name in page.nodes), 'the ghost')
    page.run(1.0)
    assert not robot.joint_goals
    uuid = next(uuid for uuid, c in page.controls.items() if 'Go there' in c.get('options', ()))
    page._send('GuiUpdateMessage', uuid=uuid, updates={'value': 'Go there'})
    robot.wait(lambda: robot.joint_goals, 'the goal')
    message = robot.joint_goals[-1]
    assert dict(zip(message.name, message.position, strict=True)) == pytest.approx(OTHER, abs=1e-4)
    page.wait(lambda: not folder(page), 'no proposal')
    robot.joint_goals.clear()


@pytest.mark.parametrize(
    ('link', 'why'),
    [
        (Link('another', '', OTHER), 'is for the robot &quot;another&quot;'),
        (Link(ARM.robot.name, 'left', OTHER), 'is for the tool &quot;left&quot;'),
        (Link(ARM.robot.name, '', {'joint1': 0.1}), 'lacks a position of joint2'),
    ],
)
def test_a_link_of_another_arm_says_so(running: tuple[Page, RobotSide], link: Link, why: str) -> None:
    page, robot = running
    get(page, f'open?{link.text()}')
    page.wait(lambda: why in page.words(), 'the reason')
    get(page, f'open?v=1&robot={urllib.parse.quote("<b>x</b>")}')
    page.wait(lambda: '&lt;b&gt;' in page.words(), 'the name as text')
    assert '<b>' not in page.words()
    assert not robot.joint_goals
