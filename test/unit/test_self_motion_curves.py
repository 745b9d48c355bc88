# SPDX-License-Identifier: Apache-2.0
"""The curve of configurations that leave the tool where it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spare_arm import WITH_SPARE

from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.solver.goal import Goal
from ik_node.viewer.solutions.listing import spare_joint
from ik_node.viewer.solutions.self_motion import STEP, trace_self_motion

URDF = Path(__file__).resolve().parents[2] / 'urdf'


def arm_of(name: str) -> Arm:
    text = WITH_SPARE if name == 'spare' else load_description(URDF / f'{name}.urdf.xacro')
    return Arm(read_urdf(text))


@pytest.mark.parametrize('name', ['spare', 'xarm5_like', 'so101_like'])
def test_every_row_meets_the_goal_within_the_limits_and_near_the_one_before(name: str) -> None:
    arm = arm_of(name)
    spare = arm.joint_names.index(spare_joint(arm) or '')
    lengths = []
    for start in arm.sample(np.random.default_rng(2), 12):
        position, direction = arm.fk(start)
        found = trace_self_motion(arm, Goal(position, direction), start, spare)
        lengths.append(len(found.q))
        assert np.array_equal(found.q[found.start], start)
        assert np.array_equal(found.at(found.share), start)
        for q in found.q:
            reached, along = arm.fk(q)
            assert np.abs(reached - position).max() < 1e-6
            assert np.abs(along - direction).max() < 1e-6
        assert (found.q >= arm.lower).all()
        assert (found.q <= arm.upper).all()
        steps = np.linalg.norm(np.diff(found.q, axis=0), axis=1)
        assert (steps < 1.5 * STEP).all()
    assert max(lengths) > 30
    assert sorted(lengths)[1] > 1, 'only an arm at a limit has no self-motion'


def test_a_closed_curve_ends_where_it_began() -> None:
    limits = 'lower="-2.8" upper="2.8"'
    arm = Arm.from_urdf(WITH_SPARE.replace(limits, 'lower="-6.2" upper="6.2"'))
    found = [trace_self_motion(arm, Goal(*arm.fk(q)), q, 0) for q in arm.sample(np.random.default_rng(2), 60)]
    closed = [one for one in found if one.closed]
    assert closed
    for one in closed:
        gap = one.q[-1] - one.q[0]
        assert np.linalg.norm(gap - 2.0 * np.pi * np.round(gap / (2.0 * np.pi))) < 2.5 * STEP


def test_at_a_limit_the_curve_ends() -> None:
    arm = arm_of('xarm5_like')
    q = np.array([0.3, 0.2, -1.0, 0.5, 0.0])
    rolls = trace_self_motion(arm, Goal(*arm.fk(q)), q, 4).q[:, 4]
    assert rolls[0] == pytest.approx(arm.lower[4], abs=1.1 * STEP)
    assert rolls[-1] == pytest.approx(arm.upper[4], abs=1.1 * STEP)
