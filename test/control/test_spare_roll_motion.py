"""A joint that only rolls the tool: whatever it does, the tool goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from control_harness import Asked, Rig

from ik_node import Arm, Goal, IkSolver
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.model.urdf.reader import load_description
from ik_node.tracks.curves import Track, tip_pose
from ik_node.tracks.placement import place_roll, place_track

URDF = Path(__file__).parents[2] / 'urdf'
ROLL = 4  # the last joint
SETTINGS = ArmSettings(self_collision='false')
ROLLS: dict[str, Callable[[float], float]] = {
    'turns': lambda time: time,  # beyond both limits, so that the joint has to unwind
    'jumps': lambda time: 2.6 if int(time / 2.0) % 2 else -2.6,
}


@pytest.fixture(scope='module')
def model() -> ArmModel:
    return ArmModel.build(load_description(URDF / 'so101_like.urdf.xacro'), SETTINGS)


def driven(model: ArmModel, roll: Callable[[float], float], stream: bool) -> tuple[Rig, np.ndarray]:
    """Send goals along a circle whose roll is a function of time; return the joints (k, n), a sample each."""
    place = place_track(model.solver, 'circle')
    assert place is not None
    track = Track('circle', place.centre, place.size, 0.05, place.direction)
    rig, joints = Rig(model), []
    begin = rig.time
    for k in range(1000):
        now = rig.time
        time = now - begin
        if k % 2 == 0 and (stream or k % 300 == 0):
            lateral = np.array([np.cos(roll(time)), np.sin(roll(time)), 0.0])
            goal = Goal(track.position(time), place.direction, lateral)
            rig.controller.submit(Asked(goal, arrival=now, received=now, goal_time=now if stream else None))
        rig.tick()
        joints.append(rig.controller.snapshot().position)
    return rig, np.array(joints)


@pytest.mark.parametrize('stream', [True, False])
@pytest.mark.parametrize('roll', ROLLS.values(), ids=ROLLS.keys())
def test_the_tool_moves_alike_whatever_the_roll_does(model, roll, stream):
    _, joints = driven(model, roll, stream)
    _, still = driven(model, lambda _: 0.0, stream)
    assert np.ptp(joints[:, ROLL]) > 1.0
    for moved, same in zip(joints[::5], still[::5], strict=True):
        for found, expected in zip(model.arm.fk(moved), model.arm.fk(same), strict=True):
            assert found == pytest.approx(expected, abs=1e-6)


def test_the_roll_arrives_and_unwinding_is_announced(model):
    rig, joints = driven(model, ROLLS['turns'], stream=True)
    assert (
        np.abs(np.diff(joints[:, ROLL])) < 1.01 * SETTINGS.speed_scaling * model.arm.velocity[ROLL] / 100.0
    ).all()
    said = [report.message for report in rig.reports if 'meanwhile' in report.message]
    assert said
    assert 'joint "wrist_roll" turns by -' in said[0]
    rig.settle()
    assert rig.reports[-1].phase == 'arrived'


@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like'])
@pytest.mark.parametrize('track', ['circle', 'figure_eight', 'line'])
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
