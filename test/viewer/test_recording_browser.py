# SPDX-License-Identifier: Apache-2.0
"""Record and replay in a real browser: what moved is in the file, and a replay moves a ghost only."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_harness import (
    browser,
    changed,
    click,
    click_on,
    element,
    open_page,
    picture,
    scene_of,
    settled,
    source,
    wait,
    webdriver,
)
from domains import new_domain
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from PIL import Image
from viewer_harness import SEED_FILE, SEED_JOINTS, Process, RobotSide, started, viewer

__all__ = ['browser']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
MANY = 100  # squares that an arm that moves changes, nothing else does


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[tuple[RobotSide, Process]]:
    """ik_node, the viewer with its recordings in tmp_path, and the page with the folder Recording open."""
    domain = new_domain()
    recordings = f'recordings:={tmp_path}/made'
    with started('ik_node', domain, SEED_FILE), viewer(domain, recordings) as (process, robot):
        open_page(browser, process.url())
        wait(lambda: robot.joints and 'joint5' in source(browser), 'the page')
        browser.execute_cdp_cmd(
            'Browser.setDownloadBehavior', {'behavior': 'allow', 'downloadPath': str(tmp_path)}
        )
        click(browser, 'Recording')
        yield robot, process


def files(folder: Path) -> list[Path]:
    return sorted((folder / 'made').glob('*.mcap'))


def choose(browser: Any, name: str) -> None:
    """Choose a file for the replay, with mouse and keyboard."""
    field = element(browser, 'Replay').find_element('xpath', 'following::input[1]')
    field.click()
    path = f"//*[@role='option'][contains(., '{name}')]"
    click_on(browser, path, name)


def scrub(browser: Any, way: int) -> None:
    """Drag the scrub bar to its end (1) or start (-1) with the mouse."""
    thumb = element(browser, 'Time [s]').find_element('xpath', "following::*[@role='slider'][1]")
    width = thumb.find_element('xpath', '..').size['width']
    webdriver.ActionChains(browser).drag_and_drop_by_offset(thumb, way * width, 0).perform()


def test_a_recording_has_what_moved_and_its_replay_commands_nothing(
    browser: Any, page: tuple[RobotSide, Process], tmp_path: Path
) -> None:
    robot, _ = page
    robot.go(**Q)
    click(browser, 'Record')
    wait(lambda: files(tmp_path), 'the file')
    wait(lambda: 'End recording' in source(browser), 'the recording in the page')
    robot.go(**{**Q, 'joint1': -0.9})
    click(browser, 'End recording')
    wait(lambda: 'Saved' in source(browser), 'the end of the recording')
    (path,) = files(tmp_path)
    with path.open('rb') as stream:
        messages = [
            (channel.topic, message)
            for _, channel, _, message in make_reader(
                stream, decoder_factories=[DecoderFactory()]
            ).iter_decoded_messages()
        ]
    first = [message.position[0] for topic, message in messages if topic == '/joint_states']
    assert first[0] == pytest.approx(0.3, abs=0.01)
    assert first[-1] == pytest.approx(-0.9, abs=0.01)
    goals = [message for topic, message in messages if topic == '/goal_joints']
    assert goals
    assert any(topic == '/robot_description' for topic, _ in messages)

    robot.go(**{**Q, 'joint1': 1.2})
    before, joints = settled(browser), dict(robot.joints)
    robot.goals.clear()
    robot.joint_goals.clear()
    choose(browser, path.name)
    wait(lambda: 'Save selection as CSV' in source(browser), 'the scrub bar')
    wait(lambda: changed(before, picture(browser)) > MANY, 'the ghost')
    start = settled(browser)
    scrub(browser, 1)
    wait(lambda: changed(start, picture(browser)) > MANY, 'the ghost at the end')
    scrub(browser, -1)
    wait(lambda: changed(start, picture(browser)) < MANY / 5, 'the ghost at the start again')
    click(browser, 'Play')
    wait(lambda: changed(start, picture(browser)) > MANY, 'the ghost on its way')
    click(browser, 'Save selection as CSV')
    saved = tmp_path / f'{path.stem}.csv'
    wait(saved.exists, 'the download')
    with saved.open() as stream:
        rows = [row for row in csv.DictReader(stream) if row['joint_states/joint1']]
    assert len(rows) == len(first)
    choose(browser, 'none')
    wait(lambda: changed(before, picture(browser)) < MANY / 5, 'the picture without the ghost')
    assert not robot.goals
    assert not robot.joint_goals
    assert robot.joints == pytest.approx(joints)


@pytest.mark.usefixtures('page')
def test_a_picture_of_the_scene_is_saved(browser: Any, tmp_path: Path) -> None:
    settled(browser)
    click(browser, 'Save picture')
    (path,) = wait(lambda: list(tmp_path.glob('*.png')), 'the picture')
    with Image.open(path) as image:
        saved = scene_of(image.convert('RGB'))
    beside = np.s_[:, 40:]  # of notices and stop button, which are not of the scene
    assert changed(saved[beside], picture(browser)[beside]) < MANY / 5  # it is drawn finer
    assert np.ptp(saved[beside]) > 100


def test_a_recording_continues_without_a_page_and_ends_with_the_viewer(
    browser: Any, page: tuple[RobotSide, Process], tmp_path: Path
) -> None:
    robot, process = page
    robot.go(**Q)
    click(browser, 'Record')
    wait(lambda: files(tmp_path), 'the file')
    browser.get('about:blank')
    robot.go(**{**Q, 'joint1': -0.9})
    assert process.end() == 0
    (path,) = files(tmp_path)
    with path.open('rb') as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        assert reader.get_summary() is not None
        positions = [m.position[0] for *_, m in reader.iter_decoded_messages(topics=['/joint_states'])]
    assert positions[-1] == pytest.approx(-0.9, abs=0.01)
