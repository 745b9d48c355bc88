# SPDX-License-Identifier: Apache-2.0
"""A joint that only rolls a tool: whatever it does, the tools go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from control_harness import AFTER, Asked, Rig
from oracles.torsos import torso_text

from ik_node import Arm, Goal, IkSolver
from ik_node.control.motion.tool_motion import tool_motion
from ik_node.control.robot.arm_model import ArmModel, JointModel
from ik_node.control.robot.robot_models import build_models
from ik_node.control.robot.tree_model import TreeModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import RobotSettings
from ik_node.model.urdf.reader import load_description
from ik_node.tracks.curves import Track, tip_pose
from ik_node.tracks.placement import place_roll, place_track

URDF = Path(__file__).parents[2] / 'urdf'
ROLL = 4  # the last joint of an arm
SETTINGS = ArmSettings(self_collision='false')
SLOW = replace(SETTINGS, max_tool_turn_rate=1.5)
ON_CURVE = 290  # [samples]
SHOULDERS = {'left': np.array([0.0, 0.25, 0.3]), 'right': np.array([0.0, -0.25, 0.3])}
ROLLS: dict[str, Callable[[float], float]] = {
    'turns': lambda time: time,  # beyond both limits, so that the joint has to unwind
    'jumps': lambda time: 2.6 if int(time / 2.0) % 2 else -2.6,
}


def still(_: float) -> float:
    return 0.0


@cache
def still_joints(model: JointModel, stream: bool = True, settings: ArmSettings = SETTINGS) -> np.ndarray:
    """The joints where no roll is asked for, to compare with."""
    return driven(model, still, stream, settings)[1]


@pytest.fixture(scope='module')
def model() -> ArmModel:
    return ArmModel.build(load_description(URDF / 'so101_like.urdf.xacro'), SETTINGS)


@pytest.fixture(scope='module')
def tree() -> TreeModel:
    """Two such arms on a chest that turns."""
    general = ArmSettings(tools=('left', 'right'), self_collision='false')
    settings = RobotSettings(general, {tool: {'tip_link': f'{tool}_tool0'} for tool in general.tools})
    (built,) = build_models(torso_text('so101_like'), settings, {}).values()
    assert isinstance(built, TreeModel)
    return built


def circle() -> Track:
    place = place_track(IkSolver(Arm.from_file(URDF / 'so101_like.urdf.xacro')), 'circle')
    assert place is not None
    return Track('circle', place.centre, place.size, 0.05, place.direction)


def driven(
    model: JointModel,
    roll: Callable[[float], float],
    stream: bool = True,
    settings: ArmSettings = SETTINGS,
) -> tuple[Rig, np.ndarray]:
    """Send goals along a circle, whose roll for the first tool is a function of time.

    settings: as soon as the tools are on it. Returns the joints (k, n), a sample each.
    """
    track, rig, joints = circle(), Rig(model), []
    offsets = SHOULDERS if isinstance(model, TreeModel) else {'': np.zeros(3)}
    begin = rig.time
    for k in range(1000):
        now = rig.time
        time = now - begin
        if k == ON_CURVE:
            rig.controller.set_limits(settings)
        for i, (tool, offset) in enumerate(offsets.items()):
            if k % (2 if stream else 300) == i:
                angle = still(time) if i else roll(time)
                lateral = np.array([np.cos(angle), np.sin(angle), 0.0])
                goal = Goal(track.position(time) + offset, (0.0, 0.0, -1.0), lateral)
                stamp = now if stream else None
                rig.controller.submit(Asked(goal, tool, arrival=AFTER + now, received=now, goal_time=stamp))
        rig.tick()
        joints.append(rig.controller.snapshot(next(iter(offsets))).values[model.index])
    return rig, np.array(joints)


def same_tools(model: JointModel, joints: np.ndarray, others: np.ndarray) -> None:
    for moved, same in zip(joints[::5], others[::5], strict=True):
        for tool, columns in model.tools():
            for found, expected in zip(tool.arm.fk(moved[columns]), tool.arm.fk(same[columns]), strict=True):
                assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('roll', ROLLS.values(), ids=ROLLS.keys())
def test_the_tool_moves_alike_whatever_the_roll_does(model, roll, stream):
    _, joints = driven(model, roll, stream)
    assert np.ptp(joints[:, ROLL]) > 1.0
    same_tools(model, joints, still_joints(model, stream))


@pytest.mark.parametrize('roll', ROLLS.values(), ids=ROLLS.keys())
def test_all_tools_of_a_tree_move_alike_whatever_one_roll_does(tree, roll):
    rig, joints = driven(tree, roll)
    first, second = tree.rolls
    assert [tree.joint_names[i] for i in tree.rolls] == ['left_wrist_roll', 'right_wrist_roll']
    assert np.ptp(joints[:, first]) > 1.0
    others = still_joints(tree)
    same_tools(tree, joints, others)
    assert joints[:, second] == pytest.approx(others[:, second], abs=1e-6)
    if roll is ROLLS['turns']:
        assert any('joint "left_wrist_roll" turns by ' in report.message for report in rig.reports)


@pytest.mark.parametrize('roll', ROLLS.values(), ids=ROLLS.keys())
def test_a_limited_turn_rate_slows_the_roll_alone(model, roll):
    rig, joints = driven(model, roll, settings=SLOW)
    same_tools(model, joints, still_joints(model, settings=SLOW))
    names = rig.output.samples[0].names
    rows = [names.index(name) for name in model.joint_names]
    positions, velocities = (
        np.array([getattr(sample, what)[rows] for sample in rig.output.samples[400:]])
        for what in ('positions', 'velocities')
    )
    limit = SLOW.max_tool_turn_rate
    assert tool_motion(model.arm, positions, velocities).turn_rate.max() <= limit
    assert np.abs(velocities[:, ROLL]).max() == pytest.approx(limit / 3.0)  # it goes on meanwhile
    assert not [report for report in rig.reports if report.phase == 'faulted']


def test_a_limited_turn_rate_slows_the_roll_of_a_tree_alone(tree):
    _, joints = driven(tree, ROLLS['jumps'], settings=SLOW)
    same_tools(tree, joints, still_joints(tree, settings=SLOW))


def test_the_roll_arrives_and_unwinding_is_announced(model):
    rig, joints = driven(model, ROLLS['turns'])
    assert (
        np.abs(np.diff(joints[:, ROLL])) < 1.01 * SETTINGS.speed_scaling * model.arm.velocity[ROLL] / 100.0
    ).all()
    said = [report.message for report in rig.reports if 'meanwhile' in report.message]
    assert said
    assert 'joint "wrist_roll" turns by -' in said[0]
    rig.settle()
    assert rig.reports[-1].phase == 'arrived'


@pytest.mark.parametrize(('name', 'track'), [('so101_like', 'circle'), ('xarm5_like', 'figure_eight')])
def test_tracks_ask_for_a_roll_that_never_unwinds(name, track):
    arm = Arm.from_file(URDF / f'{name}.urdf.xacro')
    solver = IkSolver(arm, restarts=20)
    place = place_track(solver, track)
    assert place is not None
    roll, curve, q, rolls = place_roll(solver, track, place), None, None, []
    curve = Track(track, place.centre, place.size, 0.05, place.direction)
    for time in np.linspace(0.0, 2.0 * curve.lap, 200):
        T = tip_pose(curve.position(time), place.direction, arm.tool_axis, arm.tool_point, roll)
        goal = Goal(curve.position(time), place.direction, T[:3, :3] @ arm.tool_lateral)
        q = solver.solve(goal, q).q
        rolls.append(q[ROLL])
    assert np.abs(np.diff(rolls)).max() < 0.5
    assert min(rolls) > arm.lower[ROLL] + 0.5
    assert max(rolls) < arm.upper[ROLL] - 0.5
