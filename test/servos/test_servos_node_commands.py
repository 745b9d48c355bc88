# SPDX-License-Identifier: Apache-2.0
"""Which commands ik_servos carries out, by stamp, time of sending and publisher; on a made-up clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from rclpy.clock import Clock

from ik_node.errors import InputError
from ik_node.ros.graph import graph
from ik_node.servos.node import AFTER, IncomingCommands
from ik_node.steady import steady

NOW = 1_700_000_000.0  # [s]
TIMEOUT = 0.4


class Rig:
    """Commands that arrive at a time from publishers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.publishers = 0.0, ['/ik_node']
        now = lambda *_: SimpleNamespace(nanoseconds=self.ns(0.0))  # noqa: E731
        infos = lambda *_: [SimpleNamespace(node_namespace='/', node_name=one[1:]) for one in self.publishers]  # noqa: E731
        node = SimpleNamespace(get_clock=lambda: SimpleNamespace(now=now), resolve_topic_name='/{}'.format)
        monkeypatch.setattr(steady, 'read', lambda: self.now)
        monkeypatch.setattr(Clock, 'now', now)
        monkeypatch.setattr(graph, 'count_publishers', lambda *_: len(self.publishers))
        monkeypatch.setattr(graph, 'publishers', infos)
        self.commands = IncomingCommands(node, 'joint_commands', TIMEOUT)

    def ns(self, age: float) -> int:
        return round((NOW + self.now - age) * 1e9)

    def taken(self, number: int | None = 1, stamped: float | None = 0.0, sent: float | None = 0.0) -> bool:
        """Whether a command is taken; stamped, sent: its ages by both [s]."""
        stamp = Time()
        if stamped is not None:
            stamp.sec, stamp.nanosec = divmod(self.ns(stamped), 10**9)
        info = {} if sent is None else {'source_timestamp': self.ns(sent), 'publication_sequence_number': number}
        try:
            self.commands.check(stamp, info)
        except InputError:
            return False
        return True


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


@pytest.mark.parametrize('age', [-3600.0, -0.5, 0.5, 10.0, 3600.0])
def test_a_command_from_another_time_is_not_carried_out(rig, age):
    assert rig.taken()
    assert not rig.taken(2, stamped=age)
    assert not rig.taken(3, sent=age)
    assert not rig.taken(4, stamped=None, sent=age)
    assert not rig.taken(stamped=age, sent=None)  # Humble does not tell when it was sent
    assert rig.taken(5, stamped=None)


def numbers(rig: Rig, *sequence: int) -> list[bool]:
    taken = []
    for number in sequence:
        rig.now += 0.01
        taken.append(rig.taken(number))
    return taken


@pytest.mark.parametrize('other', [3, 104, 50_000])
def test_while_two_publishers_send_nothing_is_carried_out(rig, other):
    assert all(numbers(rig, 100, 101, 102))
    rig.publishers.append('/another')
    mixed = [number for k in range(300) for number in (other + k, 103 + k)]
    assert not any(numbers(rig, *mixed)[2:])
    with pytest.raises(InputError, match='/another and /ik_node'):
        rig.commands.check(Time(), {'publication_sequence_number': other + 300})
    rig.now += AFTER + 0.01
    assert all(numbers(rig, other + 301, other + 302))  # one of them has ended, and may still be listed


def test_a_publisher_that_was_restarted_is_followed_at_once(rig):
    assert all(numbers(rig, 5000, 5001, 1, 2))
    rig.publishers.append('/killed')  # it stays in the list for a while
    rig.now += AFTER
    assert all(numbers(rig, 70_000, 70_001))


def test_without_numbers_two_publishers_are_not_told_apart(rig):
    assert rig.taken(None)
    rig.publishers.append('/another')
    assert not rig.taken(None)
