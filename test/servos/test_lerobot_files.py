# SPDX-License-Identifier: Apache-2.0
"""Calibration files of LeRobot: of every version, where it keeps them, and files that are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_calibration import SO101, entries, recorded_between_stops, write_file

from ik_node.errors import InputError
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.recorded import find_file, folder_of_lerobot, read_calibration

RECORDED = recorded_between_stops()


def test_a_file_is_read_by_joint(tmp_path):
    assert read_calibration(write_file(tmp_path / 'None.json', entries(RECORDED)), SO101) == RECORDED
    further = {**entries(RECORDED), 'camera': 3}
    assert read_calibration(write_file(tmp_path / 'b.json', further), SO101) == RECORDED


def test_joints_may_have_other_names_in_the_urdf(tmp_path):
    koch = read_profile('koch')
    recorded = dict(zip(koch.names, RECORDED.values(), strict=True))
    values = entries(recorded, koch)
    assert list(values) == list(SO101.names)
    assert read_calibration(write_file(tmp_path / 'a.json', values), koch) == recorded


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        (
            {'homing_offset': [1], 'drive_mode': [0], 'start_pos': [0], 'end_pos': [0], 'motor_names': ['a']},
            'used before mid 2025: record a new one with lerobot-calibrate',
        ),
        ([1], 'must map joints'),
        ({}, 'lacks "shoulder_pan"'),
        ({name: [1] for name in SO101.names}, 'shoulder_pan must be a mapping with "id"'),
    ],
)
def test_other_content_is_rejected_with_a_remedy(tmp_path, values, message):
    with pytest.raises(InputError, match=f'calibration .*arm.json.*{message}'):
        read_calibration(write_file(tmp_path / 'arm.json', values), SO101)


@pytest.mark.parametrize(
    ('key', 'value', 'message'),
    [
        ('id', 9, 'the servo with id 9, the profile has id 3'),
        ('range_min', 4000, 'range_min 4000 must be less than range_max'),
        ('range_max', 2.5, 'range_max must be a whole number .*, got 2.5'),
        ('homing_offset', None, 'homing_offset must be a whole number .*, got None'),
    ],
)
def test_a_wrong_entry_is_rejected_with_its_joint(tmp_path, key, value, message):
    values = entries(RECORDED)
    values['elbow_flex'][key] = value
    with pytest.raises(InputError, match=f'arm.json: elbow_flex.*{message}'):
        read_calibration(write_file(tmp_path / 'arm.json', values), SO101)


@pytest.mark.parametrize('data', [b'', b'{', b'\xff', b'[' * 100_000, b'{"a": ' + b'1' * 5000 + b'}', b' ' * 2**21])
def test_what_is_no_json_is_rejected(tmp_path, data):
    path = tmp_path / 'arm.json'
    path.write_bytes(data)
    with pytest.raises(InputError, match=r'calibration .*arm\.json'):
        read_calibration(path, SO101)


@pytest.mark.parametrize('given', ['', '/', '/dev/null', 'no such file', 'a\x00b'])
def test_what_is_no_file_is_rejected(given):
    with pytest.raises(InputError, match='calibration'):
        read_calibration(given, SO101)


@pytest.mark.parametrize(
    ('variables', 'folder'),
    [
        ({}, '~/.cache/huggingface/lerobot/calibration/robots'),
        ({'HF_HOME': '/a'}, '/a/lerobot/calibration/robots'),
        ({'HF_HOME': '/a', 'HF_LEROBOT_HOME': '~/b'}, '~/b/calibration/robots'),
        ({'HF_LEROBOT_HOME': '/b', 'HF_LEROBOT_CALIBRATION': '/c'}, '/c/robots'),
    ],
)
def test_the_folder_is_where_lerobot_has_it(monkeypatch, variables, folder):
    for name in ('HF_HOME', 'HF_LEROBOT_HOME', 'HF_LEROBOT_CALIBRATION'):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert folder_of_lerobot() == Path(folder).expanduser()


@pytest.fixture
def robots(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv('HF_LEROBOT_CALIBRATION', str(tmp_path))
    return tmp_path / 'robots'


def test_without_files_none_fits(robots):
    assert find_file(SO101) is None
    write_file(robots / 'so_follower' / 'other.json', {})
    write_file(robots / 'koch_follower' / 'arm.json', entries(RECORDED))
    assert find_file(SO101) is None


@pytest.mark.parametrize('folder', ['so101_follower', 'so_follower'])
def test_the_only_fitting_file_of_any_version_is_found(robots, folder):
    path = write_file(robots / folder / 'None.json', entries(RECORDED))
    write_file(robots / folder / 'old.json', {'motor_names': ['shoulder_pan']})
    assert find_file(SO101) == path


def test_of_two_arms_the_one_that_the_servos_remember_is_found(robots):
    others = {name: replace(values, homing_offset=7) for name, values in RECORDED.items()}
    left = write_file(robots / 'so_follower' / 'left.json', entries(RECORDED))
    right = write_file(robots / 'so_follower' / 'right.json', entries(others))
    with pytest.raises(InputError, match=r'several calibration files fit profile so101: .*left.*right'):
        find_file(SO101)
    assert find_file(SO101, RECORDED) == left
    assert find_file(SO101, others) == right
