# SPDX-License-Identifier: Apache-2.0
"""The folder of a leader, and its ghost while it must turn."""

from __future__ import annotations

import pytest
from desk import showing
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.node import Node
from viewer_harness import LATCHED, SEED_ARM, SEED_JOINTS

from ik_node.viewer.leader import OLD

pytestmark = pytest.mark.slow


def test_a_leader_that_must_turn_is_a_ghost():
    with showing(SEED_ARM, **dict.fromkeys(SEED_JOINTS, 0.3)) as (page, robot):
        assert not page.control('Leader')['visible'], 'there is no leader'
        node = Node('ik_leader', context=robot.context)
        status = node.create_publisher(DiagnosticStatus, '~/status', LATCHED)

        def tell(state: str, message: str, **ways: str) -> None:
            values = [KeyValue(key=key, value=value) for key, value in {'state': state, **ways}.items()]
            status.publish(DiagnosticStatus(message=message, values=values))
            page.run(0.2)

        tell('waiting', 'turn <the elbow>', joint1='-0.5', joint2='nan', other='1')
        assert page.control('Leader')['visible']
        assert 'turn &lt;the elbow&gt;' in page.words()
        page.wait(lambda: '/leader' in page.nodes, 'the ghost')
        assert page.nodes['/leader']['visible']
        before = page.pose('/leader/0')
        tell('waiting', 'turn it', joint1='-0.4')
        assert (page.pose('/leader/0') != before).any()
        tell('waiting', 'hold the leader still')
        assert not page.nodes['/leader']['visible']
        tell('waiting', 'turn it', joint1='-0.4')
        assert page.nodes['/leader']['visible']
        page.run(OLD + 0.2)
        assert not page.nodes['/leader']['visible'], 'ik_leader has ended'
        assert not page.control('Leader')['visible']
        node.destroy_node()
