# SPDX-License-Identifier: Apache-2.0
"""The folder Calibrate: the next cross with a ghost, touches that are kept, an arm that moves, the result."""

from __future__ import annotations

import re

import numpy as np
import pytest
from desk import Page, showing
from touched_arms import ARM, MODEL, SHEET, TEXT, errors, touched
from viewer_harness import RobotSide

from ik_node.calibration.estimator import FRAMES, Calibration, Fit
from ik_node.calibration.files import (
    Record,
    Touch,
    calibrated_description,
    digest,
    load_record,
    record_path,
    sheet_pose,
)
from ik_node.calibration.poses import Poses
from ik_node.calibration.session import CHECKS, LASTING, TOUCHES
from ik_node.viewer.calibration import HOVER

pytestmark = pytest.mark.slow
ALL = TOUCHES + CHECKS


def touch(page: Page, robot: RobotSide, q: np.ndarray, drift: float = 0.0) -> None:
    """Press Touch while the arm is at q (n,), or moves from there."""
    page.choose('Touch', True)
    for step in range(int(LASTING / 0.02) + 5):
        robot.move(**dict(zip(ARM.joint_names, (q + step * drift).tolist(), strict=True)))
        page.run(0.02)


def test_touches_on_the_page_are_those_of_ik_calibrate(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    path, poses = record_path(ARM.name), Poses(MODEL)
    rows = [int(np.flatnonzero(poses.crosses == k % 6)[7 * (k // 6)]) for k in range(ALL)]
    known = touched(errors(6), poses.q[rows], poses.crosses[rows])
    with showing(TEXT, **dict.fromkeys(ARM.joint_names, 0.0)) as (page, robot):
        page.choose('Start', True)
        page.wait(lambda: 'Print it first' in page.words(), 'what is missing')
        assert page.control('Touch')['disabled']
        record = Record(path, digest(TEXT), SHEET)
        for k in range(ALL - 2):
            joints = dict(zip(ARM.joint_names, known.q[k].tolist(), strict=True))
            record.touches.append(Touch(int(known.crosses[k]) + 1, joints, k >= TOUCHES))
        record.store()
        page.choose('Start', True)
        page.wait(lambda: f'Touch {ALL - 1} of {ALL} (only compared)' in page.words(), 'the next cross')
        page.wait(lambda: page.nodes['/calibration']['visible'], 'the ghost')
        cross = int(re.search(r'on cross (\d)', page.words())[1])
        place = (SHEET.pose @ [*SHEET.places[cross - 1], 1.0])[:3]
        np.testing.assert_allclose(page.pose('/calibration_cross')[:3, 3], place, atol=1e-6)
        touch(page, robot, known.q[0], drift=0.001)
        page.wait(lambda: 'moved: hold the arm still' in page.words(), 'why it is not taken')
        assert len(load_record(path, TEXT).touches) == ALL - 2
        touch(page, robot, known.q[ALL - 2])
        page.wait(lambda: f'Touch {ALL} of {ALL}' in page.words(), 'the last one')
        page.choose('Undo the last touch', True)
        page.wait(lambda: f'Touch {ALL - 1} of {ALL}' in page.words(), 'the one before')
        for k in (ALL - 2, ALL - 1):
            touch(page, robot, known.q[k])
            page.wait(lambda k=k: len(load_record(path, TEXT).touches) == k + 1, 'the touch')
        page.wait(lambda: 'the crosses were missed by' in page.words(), 'the result')
        assert not page.nodes['/calibration']['visible']
        np.testing.assert_allclose(list(load_record(path, TEXT).touches[-1].joints.values()), known.q[-1], atol=1e-3)


def test_a_click_on_the_sheet_sends_the_tip_above_the_place():
    parameters = errors(0)
    fit = Fit(parameters, np.zeros((len(parameters),) * 2), 1e-3)
    text = calibrated_description(MODEL, TEXT, Calibration(FRAMES, fit, 0.0, 0.0, 0.0, {}))
    pose = sheet_pose(MODEL, parameters)
    with showing(text, **dict.fromkeys(ARM.joint_names, 0.1)) as (page, robot):
        np.testing.assert_allclose(page.pose('/sheet'), pose, atol=1e-6)
        place = pose @ [0.05, -0.04, 0.0, 1.0]
        eye = np.array([0.3, 0.5, 0.6])
        ray = (place[:3] - eye) / np.linalg.norm(place[:3] - eye)
        page._send(
            'SceneNodeClickMessage',
            name='/sheet',
            instance_index=None,
            ray_origin=tuple(eye.tolist()),
            ray_direction=tuple(ray.tolist()),
            screen_pos=(0.5, 0.5),
            modifier=None,
        )
        robot.wait(lambda: robot.goals, 'the goal')
        np.testing.assert_allclose(robot.goal()[:3, 3], place[:3] + HOVER * pose[:3, 2], atol=1e-6)
        np.testing.assert_allclose(robot.goal()[:3, 2], -pose[:3, 2], atol=1e-6)
