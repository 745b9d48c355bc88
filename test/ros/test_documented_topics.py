# SPDX-License-Identifier: Apache-2.0
"""The table of topics and services in docs/ names what ik_node has, with its type."""

from __future__ import annotations

import re
from pathlib import Path

from node_harness import running
from small_arm import arm_urdf

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'reference' / 'topics.md'
ELSEWHERE = {'/rosout', '/parameter_events', '/clock', '/tf', '/tf_static'}
ABSENT = {  # with other parameters only
    ('in', '/robot_description'),
    ('out', '/joint_trajectory'),
    ('out', '/position_commands'),
}
UNDOCUMENTED = re.compile(r'/ik_node/(get|set|list|describe|change)_|/ik_node/(transition_event|_)')


def documented() -> dict[tuple[str, str], set[str]]:
    """Return the allowed types, without msg and srv, by direction and name."""
    rows = re.findall(
        r'^\| (in|out|service) \| (.*?) \| (.*?) \|', PAGE.read_text(encoding='utf-8'), re.MULTILINE
    )
    return {
        (way, '/' + name.replace('~', 'ik_node').lstrip('/')): set(re.findall(r'`(.*?)`', types))
        for way, names, types in rows
        for name in re.findall(r'`(.*?)`', names)
    }


def test_the_table_names_every_topic_and_service_with_its_type() -> None:
    with running(arm_urdf()) as client:
        node = client.served
        found = {
            (way, name): re.sub('/(msg|srv)/', '/', types[0])
            for way, ask in (
                ('in', node.get_subscriber_names_and_types_by_node),
                ('out', node.get_publisher_names_and_types_by_node),
                ('service', node.get_service_names_and_types_by_node),
            )
            for name, types in ask(node.get_name(), node.get_namespace())
            if name not in ELSEWHERE and not UNDOCUMENTED.match(name)
        }
    table = documented()
    assert found.keys() <= table.keys(), found.keys() - table.keys()
    for key, kind in found.items():
        assert kind in table[key], key
    moveit = {key for key in table if any('moveit_msgs' in kind for kind in table[key])}
    assert table.keys() - found.keys() <= ABSENT | moveit
