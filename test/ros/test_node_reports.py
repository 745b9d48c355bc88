# SPDX-License-Identifier: Apache-2.0
"""What ik_node reports while it runs, as diagnostics and as numbers."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from node_harness import running
from small_arm import arm_urdf
from std_msgs.msg import Float64MultiArray

from ik_node.control.state.states import State
from ik_node.ros.goals.reports import NUMBERS, STATUSES


@pytest.fixture(scope='module')
def client():
    with running(arm_urdf(), speed_scaling=1.0) as client:
        yield client


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


def test_goal_state_holds_the_progress_as_numbers(client):
    states = []
    subscription = client.node.create_subscription(
        Float64MultiArray, 'ik_node/goal_state', states.append, 100
    )
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
