# SPDX-License-Identifier: Apache-2.0
"""Trajectories have a stamp where the clocks of the arm and this computer agree, else they begin at once."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from interleaved import at_step

from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.ros.outputs.clocks import Clocks
from ik_node.ros.outputs.trajectory_output import TrajectoryOutput, trajectory_message


@pytest.mark.parametrize(
    ('ages', 'agree', 'said'),
    [
        ([], False, 'no stamps'),
        ([0.002, 0.3, 0.4], True, 'behind'),
        ([0.3, 0.002], True, 'behind'),
        ([0.2, 0.3], False, '0.2 s behind this clock'),
        ([-0.005], True, 'ahead'),
        ([-3.0, 0.0], False, '3 s ahead of this clock'),
        ([0.002, *[0.4] * 40], True, 'behind'),  # a busy computer
        ([1e9, 0.002, -2e9, 70.0], True, 'behind'),  # garbage
    ],
)
def test_the_fastest_message_tells_how_far_the_clocks_are_apart(ages, agree, said):
    clocks = Clocks()
    for k, age in enumerate(ages):
        now = 50.0 + 0.1 * k
        clocks.heard(now, now - age)
        clocks.heard(now, None)
    assert clocks.agree is agree
    assert said in clocks.gap
    clocks.heard(70.0, 69.999)
    assert clocks.agree


def test_the_clocks_agree_at_every_step_while_a_measurement_is_noted():
    for number in itertools.count(1):
        clocks, seen = Clocks(), []
        clocks.heard(10.0, 9.995)
        clocks.heard(10.01, 10.004)
        if not at_step(number, lambda: seen.append(clocks.agree), lambda: clocks.heard(10.02, 10.0179)):  # noqa: B023
            break
        assert seen == [True]
    assert number > 20


def test_the_clocks_agree_when_a_measurement_is_noted_at_any_step_of_the_question():
    for number in itertools.count(1):
        clocks = Clocks()
        clocks.heard(10.0, 9.995)
        if not at_step(number, lambda: clocks.heard(16.0, None), lambda: clocks.agree):  # noqa: B023
            break
    assert number > 5


def test_without_a_stamp_the_past_is_not_repeated():
    rows = np.arange(8.0).reshape(4, 2)
    trajectory = JointTrajectory(
        ('a', 'b'), np.array([0.0, 0.01, 0.04, 1.0]), rows, 0 * rows, 0 * rows, 5.0, 0.04
    )
    stamped = trajectory_message(trajectory, Time(sec=7))
    assert stamped.header.stamp.sec == 7
    assert [point.time_from_start.nanosec for point in stamped.points[:3]] == [0, 10**7, 4 * 10**7]
    message = trajectory_message(trajectory, None)
    assert message.header.stamp == Time()
    assert [list(point.positions) for point in message.points] == [[4.0, 5.0], [6.0, 7.0]]


def test_without_a_stamp_a_late_motion_begins_where_it_would_be_by_then():
    rows = np.arange(8.0).reshape(4, 2)
    trajectory = JointTrajectory(
        ('a', 'b'), np.array([0.0, 0.04, 0.3, 1.0]), rows, 0 * rows, 0 * rows, 5.0, 0.04
    )
    message = trajectory_message(trajectory, None, late=0.1)
    assert [list(point.positions) for point in message.points] == [[4.0, 5.0], [6.0, 7.0]]
    times = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
    assert times == pytest.approx([0.2, 0.9])
    message = trajectory_message(trajectory, None, late=3.0)
    assert [list(point.positions) for point in message.points] == [[6.0, 7.0]]
    assert message.points[0].time_from_start.nanosec > 0
    assert len(trajectory_message(trajectory, Time(sec=7), late=3.0).points) == 4


class Sent(TrajectoryOutput):
    """Keeps what is sent, half a second late."""

    def __init__(self) -> None:
        log = SimpleNamespace(warning=lambda *_, **__: None)
        super().__init__(SimpleNamespace(clocks=Clocks(), node=SimpleNamespace(get_logger=lambda: log)))
        self.sent: list = []

    def late(self, _: float) -> float:
        return 0.5

    def send(self, message, braking) -> None:  # noqa: ARG002
        self.sent.append(message)


@pytest.mark.parametrize(('speed', 'first'), [(0.0, 0.2), (0.4, 0.7)])
def test_a_late_motion_from_rest_begins_at_its_beginning(speed: float, first: float):
    output, times = Sent(), np.array([0.0, 0.2, 0.7, 1.0])
    rest = np.zeros((4, 1))
    speeds = rest.copy()
    speeds[0] = speed
    output._send(JointTrajectory(('a',), times, times[:, None], speeds, rest, 5.0, 0.2))
    assert output.sent[0].points[0].positions[0] == first
