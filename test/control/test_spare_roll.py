# SPDX-License-Identifier: Apache-2.0
"""A joint that only rolls a tool: whatever it does, the tools go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from control_harness import AFTER, Asked, Rig, arm_model
from oracles.torsos import torso_text

from ik_node import Arm, Goal, IkSolver
from ik_node.control.models import ArmModel, build_models
from ik_node.control.motion import tool_motion
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.model.urdf.reader import load_description
from ik_node.tracks import Track, place_track

pytestmark = pytest.mark.slow

URDF = Path(__file__).parents[2] / 'urdf'
ROLL = 4  # the last joint of an arm
SETTINGS = ArmSettings(self_collision='false')
SLOW = replace(SETTINGS, max_tool_turn_rate=1.5)
LENGTH, ON_CURVE = 640, 290  # [samples]
SHOULDERS = {'left': np.array([0.0, 0.25, 0.3]), 'right': np.array([0.0, -0.25, 0.3])}
ROLLS: dict[str, Callable[[float], float]] = {
    'turns': lambda time: time,  # beyond both limits, so that the joint has to unwind
    'jumps': lambda time: 2.6 if int(time / 2.0) % 2 else -2.6,
}


def still(_: float) -> float:
    return 0.0


ROLLS[''] = still


@pytest.fixture(scope='module')
def model() -> ArmModel:
    return arm_model(load_description(URDF / 'so101_like.urdf.xacro'), SETTINGS)


@pytest.fixture(scope='module')
def tree() -> ArmModel:
    """Two such arms on a chest that turns."""
    general = ArmSettings(tools=('left', 'right'), self_collision='false')
    settings = RobotSettings(general, {tool: {'tip_link': f'{tool}_tool0'} for tool in general.tools})
    (built,) = build_models(torso_text('so101_like'), settings, {}).values()
    return built


@cache
def circle() -> Track:
    place = place_track(IkSolver(Arm.from_file(URDF / 'so101_like.urdf.xacro')), 'circle')
    assert place is not None
    return Track('circle', place.centre, place.size, 0.05, place.direction)


@cache
def driven(model: ArmModel, roll: str, stream: bool = True, settings: ArmSettings = SETTINGS) -> tuple[Rig, np.ndarray]:
    """Send goals along a circle, whose roll for the first tool is a function of time.

    settings: as soon as the tools are on it. Returns the joints (k, n), a sample each.
    """
    track, rig, joints = circle(), Rig(model), []
    offsets = SHOULDERS if len(model.tools) > 1 else {'': np.zeros(3)}
    begin = rig.time
    for k in range(LENGTH):
        now = rig.time
        time = now - begin
        if k == ON_CURVE:
            rig.controller.set_limits(settings)
        for i, (tool, offset) in enumerate(offsets.items()):
            if k % (2 if stream else 200) == i:
                angle = still(time) if i else ROLLS[roll](time)
                lateral = np.array([np.cos(angle), np.sin(angle), 0.0])
                goal = Goal(track.position(time) + offset, (0.0, 0.0, -1.0), lateral)
                stamp = now if stream else None
                rig.controller.submit(Asked(goal, tool, arrival=AFTER + now, received=now, goal_time=stamp))
        rig.tick()
        joints.append(rig.controller.snapshot(next(iter(offsets))).values[model.index])
    return rig, np.array(joints)


def moved_alike(model: ArmModel, roll: str, *given: object) -> tuple[Rig, np.ndarray, np.ndarray]:
    """Check that all tools move as where no roll is asked for; return the joints of both motions, too."""
    rig, joints = driven(model, roll, *given)
    _, others = driven(model, '', *given)
    for moved, same in zip(joints[::5], others[::5], strict=True):
        for tool in model.tools.values():
            places = (tool.arm.fk(q[tool.columns]) for q in (moved, same))
            for found, expected in zip(*places, strict=True):
                assert found == pytest.approx(expected, abs=1e-6)
    return rig, joints, others


@pytest.mark.parametrize(('roll', 'stream'), [('turns', True), ('jumps', False)])
def test_the_tool_moves_alike_whatever_the_roll_does(model, roll, stream):
    _, joints, _ = moved_alike(model, roll, stream)
    assert np.ptp(joints[:, ROLL]) > 0.8


def test_all_tools_of_a_tree_move_alike_whatever_one_roll_does(tree):
    rig, joints, others = moved_alike(tree, 'turns')
    first, second = tree.rolls
    assert [tree.joint_names[i] for i in tree.rolls] == ['left_wrist_roll', 'right_wrist_roll']
    assert np.ptp(joints[:, first]) > 1.0
    assert joints[:, second] == pytest.approx(others[:, second], abs=1e-6)
    assert any('"left_wrist_roll"' in report.message for report in rig.reports), 'unwinding is announced'


def test_a_limited_turn_rate_slows_the_roll_alone(model):
    rig, _, _ = moved_alike(model, 'jumps', True, SLOW)
    names = rig.output.samples[0].names
    rows = [names.index(name) for name in model.joint_names]
    positions, velocities = (
        np.array([getattr(sample, what)[rows] for sample in rig.output.samples[400:]])
        for what in ('positions', 'velocities')
    )
    limit = SLOW.max_tool_turn_rate
    assert tool_motion(model.first.arm, positions, velocities).turn_rate.max() <= limit
    assert np.abs(velocities[:, ROLL]).max() == pytest.approx(limit / 3.0)  # it goes on meanwhile
    assert not [report for report in rig.reports if report.phase == 'faulted']


def test_a_limited_turn_rate_slows_the_roll_of_a_tree_alone(tree):
    moved_alike(tree, 'jumps', True, SLOW)


def test_the_roll_arrives_and_unwinding_is_announced(model):
    rig, joints = driven(model, 'turns')
    most = 1.01 * SETTINGS.speed_scaling * model.first.arm.velocity[ROLL] / 100.0
    assert (np.abs(np.diff(joints[:, ROLL])) < most).all()
    said = [report.message for report in rig.reports if 'unwinds' in report.message]
    assert said
    assert 'joint "wrist_roll" unwinds by -' in said[0]
    rig.settle()
    assert rig.reports[-1].phase == 'arrived'
