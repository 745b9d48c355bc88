# SPDX-License-Identifier: Apache-2.0
"""~/set_zero of ik_servos: an arm without zeros gets them, an arm with torque keeps its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import rclpy
from domains import new_domain
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from services import answer_of
from spinning import Spinning
from std_srvs.srv import SetBool, Trigger
from waiting import wait_for

from ik_node.ros.servos.node import ServosNode

TIMEOUT = 20.0


class Owner:
    """The node, and what its owner does and sees."""

    def __init__(self, served: ServosNode, node: Any) -> None:
        self.served, self.node = served, node
        self.states: list[JointState] = []
        node.create_subscription(JointState, 'joint_states', self.states.append, qos_profile_sensor_data)

    def wait(self, condition: Any, what: str) -> Any:
        return wait_for(condition, what, TIMEOUT)

    def call(self, service: str, kind: Any = Trigger, **values: Any) -> Any:
        client = self.node.create_client(kind, f'ik_servos/{service}')
        return answer_of(client, kind.Request(**values), self.wait, service)

    def know(self, pose: str) -> bool:
        (result,) = self.served.set_parameters([Parameter('known_pose', value=pose)])
        return result.successful

    def position(self, name: str) -> float | None:
        positions = (
            dict(zip(self.states[-1].name, self.states[-1].position, strict=True)) if self.states else {}
        )
        return positions.get(name)


@contextmanager
def owned(profile: str) -> Iterator[Owner]:
    context = rclpy.Context()
    context.init(domain_id=new_domain())
    given = {'port': 'emulated', 'profile': profile}
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    served = ServosNode(context=context, parameter_overrides=overrides)
    node = rclpy.create_node('owner', context=context)
    spinning = Spinning(served, node)
    try:
        yield Owner(served, node)
    finally:
        spinning.end()
        served.close()
        node.destroy_node()
        context.try_shutdown()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    return tmp_path / 'ik_node' / 'servos'


def test_an_arm_without_zeros_gets_them_joint_by_joint(home):
    with owned('koch') as owner:
        rejected = owner.wait(lambda: owner.call('torque', SetBool, data=True), 'an answer')
        assert not rejected.success
        owner.wait(lambda: owner.served._arm.snapshot.ticks, 'the ticks')
        assert 'known_pose is empty' in owner.call('set_zero').message
        assert not owner.know('joint_9=0')
        assert owner.know('joint_1=0, joint_2=0.25, joint_3=0, joint_4=0')
        assert owner.call('set_zero').success
        owner.wait(lambda: '"joint_5", "joint_6": the zero' in owner.served._arm.snapshot.reason, 'the rest')
        assert owner.states == []
        assert not owner.know('joint_5=0, joint_5=1')
        assert owner.know('joint_5=0, joint_6=0.5')
        answer = owner.call('set_zero')
        assert answer.message == f'stored in {home / "koch-emulated.yaml"}'
        owner.wait(lambda: owner.states, 'joint_states')
        assert owner.position('joint_2') == pytest.approx(0.25, abs=2e-3)
        assert owner.position('joint_6') == pytest.approx(0.5, abs=2e-3)


def test_zeros_are_not_changed_under_torque_and_come_back_with_the_node(home):
    with owned('so101') as owner:
        owner.wait(lambda: owner.states, 'joint_states')
        assert owner.know('wrist_roll=0.5')
        owner.wait(lambda: owner.call('torque', SetBool, data=True).success, 'the torque')
        assert 'while the torque is off' in owner.call('set_zero').message
        assert not home.exists()
        assert owner.call('torque', SetBool, data=False).success
        elbow = owner.position('elbow_flex')
        assert owner.call('set_zero').success
        owner.wait(lambda: (owner.position('wrist_roll') or 0.0) > 0.4, 'the new zero')
        assert owner.position('elbow_flex') == pytest.approx(elbow, abs=2e-3)
    with owned('so101') as owner:
        owner.wait(lambda: owner.states, 'joint_states')
        assert owner.position('wrist_roll') == pytest.approx(0.5, abs=2e-3)
