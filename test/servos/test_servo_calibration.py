# SPDX-License-Identifier: Apache-2.0
"""From ticks to positions: profiles, LeRobot's files, estimates of zero, limits and warnings."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from shared_files import SHARED

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import read_file
from ik_node.servos.calibration import lerobot_file
from ik_node.servos.calibration.lerobot_file import Recorded, find_files
from ik_node.servos.calibration.owner_zeros import load_zeros, store_zeros, zeros_path
from ik_node.servos.calibration.profile import PROFILES, read_profile
from ik_node.servos.calibration.zeros import (
    MARGIN,
    calibrate,
    differences,
    estimates_of,
    read_zeros,
)

SO101 = read_profile('so101')
TICK = math.tau / 4096


def recorded_between_stops(offset=0.0):
    """What is recorded of an SO-101 whose zeros are at tick 2048 + offset and that was moved to all stops."""
    found = {}
    for joint in SO101.joints:
        low, high = joint.stops or (-3.0, 3.0)
        ends = [round(2048 + offset + end / TICK) for end in (low, high)]
        found[joint.name] = Recorded(*ends, homing_offset=0)
    return found


@pytest.mark.parametrize('name', PROFILES)
def test_every_profile_can_be_read(name):
    profile = read_profile(name)
    assert profile.name == name
    assert len(profile.joints) >= 5
    assert len(set(profile.ids)) == len(profile.joints)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'protocol': 'pwm'}, 'protocol must be feetech or dynamixel'),
        ({'baud': 0}, 'baud must be a whole number'),
        ({'joints': {}}, 'joints must map'),
        ({'joint': {}}, 'has no "joint"'),
        ({'joints': {'a': {'id': 300, 'model': 'sts3215'}}}, 'from 0 to 252'),
        ({'joints': {'a': {'id': 1, 'model': 'sts3215', 'sign': 2}}}, 'sign must be 1 or -1'),
        ({'joints': {'a': {'id': 1, 'model': 'sts3215', 'stops': [1, 0]}}}, 'stops must be two'),
        ({'joints': {'a': {'id': 1, 'model': 'sts3215', 'torque': 1.5}}}, 'torque must be at most 1'),
        ({'joints': {'a': {'id': 1}}}, 'lacks "model"'),
        ({'joints': {'a': {'id': 1, 'model': 'sts'}}}, 'joint "a": no servo "sts" is known'),
        (
            {
                'joints': {
                    'a': {'id': 1, 'model': 'sts3215'},
                    'b': {'id': 2, 'shadows': [1], 'model': 'sts3215'},
                }
            },
            'id 1 is given to more than one servo',
        ),
    ],
)
def test_a_wrong_profile_is_refused_with_what_is_wrong(tmp_path, change, message):
    values = {'protocol': 'feetech', 'baud': 1000000, 'joints': {'a': {'id': 1, 'model': 'sts3215'}}}
    path = tmp_path / 'mine.yaml'
    path.write_text(json.dumps({**values, **change}))
    with pytest.raises(InputError, match=message):
        read_profile(str(path))


def test_a_profile_that_does_not_exist_lists_those_that_do():
    with pytest.raises(InputError, match='did you mean "so101"'):
        read_profile('so1O1')


# The file


def written(folder, values, name='arm.json'):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    return path


def entries(recorded):
    return {
        joint.name: {
            'id': joint.id,
            'drive_mode': 0,
            'homing_offset': recorded[joint.name].homing_offset,
            'range_min': recorded[joint.name].low,
            'range_max': recorded[joint.name].high,
        }
        for joint in SO101.joints
    }


IDS = dict(zip(SO101.names, SO101.ids, strict=True))


def test_a_file_of_lerobot_is_read(tmp_path):
    recorded = recorded_between_stops()
    assert lerobot_file.read_file(written(tmp_path, entries(recorded)), IDS) == recorded


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'homing_offset': [1], 'start_pos': [0], 'motor_names': ['a']}, 'before mid 2025'),
        ([1], 'must map joints'),
        ({}, 'lacks "shoulder_pan"'),
    ],
)
def test_other_files_are_refused_with_a_remedy(tmp_path, values, message):
    with pytest.raises(InputError, match=message):
        lerobot_file.read_file(written(tmp_path, values), IDS)


@pytest.mark.parametrize(
    ('key', 'value', 'message'),
    [
        ('id', 9, 'the servo with id 9'),
        ('range_min', 4000, 'must be less than range_max'),
        ('range_max', 2.5, 'whole number'),
        ('homing_offset', None, 'whole number'),
        ('drive_mode', 1, 'drive_mode must be 0'),
    ],
)
def test_a_wrong_entry_is_refused_with_its_joint(tmp_path, key, value, message):
    values = entries(recorded_between_stops())
    values['elbow_flex'][key] = value
    with pytest.raises(InputError, match=f'elbow_flex.*{message}'):
        lerobot_file.read_file(written(tmp_path, values), IDS)


def test_files_are_found_where_lerobot_keeps_them_newest_first(tmp_path, monkeypatch):
    monkeypatch.setenv('HF_LEROBOT_CALIBRATION', str(tmp_path))
    assert find_files(SO101.lerobot) == []
    older = written(tmp_path / 'robots' / 'so101_follower', {}, 'None.json')
    newer = written(tmp_path / 'robots' / 'so_follower', {}, 'left.json')
    import os

    os.utime(older, (1, 1))
    assert find_files(SO101.lerobot) == [newer, older]


# Zeros


@pytest.mark.parametrize('offset', [0.0, -120.0, 77.0])
def test_the_zero_comes_from_the_stops_where_the_range_is_that_between_them(offset):
    found = calibrate(SO101, recorded_between_stops(offset))
    for joint in found.joints:
        if joint.profile.stops is not None:
            assert joint.source == 'stops'
            assert joint.zero == pytest.approx(2048 + offset, abs=1.0)
            assert joint.position(joint.low - MARGIN) == pytest.approx(joint.profile.stops[0], abs=2 * TICK)
    roll = found.joints[SO101.names.index('wrist_roll')]
    assert roll.source == 'homing'
    assert (roll.low, roll.high) == (0, 4095)


def test_degrees_of_lerobot_differ_by_the_middle_of_the_stops():
    """servo_facts: URDF angle at 0 degrees of LeRobot: 4.1, -1.7, -6.9 and -1.1 degrees."""
    found = calibrate(SO101, recorded_between_stops(31.0))
    positions = found.from_lerobot(dict.fromkeys(SO101.names, 0.0))
    degrees = [math.degrees(positions[name]) for name in SO101.names[:4]]
    assert degrees == pytest.approx([4.1, -1.7, -6.9, -1.1], abs=0.1)


@pytest.mark.parametrize('zero_from', ['stops', 'homing', 'lerobot'])
def test_degrees_of_lerobot_come_back_unchanged(zero_from):
    recorded = recorded_between_stops()
    del recorded['gripper']
    arm = replace(SO101, joints=SO101.joints[:5])
    found = calibrate(arm, recorded, zero_from)
    degrees = {'shoulder_pan': 12.3, 'elbow_flex': -45.6}
    assert found.to_lerobot(found.from_lerobot(degrees)) == pytest.approx(degrees)
    if zero_from == 'lerobot':  # 4095 ticks are 360 degrees of LeRobot
        as_radians = {name: math.radians(value) * 4095 / 4096 for name, value in degrees.items()}
        assert found.from_lerobot(degrees) == pytest.approx(as_radians)


def test_a_range_that_ends_before_the_stops_leaves_the_pose_that_was_held():
    recorded = recorded_between_stops()
    recorded['shoulder_pan'] = replace(recorded['shoulder_pan'], high=recorded['shoulder_pan'].high - 300)
    joint = calibrate(SO101, recorded).joints[0]
    assert (joint.source, joint.zero) == ('homing', 2047)
    assert any('not that between the stops' in text for text in joint.warnings)


def test_what_the_owner_has_set_counts_before_all_estimates():
    found = calibrate(SO101, recorded_between_stops(), zeros={'elbow_flex': 2200.5})
    elbow = found.joints[2]
    assert (elbow.zero, elbow.source) == (2200.5, 'owner')
    assert elbow.position(2200.5) == 0.0


def test_a_joint_without_any_estimate_needs_its_owner():
    koch = read_profile('koch')
    with pytest.raises(InputError, match='joint "joint_1" is not known: calibrate the arm, or hold it'):
        calibrate(koch, {})
    calibrate(koch, {}, zeros=dict.fromkeys(koch.names, 2048.0))


def test_limits_are_the_stricter_of_urdf_and_range_and_that_is_told():
    limits = {'elbow_flex': (-1.69, 1.69), 'wrist_flex': (-0.5, 0.5)}
    found = {joint.name: joint for joint in calibrate(SO101, recorded_between_stops(), limits=limits).joints}
    assert found['elbow_flex'].lower == -1.69
    assert found['elbow_flex'].upper == pytest.approx(1.573 - MARGIN * TICK, abs=2 * TICK)
    assert any('the URDF has -1.690 to 1.690' in note for note in found['elbow_flex'].notes)
    assert (found['wrist_flex'].lower, found['wrist_flex'].upper) == (-0.5, 0.5)


def test_limits_without_a_common_position_mean_a_wrong_zero():
    with pytest.raises(InputError, match='its zero must be wrong'):
        calibrate(
            SO101, recorded_between_stops(), zeros={'elbow_flex': 100.0}, limits={'elbow_flex': (-9, -3)}
        )


@pytest.mark.parametrize(
    ('low', 'high', 'message'),
    [(2022, 2073, 'record it again'), (0, 2300, 'step from 4095 to 0'), (600, 4095, 'step from 4095 to 0')],
)
def test_doubtful_ranges_are_told(low, high, message):
    recorded = {**recorded_between_stops(), 'elbow_flex': Recorded(low, high, 0)}
    assert any('elbow_flex' in text and message in text for text in calibrate(SO101, recorded).warnings)


def test_estimates_that_disagree_are_told():
    found = calibrate(SO101, recorded_between_stops(150.0))
    assert any('elbow_flex: estimates of zero differ by 13.' in text for text in found.warnings)
    assert not [text for text in calibrate(SO101, recorded_between_stops()).warnings if 'differ' in text]


def test_a_memory_that_differs_from_the_file_is_told():
    file = recorded_between_stops()
    memory = {**file, 'gripper': replace(file['gripper'], homing_offset=5)}
    assert differences(memory, file, SO101.names) == [
        'gripper: the servo has range {0} to {1} and offset 5, the file {0} to {1} and 0'.format(
            file['gripper'].low, file['gripper'].high
        )
    ]


def test_commands_are_rounded():
    joint = calibrate(SO101, recorded_between_stops()).joints[0]
    assert joint.tick(0.6 * TICK) - joint.tick(0.0) == 1  # rounded, not truncated
    backwards = replace(joint, profile=replace(joint.profile, sign=-1))
    assert backwards.position(backwards.tick(0.3)) == pytest.approx(0.3, abs=TICK)


@pytest.mark.parametrize('text', ['elbow_flex', 'elbow_flex: x', 'elbow_flex: 1e9', ': 3', 'elbow_flex: nan'])
def test_zeros_that_are_no_ticks_are_refused(text):
    with pytest.raises(InputError, match='zeros must be ticks by joint'):
        read_zeros(text)


def test_zeros_name_joints_of_the_arm():
    assert read_zeros(' elbow_flex: 2126,wrist_roll:2050.5 ') == {'elbow_flex': 2126, 'wrist_roll': 2050.5}
    with pytest.raises(InputError, match='did you mean "elbow_flex"'):
        calibrate(SO101, recorded_between_stops(), zeros={'elbow_flx': 1.0})


def test_zeros_of_the_owner_are_kept_and_nothing_of_them_is_lost(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    path = zeros_path('so101', 'usb 1/2')
    assert path.parent == tmp_path / 'ik_node' / 'servos'
    assert path.name == 'so101-usb_1_2.yaml'
    assert load_zeros(path) == {}
    store_zeros(path, {'elbow_flex': 2126.0})
    store_zeros(path, {'wrist_roll': 2050.5})
    assert load_zeros(path) == {'elbow_flex': 2126.0, 'wrist_roll': 2050.5}
    path.write_text('no zeros')
    with pytest.raises(InputError, match='must map joints to ticks'):
        store_zeros(path, {'elbow_flex': 1.0})
    assert path.read_text() == 'no zeros'


# The official description


@pytest.mark.skipif(not SHARED.exists(), reason='needs ../shared')
def test_the_tool_is_where_the_official_description_has_it_at_each_stop():
    arm = Arm(read_file(SHARED / 'arms' / 'so101.urdf'), 'gripper_frame_link')
    for offset in (0.0, 63.0):
        recorded = recorded_between_stops(offset)
        calibration = calibrate(SO101, recorded)
        for joint in SO101.joints[:4]:
            for end, tick in zip(
                joint.stops, (recorded[joint.name].low, recorded[joint.name].high), strict=True
            ):
                true = {**dict.fromkeys(arm.joint_names, 0.2), joint.name: end}
                ticks = {name: 2048 + offset + true[name] / TICK for name in arm.joint_names}
                ticks[joint.name] = tick
                measured = {**true, **calibration.positions({joint.name: tick})}
                points = [arm.fk([q[name] for name in arm.joint_names])[0] for q in (true, measured)]
                assert np.linalg.norm(points[0] - points[1]) < 5e-4


@pytest.mark.skipif(not SHARED.exists(), reason='needs ../shared')
def test_the_identity_of_lerobots_degrees_misses_by_centimetres():
    arm = Arm(read_file(SHARED / 'arms' / 'so101.urdf'), 'gripper_frame_link')
    calibration = calibrate(SO101, recorded_between_stops())
    misses = []
    for q in arm.sample(np.random.default_rng(1), 2000):
        degrees = calibration.to_lerobot(dict(zip(arm.joint_names, q, strict=True)))
        as_if = [math.radians(degrees[name]) for name in arm.joint_names]
        misses.append(np.linalg.norm(arm.fk(q)[0] - arm.fk(as_if)[0]))
    assert 0.03 < np.median(misses) < 0.06
    assert estimates_of(SO101.joints[0], None) == {'homing': 2047}
