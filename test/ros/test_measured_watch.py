# SPDX-License-Identifier: Apache-2.0
"""When measurements are expected: without a node."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ik_node.ros.node.measured_watch import CHECK, MeasuredWatch
from ik_node.steady import steady


@pytest.mark.parametrize('heard', [False, True])
def test_a_publisher_that_goes_without_a_message_silences_nobody(monkeypatch, heard):
    now, publishers = [0.0], {'/joint_states': 1, '/measured_joint_states': 0}
    monkeypatch.setattr(steady, 'read', lambda: now[0])
    node = SimpleNamespace(
        resolve_topic_name=lambda name, **_: f'/{name}', publishers=[], count_publishers=publishers.get
    )
    watch = MeasuredWatch(node, 'measured_joint_states', always=False)
    expected = []
    for count in (0, 1, 0):
        publishers['/measured_joint_states'] = count
        now[0] += 2 * CHECK
        watch.poll('auto')
        expected.append(watch.expected)
        watch.heard = (heard and count > 0) or watch.heard
    assert expected == [False, True, heard]
