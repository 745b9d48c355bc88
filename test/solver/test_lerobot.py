# SPDX-License-Identifier: Apache-2.0
"""RobotKinematics as LeRobot calls it: degrees, a gripper that is passed through, no jumps."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_calibration import SO101, entries, recorded_between_stops, write_file
from oracles.plain import PlainArm
from shared_files import shared_path

from ik_node import InputError, Status
from ik_node.lerobot import RobotKinematics, _warn_of_zeros
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import ArmCalibration, calibrate

MOTORS = ['shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll', 'gripper']
SEED_ARM = Path(__file__).resolve().parents[2] / 'urdf' / 'seed_arm.urdf.xacro'
MIDDLE = np.array([5.0, -20.0, 30.0, 40.0, 10.0, 33.0])  # [deg], and the gripper


@pytest.fixture(scope='module')
def so101() -> RobotKinematics:
    return RobotKinematics(shared_path('arms', 'so101.urdf'), joint_names=MOTORS)


def test_forward_kinematics_is_the_pose_of_the_frame_in_degrees(so101):
    plain = PlainArm(shared_path('arms', 'so101.urdf').read_text(), 'gripper_frame_link')
    pose = so101.forward_kinematics(MIDDLE)
    expected = plain.pose(dict(zip(MOTORS[:5], np.radians(MIDDLE[:5]).tolist(), strict=True)))
    np.testing.assert_allclose(pose, expected, atol=1e-9)
    np.testing.assert_array_equal(so101.forward_kinematics([*MIDDLE, 1.0, 2.0]), pose)


def test_a_reachable_pose_is_met_and_the_gripper_is_passed_through(so101):
    target = so101.forward_kinematics(MIDDLE)
    q = np.add(MIDDLE, [4.0, -3.0, 5.0, -4.0, 3.0, 0.0])
    for _ in range(3):
        q = so101.inverse_kinematics(q, target)
    assert q[5] == 33.0
    reached = so101.forward_kinematics(q)
    np.testing.assert_allclose(reached[:3, 3], target[:3, 3], atol=1e-4)
    np.testing.assert_allclose(reached[:3, :3], target[:3, :3], atol=0.02)
    assert so101.last.status is Status.SOLVED


@pytest.mark.slow
def test_along_a_path_that_leaves_the_reach_no_joint_jumps(so101):
    q, largest = MIDDLE.copy(), 0.0
    start = so101.forward_kinematics(q)
    states = set()
    for share in np.linspace(0.0, 1.0, 300):
        target = start.copy()
        target[:3, 3] += np.sin(np.pi * share) * np.array([0.4, 0.3, 0.1])
        following = so101.inverse_kinematics(q, target)
        largest = max(largest, np.abs(following - q).max())
        states.add(so101.last.status)
        q = following
    assert states >= {Status.SOLVED, Status.UNREACHABLE}
    assert largest <= 10.0 + 1e-9
    np.testing.assert_allclose(so101.forward_kinematics(q)[:3, 3], start[:3, 3], atol=1e-3)


def test_a_far_pose_takes_several_calls_of_bounded_steps(so101):
    target = so101.forward_kinematics(np.add(MIDDLE, [60.0, 10.0, 0.0, 0.0, 0.0, 0.0]))
    q = MIDDLE
    for call in range(20):
        following = so101.inverse_kinematics(q, target)
        assert np.abs(following - q).max() <= 10.0 + 1e-9
        q = following
        if call == 0:
            assert so101.last.status is Status.NOT_FOUND
            assert 'on the way' in str(so101.last.reason)
    assert so101.last.solved


def test_from_outside_the_limits_joints_come_back_in_bounded_steps(so101):
    outside = np.add(MIDDLE, [0.0, 0.0, 0.0, 80.0, 0.0, 0.0])
    target = so101.forward_kinematics(MIDDLE)
    found = so101.inverse_kinematics(outside, target)
    assert np.abs(found - outside).max() <= 10.0 + 1e-9
    assert found[3] < outside[3]


def test_the_turn_about_the_tool_axis_that_is_left_is_told(so101):
    target = so101.forward_kinematics(MIDDLE)
    c, s = np.cos(0.8), np.sin(0.8)
    target[:3, :3] = target[:3, :3] @ [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]
    q = so101.inverse_kinematics(MIDDLE, target)
    assert 0.3 < so101.last.lateral_error < 0.8
    for _ in range(10):
        q = so101.inverse_kinematics(q, target)
    assert so101.last.lateral_error < 0.02


def test_without_orientation_only_the_position_counts(so101):
    target = so101.forward_kinematics(MIDDLE)
    turned = target.copy()
    turned[:3, :3] = np.diag([1.0, -1.0, -1.0]) @ target[:3, :3]
    q = so101.inverse_kinematics(MIDDLE, turned, orientation_weight=0.0)
    np.testing.assert_allclose(q, MIDDLE, atol=1e-6)
    assert so101.last.solved


@pytest.mark.slow
def test_any_arm_and_frame_will_do():
    arm = RobotKinematics(SEED_ARM, 'tool0')
    assert arm.joint_names == [f'joint{k}' for k in range(1, 6)]
    q = np.array([10.0, 20.0, 30.0, -20.0, 15.0])
    found = arm.inverse_kinematics(q + 4.0, arm.forward_kinematics(q))
    np.testing.assert_allclose(arm.forward_kinematics(found)[:3, 3], arm.forward_kinematics(q)[:3, 3], atol=1e-4)


# With the calibration of the arm

OFFSETS = [4.1, -1.7, -6.9, -1.1, 0.0]  # [deg] of the URDF at 0 degrees of LeRobot, between the stops


@pytest.fixture
def calibrated(tmp_path) -> RobotKinematics:
    file = write_file(tmp_path / 'arm.json', entries(recorded_between_stops(20.0)))
    return RobotKinematics(shared_path('arms', 'so101.urdf'), joint_names=MOTORS, calibration=file)


def test_degrees_of_lerobot_become_those_of_the_urdf(calibrated, so101):
    shifted = MIDDLE[:5] * 4095 / 4096 + OFFSETS
    expected = so101.forward_kinematics([*shifted, 33.0])
    np.testing.assert_allclose(calibrated.forward_kinematics(MIDDLE), expected, atol=2e-3)
    assert np.linalg.norm(so101.forward_kinematics(MIDDLE)[:3, 3] - expected[:3, 3]) > 0.03


def test_calibrated_kinematics_are_inverse_to_each_other(calibrated):
    target = calibrated.forward_kinematics(MIDDLE)
    q = np.add(MIDDLE, [4.0, -3.0, 5.0, -4.0, 3.0, 0.0])
    for _ in range(3):
        q = calibrated.inverse_kinematics(q, target)
    np.testing.assert_allclose(q, MIDDLE, atol=0.5)
    np.testing.assert_allclose(calibrated.forward_kinematics(q)[:3, 3], target[:3, 3], atol=1e-4)
    far = calibrated.inverse_kinematics(np.add(MIDDLE, [-60.0, 0, 0, 0, 0, 0]), target)
    assert far[0] == pytest.approx(MIDDLE[0] - 50.0)  # largest_step is in the same degrees


@pytest.mark.slow
def test_other_arms_have_a_calibration_too():
    arm = replace(
        read_profile('omx_f'),
        joints=tuple(
            replace(joint, name=f'joint{k}', sign=-1 if k == 2 else 1)
            for k, joint in enumerate(read_profile('omx_f').joints[:5], 1)
        ),
    )
    calibration = calibrate(arm, {name: Recorded(0, 4095, 0) for name in arm.names})
    kinematics = RobotKinematics(SEED_ARM, 'tool0', calibration=calibration)
    plain = RobotKinematics(SEED_ARM, 'tool0')
    q = np.array([10.0, 20.0, 30.0, -20.0, 15.0])
    as_urdf = [10.0, -20.0, 30.0, -20.0, 15.0]
    np.testing.assert_allclose(kinematics.forward_kinematics(q), plain.forward_kinematics(as_urdf), atol=2e-3)


@pytest.mark.slow
def test_a_calibration_of_another_arm_is_rejected(tmp_path):
    file = write_file(tmp_path / 'arm.json', entries(recorded_between_stops()))
    with pytest.raises(InputError, match='the calibration has no "joint1"'):
        RobotKinematics(SEED_ARM, 'tool0', calibration=file)
    with pytest.raises(InputError, match='cannot read calibration'):
        RobotKinematics(SEED_ARM, 'tool0', calibration=tmp_path / 'none.json')
    with pytest.raises(InputError, match='must be a path or an ArmCalibration, got 3'):
        RobotKinematics(SEED_ARM, 'tool0', calibration=3)
    calibration = calibrate(SO101, recorded_between_stops())
    high = tuple(replace(joint, lower=5.0, upper=6.0) for joint in calibration.joints)
    with pytest.raises(InputError, match=r'from 5\.000 to 6\.000, the URDF from .* belong to the same arm'):
        RobotKinematics(shared_path('arms', 'so101.urdf'), calibration=ArmCalibration(SO101, high))


@pytest.mark.slow
def test_what_it_costs_without_is_told_once(caplog, tmp_path):
    _warn_of_zeros.cache_clear()
    with caplog.at_level(logging.WARNING, 'ik_node'):
        file = write_file(tmp_path / 'arm.json', entries(recorded_between_stops()))
        RobotKinematics(shared_path('arms', 'so101.urdf'), calibration=file)
        assert caplog.messages == []
        for _ in range(3):
            RobotKinematics(SEED_ARM, 'tool0')
    assert len(caplog.messages) == 1
    assert '46 mm' in caplog.messages[0]


def test_what_is_doubtful_in_a_file_is_told(caplog, tmp_path):
    recorded = recorded_between_stops()
    recorded['elbow_flex'] = replace(recorded['elbow_flex'], high=recorded['elbow_flex'].high - 400)
    with caplog.at_level(logging.WARNING, 'ik_node'):
        file = write_file(tmp_path / 'arm.json', entries(recorded))
        RobotKinematics(shared_path('arms', 'so101.urdf'), calibration=file)
    assert any('elbow_flex: the recorded range is not the full range between' in text for text in caplog.messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('call', 'said'),
    [
        (lambda k: k.inverse_kinematics([1.0, 2.0], np.eye(4)), 'must be 5 numbers or more'),
        (lambda k: k.inverse_kinematics([np.nan] * 5, np.eye(4)), 'must be 5 numbers or more'),
        (lambda k: k.inverse_kinematics([0.0] * 5, np.full((4, 4), np.nan)), 'finite'),
        (lambda k: k.inverse_kinematics([0.0] * 5, np.zeros((4, 4))), 'rotation'),
        (lambda k: k.inverse_kinematics([0.0] * 5, np.eye(3)), 'shape'),
        (lambda k: k.inverse_kinematics([0.0] * 5, np.eye(4).ravel()), 'shape'),
        (lambda k: k.inverse_kinematics([0.0] * 5, 2.0 * np.eye(4)), 'rotation'),
        (lambda k: k.inverse_kinematics([0.0] * 5, np.eye(4), 1.0, np.nan), 'orientation_weight'),
        (lambda k: k.inverse_kinematics([0.0] * 5, np.eye(4), 1.0, None), 'orientation_weight'),
        (lambda _: RobotKinematics(SEED_ARM, 'tool0', ['joint1'] * 6), 'differ'),
        (lambda _: RobotKinematics(SEED_ARM, 'tool0', ['joint1']), '"joint2"'),
        (lambda _: RobotKinematics(SEED_ARM, 'tool0', largest_step=0.0), 'largest_step'),
    ],
)
def test_wrong_arguments_are_told(call, said):
    with pytest.raises(InputError, match=said):
        call(RobotKinematics(SEED_ARM, 'tool0'))
