# SPDX-License-Identifier: Apache-2.0
"""The gripper of an arm: an opening from 0 to 1 moves it, whatever the arm does, and tells what it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import TwistStamped
from node_harness import Client, running
from sensor_msgs.msg import JointState
from small_arm import arm_urdf
from std_msgs.msg import Float64
from test_real_arm import REMAPPED, Driver

from ik_node.control.gripper import Grip, GripperWatch
from ik_node.ros.interfaces import LATCHED

pytestmark = pytest.mark.slow

OPEN, CLOSED = 0.04, 0.0  # [m] of the finger


class Hand:
    """A client for the gripper of a node, and the driver of its arm where one is measured."""

    def __init__(self, client: Client) -> None:
        self.client, self.heard = client, []
        self._openings = client.node.create_publisher(Float64, 'ik_node/gripper', 10)
        client.node.create_subscription(DiagnosticStatus, 'ik_node/gripper_status', self.heard.append, LATCHED)
        client.wait(lambda: self._openings.get_subscription_count(), 'the subscription')

    def ask(self, opening: float) -> None:
        self._openings.publish(Float64(data=opening))

    def values(self) -> dict[str, str]:
        return {pair.key: pair.value for pair in self.heard[-1].values} if self.heard else {}

    def wait(self, state: str) -> None:
        self.client.wait(lambda: self.values().get('state') == state, state)


class Jaws(Driver):
    """A driver whose finger cannot close below an object, nor open beyond an obstacle."""

    object, obstacle = -1.0, 1.0

    def _take(self, message) -> None:
        super()._take(message)
        wanted = self.positions['finger']
        self.positions['finger'] = min(max(wanted, self.object), self.obstacle)
        self.efforts['finger'] = (wanted - self.positions['finger']) / OPEN


@pytest.fixture
def shown() -> Iterator[Hand]:
    with running(arm_urdf()) as client:
        yield Hand(client)


@pytest.fixture
def real() -> Iterator[tuple[Hand, Jaws]]:
    with running(arm_urdf(), ready=False, cli_args=REMAPPED) as client:
        driver = Jaws(client.node, 'joint_commands', 'joint_states')
        client.wait(lambda: driver.commands, 'commands')
        yield Hand(client), driver


def finger(hand: Hand) -> float:
    return float(hand.client.position('finger')[0])


def test_an_opening_is_a_share_of_the_stroke(shown: Hand):
    shown.wait('idle')
    for opening in (1.0, 0.25, 0.0):
        shown.ask(opening)
        shown.client.wait(lambda at=opening: abs(finger(shown) - at * OPEN) < 1e-6, 'the finger')
    shown.wait('unmeasured')
    assert not shown.client.about('gripper'), 'the goal of the arm and its reports are not those of the gripper'


@pytest.mark.parametrize('opening', [-0.01, 1.01, 50.0, float('nan'), float('inf')])
def test_another_unit_is_rejected(shown: Hand, opening: float):
    shown.ask(0.5)
    shown.client.wait(lambda: abs(finger(shown) - 0.5 * OPEN) < 1e-6, 'the finger')
    shown.ask(opening)
    shown.client.run(1.0)
    assert finger(shown) == pytest.approx(0.5 * OPEN)


def test_a_goal_of_the_arm_and_the_gripper_go_on_together(shown: Hand):
    client = shown.client
    client.send('goal_joints', client.joints(yaw=0.8))
    shown.ask(1.0)
    client.wait(lambda: any('arrived' in status.message for status in client.about('goal_joints')), 'the arrival')
    assert client.position('yaw')[0] == pytest.approx(0.8)
    assert finger(shown) == pytest.approx(OPEN)


def speeds(shown: Hand, closes: bool) -> np.ndarray:
    """Speeds of the joints of the arm while an operator moves the tool, and closes the gripper."""
    client = shown.client
    twists = client.node.create_publisher(TwistStamped, 'ik_node/delta_twist_cmds', 10)
    message = TwistStamped()
    message.twist.linear.x = -0.3
    mark = len(client.samples)
    for k in range(60):
        twists.publish(message)
        if closes and k >= 30:
            shown.ask(k / 60.0)
        client.run(0.02)
    return np.array([np.abs(sample.velocity[:5]).max() for sample in client.samples[mark:]])


def test_an_operator_moves_on_while_the_gripper_closes():
    seen = []
    for closes in (False, True):
        with running(arm_urdf()) as client:
            client.send('goal_joints', client.joints(yaw=0.3, shoulder=0.4, elbow=0.5, roll=0.2, wrist=0.3))
            client.wait_said('arrived')
            seen.append(speeds(Hand(client), closes))
    assert seen[0].max() > 0.1
    assert np.allclose(*seen, atol=1e-9), 'the arm moves as without the gripper'


def test_the_gripper_continues_after_the_operator_lets_go_of_the_stick(shown: Hand):
    client = shown.client
    client.send('goal_joints', client.joints(yaw=0.3, shoulder=0.4, elbow=0.5, roll=0.2, wrist=0.3))
    client.wait_said('arrived')
    twists = client.node.create_publisher(TwistStamped, 'ik_node/delta_twist_cmds', 10)
    for k in range(20):
        message = TwistStamped()
        message.twist.linear.x = -0.3
        twists.publish(message)
        if k == 16:
            shown.ask(1.0)
        client.run(0.02)
    assert 0.0 < finger(shown) < 0.9 * OPEN, 'it is on its way'
    twists.publish(TwistStamped())
    client.wait(lambda: abs(finger(shown) - OPEN) < 1e-6, 'the finger')


def test_an_opening_is_new_after_another_command(shown: Hand):
    shown.ask(1.0)
    shown.client.run(0.6)
    shown.client.send('goal_joints', shown.client.joints(finger=0.0))
    shown.client.run(0.6)
    assert finger(shown) < 0.5 * OPEN
    shown.ask(1.0)
    shown.client.wait(lambda: abs(finger(shown) - OPEN) < 1e-6, 'the finger')


class Action:
    """A goal of the action, without control_msgs: what a server would call."""

    def __init__(self, hand: Hand, *positions: float, names: Sequence[str] = (), effort: float = 0.0) -> None:
        self.is_cancel_requested, self.ended = False, ''
        command = SimpleNamespace(name=list(names), position=list(positions), effort=[effort] * len(positions))
        self.request = SimpleNamespace(command=command)
        self.result = SimpleNamespace(state=SimpleNamespace(name=[], position=[]))
        for name in ('succeed', 'abort', 'canceled'):
            setattr(self, name, partial(setattr, self, 'ended', name))
        served = hand.client.served._tools[0].gripper
        with patch('ik_node.ros.gripper.action_type', lambda: SimpleNamespace(Result=lambda: self.result)):
            self._task = served._execute(self)
            self._task.send(None)  # until it waits
        hand.client.run(0.0)
        self._pending = served._pending

    def end(self, hand: Hand) -> str:
        hand.client.wait(self._pending.done.done, 'the end')
        with pytest.raises(StopIteration):
            self._task.send(None)
        return self.ended


def test_an_action_ends_as_the_gripper_does(shown: Hand):
    assert Action(shown, 0.5 * OPEN).end(shown) == 'succeed'
    assert finger(shown) == pytest.approx(0.5 * OPEN)
    assert Action(shown, OPEN + 5e-5).end(shown) == 'succeed', 'a rounded limit'
    assert finger(shown) == pytest.approx(OPEN)
    for odd in ((), (50.0,), (float('nan'),)):
        assert Action(shown, *odd).end(shown) == 'abort'
    assert finger(shown) == pytest.approx(OPEN)


@pytest.mark.parametrize('when', [0.0, 0.2])
def test_an_action_that_another_command_replaces_does_not_succeed(shown: Hand, when: float):
    replaced = Action(shown, OPEN)
    shown.client.run(when)
    shown.ask(0.0)
    assert replaced.end(shown) == 'abort'
    assert not replaced.result.reached_goal
    shown.client.wait(lambda: finger(shown) < 1e-6, 'the finger')


def test_an_action_that_is_replaced_tells_where_the_gripper_is(shown: Hand):
    replaced = Action(shown, OPEN)
    shown.client.run(0.3)
    shown.ask(0.0)
    assert replaced.end(shown) == 'abort'
    assert 0.1 * OPEN < replaced.result.state.position[0] < 0.9 * OPEN, 'neither its target nor the new one'


def test_an_action_takes_the_position_of_its_joint(shown: Hand):
    assert Action(shown, 50.0, 0.5 * OPEN, names=['other', 'finger']).end(shown) == 'succeed'
    assert finger(shown) == pytest.approx(0.5 * OPEN)
    assert Action(shown, OPEN, names=['other']).end(shown) == 'abort'
    assert finger(shown) == pytest.approx(0.5 * OPEN)


def test_an_action_out_of_limits_is_rejected_in_its_own_unit(shown: Hand):
    assert Action(shown, 50.0).end(shown) == 'abort'
    assert any('joint "finger" is from 0 (closed) to' in heard.message for heard in shown.heard)


def test_a_cancelled_action_brakes_and_does_not_move_back(shown: Hand):
    action = Action(shown, OPEN)
    shown.client.wait(lambda: finger(shown) > 0.1 * OPEN, 'the finger')
    action.is_cancel_requested = True
    seen = []
    while not action._pending.done.done() or len(seen) < 100:
        shown.client.run(0.01)
        seen.append(finger(shown))
    assert action.end(shown) == 'canceled'
    assert (np.diff(seen) >= -1e-9).all()
    assert seen[-1] == seen[-20] < 0.95 * OPEN, 'at rest'


def test_an_action_ends_with_a_fault(real: tuple[Hand, Jaws]):
    hand, driver = real
    action = Action(hand, OPEN)
    for k in range(20):
        driver.obstacle = (0.5 + 0.02 * (-1) ** k) * OPEN  # never at rest
        hand.client.run(0.1)
    assert not action._pending.done.done()
    hand.client.served._tools[0].controller.fault('a test')
    assert action.end(hand) == 'abort'


def test_an_action_does_not_succeed_if_the_jaws_cannot_open(real: tuple[Hand, Jaws]):
    hand, driver = real
    driver.obstacle = 0.5 * OPEN
    blocked = Action(hand, OPEN)
    assert blocked.end(hand) == 'abort'
    assert blocked.result.stalled
    driver.obstacle, driver.object = 1.0, 0.4 * OPEN
    held = Action(hand, 0.0)
    assert held.end(hand) == 'succeed'
    assert held.result.stalled
    assert not held.result.reached_goal


def test_the_first_status_comes_once_the_gripper_may_be_moved():
    with running(arm_urdf(), ready=False, cli_args=REMAPPED, wait_for_measured='true') as client:
        hand = Hand(client)
        client.run(1.0)
        assert not hand.heard
        driver = Jaws(client.node, 'joint_commands', 'joint_states')
        hand.wait('idle')
        assert driver.commands


def test_the_status_is_not_repeated_before_the_first_command(shown: Hand):
    shown.wait('idle')
    shown.client.run(1.0)
    assert len(shown.heard) == 1


def test_an_action_goes_on_while_an_operator_moves_the_tool(shown: Hand):
    action, client = Action(shown, OPEN), shown.client
    rates = client.node.create_publisher(JointState, 'ik_node/delta_joint_cmds', 10)
    for _ in range(60):
        rates.publish(JointState(name=['yaw'], velocity=[0.3]))
        client.run(0.02)
    assert client.position('yaw')[0] > 0.01
    assert action.end(shown) == 'succeed'
    assert finger(shown) == pytest.approx(OPEN)


def test_stop_stops_the_gripper_too(shown: Hand):
    shown.ask(1.0)
    shown.client.run(0.1)
    shown.client.call('ik_node/stop')
    shown.client.run(1.0)
    rests = finger(shown)
    assert 0.0 < rests < OPEN
    shown.ask(1.0)
    shown.client.run(1.0)
    assert finger(shown) == rests
    shown.client.call('ik_node/resume')
    shown.client.run(0.2)
    shown.ask(1.0)
    shown.client.wait(lambda: abs(finger(shown) - OPEN) < 1e-6, 'the finger, to the same opening as before the stop')


def test_an_object_is_held_without_pushing_on(real: tuple[Hand, Jaws]):
    hand, driver = real
    hand.ask(1.0)
    hand.wait('reached')
    driver.object = 0.4 * OPEN
    hand.ask(0.0)
    hand.wait('holding')
    hand.client.run(2.0)
    assert hand.values()['state'] == 'holding'
    assert float(hand.values()['opening']) == pytest.approx(0.4)
    assert driver.command('finger') == pytest.approx((0.4 - 0.1) * OPEN), 'gripper_squeeze beyond its surface'
    driver.object = -1.0
    hand.wait('lost')
    assert hand.heard[-1].level == DiagnosticStatus.WARN


@pytest.mark.parametrize('effort', [0.0, 0.005])
def test_an_object_as_thin_as_paper_is_held_by_its_effort(real: tuple[Hand, Jaws], effort: float):
    hand, driver = real
    assert hand.client.set_parameters(gripper_effort=effort)[0].successful
    hand.ask(1.0)
    hand.wait('reached')
    driver.object = 0.01 * OPEN
    hand.ask(0.0)
    hand.wait('holding' if effort else 'empty')
    hand.client.run(1.0)
    assert hand.values()['state'] == ('holding' if effort else 'empty')
    driver.object = -1.0
    if effort:
        hand.wait('lost')


@pytest.mark.parametrize('general', [0.0, 0.005, 0.08])
def test_max_effort_holds_until_another_command(real: tuple[Hand, Jaws], general: float):
    hand, driver = real
    assert hand.client.set_parameters(gripper_effort=general)[0].successful
    driver.object = 0.4 * OPEN
    assert Action(hand, 0.0, effort=0.02).end(hand) == 'succeed'
    hand.client.run(2.0)
    assert hand.values()['state'] == 'holding'
    assert driver.command('finger') == pytest.approx((0.4 - 0.02) * OPEN, abs=0.003 * OPEN)
    hand.ask(0.2)
    hand.client.wait(lambda: abs(driver.command('finger') - 0.2 * OPEN) < 1e-6 or general, 'the command')
    hand.client.run(3.0)
    expected = 0.4 - (general or 0.1)
    assert driver.command('finger') == pytest.approx(expected * OPEN, abs=0.012 * OPEN)


@pytest.mark.parametrize('effort', [0.0, 0.04, math.nan])
def test_max_effort_limits_how_hard_it_closes(real: tuple[Hand, Jaws], effort: float):
    hand, driver = real
    driver.object = 0.4 * OPEN
    held = Action(hand, 0.0, effort=effort)
    assert held.end(hand) == 'succeed'
    assert held.result.stalled
    hand.client.run(1.0)
    assert hand.values()['state'] == 'holding'
    assert driver.command('finger') == pytest.approx((0.4 - (0.04 if effort > 0.0 else 0.1)) * OPEN, abs=0.02 * OPEN)


def test_jaws_that_close_on_nothing_or_cannot_open_say_so(real: tuple[Hand, Jaws]):
    hand, driver = real
    hand.ask(0.0)
    hand.wait('empty')
    driver.obstacle = 0.5 * OPEN
    hand.ask(1.0)
    hand.wait('blocked')


def test_a_gripper_starts_where_it_is_measured(real: tuple[Hand, Jaws]):
    hand, driver = real
    driver.positions['finger'] = 0.03
    hand.client.run(0.2)
    assert 'finger' not in driver.commands[-1].name, 'nobody has commanded it'
    hand.ask(1.0)
    hand.client.wait(lambda: 'finger' in driver.commands[-1].name, 'a command')
    first = next(command for command in driver.commands if 'finger' in command.name)
    assert first.position[list(first.name).index('finger')] == pytest.approx(0.03, abs=1e-3)


def test_ends_can_be_given_and_a_gripper_be_left_out():
    with running(arm_urdf(), gripper_positions=[0.03, 0.01]) as client:
        hand = Hand(client)
        hand.ask(1.0)
        client.wait(lambda: abs(finger(hand) - 0.01) < 1e-6, 'open at the lower end')
        rejected = client.set_parameters(gripper_joint='yaw')[0]
        assert 'carries no joint "yaw" that moves by itself, it has "finger"' in rejected.reason
        assert client.set_parameters(gripper_joint='none')[0].successful
        hand.ask(0.0)
        client.run(1.0)
        assert finger(hand) == pytest.approx(0.01)


@pytest.mark.parametrize('back', [0.0, 5.0])
def test_the_watch_needs_time_at_rest(back: float):
    watch, time = GripperWatch(), 10.0
    assert watch.update(time, 0.5, (0.0, 0.2), 0.1) is None
    assert watch.state.grip is Grip.MOVING
    time -= back
    for _ in range(5):
        time += 0.05
        assert watch.update(time, 0.5, (0.0, 0.0), 0.1) is None
        assert watch.state.grip is Grip.MOVING
    reliefs = [watch.update(time + 0.05 * k, 0.5, (0.0, 0.0), 0.1) for k in range(1, 4)]
    assert reliefs[-1] == pytest.approx(0.4)
    assert watch.state.grip is Grip.HOLDING


@pytest.mark.parametrize('noise', [0.0, 0.2])
@pytest.mark.parametrize('lag', [0, 1, 4])
@pytest.mark.parametrize('thin', [0.01, 0.4])
def test_an_effort_that_lags_or_is_noisy_loosens_nothing(thin: float, lag: int, noise: float):
    watch, target, command, seen, limit = GripperWatch(), 0.0, 1.0, [], 0.1 * thin
    random = np.random.default_rng(0)
    efforts = [0.0] * (lag + 1)
    for step in range(400):
        command += np.clip(target - command, -0.05, 0.05)
        opening = max(command, thin)
        efforts.append(opening - command)
        push = efforts[-1 - lag] / limit * (1.0 + noise * random.normal())
        relief = watch.update(0.05 * step, opening, (target, command), 0.1, push)
        target = target if relief is None else relief
        seen.append(watch.state.grip)
    assert set(seen[seen.index(Grip.HOLDING) :]) == {Grip.HOLDING}
    assert 0.8 < (thin - command) / limit < 1.2


def test_jaws_that_push_on_something_still_open():
    watch = GripperWatch()
    for step in range(20):
        watch.update(0.05 * step, 0.4, (0.3, 0.3), 0.1, 1.05)
    assert watch.state.grip is Grip.HOLDING
    for step in range(20, 40):  # slowly
        assert watch.update(0.05 * step, 0.4, (0.6, 0.301), 0.1, 1.05) is None
    assert watch.state.grip is Grip.MOVING


@pytest.mark.parametrize('rounding', [0.0, 1e-15, -1e-15])
def test_what_is_held_and_lost_does_not_depend_on_rounding(rounding: float):
    watch, target, opening, seen = GripperWatch(), 0.0, 0.37, []
    for step in range(60):
        if step == 30:
            opening = 0.27  # the object is gone
        relief = watch.update(0.05 * step, opening, (target, target), 0.1)
        target = target if relief is None else relief + rounding
        seen.append(watch.state.grip)
    first = seen.index(Grip.HOLDING)
    assert set(seen[first:30]) == {Grip.HOLDING}
    assert seen[-1] is Grip.LOST
    assert watch.state.target == 0.0, 'as the user gave it'
