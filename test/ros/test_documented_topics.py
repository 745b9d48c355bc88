# SPDX-License-Identifier: Apache-2.0
"""The table from which the reference of topics and services is generated has exactly what ik_node has."""

from __future__ import annotations

import re

from node_harness import running
from small_arm import arm_urdf

from ik_node.ros import interfaces
from ik_node.ros.interfaces import Interface, PublishedTopic, Service, SubscribedTopic

ELSEWHERE = {'/rosout', '/parameter_events', '/clock', '/tf', '/tf_static'}
ABSENT = {  # with other parameters only
    (SubscribedTopic, '/robot_description'),
    (SubscribedTopic, '/controller_state'),
    (PublishedTopic, '/joint_trajectory'),
    (PublishedTopic, '/position_commands'),
}
STANDARD = re.compile(r'/ik_node/(get|set|list|describe|change)_|/ik_node/(transition_event|_)')
TABLE = {
    (type(one), '/' + one.name.replace('~', 'ik_node').lstrip('/')): one
    for one in vars(interfaces).values()
    if isinstance(one, Interface)
}


def test_the_table_has_every_topic_and_service() -> None:
    with running(arm_urdf()) as client:
        node = client.served
        found = {
            (way, name): re.sub('/(msg|srv)/', '/', types[0])
            for way, ask in (
                (SubscribedTopic, node.get_subscriber_names_and_types_by_node),
                (PublishedTopic, node.get_publisher_names_and_types_by_node),
                (Service, node.get_service_names_and_types_by_node),
            )
            for of in (node.get_name(), f'{node.get_name()}_stop')  # which has the urgent services
            for name, types in ask(of, node.get_namespace())
            if name not in ELSEWHERE and not STANDARD.match(name)
        }
    not_installed = {key for key, one in TABLE.items() if one.type is None}
    assert TABLE.keys() - found.keys() == ABSENT | not_installed
    assert found.keys() <= TABLE.keys()
    for key, kind in found.items():
        assert kind in TABLE[key].types.split(' or '), key
