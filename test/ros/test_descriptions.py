# SPDX-License-Identifier: Apache-2.0
"""ik_node: descriptions that come late, broken, again and anew."""

from __future__ import annotations

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from node_harness import running
from rclpy.qos import DurabilityPolicy, QoSProfile
from small_arm import ARM_JOINTS, arm_urdf
from std_msgs.msg import String

from ik_node.errors import InputError
from ik_node.ros.goals import JointsRequest

pytestmark = pytest.mark.slow


def test_the_node_waits_for_a_description_and_goes_on_waiting_after_a_bad_one():
    with running(None, tip_link='hand') as client:
        client.wait_said('waiting for robot_description')
        status = client.answer('goal_pose', client.pose(np.eye(4)))
        assert status.level == DiagnosticStatus.ERROR
        assert 'robot_description' in status.message
        assert not client.call('ik_node/home').success
        client.description.publish(String(data='<robot name="x"><link name="a"></robot>'))
        client.wait(lambda: any('line 1' in status.message for status in client.statuses), 'the reason')
        client.wait(lambda: any('rejected' in d.status[0].message for d in client.diagnostics), 'the diagnostics')
        assert not client.samples
        client.description.publish(String(data=arm_urdf()))
        client.wait_said('"hand"')
        assert client.set_parameters(tip_link='tool0')[0].successful  # other parameters can mend it
        client.wait_ready()


def test_a_new_description_replaces_the_arm_after_a_stop():
    with running(None, speed_scaling=0.1) as client:
        client.description.publish(String(data=arm_urdf()))
        client.wait_ready()
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: client.position('yaw') > 0.1, 'the arm to be on its way')
        client.description.publish(String(data='<robot/>'))  # a bad one changes nothing
        client.wait(lambda: any('rejected' in s.message for s in client.statuses), 'the rejection')
        client.wait(lambda: client.position('yaw') > 0.2, 'the arm to go on')
        other = arm_urdf().replace('finger', 'jaw')
        client.description.publish(String(data=other))
        client.wait(lambda: 'jaw' in client.samples[-1].name, 'the other arm')
        first = next(i for i, s in enumerate(client.samples) if 'jaw' in s.name)
        last, new = client.samples[first - 1], client.samples[first]
        assert not any(last.velocity)
        assert new.position[new.name.index('yaw')] == last.position[last.name.index('yaw')]
        assert 0.2 < client.position('yaw')[0] < 1.99
        client.description.publish(String(data=other))  # the same again: nothing to do
        client.answer('goal_joints', client.joints(jaw=0.01))
        assert sum('effective DoF' in s.message for s in client.statuses) == 2


LONGER = arm_urdf().replace('0.15 0 0', '0.2 0 0')


def test_a_changed_parameter_replaces_the_links_and_joints_stay():
    with running(arm_urdf()) as client:
        heard = []
        late = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        client.node.create_subscription(String, 'robot_description', lambda m: heard.append(m.data), late)
        client.answer('goal_joints', client.joints(yaw=0.4))
        client.wait(lambda: abs(client.position('yaw')[0] - 0.4) < 1e-6, 'the arm')
        count = len(client.samples)
        (bad,) = client.set_parameters(robot_description='<robot/>')
        assert not bad.successful
        (none,) = client.set_parameters(robot_description='')
        assert 'robot_description can only replace a text' in none.reason
        assert client.set_parameters(robot_description=LONGER)[0].successful
        client.wait(lambda: heard[-1:] == [LONGER], 'the new description')
        client.wait(lambda: sum('effective DoF' in s.message for s in client.statuses) == 2, 'the new arm')
        client.answer('goal_joints', client.joints(yaw=0.4))
        assert all(abs(sample.position[sample.name.index('yaw')] - 0.4) < 1e-3 for sample in client.samples[count:])


@pytest.mark.parametrize('given', [{'output': 'joint_trajectory'}, {'wait_for_measured': 'true'}, None])
def test_a_description_that_cannot_change_by_parameter(given):
    """That of a real arm, and one from the topic."""
    with running(arm_urdf() if given else None, ready=False, **given or {}) as client:
        (result,) = client.set_parameters(robot_description=LONGER)
        assert ('real arm' if given else 'topic') in result.reason


def test_another_description_on_the_topic_does_not_change_a_real_arm():
    with running(None, ready=False, wait_for_measured='true', measured_timeout=0.0) as client:
        client.description.publish(String(data=arm_urdf(lower=-0.5, upper=0.5)))
        client.wait(lambda: any('waiting for measured' in s.message for s in client.statuses), 'the arm')
        client.send('measured_joint_states', client.joints(**dict.fromkeys(ARM_JOINTS, 0.1)))
        client.wait(lambda: client.samples, 'joint_states')
        client.description.publish(String(data=arm_urdf(lower=-2.5, upper=2.5)))
        client.wait(lambda: any('a real arm is active' in s.message for s in client.statuses), 'a reason')
        rejected = client.answer('goal_joints', client.joints(yaw=1.2))
        assert 'yaw' in rejected.message
        assert abs(client.position('yaw')[0] - 0.1) < 1e-6


def test_a_goal_for_the_robot_before_is_rejected_whenever_its_turn_comes():
    with running(arm_urdf()) as client:
        (tool,) = client.served._tools
        early = JointsRequest('goal_joints', client.joints(yaw=0.4), tool.goals)
        assert client.set_parameters(robot_description=LONGER)[0].successful
        client.wait(lambda: tool.goals.replaced, 'the new arm')
        late = JointsRequest('goal_joints', client.joints(yaw=0.4), tool.goals)
        arm = tool.snapshot()
        with pytest.raises(InputError, match='received before this robot_description'):
            early.resolve(arm)
        assert late.resolve(arm) == {'yaw': 0.4}
