# SPDX-License-Identifier: Apache-2.0
"""A short version of make faults, and the judge itself: it must find what is wrong with samples."""

from __future__ import annotations

import math
import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import faults.campaign
import faults.patience
import numpy as np
import pytest
from faults.campaign import session, sessions, show
from faults.controllers import Controllers
from faults.judge import HARD, INFINITE, POSITION, RATE, SNAP, SampleJudge
from faults.judge_trajectories import TrajectoryJudge
from faults.kinds.everything import KNOWN, services, topics
from faults.kinds.garbage import leaves, spoilt
from faults.messages import MAKE
from faults.patience import Patience, waited
from faults.record import Record, Seen, SeenTrajectory, Status
from faults.robots import bounds, robot
from faults.standstill import standstills
from node_harness import running
from small_arm import arm_urdf
from waiting import wait_for

BOUNDS = bounds(arm_urdf())
PERIOD = 0.01


@pytest.mark.slow
@pytest.mark.parametrize(('number', 'runs'), [(1, (10,)), (3, (34, 35))])
def test_the_node_survives_some_runs(number, runs):
    for result in session(1, number, runs):
        show(result, '--seed 1')  # pytest would cut the violations
        assert not result.violations
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
    columns = [[[value] for value in row] for row in rows]
    return SeenTrajectory(at, 'joint_trajectory', at, at, ('yaw',), times, *columns)


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


def test_patience_ends_for_threads_that_wait_for_a_lock_and_not_for_those_that_wait_for_a_processor(
    monkeypatch,
):
    times = {'1': 5.0, '2': 7.0}
    monkeypatch.setattr(faults.patience, 'waited', lambda pid: dict(times) if pid == 1 else {})
    monkeypatch.setattr(faults.patience, 'now', lambda: clock)
    clock = 0.0
    patience = Patience(1, 2.0)
    clock = 1.9
    assert not patience.over
    clock = 2.1
    assert patience.over
    times['2'] = 8.0  # one second of the time passed without a processor
    assert not patience.over
    clock = 3.1
    assert patience.over
    times['3'] = 1.5  # a new thread
    assert not patience.over


def test_threads_that_wait_for_a_processor_are_found():
    ends = threading.Event()
    threads = [threading.Thread(target=lambda: all(iter(ends.is_set, True))) for _ in range(2)]
    before = sum(waited(os.getpid()).values())
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(waited(os.getpid()).values()) > before, 'a wait for a processor', 60.0)
    ends.set()
    for thread in threads:
        thread.join()


def test_every_run_belongs_to_one_session():
    assert list(sessions(8, 5)) == [(0, (8, 9)), (1, (10, 11, 12))]


def test_neither_judges_nor_drivers_nor_goals_use_ik_node():
    folder = Path(faults.campaign.__file__).parent
    files = list(folder.rglob('*.py'))
    assert len(files) > 15
    for file in files:
        assert not re.search(r'^\s*(from|import) ik_node', file.read_text(), re.MULTILINE), file


def test_garbage_reaches_every_topic_and_service_of_a_node():
    with running(arm_urdf()) as client:
        arena = SimpleNamespace(node=client.node, driver=SimpleNamespace(measures=True))
        found = dict(topics(arena))
        node = client.served
        own = {node.resolve_topic_name(s.topic_name) for s in node.subscriptions} - KNOWN
        assert own <= found.keys()
        assert {'/goal_pose', '/goal_joints', '/ik_node/enable', '/measured_joint_states'} <= found.keys()
        assert {node.resolve_service_name(s.srv_name) for s in node.services} <= dict(services(arena)).keys()
        for kind in found.values():
            assert spoilt(kind(), np.random.default_rng(0)) is not None


def joints_after(controllers: Controllers, *times: float) -> list[float]:
    return [float(controllers.position(time)[0]) for time in times]


def test_the_controllers_of_the_campaign_follow_trajectories_from_their_stamps():
    controllers = Controllers(('yaw', 'elbow'))
    rows = [[[0.0], [1.0]], [[0.0], [0.0]], [[0.0], [0.0]]]
    controllers.follow(5.0, None, ('yaw',), (0.5, 1.5), rows)
    assert joints_after(controllers, 5.5, 6.0, 6.5, 9.0) == pytest.approx([0.0, 0.5, 1.0, 1.0])
    controllers.follow(10.0, 10.2, ('yaw',), (0.0, 1.0), [[[1.0], [0.0]], *rows[1:]])
    assert joints_after(controllers, 10.1, 10.7, 11.2) == pytest.approx([1.0, 0.5, 0.0])
    for bad in (
        (('roll',), (1.0,), rows),
        (('yaw',), (1.0, 1.0), rows),
        (('yaw',), (0.5, 1.0), rows[:1] * 3),
    ):
        controllers.follow(12.0, None, *bad)
        assert joints_after(controllers, 14.0) == [0.0]
    controllers.drive(('elbow', 'yaw', 'other'), (0.3, 0.4, 0.5))
    assert controllers.position(15.0).tolist() == [0.4, 0.3]


def test_an_arm_that_waits_for_measurements_does_not_count_as_standing_still():
    record = Record(
        samples=[Seen(0.0, 'joint_commands', 0.0, ('yaw',), (0.0,), (0.0,))],
        statuses=[Status(0.1, 'solved', 'moving'), Status(0.5, 'late', 'late')],
        states=[(0.1 * k, '', 4) for k in range(40)],
    )
    assert not standstills(record, 0.0, 4.0)
    record.statuses.append(Status(0.6, 'on time', 'continuing'))
    assert standstills(record, 0.0, 4.0)


def test_each_arm_has_to_move_when_it_is_said_to():
    moves = [Seen(0.1 * k, 'joint_commands', None, ('a', 'b'), (0.1 * k, 0.0), None) for k in range(40)]
    record = Record(samples=moves, statuses=[Status(0.1, 'solved', 'moving', tool='right')])
    assert standstills(record, 0.0, 4.0, 'right', ('b',))
    assert not standstills(record, 0.0, 4.0, 'right', ('a',))
    assert not standstills(record, 0.0, 4.0, 'left', ('b',))


def test_garbage_reaches_every_field():
    little = robot('little')
    fields = {topic: set(leaves(make(little, np.random.default_rng(0)))) for topic, make in MAKE.items()}
    assert ('header', 'stamp', 'nanosec') in fields['goal_pose']
    assert ('poses',) in fields['goal_path']
    assert {('name',), ('position',), ('velocity',), ('effort',)} <= fields['goal_joints']
