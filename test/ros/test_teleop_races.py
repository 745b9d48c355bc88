# SPDX-License-Identifier: Apache-2.0
"""Callbacks of a hand that meet its thread, or one another, at the worst moment."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from node_harness import running
from small_arm import arm_urdf
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from ik_node.control.teleop.clutch import DROPPED
from ik_node.errors import InputError

SOON = 0.2  # [s] in which a thread ends that nothing holds up; one that is held up does not end at all
LONG = 60.0  # [s]


@pytest.fixture
def teleop():
    """The hand of a node, whose own thread has ended: each test takes its place."""
    with running(arm_urdf()) as client:
        hand = client.served._tools[0].teleop
        hand.close()
        hand._closing = False
        yield hand


def test_a_pause_ends_a_command_that_is_being_stored(teleop):
    inside, go_on = threading.Event(), threading.Event()
    now = teleop._time.now

    class Waiting:
        """The time, which the callback of a command asks for before it stores that."""

        def now(self):
            inside.set()
            go_on.wait(LONG)
            return now()

    teleop._time = Waiting()
    storing = threading.Thread(target=teleop._store, args=['twist', TwistStamped()])
    storing.start()
    assert inside.wait(LONG)
    pausing = threading.Thread(target=teleop._pause, args=(SetBool.Request(data=True), SetBool.Response()))
    pausing.start()
    pausing.join(SOON)
    go_on.set()
    storing.join(LONG)
    pausing.join(LONG)
    assert teleop._paused
    assert not teleop._new
    kind, _, received = teleop._command
    assert (kind, received) == ('twist', -float('inf'))


@pytest.mark.parametrize('newer', [True, False])
def test_a_command_that_comes_while_one_is_rejected_is_not_forgotten_with_it(teleop, newer):
    rejected, gone, released = threading.Event(), threading.Event(), []
    message = TwistStamped()

    def step(*_):
        rejected.set()
        gone.wait(LONG)
        teleop._closing = True  # ends the loop after this step
        raise InputError('made up')

    end = teleop._teleop.end
    teleop._teleop.end = lambda: (released.append(True), end())
    teleop._step = step
    teleop._store('twist', TwistStamped())
    thread = threading.Thread(target=teleop._run)
    thread.start()
    assert rejected.wait(LONG)
    if newer:
        teleop._store('twist', message)
    gone.set()
    thread.join(LONG)
    assert not thread.is_alive()
    if newer:
        assert teleop._command[1] is message
        assert teleop._new
        assert not released
    else:
        assert teleop._command is None
        assert released == [True]


def test_a_press_while_commands_are_paused_does_not_count(teleop):
    def pause(paused: bool) -> None:
        teleop._pause(SetBool.Request(data=paused), SetBool.Response())

    def why(*closed: bool) -> str:
        """Why a pose is ignored after messages on ~/enable."""
        for one in closed:
            teleop._enable(Bool(data=one))
        hand = teleop._teleop
        hand.take(hand.ready(), np.eye(4), teleop._time.now(), None, teleop._settings())
        return hand.ignored

    assert not why(True)
    pause(True)
    teleop._enable(Bool(data=False))
    teleop._enable(Bool(data=True))
    pause(False)
    assert why(True) == DROPPED
    pause(False)  # commands are accepted already
    assert not why(False, True)
    pause(False)
    assert not why(True)
