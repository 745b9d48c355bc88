# SPDX-License-Identifier: Apache-2.0
"""Profiles of arms: those that are shipped, and what is wrong with those of owners."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path

import pytest

from ik_node.errors import InputError
from ik_node.servos.bus.models import MODELS, model_named
from ik_node.servos.calibration.profile import JointProfile, read_profile, shipped_profiles


def test_six_arms_are_shipped():
    assert shipped_profiles() == ('koch', 'omx_f', 'open_manipulator_x', 'so100', 'so101', 'wx200')


@pytest.mark.parametrize('name', shipped_profiles())
def test_every_shipped_profile_has_servos_that_are_known(name):
    profile = read_profile(name)
    assert profile.name == name
    assert len(set(profile.ids)) == len(profile.joints) >= 5
    for joint in profile.joints:
        model = model_named(joint.model)
        assert joint.mode is None or joint.mode in model.position_modes
        assert joint.homing is None or joint.zero is None


def test_entries_become_the_fields_of_a_joint(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(
        'protocol: dynamixel\nbaud: 57600\nrobot: seed_arm\nlerobot: [mine]\njoints:\n'
        '  a: {id: 1, model: xm430-w350, shadows: [7], sign: -1, reversed: true, zero: 1e3, '
        'stops: [-1, 2e0]}\n'
        '  2: {lerobot: b, id: 3, model: xl430-w250, unit: 1e-5, gripper: true, full_turn: true, '
        'torque: 0.3}\n'
    )
    profile = read_profile(str(path))
    assert (profile.name, profile.baud, profile.robot, profile.lerobot) == (
        'mine',
        57600,
        'seed_arm',
        ('mine',),
    )
    assert profile.joints == (
        JointProfile('a', 1, 'xm430-w350', '', (7,), -1, math.tau / 4096, True, zero=1000.0, stops=(-1.0, 2.0)),
        JointProfile('2', 3, 'xl430-w250', 'b', unit=1e-5, gripper=True, full_turn=True, fastest=5.3, torque=0.3),
    )


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'protocol': 'pwm'}, 'protocol must be feetech or dynamixel, got .pwm.'),
        ({'protocol': 'dynamixel'}, 'joint "a": sts3215 does not have protocol dynamixel'),
        ({'baud': 0}, 'baud must be a whole number from 1 to 10000000, got 0'),
        ({'joints': {}}, 'joints must map'),
        ({'joint': {}}, 'has no "joint"; allowed: .*did you mean "joints"'),
        ({'lerobot': 'so101'}, 'lerobot must be a list'),
        ({'robot': 3}, 'robot must be text'),
        ({'joints': {'a': {'id': 1, 'model': 'sts3215'}, 'b': 3}}, 'joints.b must be a mapping with "id"'),
        ({'joints': {'a': {'id': 1}}}, 'joints.a lacks "model"'),
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
def test_a_wrong_profile_is_rejected_with_file_key_and_what_is_allowed(tmp_path, change, message):
    values = {'protocol': 'feetech', 'baud': 1000000, 'joints': {'a': {'id': 1, 'model': 'sts3215'}}}
    path = tmp_path / 'mine.yaml'
    path.write_text(json.dumps({**values, **change}))
    with pytest.raises(InputError, match=f'profile .*mine.yaml: .*{message}'):
        read_profile(str(path))


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        ({'id': 300}, 'id must be a whole number from 0 to 252, got 300'),
        ({'model': 'sts3512'}, 'unknown servo "sts3512"'),
        ({'shadows': 3}, 'shadows must be a list, got 3'),
        ({'sign': 2}, 'sign must be 1 or -1, got 2'),
        ({'stops': [1, 0]}, r'stops must be two positions \[low, high\], got'),
        ({'stops': [0, '.inf']}, 'stops must be two'),
        ({'torque': 1.5}, 'torque must be a number greater than 0, at most 1, got 1.5'),
        ({'fastest': 0}, 'fastest must be a number greater than 0'),
        ({'unit': 'a'}, 'unit must be a number'),
        ({'zero': 'middle'}, 'zero must be a finite number, got .middle.'),
        ({'homing': '.nan'}, 'homing must be a finite number'),
        ({'gripper': 1}, 'gripper must be true or false, got 1'),
        ({'mode': 256}, 'mode must be a whole number from 0 to 255'),
        ({'singn': 1}, 'has no "singn"; .*did you mean "sign"'),
    ],
)
def test_a_wrong_joint_is_rejected_with_its_key(tmp_path, entry, message):
    joint = {'id': 1, 'model': 'sts3215', **entry}
    path = tmp_path / 'mine.yaml'
    path.write_text(json.dumps({'protocol': 'feetech', 'baud': 1000000, 'joints': {'elbow': joint}}))
    with pytest.raises(InputError, match=f'mine.yaml: line 1: joints.elbow.*{message}'):
        read_profile(str(path))


@pytest.mark.slow
@pytest.mark.parametrize('text', ['[', '\x00', '', '- 1', 'a: ' + '[' * 2000, '&a [*a]'])
def test_a_file_that_is_no_profile_is_rejected(tmp_path, text):
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    with pytest.raises(InputError, match=r'profile .*mine\.yaml'):
        read_profile(str(path))


@pytest.mark.parametrize('given', ['so1O1', '', '/', 'a\x00b', 'a' * 5000])
def test_a_profile_that_does_not_exist_lists_those_that_do(given):
    with pytest.raises(InputError, match='profile .*' + ('did you mean "so101"' if given == 'so1O1' else '')):
        read_profile(given)


def test_the_documentation_has_every_key_and_model():
    text = (Path(__file__).parents[2] / 'docs' / 'how_to' / 'servo_zeros.md').read_text()
    names = {field.name for field in fields(JointProfile)} - {'name'}
    assert [name for name in (*names, *(model.name for model in MODELS)) if f'`{name}`' not in text] == []
    assert [name for name in shipped_profiles() if f'`{name}`' not in text] == []
