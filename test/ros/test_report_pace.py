# SPDX-License-Identifier: Apache-2.0
"""Reports on streams of goals: fewer of those that say the same, and none less of all others."""

from __future__ import annotations

import pytest
from node_harness import running
from small_arm import arm_urdf

from ik_node.control.state.report import Level, Report
from ik_node.control.state.states import State
from ik_node.ros.tools import report_pace
from ik_node.ros.tools.report_pace import ReportPace
from ik_node.steady import steady


def report(number: int, status: str = 'solved', phase: str = 'moving', level: Level = Level.OK) -> Report:
    return Report(level, '', status, phase, State.MOVING, number=number)


@pytest.fixture
def endless(monkeypatch):
    """No time is long enough for the next report on a stream."""
    monkeypatch.setattr(report_pace, 'PERIOD', 1e9)


class Heard(list):
    """A pace, and the numbers and phases of the reports that it has published."""

    def __init__(self, *reports: Report) -> None:
        self.pace = ReportPace(lambda report: self.append((report.number, report.phase)))
        for one in reports:
            self.pace.add(one)


@pytest.mark.usefixtures('endless')
def test_the_first_report_on_a_stream_is_published_at_once_and_the_rest_is_held_back():
    heard = Heard(*map(report, range(1, 9)))
    heard.pace.publish_due()
    assert heard == [(1, 'moving')]


@pytest.mark.usefixtures('endless')
@pytest.mark.parametrize(
    'other',
    [
        report(4, 'rejected', 'rejected', Level.ERROR),
        report(4, 'unreachable', 'moving', Level.WARN),
        report(4, 'not found', 'held', Level.WARN),
        report(4, 'solved', 'moving', Level.WARN),
        report(3, 'solved', 'arrived'),
        report(0, 'stopped', 'stopped', Level.WARN),
    ],
)
def test_any_other_report_is_published_at_once_after_what_was_held_back(other):
    heard = Heard(*map(report, (1, 2, 3)), other, other, report(5))
    assert heard == [(1, 'moving'), (3, 'moving'), *[(other.number, other.phase)] * 2, (5, 'moving')]


def test_the_last_report_on_a_stream_is_published_when_it_is_due(monkeypatch):
    now = 100.0
    monkeypatch.setattr(steady, 'read', lambda: now)
    heard = Heard(*map(report, (1, 2, 3)))
    heard.pace.publish_due()
    assert heard == [(1, 'moving')]
    now += report_pace.PERIOD
    heard.pace.publish_due()
    heard.pace.publish_due()
    assert heard == [(1, 'moving'), (3, 'moving')]
    heard.pace.add(report(4))
    now += report_pace.PERIOD
    heard.pace.add(report(5))
    heard.pace.publish_due()
    assert heard == [(1, 'moving'), (3, 'moving'), (5, 'moving')]


@pytest.mark.usefixtures('endless')
def test_a_stream_of_goals_is_answered_in_part_and_its_last_goal_in_any_case():
    with running(arm_urdf(), speed_scaling=0.2) as client:
        mark = len(client.statuses)
        tool = client.served._tools[0]
        for k in range(30):
            yaw = 0.5 + 0.01 * k
            client.send('goal_joints', client.joints(yaw=yaw))
            client.wait(lambda y=yaw: y in tool.snapshot().target, 'the goal to be taken')
        client.send('goal_joints', client.joints(nowhere=1.0))
        client.wait(lambda: any('rejected' in s.message for s in client.statuses[mark:]), 'the rejection')
        client.wait_still()
        client.wait(lambda: 'arrived' in client.statuses[-1].message, 'the arrival')
        said = [{pair.key: pair.value for pair in s.values} for s in client.statuses[mark:]]
        numbers = [int(values['goal_number']) for values in said]
        states = [values['state'] for values in said]
        assert states[-2:] == ['rejected', 'arrived']
        assert set(states[:-2]) == {'moving'}
        *moving, rejected, arrived = numbers
        assert 2 <= len(moving) < 30  # on a busy computer the goals take longer
        assert moving == sorted(set(moving))
        assert moving[-1] == arrived == rejected - 1
