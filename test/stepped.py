# SPDX-License-Identifier: Apache-2.0
"""A ROS graph in the thread of a test, on a clock that only the test moves.

Nodes and their entities are those of rclpy, which checks names, types and qualities of service. Messages,
requests and answers go to the stored callbacks without DDS, serialised as there; timers follow the clock.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, is_dataclass
from functools import cache, partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import rclpy
from domains import new_domain
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSCompatibility, qos_check_compatible
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.subscription import Subscription
from rclpy.task import Future
from rclpy.time import Time

from ik_node.ros.graph import graph
from ik_node.ros.node import IkNode
from ik_node.steady import steady
from ik_node.viewer import node

TICK = 1000  # [ns] for which a callback takes
START = 1_700_000_000 * 10**9  # [ns] since 1970
TIMEOUT = 30.0  # [s] on the clock of the test
MANY = 1000  # messages that wait for a subscription without a depth


@cache
def shared_context() -> rclpy.Context:
    """Return the context of all worlds of a process."""
    context = rclpy.Context()
    context.init(domain_id=new_domain())
    return context


@dataclass(frozen=True, eq=False)
class Threads:
    """The threads of a node, which go on while its executor is busy."""

    of: Node


class Ticker:
    """A timer of a node on the clock of a world."""

    def __init__(self, world: World, node: Any, period: float, callback: Callable[[], Any]) -> None:
        self._world, self.node, self.callback = world, node, callback
        self.timer_period_ns: float = round(period * 1e9)
        self.reset()

    def reset(self) -> None:
        self.due: float = self._world.ns + self.timer_period_ns

    def cancel(self) -> None:
        self.due = math.inf

    def is_canceled(self) -> bool:
        return self.due == math.inf


class World:
    """The graph. ns: the time. Nodes that are made in its context belong to it."""

    def __init__(self) -> None:
        self.context, self.ns = shared_context(), START
        self._publishers: list[Any] = []
        self._subscriptions: list[Any] = []
        self._services: list[Any] = []
        self._tickers: list[Ticker] = []
        self._ready: deque[tuple[Any, Callable[[], Any]]] = deque()  # what executors would call next
        self.busy: set[Node] = set()  # nodes whose executor is held up
        self._answering: list[tuple[Any, Future]] = []  # coroutines of services
        self._meanwhile: list[tuple[Callable[[], Any], Callable[[], Any]]] = []

    # Time

    def step(self) -> None:
        """Move on to the next timer or setpoint, and do all that follows."""
        self.pump()
        ticker = min(self._tickers, key=lambda one: one.due)
        self.ns = max(self.ns, int(ticker.due))
        ticker.due += ticker.timer_period_ns
        self._ready.append((ticker.node, ticker.callback))
        self.pump()
        for one in list(self._meanwhile):
            if one[0]():
                self._meanwhile.remove(one)
                one[1]()

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.ns + round(seconds * 1e9)
        self.pump()
        while self.due <= end:
            self.step()
        self.ns = max(self.ns, end)

    @property
    def due(self) -> float:
        """When something happens next [ns]."""
        return min((one.due for one in self._tickers), default=math.inf)

    def at(self, ns: float, act: Callable[[], Any], node: Any = None) -> None:
        """Have act called at a time [ns], by the threads of a node."""

        def go() -> None:
            self._tickers.remove(alarm)
            act()

        alarm = Ticker(self, Threads(node), 0.0, go)
        alarm.due, alarm.timer_period_ns = ns, math.inf
        self._tickers.append(alarm)

    def wait(self, condition: Callable[[], Any], what: str, context: Callable[[], Any] = lambda: '') -> Any:
        """Return what condition returns once that is true; fail if it is not within TIMEOUT."""
        end = self.ns + TIMEOUT * 1e9
        self.pump()
        while not (found := condition()):
            assert self.ns < end, f'waited for {what}, {TIMEOUT:g} s: {context()}'
            self.step()
        return found

    def once(self, condition: Callable[[], Any], act: Callable[[], Any]) -> None:
        """Have act called once condition is true, while a program runs."""
        self._meanwhile.append((condition, act))

    def pump(self) -> None:
        """Call what waits, and what that causes."""
        while True:
            for task in list(self._answering):
                self._go_on(*task)
            due = next((one for one in self._ready if one[0] not in self.busy), None)
            if due is None:
                return
            self._ready.remove(due)
            self.ns += TICK  # what follows is later than what it follows from
            due[1]()

    def drive(self, node: IkNode) -> None:
        """Step ik_node at its publish rate. While it waits for the arm, the arm goes on."""
        stepping, last = False, [0]

        def go() -> None:
            nonlocal stepping
            ticker.timer_period_ns = round(1e9 / node._settings.general.publish_rate)
            before, now = last[0], node.get_clock().now().nanoseconds
            last[0] = now
            if stepping:
                node.setpoint(now, now)
            elif now == before:  # simulated time stands
                node._goals.step()
            else:
                stepping = True
                try:
                    node.step(now)
                finally:
                    stepping = False

        def wait(timeout: float) -> bool:
            self.run(timeout)
            return node.closing

        node._closing.wait = wait
        ticker = Ticker(self, Threads(node), 0.0, go)
        self._tickers.append(ticker)

    # Entities

    def create_publisher(self, node: Node, original: Any, *given: Any, **options: Any) -> Any:
        publisher = original(node, *given, **options)
        publisher.node, publisher.name = node, publisher.topic_name
        publisher.kept, publisher.sent = deque(maxlen=_depth(publisher)), 0
        publisher.publish = partial(self._publish, publisher)
        publisher.get_subscription_count = lambda: sum(1 for _ in self._heard_by(publisher))
        self._publishers.append(publisher)
        return publisher

    def create_subscription(self, node: Node, original: Any, *given: Any, **options: Any) -> Any:
        heard = original(node, *given, **options)
        heard.node, heard.inbox, heard.name = node, deque(maxlen=_depth(heard)), heard.topic_name
        heard.get_publisher_count = lambda: sum(_match(one, heard) for one in self._publishers)
        self._subscriptions.append(heard)
        if heard.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
            for publisher in self._publishers:
                for number, data in publisher.kept if _match(publisher, heard) else ():
                    self._pass(heard, number, data)
        return heard

    def create_service(self, node: Node, original: Any, *given: Any, **options: Any) -> Any:
        service = original(node, *given, **options)
        service.node = node
        self._services.append(service)
        return service

    def create_client(self, node: Node, original: Any, *given: Any, **options: Any) -> Any:
        client = original(node, *given, **options)
        client.node = node
        client.service_is_ready = lambda: self._service_of(client) is not None
        client.wait_for_service = lambda timeout_sec=None: client.service_is_ready()  # noqa: ARG005
        client.call_async = partial(self._call, client)
        return client

    def create_timer(
        self, node: Node, _: Any, period: float, callback: Callable[[], Any], *__: Any, **___: Any
    ) -> Ticker:
        self._tickers.append(Ticker(self, node, period, callback))
        return self._tickers[-1]

    def create_guard_condition(self, node: Node, _: Any, callback: Callable[[], Any], *__: Any) -> SimpleNamespace:
        return SimpleNamespace(trigger=lambda: self._ready.append((node, callback)))

    def forget(self, entity: Any) -> None:
        """Drop an entity that is destroyed."""
        for kept in (self._publishers, self._subscriptions, self._services, self._tickers):
            if entity in kept:
                kept.remove(entity)

    def forget_all_of(self, node: Node) -> None:
        """Drop what a node has."""
        for kept in (self._publishers, self._subscriptions, self._services, self._tickers):
            kept[:] = [one for one in kept if node not in (one.node, getattr(one.node, 'of', None))]

    # The graph

    def count_publishers(self, node: Node, topic: str) -> int:
        name = node.resolve_topic_name(topic, only_expand=True)
        return sum(one.name == name for one in self._publishers)

    def count_subscriptions(self, topic: str) -> int:
        return sum(one.name == topic for one in self._subscriptions)

    def publishers_of(self, node: Node, topic: str) -> list[SimpleNamespace]:
        """Return what rclpy tells about the publishers of a topic."""
        return [
            SimpleNamespace(
                node_name=one.node.get_name(),
                node_namespace=one.node.get_namespace(),
                endpoint_gid=[id(one)],
                topic_type=_type_name(one.msg_type),
                qos_profile=one.qos_profile,
            )
            for one in self._publishers
            if one.name == node.resolve_topic_name(topic)
        ]

    def topics(self, _: Node) -> list[tuple[str, list[str]]]:
        found: dict[str, set[str]] = {}
        for one in (*self._publishers, *self._subscriptions):
            found.setdefault(one.name, set()).add(_type_name(one.msg_type))
        return [(name, sorted(kinds)) for name, kinds in sorted(found.items())]

    # Messages

    def _heard_by(self, publisher: Any) -> Iterator[Any]:
        return (one for one in self._subscriptions if _match(publisher, one))

    def _publish(self, publisher: Any, message: Any) -> None:
        data = message if isinstance(message, bytes) else serialize_message(message)
        publisher.sent += 1
        if publisher.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
            publisher.kept.append((publisher.sent, data))
        for heard in self._heard_by(publisher):
            self._pass(heard, publisher.sent, data)

    def _pass(self, heard: Any, number: int, data: bytes) -> None:
        info = {
            'source_timestamp': self.ns,
            'received_timestamp': self.ns,
            'publication_sequence_number': number,
        }
        heard.inbox.append((data, info))
        self._ready.append((heard.node, partial(self._deliver, heard)))

    def _deliver(self, heard: Any) -> None:
        if heard.inbox and heard in self._subscriptions and heard.callback_group.can_execute(heard):
            message, info = self.take(heard)
            with_info = heard._callback_type is Subscription.CallbackType.WithMessageInfo
            heard.callback(message, *(info,) * with_info)

    def take(self, heard: Any) -> tuple[Any, dict[str, Any]]:
        """Return the next message of a subscription."""
        data, info = heard.inbox.popleft()
        return (data if heard.raw else deserialize_message(data, heard.msg_type)), info

    # Services

    def _service_of(self, client: Any) -> Any:
        name = client.node.resolve_service_name(client.srv_name)
        for each in dict.fromkeys(one.node for one in self._services):
            for service in each.services:  # also those that rclpy makes for managed nodes
                if service.service_name == name:
                    service.node = each
                    return service
        return None

    def _call(self, client: Any, request: Any) -> Future:
        assert isinstance(request, client.srv_type.Request)
        future = Future()
        client._pending_requests[id(future)] = future
        future.add_done_callback(client.remove_pending_request)
        service = self._service_of(client)
        if service is not None:
            self._ready.append((service.node, lambda: self._serve(service, client, _copy(request), future)))
        return future

    def _serve(self, service: Any, client: Any, request: Any, future: Future) -> None:
        answer = service.callback(request, service.srv_type.Response())
        if inspect.iscoroutine(answer):
            self._answering.append((answer, (client, future)))
        else:
            self._ready.append((client.node, partial(self._answer, client, future, answer)))

    def _go_on(self, coroutine: Any, asked: tuple[Any, Future]) -> None:
        if coroutine.cr_running:
            return
        try:
            coroutine.send(None)
        except StopIteration as end:
            self._answering.remove((coroutine, asked))
            self._ready.append((asked[0].node, partial(self._answer, *asked, end.value)))

    def _answer(self, client: Any, future: Future, answer: Any) -> None:
        if future in client._pending_requests.values():
            future.set_result(_copy(answer))


def _depth(entity: Any) -> int:
    qos = entity.qos_profile
    return qos.depth if qos.history == HistoryPolicy.KEEP_LAST and qos.depth else MANY


def _match(publisher: Any, heard: Any) -> bool:
    if publisher.name != heard.name or publisher.msg_type is not heard.msg_type:
        return False
    compatible = qos_check_compatible(publisher.qos_profile, heard.qos_profile)[0]
    return compatible != QoSCompatibility.ERROR


def _copy(message: Any) -> Any:
    if is_dataclass(message):  # of a package that is not installed
        return deepcopy(message)
    return deserialize_message(serialize_message(message), type(message))


def _type_name(kind: Any) -> str:
    return f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'


@contextmanager
def world() -> Iterator[World]:
    """A world whose nodes are those that are made meanwhile in its context."""
    here = World()
    context = here.context
    now = Clock.now

    def time_of(clock: Clock) -> Time:
        if clock.clock_type is ClockType.ROS_TIME and clock.ros_time_is_active:
            return now(clock)
        return Time(nanoseconds=here.ns, clock_type=clock.clock_type)

    with ExitStack() as patches:

        def put(name: str, stand_in: Callable[..., Any]) -> None:
            """Replace a method of nodes, for those of the world."""
            original = getattr(Node, name)

            def called(node: Node, *given: Any, **options: Any) -> Any:
                if node.context is context:
                    return stand_in(node, original, *given, **options)
                return original(node, *given, **options)

            patches.enter_context(patch.object(Node, name, called))

        def put_destroy(name: str) -> None:
            def destroy(node: Node, original: Any, entity: Any) -> Any:
                here.forget(entity)
                return True if isinstance(entity, Ticker | SimpleNamespace) else original(node, entity)

            put(name, destroy)

        def destroy_node(node: Node, original: Any) -> Any:
            here.forget_all_of(node)
            return original(node)

        for kind in ('publisher', 'subscription', 'service', 'client', 'timer', 'guard_condition'):
            put(f'create_{kind}', getattr(here, f'create_{kind}'))
            put_destroy(f'destroy_{kind}')
        put('destroy_node', destroy_node)
        for name, seen in (
            ('count_publishers', here.count_publishers),
            ('publishers', here.publishers_of),
            ('topics', here.topics),
        ):
            patches.enter_context(patch.object(graph, name, seen))
        make = rclpy.create_node
        for name, stand_in in (  # what programs do that spin a node themselves
            ('create_node', lambda name, **options: make(name, context=context, **options)),
            ('spin_once', lambda _, timeout_sec, **__: here.run(timeout_sec)),
            ('init', lambda **_: None),
        ):
            patches.enter_context(patch.object(rclpy, name, stand_in))
        patches.enter_context(patch.object(rclpy.utilities, 'try_shutdown', lambda: None))
        patches.enter_context(patch.object(Clock, 'now', time_of))
        patches.enter_context(patch.object(steady, 'read', lambda: (here.ns - START) / 1e9 + 1000.0))
        patches.enter_context(patch.object(node, '_take', lambda heard: here.take(heard)[0] if heard.inbox else None))
        yield here
