"""A short version of make faults, and the judge itself: it must find what is wrong with samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faults.campaign import session, sessions
from faults.judge import HARD, INFINITE, POSITION, RATE, SNAP, SampleJudge
from faults.judge_trajectories import TrajectoryJudge
from faults.kinds.garbage import leaves
from faults.messages import MAKE
from faults.record import Record, Seen, SeenTrajectory, Status
from faults.robots import bounds, robot
from faults.standstill import standstills
from small_arm import arm_urdf

BOUNDS = bounds(arm_urdf())
PERIOD = 0.01


@pytest.mark.slow
@pytest.mark.parametrize(('number', 'runs'), [(1, (10,)), (3, (34, 35))])
def test_the_node_survives_some_runs(number, runs):
    for result in session(1, number, runs):
        assert not result.violations, (result.number, result.faults)
        assert result.samples > 0


def samples(record: Record, positions: list[float], velocities: list[float]) -> set[str]:
    """What the judge finds in samples of the yaw, one per period."""
    judge = SampleJudge(BOUNDS, record, False)
    found = set()
    for i, (position, velocity) in enumerate(zip(positions, velocities, strict=True)):
        time = i * PERIOD
        seen = Seen(time, 'joint_commands', time, ('yaw',), (position,), (velocity,))
        found |= {violation.kind for violation in judge.judge(seen)}
    return found


def ramp(acceleration: float) -> tuple[list[float], list[float]]:
    """A motion from rest."""
    times = [i * PERIOD for i in range(8)]
    return [acceleration * t**2 / 2 for t in times], [acceleration * t for t in times]


@pytest.mark.parametrize(
    ('positions', 'velocities', 'kind'),
    [
        ([0.0, math.nan], [0.0, 0.0], INFINITE),
        ([0.0, 0.0], [0.0, math.inf], INFINITE),
        ([2.499, 2.501], [0.2, 0.2], POSITION),
        ([0.0, 0.02], [0.0, 0.0], SNAP),
        ([0.0, 0.0], [1.01, 1.01], RATE),  # speed_scaling 0.5 of 2 rad/s
        ([0.0, 0.009], [0.0, 0.05], RATE),  # not what it claims
        (*ramp(5.2), HARD),
        ([0.0] * 3, [0.0, 0.04, 0.0], HARD),
    ],
)
def test_the_judge_finds_what_is_wrong(positions, velocities, kind):
    assert kind in samples(Record(), positions, velocities)


def test_the_judge_lets_good_samples_pass():
    gentle = ([0.0, 0.0, 2e-6, 1.4e-5], [0.0, 0.0, 5e-4, 2e-3])
    assert not samples(Record(), *gentle)
    measured = Record(measured=[(0.0, {'yaw': 2.7})])
    back = [2.7, 2.7, 2.7 - 2e-6]
    assert not samples(measured, back, [0.0, 0.0, -5e-4])
    assert POSITION in samples(measured, [2.7, 2.7, 2.701], [0.0, 0.0, 0.1])
    assert SNAP in samples(measured, [0.0], [0.0])


def trajectories(*seen: SeenTrajectory) -> set[str]:
    judge = TrajectoryJudge(BOUNDS, Record())
    return {violation.kind for one in seen for violation in judge.judge(one)}


def trajectory(at: float, times, positions, velocities, accelerations=None) -> SeenTrajectory:
    rows = positions, velocities, [0.0] * len(times) if accelerations is None else accelerations
    return SeenTrajectory(at, at, ('yaw',), times, *([[value] for value in row] for row in rows))


def test_the_judge_of_trajectories_finds_what_is_wrong():
    smooth = trajectory(0.0, [0.5, 1.5, 2.5], [0.0, 0.25, 0.5], [0.0, 0.3, 0.0])
    assert trajectories(smooth) == {SNAP}  # nobody has measured the joint there
    later = trajectory(0.5, [0.08, 1.0], [0.005, 0.02], [0.0, 0.0])
    assert trajectories(smooth, later) == {SNAP}  # of the first alone
    assert HARD in trajectories(trajectory(0.0, [0.5, 0.6], [0.0, 0.08], [0.0, 0.0]))
    assert RATE in trajectories(trajectory(0.0, [0.5, 1.5], [0.0, 1.2], [0.0, 0.0]))
    assert RATE in trajectories(trajectory(0.0, [0.5], [0.0], [0.1]))
    assert POSITION in trajectories(trajectory(0.0, [0.5, 2.5], [2.4, 2.6], [0.0, 0.0]))
    assert INFINITE in trajectories(trajectory(0.0, [0.5], [math.nan], [0.0]))


def test_an_arm_that_is_said_to_move_and_does_not_is_found():
    still = [Seen(t, 'joint_commands', t, ('yaw',), (0.0,), (0.0,)) for t in (0.0, 1.0, 2.0, 3.0)]
    record = Record(samples=still, statuses=[Status(0.5, 'solved', 'moving')])
    assert standstills(record, 0.0, 4.0)
    record.statuses.append(Status(1.0, 'fault', 'faulted'))
    assert not standstills(record, 0.0, 4.0)


def test_every_run_belongs_to_one_session():
    assert list(sessions(8, 5)) == [(0, (8, 9)), (1, (10, 11, 12))]


def test_garbage_reaches_every_field():
    little = robot('little')
    fields = {topic: set(leaves(make(little, np.random.default_rng(0)))) for topic, make in MAKE.items()}
    assert ('header', 'stamp', 'nanosec') in fields['goal_pose']
    assert ('poses',) in fields['goal_path']
    assert {('name',), ('position',), ('velocity',), ('effort',)} <= fields['goal_joints']
