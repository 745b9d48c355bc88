# SPDX-License-Identifier: Apache-2.0
"""ik_servos and its bus in a world: see stepped.py and virtual_time.py, which go by the same clock here."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from stepped import START, World, world
from virtual_time import LOOK, Clock, VirtualBus, virtual_time
from waiting import answer_of

from ik_node.ros import neighbours
from ik_node.ros.interfaces import NEWEST, STREAM
from ik_node.servos import node as module
from ik_node.servos.arm.states import ArmState
from ik_node.servos.node import ServosNode

ZERO = 1000.0  # [s] at the start of a world


class WorldClock(Clock):
    """The clock of a world."""

    def __init__(self, here: World) -> None:
        self._world, self.buses = here, {}

    @property
    def now(self) -> float:
        return (self._world.ns - START) / 1e9 + ZERO

    @now.setter
    def now(self, seconds: float) -> None:
        self._world.ns = self._ns(seconds)

    def _ns(self, seconds: float) -> int:
        return round((seconds - ZERO) * 1e9) + START

    def monotonic(self) -> float:
        self._world.ns += round(LOOK * 1e9)
        return self.now

    def at(self, when: float, act: Callable[[], object]) -> None:
        self._world.at(self._ns(when), act)

    def advance(self, until: float) -> None:
        self._world.run(max(until - self.now, 0.0))

    def until(self, condition: Callable[[], object], latest: float) -> None:
        while not condition() and self._world.due <= self._ns(latest):
            self._world.step()
        if not condition():
            self.advance(latest)


class AtOnce:
    """A pool whose threads have done everything at once."""

    def __init__(self, *_: Any) -> None: ...

    def submit(self, act: Callable[..., Any], *given: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(act(*given))
        except Exception as error:
            done.set_exception(error)
        return done

    def shutdown(self, **_: Any) -> None: ...


class Logger:
    """Keeps what the driver says, by level."""

    def __init__(self) -> None:
        self.said: defaultdict[str, list[str]] = defaultdict(list)

    def __getattr__(self, level: str) -> Callable[[str], None]:
        return self.said[level].append


class Owner:
    """Who has the arm: a node beside ik_servos. bus: the truth about the servos."""

    def __init__(self, here: World, bus: VirtualBus) -> None:
        self.world, self.bus = here, bus
        self.driver: Any = None
        self.node = Node('owner', context=here.context)
        self.heard: list[JointState] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.node.create_subscription(JointState, 'joint_states', self.heard.append, STREAM)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self.diagnostics.append, STREAM)
        self._commands = self.node.create_publisher(JointState, 'joint_commands', NEWEST)

    @contextmanager
    def start(self, **parameters: Any) -> Iterator[ServosNode]:
        """Start the driver; close it, unless it was killed."""
        given = {'serial_port': self.bus.port, 'compensate_sag': False, **parameters}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.log = Logger()
        with patch.object(ServosNode, 'get_logger', lambda _: self.log):
            self.driver = driver = ServosNode(context=self.world.context, parameter_overrides=overrides)
            self.world.pump()
            self._step(driver, self.bus.clock.now)
            try:
                yield driver
            finally:
                if driver is self.driver:
                    driver.close()

    def _step(self, driver: ServosNode, due: float) -> None:
        due = max(due + driver.step(), self.bus.clock.now)
        if driver is self.driver:
            self.bus.clock.at(due, partial(self._step, driver, due))

    def kill(self) -> None:
        """Have the driver do nothing any more."""
        self.world.forget_all_of(self.driver)
        self.world.forget_all_of(self.driver._urgent.node)
        self.driver._arm._transport.close()
        self.driver = None

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        return self.world.wait(condition, what, lambda: dict(self.log.said))

    def until(self, state: ArmState) -> None:
        self.wait(lambda: self.driver._arm.snapshot.state is state, state.value)

    def call(self, name: str, on: bool | None = None) -> Any:
        """The answer of a service."""
        kind, given = (Trigger, {}) if on is None else (SetBool, {'data': on})
        client = self.node.create_client(kind, f'ik_servos/{name}')
        return answer_of(client, kind.Request(**given), self.wait, name)

    def ask(self, name: str, on: bool | None = None) -> Any:
        """The future answer of a service."""
        kind, given = (Trigger, {}) if on is None else (SetBool, {'data': on})
        return self.node.create_client(kind, f'ik_servos/{name}').call_async(kind.Request(**given))

    def switch_on(self) -> None:
        """Switch the torque on as soon as the servos are measured and no other driver is there."""
        self.wait(lambda: self.call('torque', True).success, 'the torque')

    def command(self, age: float = 0.0, **positions: float) -> None:
        message = JointState(name=list(positions), position=list(positions.values()))
        message.header.stamp = (self.node.get_clock().now() - Duration(seconds=age)).to_msg()
        self.publish(message)

    def publish(self, message: JointState) -> None:
        self._commands.publish(message)
        self.world.run(0.01)

    def drive(self, **positions: float) -> None:
        """Command positions until the arm is measured there."""

        def there() -> bool:
            self.command(**positions)
            return all(abs(self.position(name) - value) < 0.02 for name, value in positions.items())

        self.wait(there, f'the arm at {positions}')

    def position(self, name: str) -> float:
        """The newest position of a joint."""
        newest = self.heard[-1] if self.heard else JointState()
        return dict(zip(newest.name, newest.position, strict=True)).get(name, math.nan)

    @property
    def torques(self) -> set[bool]:
        """Whether servos have torque."""
        return {state['torque'] for state in self.bus.state().values()}

    def statuses(self) -> dict[str, DiagnosticStatus]:
        """The newest diagnostics, by joint; '' is the arm's."""
        self.world.run(1.1)
        newest = self.diagnostics[-1].status
        return {status.name.removeprefix('/ik_servos').removeprefix('/'): status for status in newest}


@contextmanager
def owner_of(profile: str = 'so101') -> Iterator[Owner]:
    """The owner of an arm without a driver."""
    with (
        world() as here,
        virtual_time(WorldClock(here)) as clock,
        patch.object(module, 'ThreadPoolExecutor', AtOnce),
        patch.object(neighbours, 'SETTLING', 0.0),
    ):
        owner = Owner(here, VirtualBus(clock, profile))
        try:
            yield owner
        finally:
            owner.node.destroy_node()


@contextmanager
def driven(profile: str = 'so101', **parameters: Any) -> Iterator[Owner]:
    """The owner of an arm with a driver."""
    with owner_of(profile) as owner, owner.start(profile=profile, **parameters):
        yield owner
