# SPDX-License-Identifier: Apache-2.0
"""Reports of ik_node: in order, no more than are of use, as sentences and as numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from node_harness import running
from small_arm import arm_urdf
from std_msgs.msg import Float64MultiArray

from ik_node.control.requests import Level, Report
from ik_node.control.states import State
from ik_node.ros import node, tool_interface
from ik_node.ros.interfaces import FORGET_AFTER, INTERVAL, Remarks
from ik_node.ros.programs import services
from ik_node.ros.reports import NUMBERS, STATUSES, status_message
from ik_node.ros.tool_interface import ReportPace
from ik_node.steady import steady


def report(number: int, status: str = 'solved', phase: str = 'moving', level: Level = Level.OK) -> Report:
    return Report(level, '', status, phase, State.MOVING, number=number)


@pytest.fixture
def endless(monkeypatch):
    """No time is long enough for the next report on a stream."""
    monkeypatch.setattr(tool_interface, 'PERIOD', 1e9)


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
    now += tool_interface.PERIOD
    heard.pace.publish_due()
    heard.pace.publish_due()
    assert heard == [(1, 'moving'), (3, 'moving')]
    heard.pace.add(report(4))
    now += tool_interface.PERIOD
    heard.pace.add(report(5))
    heard.pace.publish_due()
    assert heard == [(1, 'moving'), (3, 'moving'), (5, 'moving')]


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_unexpected_error_while_a_robot_is_built_is_reported(monkeypatch):
    def build(*_):
        raise RuntimeError('made up')

    with running(arm_urdf()) as client:
        monkeypatch.setattr(node, 'build_models', build)
        with pytest.raises(RuntimeError, match='made up'):
            client.served._description_handler.prepare('another')
        client.wait_said("RuntimeError('made up')")
        assert client.said(-1)['state'] == 'rejected'


def test_a_report_without_a_goal_leaves_the_goal_that_is_pursued_alone():
    with running(arm_urdf(), speed_scaling=0.05) as client:
        (tool,) = client.served._tools
        place, _ = tool.snapshot().tool.arm.fk([2.0, 0.5, 0.5, 0.5, 0.5])
        taken = client.answer('goal_point', client.point(place))
        assert taken.message.startswith('solved')
        shown, totals = tool.markers._goal, dict(client.served._statistics._totals)
        assert shown is not None
        assert tool.own_controller.announce(Level.OK, 'made up')
        assert tool.own_controller.announce(Level.ERROR, 'made up, too', 'rejected')
        client.wait_said('made up, too')
        assert client.said(-2)['state'] == 'moving'
        assert tool.markers._goal is shown
        assert client.served._statistics._totals == totals
        assert tool.last_report.goal is shown[0]


OLD, OTHER = 'command ignored: it is {:.2f} s old', 'joint "{:.0f}" is unknown'


@pytest.mark.parametrize(
    ('came', 'said'),
    [
        ([(0.01 * k, OLD.format(k)) for k in range(10_000)], [0]),
        ([(0.0, OLD.format(1)), (FORGET_AFTER + 1.0, OLD.format(2))], [0, 1]),  # it had ended
        ([(k * INTERVAL, (OLD if k % 2 else OTHER).format(1)) for k in range(20)], [0, 1]),
        ([(k * INTERVAL, OTHER.format(k)) for k in range(4)], [0, 1, 2, 3]),  # names, not numbers
        ([(0.001 * k, OTHER.format(k)) for k in range(1000)], [0]),  # a flood
    ],
)
def test_what_lasts_is_said_once(came, said):
    times = iter([time for time, _ in came])
    remarks = Remarks(lambda: next(times))
    assert [k for k, (_, sentence) in enumerate(came) if remarks.new(sentence)] == said


@pytest.fixture(scope='module')
def client():
    with running(arm_urdf(), speed_scaling=1.0) as client:
        yield client


@pytest.mark.slow
def test_diagnostics_tell_rates_and_goals(client):
    mark = len(client.diagnostics)
    client.wait(lambda: len(client.diagnostics) >= mark + 2, 'diagnostics')
    status = client.diagnostics[-1].status[0]
    values = {pair.key: pair.value for pair in status.values}
    assert status.level == DiagnosticStatus.OK
    assert status.name == '/ik_node'
    assert float(values['publish rate [Hz]']) > 0.0
    assert float(values['publish jitter p99 [ms]']) >= 0.0
    before = int(values['goals taken'])
    client.answer('goal_joints', client.joints(yaw=0.11))
    client.wait(
        lambda: any(
            pair.key == 'goals taken' and int(pair.value) == before + 1
            for pair in client.diagnostics[-1].status[0].values
        ),
        'the goal in the diagnostics',
    )


def test_the_codes_of_goal_state_do_not_change():
    """Programs of users compare with them."""
    assert STATUSES == ('', 'solved', 'unreachable', 'not found', 'rejected')
    names = 'unconfigured inactive waiting holding moving stopping stopped hand-guided faulted teleoperated'
    assert [state.value for state in State] == names.split()
    assert ' '.join(NUMBERS) == (
        'goal state status position_error direction_error distance_left time_left share_done behind'
    )


@pytest.mark.slow
def test_goal_state_holds_the_progress_as_numbers(client):
    states = []
    subscription = client.node.create_subscription(Float64MultiArray, 'ik_node/goal_state', states.append, 100)
    client.call('ik_node/home')
    client.wait_still()
    answer = client.answer('goal_joints', client.joints(yaw=1.0))
    number = float({pair.key: pair.value for pair in answer.values}['goal_number'])
    client.wait(lambda: states and states[-1].data[0] == number and states[-1].data[7] == 1.0, 'the arrival')
    names = states[-1].layout.dim[0].label.split(',')
    rows = [dict(zip(names, state.data, strict=True)) for state in states if state.data[0] == number]
    moving = [row for row in rows if row['state'] == 4]
    assert len(moving) > 3
    first, *planned = moving  # the first may come before the sample that plans the motion
    assert math.isnan(first['time_left']) or first['time_left'] > 0.0
    assert all(0.0 <= row['share_done'] < 1.0 and row['time_left'] > 0.0 for row in planned)
    assert rows[-1]['distance_left'] == rows[-1]['time_left'] == 0.0
    client.node.destroy_subscription(subscription)


STOPPED = 'stopped; run ik_resume or call ~/resume, then give a goal'


def rejection(state: State, reason: str = STOPPED) -> Report:
    request = SimpleNamespace(source='goal_pose', stamp='', frame='', tool='')
    return Report(Level.ERROR, f'goal_pose rejected: {reason}', 'rejected', 'rejected', state, request, 7)


def test_that_the_arm_is_stopped_is_logged_once_for_a_stream_of_goals():
    said: list[str] = []
    log = SimpleNamespace(error=lambda message, **_: said.append(message))
    tool = SimpleNamespace(_node=SimpleNamespace(get_logger=lambda: log), label=str, _told=set())

    def hear(one: Report) -> int:
        tool_interface.ToolInterface._log(tool, one)
        return len(said)

    assert [hear(rejection(State.STOPPED)) for _ in range(3)] == [1, 1, 1]
    assert hear(rejection(State.STOPPED, 'NaN')) == 2
    assert hear(Report(Level.OK, 'solved', 'solved', 'moving', State.MOVING, rejection(State.MOVING).request)) == 2
    assert hear(rejection(State.STOPPED)) == 3, 'a later stop'
    assert [hear(rejection(State.HOLDING, 'NaN')) for _ in range(2)] == [4, 5], 'the arm is not stopped'


@pytest.mark.parametrize(
    ('report', 'said'),
    [
        (rejection(State.STOPPED), [STOPPED, 'the last goal, from goal_pose, was rejected']),
        (rejection(State.STOPPED, 'NaN'), ['stopped; run ik_resume to continue', 'goal_pose rejected: NaN']),
        (rejection(State.HOLDING, 'NaN'), ['goal_pose rejected: NaN']),
        (Report(Level.WARN, STOPPED, 'stopped', 'stopped', State.STOPPED), [STOPPED]),
    ],
)
def test_ik_status_says_first_that_the_arm_is_stopped(monkeypatch, capsys, report, said):
    listening = SimpleNamespace(status=lambda: status_message('ik_node', report))
    monkeypatch.setattr(services, '_with_services', lambda _program, _tool, act: act(listening))
    assert services._status('ik_status', '') == int(report.state is State.STOPPED)
    assert capsys.readouterr().out.splitlines() == said
