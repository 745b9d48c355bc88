"""MovingArm and Inbox: what is left when goals, stops and new arms come in any order."""

import time

import numpy as np
import pytest
from node_harness import PARAMETERS, arm_urdf

from ik_node.control.arm_model import ArmModel
from ik_node.control.inbox import KEPT, Inbox, Request
from ik_node.control.moving_arm import MovingArm
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError

SETTINGS = ArmSettings(**PARAMETERS)


@pytest.fixture(scope='module')
def model() -> ArmModel:
    return ArmModel.build(arm_urdf(), SETTINGS)


@pytest.fixture
def arm(model) -> MovingArm:
    arm = MovingArm(SETTINGS)
    arm.replace(model, wait=lambda: False)
    return arm


def target(model: ArmModel, **values: float) -> np.ndarray:
    return model.joint_goal(values, model.home)


def run(arm: MovingArm, steps: int = 2000) -> None:
    for _ in range(steps):
        arm.step(0.01)


def yaw(arm: MovingArm) -> float:
    return arm.state.position[arm.state.model.joints.variables.index('yaw')]


def test_without_an_arm_nothing_happens(model):
    arm = MovingArm(SETTINGS)
    arm.stop()
    arm.go_to(model.home, model, time.perf_counter())
    arm.measured({'yaw': 1.0})
    assert arm.step(0.01) is None
    assert arm.state is None


def test_a_goal_that_came_before_a_stop_is_void(arm, model):
    came = time.perf_counter()
    arm.stop()
    arm.go_to(target(model, yaw=1.0), model, came)
    run(arm)
    assert yaw(arm) == 0.0
    arm.go_to(target(model, yaw=1.0), model, time.perf_counter())
    run(arm)
    assert yaw(arm) == pytest.approx(1.0)


def test_a_goal_for_the_arm_before_is_void(arm, model):
    other = ArmModel.build(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    arm.go_to(target(model, yaw=0.5), model, time.perf_counter())
    arm.step(0.01)
    arm.replace(other, wait=lambda: (arm.step(0.01), False)[1])
    rest = yaw(arm)
    assert 0.0 < rest < 0.1  # it stopped first
    arm.go_to(target(model, yaw=1.0), model, time.perf_counter())
    run(arm)
    assert yaw(arm) == rest
    assert 'jaw' in arm.step(0.01).names


def test_other_settings_of_the_same_robot_do_not_void_a_goal(arm, model):
    arm.go_to(target(model, yaw=0.5), model, time.perf_counter())
    arm.change(ArmModel.build(model.text, SETTINGS, model))
    arm.go_to(target(model, yaw=0.7), model, time.perf_counter())
    run(arm)
    assert yaw(arm) == pytest.approx(0.7)


def test_measured_joints_count_until_a_goal(arm, model):
    arm.measured({'yaw': 0.4})
    assert yaw(arm) == 0.4
    arm.go_to(target(model, yaw=0.5), model, time.perf_counter())
    arm.measured({'yaw': -0.4})
    run(arm)
    assert yaw(arm) == pytest.approx(0.5)


def test_after_a_stop_measured_joints_count_again_once_the_arm_rests(arm, model):
    arm.go_to(target(model, yaw=1.0), model, time.perf_counter())
    run(arm, 30)
    arm.stop()
    before = yaw(arm)
    arm.step(0.01)
    arm.measured({'yaw': -1.0})
    arm.step(0.01)
    assert before < yaw(arm) < 1.0  # it brakes, it does not jump
    while arm.state.moving:
        arm.step(0.01)
    arm.measured({'yaw': -1.0})
    assert yaw(arm) == -1.0
    arm.go_to(target(model, yaw=-0.9), model, time.perf_counter())
    first = arm.step(0.01)
    assert -1.0 < first.positions[first.names.index('yaw')] < -0.99
    arm.measured({'yaw': 0.0})
    run(arm)
    assert yaw(arm) == pytest.approx(-0.9)


def test_a_held_arm_does_not_sink_under_its_weight(arm):
    arm.measured({'yaw': 0.4})
    for _ in range(100):  # it hangs a little below each command
        arm.measured({'yaw': yaw(arm) - 0.03})
        arm.step(0.01)
    assert yaw(arm) == 0.4
    arm.measured({'yaw': 0.3})  # moved by hand
    assert yaw(arm) == 0.3


def test_another_robot_is_where_its_joints_are_measured(arm, model):
    arm.go_to(target(model, yaw=0.5), model, time.perf_counter())
    run(arm)
    other = ArmModel.build(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    arm.replace(other, wait=lambda: (arm.step(0.01), False)[1])
    arm.measured({'yaw': -0.4})
    assert yaw(arm) == -0.4


def test_the_first_sample_of_a_goal_tells_when_it_came(arm, model):
    came = time.perf_counter()
    arm.go_to(target(model, yaw=0.5), model, came)
    first = arm.step(0.01)
    assert first.arrival == came
    assert first.positions[first.names.index('yaw')] > 0.0
    assert arm.step(0.01).arrival is None


def test_joint_goals_beyond_the_limits_are_refused_and_rounding_is_not(model):
    with pytest.raises(InputError, match='joint "yaw" cannot go to'):
        target(model, yaw=2.6)
    assert target(model, yaw=2.50005).max() == 2.5
    outside = model.home + 9.0  # where a real arm may be; only what is asked for is judged
    assert model.joint_goal({'yaw': 0.0}, outside)[model.joints.variables.index('elbow')] == 2.5


def test_the_inbox_keeps_the_newest_in_order_and_never_grows():
    inbox = Inbox()
    pushed = [inbox.put(Request('goal', number)) for number in range(KEPT + 3)]
    assert pushed == [0] * KEPT + [1] * 3
    inbox.put_description('old')
    inbox.put_description('new')
    description, changed, requests = inbox.take(timeout=0.0)
    assert (description, changed) == ('new', False)
    assert [request.message for request in requests] == list(range(3, KEPT + 3))
    assert inbox.take(timeout=0.0) == (None, False, [])
    inbox.put(Request('goal', 1))
    inbox.put_change()
    inbox.clear()
    assert inbox.take(timeout=0.0) == (None, True, [])
    assert inbox.take(timeout=0.0) == (None, False, [])
    inbox.close()
    assert inbox.take(timeout=None) is None
