# SPDX-License-Identifier: Apache-2.0
"""config/sros2_policy.xml gives a node exactly the rights that it uses."""

from pathlib import Path
from xml.etree import ElementTree

from node_harness import running

POLICY = Path(__file__).resolve().parents[2] / 'config' / 'sros2_policy.xml'
# Used only when needed, with moveit_msgs or control_msgs, or by rclpy of later ROS 2 distributions.
ON_DEMAND = {
    '/tf',
    '/tf_static',
    '/controller_state',
    '/ik_node/switch_command_type',
    '/solve_ik',
    '/ik_node/compute_ik',
    '/ik_node/compute_fk',
    '/ik_node/get_type_description',
}


def rights(node: str, kind: str, action: str) -> set[str]:
    """The full names that the policy allows."""
    profile = ElementTree.parse(POLICY).find(f'.//profile[@node="{node}"]')
    names = [entry.text for group in profile.findall(f'{kind}s[@{action}="ALLOW"]') for entry in group]
    assert len(names) == len(set(names))
    return {f'/{name}' if name[0] not in '~/' else name.replace('~', f'/{node}') for name in names}


def test_the_policy_allows_what_a_node_uses_and_nothing_else():
    with running(None, ready=False, output='joint_trajectory') as client:
        nodes = client.served, client.served._urgent.node
        for kind, action, used in (
            ('topic', 'publish', {one.topic_name for node in nodes for one in node.publishers}),
            ('topic', 'subscribe', {one.topic_name for node in nodes for one in node.subscriptions}),
            ('service', 'reply', {one.service_name for node in nodes for one in node.services}),
            ('service', 'request', {one.service_name for node in nodes for one in node.clients}),
        ):
            by_rcl = {'/rosout', '/ik_node/transition_event'} if (kind, action) == ('topic', 'publish') else set()
            assert (used | by_rcl) - ON_DEMAND == rights('ik_node', kind, action) - ON_DEMAND


def test_an_operator_reaches_what_ik_node_offers():
    assert rights('operator', 'topic', 'publish') - {'/rosout', '/parameter_events'} <= rights(
        'ik_node', 'topic', 'subscribe'
    )
    assert rights('operator', 'topic', 'subscribe') <= rights('ik_node', 'topic', 'publish')
    assert rights('operator', 'service', 'request') <= rights('ik_node', 'service', 'reply')
