# SPDX-License-Identifier: Apache-2.0
"""How an owner gives an arm its zero: on a bus, with the parameters of ik_servos."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from rig import Rig, emulated

from ik_node.errors import InputError
from ik_node.ros.servos import calibrating as module
from ik_node.ros.servos.calibrating import Calibrating, read_pose
from ik_node.ros.servos.settings import ServoSettings
from ik_node.servos.arm.snapshot import ArmState
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.zeros import read_zeros


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))


def calibrating(profile: str, said: list[str], **settings: str) -> Calibrating:
    return Calibrating(
        read_profile(profile),
        ServoSettings(profile=profile, port='emulated', **settings),
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
    assert any('from owner' in line for line in said)


def test_what_was_learned_of_one_arm_is_not_used_for_the_next_at_the_port(monkeypatch):
    plugged = ['a']
    monkeypatch.setattr(module, 'arm_at', lambda _: plugged[-1])
    calibration = calibrating('so101', [])
    calibration._settings = replace(calibration._settings, port='/dev/ttyACM0')
    found = {}
    for arm, learned in (('a', 1.5), ('b', None), ('a', None)):
        plugged.append(arm)
        calibration._recall()
        found[arm] = dict(calibration.factors)
        if learned:
            calibration.factors['elbow_flex'] = learned
    assert found == {'a': {'elbow_flex': 1.5}, 'b': {}}


def test_only_the_joints_of_the_pose_are_set():
    said: list[str] = []
    with emulated('so101') as bus:
        rig = Rig(bus, 'so101', None)
        rig.arm._calibrate = calibration = calibrating('so101', said)
        rig.arm.start()
        try:
            before = rig.until(ArmState.PASSIVE)
            with pytest.raises(InputError, match=r"known_pose is empty: .*'shoulder_pan=0'"):
                calibration.store_pose(before.ticks, '')
            calibration.store_pose(before.ticks, 'wrist_roll=0.5')
            rig.arm.ask_calibration().result(60.0)
            rig.wait(lambda: rig.arm.snapshot.joints and rig.arm.snapshot.time > before.time + 0.5)
            after = rig.until(ArmState.PASSIVE).joints
        finally:
            rig.arm.stop()
        assert rig.arm.calibration.joint('elbow_flex').source == 'stops'
    assert after['wrist_roll'].position == pytest.approx(0.5, abs=1e-3)
    assert after['elbow_flex'].position == pytest.approx(before.joints['elbow_flex'].position, abs=2e-3)


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
