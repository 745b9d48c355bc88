# SPDX-License-Identifier: Apache-2.0
"""The action client, against a stand-in for the action: control_msgs has no wheel on PyPI.

The futures are rclpy's; the server's answers are given by hand, in every order that matters.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rclpy.action.client import ActionClient
from rclpy.task import Future

from ik_node.control.trajectory import JointTrajectory, Setpoint
from ik_node.ros import follow_joint_trajectory as module
from ik_node.ros.outputs import Clocks, OutputContext

NAMES = ('a', 'b')
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6


class Handle:
    """An accepted or rejected goal."""

    def __init__(self, accepted: bool) -> None:
        self.accepted, self.cancelled = accepted, 0
        self.result = Future()

    def get_result_async(self) -> Future:
        return self.result

    def cancel_goal_async(self) -> None:
        self.cancelled += 1

    def end(self, status: int, code: int = 0, text: str = '') -> None:
        result = SimpleNamespace(error_code=code, error_string=text)
        self.result.set_result(SimpleNamespace(status=status, result=result))


class Server:
    """Stands in for ActionClient; keeps the goals and their futures."""

    def __init__(self, _node: Any, _kind: Any, name: str) -> None:
        self.name = name
        self.ready, self.goals, self.answers = True, [], []

    def server_is_ready(self) -> bool:
        return self.ready

    def send_goal_async(self, goal: Any) -> Future:
        self.goals.append(goal)
        self.answers.append(Future())
        return self.answers[-1]

    def answer(self, number: int = -1, accepted: bool = True) -> Handle:
        handle = Handle(accepted)
        self.answers[number].set_result(handle)
        return handle


class Arm:
    """The output with its clock and what it reports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, node: Any = None) -> None:
        action = SimpleNamespace(Goal=lambda trajectory: trajectory)
        monkeypatch.setattr(module, 'Client', Server)
        monkeypatch.setattr(module, 'action_type', lambda: action)
        self.said: list[str] = []
        self.time = 0.0
        clock = SimpleNamespace(now=lambda: self.time)
        logger = SimpleNamespace(warning=lambda *_, **__: None)
        node = node or SimpleNamespace(
            get_logger=lambda: logger,
            resolve_topic_name=lambda name: f'/{name}',
        )
        context = OutputContext(node, '', 'arm_controller', clock, Clocks(), self.said.append, lambda *_: None)
        self.output = module.FollowJointTrajectoryAction(context)
        self.server: Server = self.output._client

    def move(self, braking: bool = False, wait: float = 1.0) -> None:
        """Start a motion of one second."""
        self.time += wait
        place, rest = np.array([[1.0, 2.0]]), np.zeros((1, 2))
        trajectory = JointTrajectory(NAMES, np.array([1.0]), place, rest, rest, self.time, 0.0, braking)
        self.output.take(Setpoint(self.time, NAMES, place[0], rest[0], NAMES, trajectory=trajectory))


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> Arm:
    return Arm(monkeypatch)


def test_a_motion_that_is_accepted_and_succeeds_says_nothing(arm: Arm) -> None:
    arm.move()
    (goal,) = arm.server.goals
    assert list(goal.joint_names) == list(NAMES)
    assert list(goal.points[-1].velocities) == [0.0, 0.0]
    arm.server.answer().end(SUCCEEDED)
    assert arm.said == []


def test_without_a_server_the_arm_stops(arm: Arm) -> None:
    assert arm.server.name == 'arm_controller/follow_joint_trajectory'
    arm.server.ready = False
    arm.move()
    (said,) = arm.said
    assert '/arm_controller/follow_joint_trajectory' in said
    assert not arm.server.goals


def test_a_rejection_stops_the_arm(arm: Arm) -> None:
    arm.move()
    running = arm.server.answer()
    arm.move()
    arm.server.answer(accepted=False)
    assert ['rejected' in said for said in arm.said] == [True]
    assert running.cancelled == 1


@pytest.mark.parametrize(
    ('status', 'code', 'text', 'said'),
    [
        (ABORTED, -4, 'joint "a" is 0.3 off', 'path tolerance violated): joint "a" is 0.3 off'),
        (ABORTED, -5, '', 'goal tolerance violated)'),
        (SUCCEEDED, -1, '', 'invalid goal)'),
        (ABORTED, -77, 'new\nline', 'error -77): new\\nline'),
        (CANCELED, 0, '', 'cancelled)'),
    ],
)
def test_a_motion_that_fails_stops_the_arm_with_the_words_of_the_controller(
    arm: Arm, status: int, code: int, text: str, said: str
) -> None:
    arm.move()
    arm.server.answer().end(status, code, text)
    assert [one.endswith(said) for one in arm.said] == [True]


def test_a_motion_that_is_replaced_may_end_as_it_likes(arm: Arm) -> None:
    arm.move()
    first = arm.server.answer()
    arm.move(braking=True, wait=0.01)
    assert first.cancelled == 0  # until the other is accepted
    second = arm.server.answer()
    assert first.cancelled == 1
    first.end(ABORTED, -4)
    second.end(SUCCEEDED)
    assert arm.said == []
    arm.move()
    arm.move()  # answers in the wrong order
    newest, older = arm.server.answer(-1), arm.server.answer(-2)
    arm.output.halted(None)
    assert (newest.cancelled, older.cancelled) == (1, 0)


def test_a_halt_cancels_what_runs_and_what_is_accepted_later(arm: Arm) -> None:
    arm.move()
    running = arm.server.answer()
    arm.move()
    arm.output.halted(None)
    assert running.cancelled == 1
    late = arm.server.answer()
    assert late.cancelled == 1
    late.end(CANCELED)
    running.end(CANCELED)
    assert arm.said == []


def test_a_controller_that_does_not_answer_stops_the_arm(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'PATIENCE', 0.0)
    arm.move()
    assert ['does not respond' in said for said in arm.said] == [True]


def test_it_is_done_when_the_controller_has_ended_the_newest_motion(arm: Arm) -> None:
    assert arm.output.done()
    arm.move()
    assert not arm.output.done()
    running = arm.server.answer()
    assert not arm.output.done()
    running.end(SUCCEEDED)
    assert arm.output.done()


@pytest.mark.slow
def test_an_answer_is_not_heard_before_its_goal_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rclpy drops an answer that it hears before send_goal_async has noted the goal."""
    noted = threading.Event()
    heard: list[bool] = []
    hearing: list[threading.Thread] = []

    async def execute(_self: Any, _taken: Any) -> None:
        heard.append(noted.is_set())

    def send(self: Any, _goal: Any) -> None:
        def answer() -> None:
            with pytest.raises(StopIteration):
                self.execute({}).send(None)

        hearing.append(threading.Thread(target=answer))
        hearing[0].start()
        hearing[0].join(0.2)  # ends only if it does not wait
        noted.set()

    monkeypatch.setattr(ActionClient, '__init__', lambda *_: None)
    monkeypatch.setattr(ActionClient, '__del__', lambda _: None, raising=False)
    monkeypatch.setattr(ActionClient, 'send_goal_async', send)
    monkeypatch.setattr(ActionClient, 'execute', execute)
    module.Client(None, None, '').send_goal_async('goal')
    hearing[0].join(30.0)
    assert heard == [True]
