# SPDX-License-Identifier: Apache-2.0
"""The page while ik_node takes no goals: it is not active, or a hand guides the arm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from desk import SEED_ARM, SEED_FILE, SEED_JOINTS, Page, RobotSide, viewer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from waiting import answer_of

from ik_node.model.arm import Arm

ARM = Arm.from_urdf(SEED_ARM)
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))


def deactivate(robot: RobotSide, off: bool) -> None:
    number = Transition.TRANSITION_DEACTIVATE if off else Transition.TRANSITION_ACTIVATE
    client = robot.node.create_client(ChangeState, 'ik_node/change_state')
    request = ChangeState.Request(transition=Transition(id=number))
    assert answer_of(client, request, robot.wait, 'the state').success


def guide(robot: RobotSide, on: bool) -> None:
    client = robot.node.create_client(SetBool, 'ik_node/hand_guide')
    assert answer_of(client, SetBool.Request(data=on), robot.wait, 'hand guiding').success


def tip(values: dict[str, float]) -> np.ndarray:
    return ARM.robot.link_pose('tool0', values)


@pytest.mark.slow
@pytest.mark.parametrize(('idle', 'why'), [(deactivate, 'inactive'), (guide, 'hand-guided')])
def test_gizmo_and_sliders_move_nothing_and_say_why(idle: Callable[[Any, bool], None], why: str) -> None:
    with viewer(beside=(SEED_FILE, 'wait_for_measured:=true'), page=False) as (table, robot):
        page, place = Page(table), dict(Q)
        measured = robot.node.create_publisher(JointState, 'measured_joint_states', 10)

        def measure() -> None:
            message = JointState(name=list(place), position=list(place.values()))
            message.header.stamp = robot.node.get_clock().now().to_msg()
            measured.publish(message)

        robot.node.create_timer(0.02, measure)

        def rests() -> bool:
            joint1 = page.control('joint1 [°]')['value']
            gizmo, tool = page.pose('/base/goal'), page.pose('/tip')
            return (
                joint1 == pytest.approx(np.degrees(place['joint1']), abs=0.06)
                and np.allclose(gizmo, tip(place), atol=1e-4)
                and np.allclose(tool, tip(place), atol=1e-4)
            )

        page.wait(rests, 'the arm where it is measured')
        idle(robot, True)
        if idle is guide:
            place['joint1'] = 0.5
            page.wait(lambda: rests() and 'Hand-guided' in page.text(), 'the arm to follow the hand')
        aim = tip(Q)
        aim[2, 3] += 0.05
        page.drag(aim)
        page.wait(lambda: f'The goal was rejected: {why}' in page.text(), 'the reason')
        page.wait(lambda: not page.control('joint1 [°]')['disabled'], 'the sliders')
        page.choose('joint1 [°]', 60.0)
        page.wait(lambda: f'The goal was rejected: {why}' in page.text(), 'the reason')
        page.wait(rests, 'sliders and gizmo where the arm is')
        idle(robot, False)
        page.run(2.0)
        assert rests(), 'a goal of before moves it'
        page.drag(aim)
        page.wait(lambda: 'Moving</span>' in page.text() or 'Not arrived' in page.text(), 'a goal that counts')
        page.close()
