# SPDX-License-Identifier: Apache-2.0
"""Zeros that an owner sets: they are stored, nothing of them is lost, and they outlast a new calibration."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_calibration import SO101, recorded_between_stops

from ik_node.errors import InputError
from ik_node.servos.calibration.owner_zeros import (
    OwnerZero,
    load_zeros,
    owner_zeros,
    store_zeros,
    ticks_now,
    zeros_path,
)
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import calibrate

RECORDED = recorded_between_stops()


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    return zeros_path('so101', 'usb 1/2')


def test_each_arm_has_a_file_of_the_user(path, tmp_path, monkeypatch):
    assert path == tmp_path / 'ik_node' / 'servos' / 'so101-usb_1_2.yaml'
    monkeypatch.delenv('XDG_CONFIG_HOME')
    assert zeros_path('so101') == Path('~/.config/ik_node/servos/so101.yaml').expanduser()
    assert zeros_path('../../evil', '../x').parent == zeros_path('so101').parent


def test_an_arm_in_a_known_pose_has_its_zeros():
    ticks = {'elbow_flex': 2500, 'wrist_roll': 1000}
    zeros = owner_zeros(SO101, {'elbow_flex': math.pi / 2, 'wrist_roll': -0.1}, ticks, RECORDED)
    assert zeros['elbow_flex'] == OwnerZero(2500 - 1024, 303)
    found = calibrate(SO101, RECORDED, zeros=ticks_now(SO101, zeros, RECORDED))
    assert found.joint('elbow_flex').position(2500) == pytest.approx(math.pi / 2)
    assert found.joint('wrist_roll').position(1000) == pytest.approx(-0.1)
    backwards = replace(SO101, joints=(replace(SO101.joints[2], sign=-1),))
    assert (
        owner_zeros(backwards, {'elbow_flex': math.pi / 2}, ticks, RECORDED)['elbow_flex'].tick == 2500 + 1024
    )


@pytest.mark.parametrize(
    ('positions', 'message'),
    [
        ({'elbow_flx': 0.0}, 'did you mean "elbow_flex"'),
        ({'gripper': 0.0}, 'servo 6 of joint "gripper" does not answer'),
        ({'elbow_flex': 90.0}, 'position of "elbow_flex" must be from -6.28 to 6.28, got 90'),
        ({'elbow_flex': math.nan}, 'got nan'),
    ],
)
def test_poses_that_cannot_be_are_rejected(positions, message):
    with pytest.raises(InputError, match=message):
        owner_zeros(SO101, positions, {'elbow_flex': 2500}, RECORDED)


@pytest.mark.parametrize('held', [1500, 2047, 2600])
def test_zeros_outlast_a_new_calibration(held):
    """STS: present = actual - offset, in one turn. The joint stays where it is while the offset changes."""
    actual_zero, offset = 3900, 1800
    before = {'elbow_flex': replace(RECORDED['elbow_flex'], homing_offset=offset)}
    zeros = {'elbow_flex': OwnerZero((actual_zero - offset) % 4096, offset)}
    assert ticks_now(SO101, zeros, before) == {'elbow_flex': 2100}
    after = {'elbow_flex': replace(RECORDED['elbow_flex'], homing_offset=(actual_zero - held) - 4096)}
    assert ticks_now(SO101, zeros, after) == {'elbow_flex': held}


def test_the_offset_of_dynamixels_has_the_other_sign():
    omx = read_profile('omx_f')
    recorded = {'joint1': Recorded(100, 4000, 50)}
    assert ticks_now(omx, {'joint1': OwnerZero(2048, 0)}, recorded) == {'joint1': 2098}


def test_zeros_are_not_moved_without_knowing_where_to():
    with pytest.raises(InputError, match='offset of joint "elbow_flex" is not known'):
        ticks_now(SO101, {'elbow_flex': OwnerZero(2048, 0)}, {})
    with pytest.raises(InputError, match='did you mean "elbow_flex"'):
        ticks_now(SO101, {'elbow_flx': OwnerZero(2048, 0)}, RECORDED)


def test_what_is_stored_comes_back_and_other_joints_stay(path):
    assert load_zeros(path) == {}
    store_zeros(path, {'elbow_flex': OwnerZero(2126.0, 3), 'gripper': OwnerZero(1.0, 4)})
    store_zeros(path, {'wrist_roll': OwnerZero(2050.5, -7), 'gripper': OwnerZero(2.0, 5)})
    assert load_zeros(path) == {
        'elbow_flex': OwnerZero(2126.0, 3),
        'gripper': OwnerZero(2.0, 5),
        'wrist_roll': OwnerZero(2050.5, -7),
    }
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    'text',
    [
        'no zeros',
        'elbow_flex: 2126',
        'elbow_flex: {tick: 1}',
        'elbow_flex: {tick: x, homing_offset: 1}',
        'elbow_flex: {tick: .nan, homing_offset: 1}',
        'elbow_flex: {tick: 1, homing_offset: 1.5}',
        '3: {tick: 1, homing_offset: 1}',
        '{',
        '\x00',
    ],
)
def test_a_file_that_is_damaged_is_neither_used_nor_written_over(path, text):
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InputError, match=r'so101-usb_1_2\.yaml'):
        load_zeros(path)
    with pytest.raises(InputError, match=r'so101-usb_1_2\.yaml'):
        store_zeros(path, {'elbow_flex': OwnerZero(1.0, 0)})
    assert path.read_text() == text


def test_what_cannot_be_stored_leaves_what_was(path, monkeypatch):
    store_zeros(path, {'elbow_flex': OwnerZero(2126.0, 3)})

    def full(*_):
        raise OSError('no space left')

    monkeypatch.setattr('os.fsync', full)
    with pytest.raises(InputError, match=r'cannot write .*no space left'):
        store_zeros(path, {'elbow_flex': OwnerZero(1.0, 0)})
    assert load_zeros(path) == {'elbow_flex': OwnerZero(2126.0, 3)}
    assert [file.name for file in path.parent.iterdir()] == [path.name]
