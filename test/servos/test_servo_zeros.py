# SPDX-License-Identifier: Apache-2.0
"""The zero of each joint: estimates, the choice among them, limits, and the description of the SO-101."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_calibration import SO101, TICK, recorded_between_stops
from shared_files import shared_path

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.servos.bus.models import model_named
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.recorded import Recorded, recorded_in, registers_of
from ik_node.servos.calibration.zeros import MARGIN, STEP_MARGIN, calibrate, estimates_of, read_zeros

GOOD = recorded_between_stops()
ELBOW = SO101.joints[2]


def changed(name: str, **values: object) -> dict[str, Recorded]:
    return {**GOOD, name: replace(GOOD[name], **values)}


# The choice


@pytest.mark.parametrize('offset', [0.0, -40.0])
def test_the_zero_comes_from_the_stops_where_the_range_is_that_between_them(offset):
    found = calibrate(SO101, recorded_between_stops(offset))
    for joint in found.joints:
        if joint.profile.stops is not None:
            assert joint.source == 'stops'
            assert joint.zero == pytest.approx(2048 + offset, abs=1.0)
    roll = found.joint('wrist_roll')
    assert (roll.source, roll.zero) == ('homing', 2047)
    assert found.warnings == []


def test_the_middle_of_the_range_is_not_zero():
    """URDF angles at 0 degrees of LeRobot, by the middle of the stops of the CAD model."""
    positions = calibrate(SO101, GOOD).from_lerobot(dict.fromkeys(SO101.names[:5], 0.0))
    degrees = [math.degrees(positions[name]) for name in SO101.names[:5]]
    assert degrees == pytest.approx([4.1, -1.7, -6.9, -1.1, 0.0], abs=0.1)


@pytest.mark.parametrize('zero_from', ['stops', 'homing', 'lerobot'])
def test_degrees_of_lerobot_come_back_unchanged(zero_from):
    found = calibrate(SO101, GOOD, zero_from)
    degrees = {'shoulder_pan': 12.3, 'elbow_flex': -45.6}
    assert found.to_lerobot(found.from_lerobot(degrees)) == pytest.approx(degrees)
    if zero_from == 'lerobot':  # 4095 ticks are 360 degrees of LeRobot
        as_radians = {name: math.radians(value) * 4095 / 4096 for name, value in degrees.items()}
        assert found.from_lerobot(degrees) == pytest.approx(as_radians)


def test_lerobot_has_no_degrees_of_a_gripper_or_without_a_range():
    with pytest.raises(InputError, match='"gripper" is a gripper'):
        calibrate(SO101, GOOD).from_lerobot({'gripper': 0.0})
    found = calibrate(SO101, {}, zeros=dict.fromkeys(SO101.names, 2048.0))
    with pytest.raises(InputError, match='no range of joint "elbow_flex"'):
        found.to_lerobot({'elbow_flex': 0.0})
    with pytest.raises(InputError, match='did you mean "elbow_flex"'):
        found.to_lerobot({'elbow_flx': 0.0})


@pytest.mark.parametrize(('wider', 'source'), [(30, 'stops'), (38, 'homing'), (-30, 'stops'), (-38, 'homing')])
def test_spans_agree_within_three_degrees(wider, source):
    found = calibrate(SO101, changed('elbow_flex', high=GOOD['elbow_flex'].high + wider))
    assert found.joint('elbow_flex').source == source


def test_a_gripper_is_zero_a_little_beyond_its_closed_stop():
    """0 % of LeRobot are -0.20 rad, whatever the span of the jaws is."""
    for high in (GOOD['gripper'].high, GOOD['gripper'].high + 60):
        gripper = calibrate(SO101, changed('gripper', high=high), 'lerobot').joint('gripper')
        assert gripper.position(GOOD['gripper'].low) == pytest.approx(-0.200, abs=TICK)
    backwards = replace(SO101.joints[5], sign=-1)
    estimate = estimates_of(backwards, Recorded(500, 1900, 9))['stops']
    assert -(1900 - estimate) * TICK == pytest.approx(-0.200)


def test_with_a_negative_sign_the_stops_change_sides():
    elbow = replace(ELBOW, sign=-1)
    low, high = (round(2048 - end / TICK) for end in reversed(elbow.stops))
    found = calibrate(replace(SO101, joints=(elbow,)), {'elbow_flex': Recorded(low, high, 5)}).joints[0]
    assert found.source == 'stops'
    assert found.zero == pytest.approx(2048, abs=1.0)
    assert found.position(low) == pytest.approx(1.573, abs=TICK)
    assert found.tick(1.573) == pytest.approx(low, abs=1)


def test_what_the_owner_has_set_counts_before_all_estimates():
    elbow = calibrate(SO101, GOOD, zeros={'elbow_flex': 2200.5}).joint('elbow_flex')
    assert (elbow.zero, elbow.source) == (2200.5, 'owner')
    assert elbow.position(2200.5) == 0.0
    assert any('estimates of zero differ by 13.' in text for text in elbow.warnings)


def test_all_joints_without_a_zero_are_told_at_once():
    koch = read_profile('koch')
    with pytest.raises(InputError, match=r'joint "joint_1", "joint_2", .*"joint_6": the zero is not known: cal'):
        calibrate(koch, {})
    found = calibrate(koch, {}, zeros=dict.fromkeys(koch.names, 2048.0))
    assert {joint.source for joint in found.joints} == {'owner'}


def test_a_servo_as_delivered_has_no_zero():
    for name in ('elbow_flex', 'wrist_roll', 'gripper'):
        for zero_from in ('stops', 'homing', 'lerobot'):
            recorded = {**GOOD, name: Recorded(0, 4095, 0)}
            with pytest.raises(InputError, match=f'"{name}": the zero is not known .the servo is as delivered'):
                calibrate(SO101, recorded, zero_from)
        found = calibrate(SO101, recorded, zeros={name: 2048})
        assert any('as delivered' in text for text in found.joint(name).warnings)


@pytest.mark.parametrize('ends', [(0, 4095), (600, 4095), (2000, 1000)])
def test_a_range_with_the_step_from_4095_to_0_gives_no_zero(ends):
    with pytest.raises(InputError, match=r'"elbow_flex": .*contains the step from 4095 to 0'):
        calibrate(SO101, {**GOOD, 'elbow_flex': Recorded(*ends, 12)})


def test_the_zero_of_a_factory_needs_no_calibration():
    omx = read_profile('omx_f')
    found = calibrate(omx, dict.fromkeys(omx.names, Recorded(0, 4095, 0, reversed=False)))
    assert {(joint.zero, joint.source) for joint in found.joints} == {(2048.0, 'homing')}
    assert found.warnings == []


def test_a_servo_that_turns_the_wrong_way_is_rejected():
    wx200 = read_profile('wx200')
    good = {joint.name: Recorded(800, 3300, 0, reversed=joint.reversed) for joint in wx200.joints}
    assert calibrate(wx200, good).warnings == []
    with pytest.raises(InputError, match='"elbow": bit 0 of drive_mode in servo 4 must be 1'):
        calibrate(wx200, {**good, 'elbow': Recorded(800, 3300, 0, reversed=False)})


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'zero_from': 'centre'}, "zero_from must be one of stops, homing, lerobot, got 'centre'"),
        ({'zeros': {'elbow_flx': 1.0}}, 'zeros: .*did you mean "elbow_flex"'),
        ({'file': {'elbow_flx': GOOD['elbow_flex']}}, 'the file: .*did you mean "elbow_flex"'),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(InputError, match=message):
        calibrate(SO101, GOOD, **arguments)


# Limits


def test_limits_are_the_stricter_of_urdf_and_range_and_that_is_told():
    limits = {'elbow_flex': (-1.69, 1.69), 'wrist_flex': (-0.5, 0.5), 'other': (0.0, 1.0)}
    found = calibrate(SO101, GOOD, limits=limits)
    elbow, wrist = found.joint('elbow_flex'), found.joint('wrist_flex')
    assert elbow.lower == -1.69
    assert elbow.upper == pytest.approx(1.573 - MARGIN * TICK, abs=TICK)
    assert 'limits -1.690 to 1.5' in elbow.notes[1]
    assert 'the recorded range; the URDF has -1.690 to 1.690' in elbow.notes[1]
    assert (wrist.lower, wrist.upper, wrist.notes[1:]) == (-0.5, 0.5, ())
    assert len(found.notes) == 7


def test_without_a_recorded_range_limits_are_the_stops_and_the_turn_of_the_servo():
    found = calibrate(SO101, {**GOOD, 'elbow_flex': Recorded(0, 4095, 0)}, zeros={'elbow_flex': 1000})
    elbow, roll = found.joint('elbow_flex'), found.joint('wrist_roll')
    assert (elbow.lower, elbow.upper) == (pytest.approx((STEP_MARGIN - 1000) * TICK), 1.573)
    assert (roll.lower, roll.upper) == pytest.approx(((STEP_MARGIN - 2047) * TICK, (4095 - STEP_MARGIN - 2047) * TICK))


def test_limits_without_a_common_position_mean_a_wrong_zero():
    with pytest.raises(InputError, match=r'"elbow_flex": the recorded range allows .* its zero at tick 100'):
        calibrate(SO101, GOOD, zeros={'elbow_flex': 100.0}, limits={'elbow_flex': (-9, -3)})


# What the owner is told


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'low': 2022, 'high': 2073}, 'is 2 % of that between the stops: record it again'),
        ({'low': 700, 'high': 3100}, 'is 109 % of that between the stops: record it again'),
        ({'multi_turn': True}, 'counts beyond one turn'),
    ],
)
def test_doubtful_records_are_told(values, message):
    warnings = calibrate(SO101, changed('elbow_flex', **values)).warnings
    assert any(text.startswith('elbow_flex: ') and message in text for text in warnings)


@pytest.mark.parametrize(('offset', 'told'), [(46, True), (42, False), (-48, True)])
def test_estimates_that_differ_by_more_than_four_degrees_are_told(offset, told):
    found = calibrate(SO101, recorded_between_stops(offset))
    assert told == any('estimates of zero differ by 4.' in text for text in found.joint('elbow_flex').warnings)


def test_the_memory_of_a_servo_counts_before_a_file_that_differs():
    file = changed('gripper', homing_offset=5, low=GOOD['gripper'].low + 100)
    found = calibrate(SO101, GOOD, file=file)
    assert found.joint('gripper').zero == calibrate(SO101, GOOD).joint('gripper').zero
    assert len(found.warnings) == 1
    assert 'gripper: the servo has range' in found.warnings[0]
    assert 'and offset 306, the file range' in found.warnings[0]
    assert calibrate(SO101, {}, file=GOOD).joints == calibrate(SO101, GOOD).joints
    assert calibrate(SO101, GOOD, file=GOOD).warnings == []


# Ticks


def test_ticks_are_rounded():
    joint = calibrate(SO101, GOOD, 'homing').joints[0]
    assert joint.tick(0.6 * TICK) - joint.tick(0.0) == 1  # not truncated
    assert joint.tick(-0.6 * TICK) - joint.tick(0.0) == -1


def test_a_finger_slides_in_metres():
    profile = read_profile('open_manipulator_x')
    reversed_ = {joint.name: Recorded(0, 4095, 0, reversed=joint.reversed) for joint in profile.joints}
    finger = calibrate(profile, reversed_).joint('gripper_left_joint')
    assert finger.position(0) == pytest.approx(-0.0361, abs=1e-5)


def test_memory_is_what_the_registers_have():
    sts, x = model_named('sts3215'), model_named('xl430-w250')
    assert recorded_in(
        sts, {'min_position_limit': 1, 'max_position_limit': 2, 'homing_offset': -3, 'phase': 0x1C}
    ) == Recorded(1, 2, -3, multi_turn=True)
    assert 'phase' not in registers_of(x)
    assert recorded_in(
        x, {'min_position_limit': 1, 'max_position_limit': 2, 'homing_offset': -3, 'drive_mode': 5}
    ) == Recorded(1, 2, -3, reversed=True)


@pytest.mark.parametrize(
    'text',
    [
        'elbow_flex',
        'elbow_flex=x',
        'elbow_flex=1e9',
        '=3',
        'elbow_flex=nan',
        'a=1, a=2',
        'a=1=',
        'a: x',
        ': 3',
    ],
)
def test_zeros_that_are_no_ticks_are_rejected(text):
    with pytest.raises(InputError, match='zeros must be ticks by joint'):
        read_zeros(text)


def test_zeros_of_the_parameter_are_ticks_by_joint():
    for text in (' elbow_flex=2126,wrist_roll = 2050.5 ', 'elbow_flex: 2126, wrist_roll:2050.5,'):
        assert read_zeros(text) == {'elbow_flex': 2126, 'wrist_roll': 2050.5}
    assert read_zeros('') == {}


def test_a_urdf_with_another_zero_is_told():
    old = {'shoulder_lift': (-3.3161, 0.17453), 'elbow_flex': (-0.17453, 3.14159)}
    new = {'shoulder_lift': (-1.74533, 1.74533), 'elbow_flex': (-1.69, 1.69), 'gripper': (-0.17453, 1.74533)}
    warnings = calibrate(SO101, GOOD, limits=old).warnings
    assert len(warnings) == 2
    assert all('use so101_new_calib.urdf' in text for text in warnings)
    assert calibrate(SO101, GOOD, limits=new).warnings == []


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_file(shared_path('arms', 'so101.urdf'), 'gripper_frame_link')


@pytest.mark.parametrize('offset', [0.0, -45.0])
def test_the_tool_is_where_the_description_has_it_at_each_stop(arm, offset):
    recorded = recorded_between_stops(offset)
    calibration = calibrate(SO101, recorded)
    for joint in SO101.joints[:4]:
        ends = recorded[joint.name].low, recorded[joint.name].high
        for stop, tick in zip(joint.stops, ends, strict=True):
            true = {**dict.fromkeys(arm.joint_names, 0.2), joint.name: stop}
            measured = {**true, **calibration.positions({joint.name: tick})}
            points = [arm.fk([q[name] for name in arm.joint_names])[0] for q in (true, measured)]
            assert np.linalg.norm(points[0] - points[1]) < 5e-4  # a tick at 0.4 m is 0.6 mm


@pytest.mark.slow
def test_the_identity_of_lerobots_degrees_misses_by_46_mm_in_the_median(arm):
    calibration = calibrate(SO101, recorded_between_stops())
    misses = []
    for q in arm.sample(np.random.default_rng(1), 4000):
        degrees = calibration.to_lerobot(dict(zip(arm.joint_names, q, strict=True)))
        as_if = [math.radians(degrees[name]) for name in arm.joint_names]
        misses.append(np.linalg.norm(arm.fk(q)[0] - arm.fk(as_if)[0]))
    assert np.median(misses) == pytest.approx(0.046, abs=0.002)


def test_the_elbow_ends_before_the_limit_of_the_description(arm):
    """Its stop is at 90.1 degrees, the limit of the URDF at 96.8: a goal there would stall the servo."""
    limits = {name: (arm.lower[i], arm.upper[i]) for i, name in enumerate(arm.joint_names)}
    elbow = calibrate(SO101, recorded_between_stops(), limits=limits).joint('elbow_flex')
    assert math.degrees(limits['elbow_flex'][1]) == pytest.approx(96.8, abs=0.1)
    assert math.degrees(elbow.upper) == pytest.approx(90.1 - math.degrees(8 * TICK), abs=0.1)


def test_the_arm_that_is_shipped_has_the_same_zeros_and_signs(arm):
    like = Arm.from_file(Path(__file__).parents[2] / 'urdf' / 'so101_like.urdf.xacro')
    assert like.joint_names == arm.joint_names
    for q in arm.sample(np.random.default_rng(2), 200):
        (point, direction), (like_point, like_direction) = arm.fk(q), like.fk(q)
        assert np.linalg.norm(point - like_point) < 0.012
        assert direction @ like_direction > math.cos(0.03)
