# SPDX-License-Identifier: Apache-2.0
"""The folder of the recordings: what moved is in the file, and a replay moves a ghost only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desk import SEED_ARM, SEED_JOINTS, Desk, Page, RobotSide, viewer
from mcap.reader import make_reader

from ik_node.model.arm import Arm
from ik_node.viewer.recording import recorded
from ik_node.viewer.recordings import END, PLAY, RECORD

pytestmark = pytest.mark.slow

ARM = Arm.from_urdf(SEED_ARM)
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[tuple[Desk, Page, RobotSide]]:
    with viewer(f'recordings:={tmp_path}', page=False) as (table, robot):
        page = Page(table)
        robot.describe(SEED_ARM)
        page.wait(lambda: page.labels(), 'the arm')
        robot.move(**Q)
        page.wait(lambda: np.allclose(page.pose('/tip'), ARM.robot.link_pose('tool0', Q)), 'its joints')
        yield table, page, robot


def positions(folder: Path) -> list[float]:
    """Of joint1, as they were recorded."""
    (path,) = folder.glob('*.mcap')
    return [one.message.position[0] for one in recorded(path) if one.topic == '/joint_states']


def ghost(page: Page) -> np.ndarray:
    """Where the replay shows the last link."""
    name = max(name for name in page.nodes if name.startswith('/replay/'))
    return page.pose(name)


def own(page: Page, label: str) -> str:
    """The control of the replay, below that of another folder with the same label."""
    return [uuid for uuid, one in page.controls.items() if one.get('label') == label][-1]


def seconds(page: Page) -> float:
    return page.controls[own(page, 'Time [s]')]['value']


def press(page: Page, label: str, value: Any) -> None:
    page._send('GuiUpdateMessage', uuid=own(page, label), updates={'value': value})


def test_a_recording_has_what_moved_and_its_replay_commands_nothing(
    shown: tuple[Desk, Page, RobotSide], tmp_path: Path
) -> None:
    _, page, robot = shown
    page.choose(RECORD, True)
    page.wait(lambda: page.control(END)['visible'], 'the recording')
    for k in range(20):
        robot.move(**{**Q, 'joint1': 0.05 * k})
        page.run(0.1)
    page.choose(END, True)
    page.wait(lambda: 'Saved' in page.words(), 'the end of the recording')
    assert positions(tmp_path) == pytest.approx([0.05 * k for k in range(20)])

    (path,) = tmp_path.glob('*.mcap')
    page.wait(lambda: path.name in page.control('Replay')['options'], 'the file')
    page.choose('Replay', path.name)
    page.wait(lambda: page.controls[own(page, 'Time [s]')]['visible'], 'the scrub bar')
    arm, begin = page.pose('/tip'), ghost(page)
    press(page, 'Playback', PLAY)
    page.wait(lambda: not np.allclose(ghost(page), begin, atol=0.1), 'the ghost on its way')
    page.run(3.0)
    assert seconds(page) == pytest.approx(1.9, abs=0.1), 'the end'
    press(page, 'Playback', PLAY)
    page.wait(lambda: seconds(page) < 1.0, 'it begins again')
    page.run(3.0)
    press(page, 'Time [s]', 0.0)
    page.wait(lambda: np.allclose(ghost(page), begin, atol=1e-4), 'the ghost at the start')
    assert np.allclose(page.pose('/tip'), arm)

    page.choose('Replay', 'none')
    page.wait(lambda: not any(name.startswith('/replay/') for name in page.nodes), 'no ghost')
    assert not robot.goals
    assert not robot.joint_goals
    page.close()


def test_a_recording_continues_without_a_page_and_ends_with_the_viewer(
    shown: tuple[Desk, Page, RobotSide], tmp_path: Path
) -> None:
    table, page, robot = shown
    page.choose(RECORD, True)
    page.wait(lambda: page.control(END)['visible'], 'the recording')
    page.close()
    robot.run(1.0)
    robot.move(**{**Q, 'joint1': -0.9})
    robot.run(1.0)
    for section in table.viewer._sections:
        section.close()
    assert positions(tmp_path) == [-0.9]
    with next(tmp_path.glob('*.mcap')).open('rb') as stream:
        assert make_reader(stream).get_summary() is not None, 'the file has no end'
