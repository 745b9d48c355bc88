# SPDX-License-Identifier: Apache-2.0
"""Neighbours: finds the other programs of this package that command or serve arms.

Each program tells the others once per second which topics it uses. This finds two programs with the same job
even if their nodes have the same name, and tells goals of another session from those of its own. A program
that was killed is forgotten after CARD_TIMEOUT, much sooner than DDS forgets it (20 s).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from ik_node.control.locks import Rank, ordered_lock
from ik_node.errors import escaped
from ik_node.ros.graph import graph
from ik_node.steady import steady

from .interfaces import LATCHED
from .sessions import SESSION

# Sessions of ik_demo: a ROS domain for each, and how other programs find it.
#
# A session has its domain by a name of the abstract namespace of Unix sockets. That has the scope of the
# traffic: every user and container that shares the network of this machine. The kernel frees the name when
# the last program of the session has ended, however it ends. The socket listens, so the kernel tells
# others which process and user it belongs to.


TOPIC = '/ik_node/_programs'  # hidden from `ros2 topic list`
SETTLING = PERIOD = 1.0  # [s] from one card to the next, and from the start until the others are found
LATE = 5.0  # [s] for which programs are waited for that the middleware knows and whose cards have not arrived
CARD_TIMEOUT = 5.0  # [s] without a card after which a program has ended
LARGEST_CARD = 20_000  # characters
MAX_CARDS = 200
CARDS_QOS = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ARM, SERVOS = 'ik_node', 'ik_servos'
WAITING = {ARM: 'waits', SERVOS: 'measures nothing, takes no commands and switches no torque on'}
NODE_NAME = re.compile('(?=.{2,200}$)(/[A-Za-z_][A-Za-z0-9_]*)+')


@dataclass(frozen=True)
class Card:
    """What a program tells about itself. Topics are full names.

    id: random. node: its full name. since: when it began to command or serve an arm (time.time); 0: it does
    not. takes: topics of goals that it takes. sends: topics of goals that it publishes. commands: topics on
    which it commands an arm. reads: of joints that it takes as measured. measures: on which it, a driver,
    publishes joints. joints: of the arm, none before they are known. description: its digest. waits: it is
    not ready: because of another program, because it has just begun, or before its arm is measured. refuses:
    why it, a driver, takes no commands. any_session: it takes goals of other sessions.
    """

    id: str
    program: str
    node: str
    host: str
    process: int
    session: str
    since: float = 0.0
    takes: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    description: str = ''
    waits: bool = False
    refuses: str = ''
    any_session: bool = False

    def __str__(self) -> str:
        where = '' if self.host == socket.gethostname() else f' on {escaped(self.host)}'
        return f'{escaped(self.node)} (process {self.process}{where})'

    @property
    def order(self) -> tuple[float, str]:
        """The program that began first has the lesser one."""
        return self.since, self.id


def digest(description: str) -> str:
    """Return a short name of a robot description, '' without one."""
    return hashlib.sha256(description.encode(errors='replace')).hexdigest()[:16] if description else ''


def read_card(text: str) -> Card | None:
    """Return the card in a message of anybody, None if it is none."""
    try:
        values = json.loads(text) if len(text) <= LARGEST_CARD else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    given: dict[str, Any] = {}
    for one in fields(Card):
        value = values.get(one.name)
        if one.type == 'tuple[str, ...]':
            if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
                return None
            given[one.name] = tuple(value)
        elif type(value).__name__ == one.type:
            given[one.name] = value
        else:
            return None
    return Card(**given) if NODE_NAME.fullmatch(given['node']) else None


def conflict(own: Card, other: Card) -> str:
    """Return what both programs do to the same arm, such as 'takes goals from /goal_pose'; '' if nothing."""
    if not (own.since and other.since):
        return ''
    disjoint = _disjoint(own, other)
    shared = {name: _first(getattr(own, name), getattr(other, name)) for name in ('takes', 'measures')}
    # A driver carries out the commands of one program; on joint_states each may publish joints of its own.
    driven = [topic for topic in own.commands if not (disjoint and topic.endswith('/joint_states'))]
    commands = _first(driven, other.commands)
    read = '' if disjoint else _first(own.reads, other.commands) or _first(own.commands, other.reads)
    if shared['takes']:
        return f'takes goals from {shared["takes"]}'
    if commands:
        return f'sends commands on {commands}'
    if read:
        return f'shares {read} with it: commands for one, measured joints for the other'
    if shared['measures'] and not disjoint:
        return f'publishes measured joints on {shared["measures"]}'
    return ''


def _before(own: Card, one: Card, what: str) -> str:
    waits = f'{own} {WAITING[own.program]}: ' if own.program in WAITING else ''
    return f'{waits}{one} was started before and {what}. End it, or use another namespace or ROS_DOMAIN_ID'


def _after(own: Card, one: Card, what: str) -> str:
    waits = 'it waits until that one ends' if one.program in WAITING else 'end one of the two'
    return f'{one} was started later than {own} and {what}: {waits}'


def _disjoint(own: Card, other: Card) -> bool:
    """Whether the joints of two programs are known, and all different."""
    return bool(own.joints and other.joints) and not set(own.joints) & set(other.joints)


def _listed(cards: Sequence[Card]) -> str:
    return ', '.join(map(str, cards))


def _first(one: Sequence[str], other: Sequence[str]) -> str:
    return next((name for name in one if name in other), '')


@dataclass
class _Received:
    card: Card
    at: float = field(default_factory=steady)


class Neighbours:
    """The card of a node, and those of the others. Callbacks run in the executor of the node.

    changed: called when others may have come, changed or gone, so once per second. own: the card. settled:
    the others have been found: all that the middleware knows SETTLING after the search began have told their
    cards, or did not within LATE.
    """

    def __init__(self, node: Node, program: str, changed: Callable[[], None] = lambda: None, **about: Any) -> None:
        """about: fields of the card; topics need not be full names."""
        self._node, self._changed = node, changed
        self._received: dict[str, _Received] = {}
        self._reported: set[str] = set()
        self._publishing = ordered_lock(Rank.CARD)
        self.settled = SETTLING <= 0.0
        self._searched = 0.0  # [s] for the others, so far
        self.own = Card(
            secrets.token_hex(8),
            program,
            node.get_fully_qualified_name(),
            socket.gethostname(),
            os.getpid(),
            os.environ.get(SESSION, ''),
        )
        self._publisher = node.create_publisher(String, TOPIC, LATCHED)
        node.create_subscription(String, TOPIC, self._on_card, CARDS_QOS)
        node.create_timer(PERIOD, self._beat, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.update(**about)

    def update(self, **about: Any) -> None:
        """Change fields of the card, and publish it. Thread-safe."""
        for name in ('takes', 'sends', 'commands', 'reads', 'measures'):
            if name in about:
                about[name] = tuple(map(self._node.resolve_topic_name, about[name]))
        with self._publishing:
            self.own = replace(self.own, **about)
            self._publish(self.own)

    def search(self) -> None:
        """Begin the search for others anew: until now the network may have hidden them."""
        if SETTLING > 0.0:
            self.settled, self._searched = False, -PERIOD  # the next beat may come at once
            self._changed()

    def leave(self) -> None:
        """Tell the others that this program no longer commands or serves an arm."""
        self.update(since=0.0, sends=())

    @property
    def others(self) -> list[Card]:
        """The cards of the other programs that run."""
        now = steady()
        return [one.card for one in list(self._received.values()) if now - one.at < CARD_TIMEOUT]

    def conflicting(self) -> list[tuple[Card, str]]:
        """Return the programs with the same job, and what they do; the one that began first comes first."""
        found = [(one, what) for one in self.others if (what := conflict(self.own, one))]
        return sorted(found, key=lambda rival: rival[0].order)

    def ahead(self) -> str:
        """Return which program with the same job began earlier, so that this one must wait; '' if none."""
        ahead = (rival for rival in self.conflicting() if rival[0].order < self.own.order)
        return next((_before(self.own, *rival) for rival in ahead), '')

    @property
    def arms(self) -> list[Card]:
        """The nodes that take goals from topics on which this program sends them."""
        mine = set(self.own.sends)
        return [one for one in self.others if one.program == ARM and one.since and mine & set(one.takes)]

    def foreign(self) -> str:
        """Return why goals must not be sent, '' if they may be: they would move the arm of another session.

        A program that was started together with a node sends goals only once that node is ready.
        """
        ready = [one for one in self.arms if not one.waits]
        session = self.own.session
        strange = [one for one in ready if one.session != session and not one.any_session]
        if session and strange:
            return (
                f'no goals are sent: {strange[0]} was started by another ik_demo or launch file. End one of the two, '
                'start this one in another namespace or ROS_DOMAIN_ID, or set accept_other_sessions of that node'
            )
        if len(ready) > 1:
            return f'no goals are sent, because several arms would follow them: end all but one of {_listed(ready)}'
        if session and not any(one.session == session or one.any_session for one in ready):
            return 'no goals are sent yet: the ik_node that was started with this program is not ready'
        return ''

    def refuses(self, joints: Sequence[str]) -> Card | None:
        """Return a driver that measures any of these joints and takes no commands; none: of its own joints.

        One that waits for another measures nothing.
        """
        reads, own = set(self.own.reads), replace(self.own, joints=tuple(joints) or self.own.joints)
        for one in self.others:
            serves = one.since and not one.waits and reads & set(one.measures)
            if serves and one.refuses and not _disjoint(own, one):
                return one
        return None

    def refusal(self, joints: Sequence[str]) -> str:
        """Return why a driver of these joints takes no commands, '' if all do."""
        one = self.refuses(joints)
        return escaped(one.refuses) if one else ''

    def announce(self, real: bool = False) -> list[str]:
        """Return what must be said about programs that came since the last call: each once.

        real: commands move a real arm, so nodes of other packages that publish them too are named.
        """
        sentences = []
        for topic in self.own.commands if real else ():
            known = {self.own.node, *(one.node for one in self.others)}
            for name in graph.publishing_nodes(self._node, topic):
                if name not in known | self._reported:
                    sentences.append(
                        f'{escaped(name)} also publishes on {topic}, and the arm follows both: end one of the two'
                    )
                    self._reported.add(name)
        for one, what in self.conflicting():
            if one.id not in self._reported:
                sentences.append((_before if one.order < self.own.order else _after)(self.own, one, what))
                self._reported.add(one.id)
        for one in self.others:
            strange = one.session and one.session != self.own.session and not self.own.any_session
            topic = _first(self.own.takes, one.sends)
            if strange and topic and one.id not in self._reported:
                sentences.append(
                    f'{self.own} accepts no goals of {one} on {topic}: another ik_demo or launch file started it'
                )
                self._reported.add(one.id)
        return sentences

    def _beat(self) -> None:
        self._searched += PERIOD
        silent = graph.count_publishers(self._node, TOPIC) > 1 + len(self.others)
        self.settled |= self._searched >= (LATE if silent else SETTLING)
        self._publish(self.own)
        self._changed()

    def _publish(self, card: Card) -> None:
        self._publisher.publish(String(data=json.dumps(asdict(card))))

    def _on_card(self, message: String) -> None:
        card = read_card(message.data)
        if card is None or card.id == self.own.id:
            return
        known = self._received.get(card.id)
        if known is None and len(self._received) >= MAX_CARDS:
            del self._received[min(self._received, key=lambda key: self._received[key].at)]
        self._received[card.id] = _Received(card)
        if known is None or known.card != card:
            self._changed()
