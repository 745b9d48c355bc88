# SPDX-License-Identifier: Apache-2.0
"""Zeros that an owner sets: they are stored for the arm at a port, and outlast a new calibration."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from made_calibration import SO101, recorded_between_stops
from rig import Rig, emulated
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from ik_node.errors import InputError
from ik_node.servos import node as module
from ik_node.servos.arm.states import ArmState
from ik_node.servos.bus.transport import PortError
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
from ik_node.servos.calibration.zeros import calibrate, read_zeros
from ik_node.servos.node import Calibrator, read_pose
from ik_node.servos.ports import arm_at
from ik_node.servos.settings import ServoSettings

RECORDED = recorded_between_stops()


@pytest.fixture(autouse=True)
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
    assert owner_zeros(backwards, {'elbow_flex': math.pi / 2}, ticks, RECORDED)['elbow_flex'].tick == 2500 + 1024


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


@pytest.mark.parametrize('held', [1500, 2600])
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
        '[3]: {tick: 1, homing_offset: 1}',
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


def calibrating(profile: str, said: list[str], **settings: str) -> Calibrator:
    return Calibrator(
        read_profile(profile),
        ServoSettings(profile=profile, serial_port='emulated', **settings),
        said.append,
        said.append,
    )


def test_an_arm_without_a_zero_gets_it_from_its_owner():
    said: list[str] = []
    with emulated('koch') as bus:
        rig = Rig(bus, 'koch', None)
        rig.arm._calibrate = calibration = calibrating('koch', said)
        rig.arm.start()
        try:
            rig.wait(lambda: rig.arm.snapshot.ticks)
            arm = rig.arm.snapshot
            assert arm.state is ArmState.SILENT
            assert '"joint_6": the zero is not known' in arm.reason
            assert arm.joints == {}
            pose = {name: 0.1 * number for number, name in enumerate(rig.profile.names)}
            calibration.store_pose(arm.ticks, ', '.join(f'{name}={q}' for name, q in pose.items()))
            found = rig.until(ArmState.PASSIVE).joints
        finally:
            rig.arm.stop()
    assert {name: joint.position for name, joint in found.items()} == pytest.approx(pose, abs=2e-3)
    assert any('zero_from: owner' in line for line in said)


def test_what_was_learned_of_one_arm_is_not_used_for_the_next_at_the_port(monkeypatch):
    plugged = ['a']
    monkeypatch.setattr(module, 'arm_at', lambda _: plugged[-1])
    calibration = calibrating('so101', [])
    calibration._settings = replace(calibration._settings, serial_port='/dev/ttyACM0')
    found = {}
    for arm, learned in (('a', 1.5), ('b', None), ('a', None)):
        plugged.append(arm)
        calibration._recall()
        found[arm] = dict(calibration.factors)
        if learned:
            calibration.factors['elbow_flex'] = learned
    assert found == {'a': {'elbow_flex': 1.5}, 'b': {}}


def test_the_parameter_counts_before_what_is_stored():
    calibration = calibrating('koch', [], zeros=', '.join(f'joint_{k}={2000 + k}' for k in range(1, 7)))
    assert [joint.zero for joint in calibration({}).joints] == [2001, 2002, 2003, 2004, 2005, 2006]


def test_the_documented_pose_is_text_for_ros_too():
    """`ros2 param set` and rcl read the value as YAML, where 'wrist_roll: 0' is a mapping."""
    page = (Path(__file__).parents[2] / 'docs' / 'how_to' / 'servo_zeros.md').read_text()
    (pose,) = re.findall(r'ros2 param set /ik_servos known_pose (\S+)', page)
    assert yaml.safe_load(pose) == pose
    names = read_profile('so101').names
    assert read_pose(pose, names) == {'wrist_roll': 0.0}
    (text,) = re.findall(r'The parameter `zeros`, such as `\'(.*?)\'`', page)
    assert yaml.safe_load(text) == text
    assert read_zeros(text) == {'elbow_flex': 2126, 'wrist_roll': 2050}


def test_a_pose_names_each_joint_once():
    with pytest.raises(InputError, match='each once'):
        read_pose('wrist_roll=0, wrist_roll=1', read_profile('so101').names)


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    """Adapters at files: pyserial looks into /sys, which needs real ones."""
    found = []
    for name, number in (('ttyACM0', '5A7C123'), ('ttyUSB0', None)):
        (tmp_path / name).touch()
        device = ListPortInfo(os.path.realpath(tmp_path / name))
        device.serial_number = number
        found.append(device)
    monkeypatch.setattr(list_ports, 'comports', lambda: found)
    return tmp_path


def test_an_arm_is_known_by_the_serial_number_of_its_adapter(adapters):
    assert arm_at(str(adapters / 'ttyACM0')) == '5A7C123'
    lasting = adapters / 'usb-1a86_USB_Single_Serial_5A7C123-if00'
    lasting.symlink_to(adapters / 'ttyACM0')
    assert arm_at(str(lasting)) == '5A7C123'


def test_an_adapter_without_a_number_may_be_at_any_port(adapters):
    assert arm_at(str(adapters / 'ttyUSB0')) == ''


def test_what_is_no_adapter_has_its_name(adapters):
    assert arm_at('emulated') == 'emulated'
    assert arm_at(str(adapters / 'bus')) == 'bus'


def test_the_only_port_is_the_one_that_counts(adapters, monkeypatch):
    monkeypatch.setattr('ik_node.servos.ports.ports', lambda: [str(adapters / 'ttyACM0')])
    assert arm_at('') == '5A7C123'
    monkeypatch.setattr('ik_node.servos.ports.ports', list)
    with pytest.raises(PortError, match='no serial adapter'):
        arm_at('')
