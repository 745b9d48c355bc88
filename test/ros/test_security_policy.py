# SPDX-License-Identifier: Apache-2.0
"""config/sros2_policy.xml gives a real node exactly the rights that it uses."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import rclpy
from processes import Running, with_parameters
from rclpy.node import Node
from small_arm import PARAMETERS

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
    parameters = ('output:=joint_trajectory', *(f'{name}:={value}' for name, value in PARAMETERS.items()))
    running = Running('ik_node', *with_parameters(*parameters))
    context = rclpy.Context()
    context.init(domain_id=running.domain)
    observer = Node('observer', context=context)
    try:
        nodes = 'ik_node', 'ik_node_stop'
        running.wait(lambda: set(nodes) <= set(observer.get_node_names()), 'the nodes')
        for kind, action, names in (
            ('topic', 'publish', observer.get_publisher_names_and_types_by_node),
            ('topic', 'subscribe', observer.get_subscriber_names_and_types_by_node),
            ('service', 'reply', observer.get_service_names_and_types_by_node),
            ('service', 'request', observer.get_client_names_and_types_by_node),
        ):
            allowed = rights('ik_node', kind, action) - ON_DEMAND

            def used(names: Callable[..., list[tuple[str, list[str]]]] = names) -> set[str]:
                return {name for node in nodes for name, _ in names(node, '/')} - ON_DEMAND

            with contextlib.suppress(AssertionError):  # the next one tells more
                running.wait(lambda allowed=allowed, used=used: used() == allowed, action)
            assert used() == allowed
    finally:
        running.end()
        observer.destroy_node()
        context.try_shutdown()


def test_an_operator_reaches_what_ik_node_offers():
    assert rights('operator', 'topic', 'publish') - {'/rosout', '/parameter_events'} <= rights(
        'ik_node', 'topic', 'subscribe'
    )
    assert rights('operator', 'topic', 'subscribe') <= rights('ik_node', 'topic', 'publish')
    assert rights('operator', 'service', 'request') <= rights('ik_node', 'service', 'reply')
