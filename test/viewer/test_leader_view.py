# SPDX-License-Identifier: Apache-2.0
"""The folder of a leader, and its ghost until the arm follows it."""

from __future__ import annotations

import pytest
from desk import showing
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.node import Node
from sensor_msgs.msg import JointState
from viewer_harness import LATCHED, SEED_ARM, SEED_JOINTS

from ik_node.viewer.leader import OLD

pytestmark = pytest.mark.slow


def test_a_leader_is_a_ghost_until_the_arm_follows_it():
    with showing(SEED_ARM) as (page, robot):
        assert not page.control('Leader')['visible'], 'there is no leader'
        node = Node('ik_leader', context=robot.context)
        status = node.create_publisher(DiagnosticStatus, '~/status', LATCHED)
        joints = node.create_publisher(JointState, 'leader/joint_states', 10)

        def tell(state: str, message: str) -> None:
            status.publish(DiagnosticStatus(message=message, values=[KeyValue(key='state', value=state)]))
            joints.publish(JointState(name=[*SEED_JOINTS, 'other'], position=[0.3] * (len(SEED_JOINTS) + 1)))
            page.run(0.2)

        tell('waiting', 'turn <the elbow>')
        assert page.control('Leader')['visible']
        assert 'turn &lt;the elbow&gt;' in page.words()
        page.wait(lambda: '/leader' in page.nodes, 'the ghost')
        assert page.nodes['/leader']['visible']
        tell('following', 'the follower follows the leader')
        assert not page.nodes['/leader']['visible']
        tell('waiting', 'turn it')
        page.run(OLD + 0.2)
        assert not page.nodes['/leader']['visible'], 'its cable was pulled'
        tell('waiting', 'turn it')
        node.destroy_node()
        page.run(OLD + 0.2)
        assert not page.control('Leader')['visible']
