# SPDX-License-Identifier: Apache-2.0
"""The zero that is derived against the official description of the SO-101."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from made_calibration import SO101, TICK, recorded_between_stops
from shared_files import shared_path

from ik_node.model.arm import Arm
from ik_node.servos.calibration.zeros import calibrate


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_file(shared_path('arms', 'so101.urdf'), 'gripper_frame_link')


@pytest.mark.parametrize('offset', [0.0, 33.0, -45.0])
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


def test_all_zeros_is_the_pose_of_the_description(arm):
    calibration = calibrate(SO101, recorded_between_stops())
    q = calibration.positions({name: 2048 for name in arm.joint_names if name != 'wrist_roll'})
    point = arm.fk([q.get(name, 0.0) for name in arm.joint_names])[0]
    assert point[[0, 2]] == pytest.approx([0.391, 0.226], abs=1e-3)


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
