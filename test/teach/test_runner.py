# SPDX-License-Identifier: Apache-2.0
"""A runner and a real controller: it asks for each motion once the one before has arrived, and else ends."""

from __future__ import annotations

import numpy as np
import pytest
from control_harness import SETTINGS, Asked, Rig
from small_arm import ARM_JOINTS

from ik_node.control.models import ArmModel
from ik_node.control.paths import ToolPath
from ik_node.control.preview import Preview
from ik_node.errors import InputError
from ik_node.teach.check import CheckReport, check
from ik_node.teach.program import LINE, Point, Program
from ik_node.teach.runner import LATE, PATIENCE, REPEAT, Order, Runner, State, disturbance

ZERO = dict.fromkeys(ARM_JOINTS, 0.0)
AT = {'yaw': 0.2, 'shoulder': 0.3, 'elbow': 0.9, 'roll': 0.1, 'wrist': 0.4}


@pytest.fixture(scope='module')
def checked(model: ArmModel) -> CheckReport:
    position, direction = model.first.arm.fk(np.array(list(AT.values())))
    low = tuple(position - np.array([0.0, 0.0, 0.03]))
    program = Program(
        (
            Point('ready', joints=AT, wait=0.5),
            Point('pick', position=low, direction=tuple(direction), motion=LINE, gripper=0.03, speed=0.4),
            Point('place', joints={**AT, 'yaw': -0.1}),
        ),
        gripper='finger',
    )
    found = check(Preview(model, SETTINGS), program, ZERO, again=True)
    assert found.passed, found.findings
    return found


class Table:
    """An arm that carries out what a runner asks for."""

    def __init__(self, model: ArmModel, runner: Runner) -> None:
        self.rig, self.runner, self.orders = Rig(model), runner, []
        self.rig.tick(2)
        self._heard = len(self.rig.reports)

    @property
    def joints(self) -> dict[str, float]:
        return {name: self.rig.position(name) for name in ARM_JOINTS}

    def hear(self) -> None:
        for report in self.rig.reports[self._heard :]:
            said = {
                'message': report.message,
                'status': report.status,
                'state': report.phase,
                'goal_number': str(report.number),
                'goal_stamp': '' if report.request is None else report.request.stamp,
                'goal': '' if report.request is None else report.request.source,
            }
            self.runner.on_report(said, self.rig.time)
        self._heard = len(self.rig.reports)

    def step(self) -> None:
        self.rig.tick()
        self.hear()
        order = self.runner.due(self.rig.time, self.joints)
        if order is not None:
            stamp = f'{self.rig.time:.9f}'
            self.orders.append((self.runner.point, order))
            self.runner.sent(order, stamp, self.rig.time)
            self.rig.controller.submit(Asked(self.aim(order), stamp=stamp))
            self.hear()

    def aim(self, order: Order) -> object:
        if order.joints is not None:
            return order.joints
        goal = self.rig.model.first.pose_goal(order.T_base_tip)
        return ToolPath(np.array([goal.position]), np.array([goal.direction]))

    def until(self, condition: object) -> None:
        for _ in range(100_000):
            if condition():
                return
            self.step()
        raise AssertionError(self.runner.sentence)

    def run(self) -> Runner:
        self.until(lambda: not self.runner.active)
        return self.runner

    def ask(self, **joints: float) -> None:
        """A goal of somebody else."""
        self.rig.controller.submit(Asked(joints, source='goal_joints', stamp='7.5'))


@pytest.mark.slow
def test_it_asks_for_each_motion_in_turn(model: ArmModel, checked: CheckReport) -> None:
    table = Table(model, Runner(checked, loops=3))
    runner = table.run()
    assert (runner.state, runner.passes, runner.index) == (State.FINISHED, 3, 0), runner.sentence
    one_pass = ['ready', 'pick', 'pick', 'place']
    assert [name for name, _ in table.orders] == 3 * one_pass
    assert [order.speed for _, order in table.orders[:4]] == [1.0, 0.4, 0.4, 1.0]
    assert table.orders[2][1].joints == {'finger': 0.03}
    assert table.rig.position('finger') == 0.03
    assert table.joints == pytest.approx(checked.moves[-1].end, abs=1e-6)


@pytest.mark.slow
def test_it_waits_at_a_point(model: ArmModel, checked: CheckReport) -> None:
    table = Table(model, Runner(checked))
    table.until(lambda: any('arrived' in report.phase for report in table.rig.reports))
    arrived = table.rig.time
    table.until(lambda: len(table.orders) == 2)
    assert 0.5 <= table.rig.time - arrived < 0.53


@pytest.mark.slow
def test_a_pause_ends_at_the_next_point_and_asks_for_nothing(model: ArmModel, checked: CheckReport) -> None:
    table = Table(model, Runner(checked, loops=0))
    table.until(lambda: len(table.orders) == 2)  # to pick
    table.runner.pause()
    assert table.runner.state is State.PAUSING
    runner = table.run()
    assert (runner.state, runner.point) == (State.PAUSED, 'place')
    assert len(table.orders) == 3  # the gripper belongs to the point
    before = table.joints
    for _ in range(500):
        table.step()
    assert table.joints == before
    assert len(table.orders) == 3


@pytest.mark.slow
def test_single_steps_move_to_one_point(model: ArmModel, checked: CheckReport) -> None:
    runner = Table(model, Runner(checked, single=True)).run()
    assert (runner.state, runner.point, runner.passes) == (State.PAUSED, 'pick', 0)


@pytest.mark.slow
def test_the_same_joint_goal_waits_until_it_is_not_a_repeat(model: ArmModel) -> None:
    one = check(Preview(model, SETTINGS), Program((Point('only', joints=AT),)), AT, again=True)
    table = Table(model, Runner(one, loops=2))
    table.rig.go(**AT)
    table.rig.settle()
    table._heard = len(table.rig.reports)
    times = []
    while table.runner.active:
        count = len(table.orders)
        table.step()
        times += [table.rig.time] * (len(table.orders) - count)
    assert table.runner.state is State.FINISHED, table.runner.sentence
    assert times[1] - times[0] >= REPEAT


@pytest.mark.parametrize('number', ['1.5', 'x', '', '9' * 5000])
def test_a_report_with_a_number_that_is_none_is_one_on_the_arm(number: str) -> None:
    report = {'goal_number': number, 'state': 'stopped', 'message': 'stopped by somebody'}
    assert disturbance(report) == 'stopped by somebody'


@pytest.mark.slow
@pytest.mark.parametrize('moving', [True, False], ids=['on the way', 'while it waits'])
@pytest.mark.parametrize(
    ('what', 'said'),
    [
        ('stop', 'stopped'),
        ('stop and resume', 'stopped'),
        ('fault', 'the bus is silent'),
        ('goal', 'another goal moves the arm: goal_joints'),
        ('end', 'told to'),
    ],
)
def test_whatever_else_stops_or_moves_the_arm_ends_the_run(
    model: ArmModel, checked: CheckReport, what: str, said: str, moving: bool
) -> None:
    table = Table(model, Runner(checked, loops=0))
    table.until(lambda: len(table.orders) == (2 if moving else 1))
    if not moving:
        table.until(lambda: table.rig.reports[-1].phase == 'arrived')
    for _ in range(10):
        table.step()
    count = len(table.orders)
    controller = table.rig.controller
    if what.startswith('stop'):
        controller.stop()
        if what != 'stop':
            table.rig.settle()
            table.rig.tick(2)
            controller.resume()
    elif what == 'fault':
        controller.fault('the bus is silent')
    elif what == 'goal':
        table.ask(yaw=-0.5)
    else:
        table.runner.end('told to')
    for _ in range(800):
        table.step()
    assert table.runner.state is State.ENDED
    assert said in table.runner.sentence
    assert len(table.orders) == count
    assert not table.runner.stops


@pytest.mark.slow
def test_a_rejection_ends_the_run_with_the_name_of_the_point(model: ArmModel, checked: CheckReport) -> None:
    table = Table(model, Runner(checked))
    table.until(lambda: len(table.orders) == 1 and table.rig.reports[-1].phase == 'arrived')
    table.rig.controller.stop()  # at rest; the report is not heard before the next goal
    table._heard = len(table.rig.reports)
    table.run()
    assert table.runner.sentence.startswith('"pick": test rejected: stopped')


def test_an_arm_that_was_moved_ends_the_run(model: ArmModel, checked: CheckReport) -> None:
    table = Table(model, Runner(checked))
    table.rig.go(yaw=0.2)  # before it begins, and not heard
    table.rig.settle()
    table._heard = len(table.rig.reports)
    table.run()
    assert table.runner.state is State.ENDED
    assert 'joint "yaw" is 11.5° away from the last point' in table.runner.sentence
    assert not table.orders


def test_joints_that_are_unknown_end_the_run(checked: CheckReport) -> None:
    runner = Runner(checked)
    assert runner.due(0.0, {}) is None
    assert runner.due(LATE, {}) is None
    assert runner.active
    assert runner.due(LATE + 0.1, {}) is None
    assert runner.state is State.ENDED


def test_positions_may_come_later_than_the_arrival(checked: CheckReport) -> None:
    runner = Runner(checked)
    before = {**ZERO, 'yaw': 0.3}
    assert runner.due(0.0, before) is None
    assert runner.due(LATE - 0.1, before) is None
    assert runner.due(LATE, ZERO) is not None
    assert runner.due(LATE + 0.1, before) is None
    assert runner.active


def test_without_an_answer_the_run_ends_and_stops(checked: CheckReport) -> None:
    runner = Runner(checked)
    order = runner.due(0.0, ZERO)
    assert order is not None
    runner.sent(order, '1.0', 0.0)
    assert runner.due(PATIENCE, ZERO) is None
    assert runner.active
    assert runner.due(PATIENCE + 0.1, ZERO) is None
    assert runner.state is State.ENDED
    assert runner.stops
    assert 'has not responded' in runner.sentence


def test_reports_on_older_goals_do_not_matter(checked: CheckReport) -> None:
    runner = Runner(checked)
    for state, status in (('arrived', 'solved'), ('rejected', 'rejected'), ('stopped', 'solved')):
        runner.on_report({'state': state, 'status': status, 'goal_number': '3', 'goal_stamp': '0.5'}, 0.0)
    assert runner.active


@pytest.mark.parametrize('state', ['stopped', 'faulted', 'hand-guided', 'waiting', 'inactive', 'ready'])
def test_an_arm_that_takes_no_goals_ends_the_run(checked: CheckReport, state: str) -> None:
    runner = Runner(checked)
    runner.on_report({'state': state, 'message': f'the arm is {state}'}, 0.0)
    assert (runner.state, runner.sentence) == (State.ENDED, f'the arm is {state}')


def test_its_own_report_that_comes_again_is_no_goal_of_somebody_else(checked: CheckReport) -> None:
    runner = Runner(checked)
    order = runner.due(0.0, ZERO)
    assert order is not None
    runner.sent(order, '1.0', 0.0)
    own = {'status': 'solved', 'goal_number': '5', 'goal_stamp': '1.0', 'goal': 'test'}
    for state in ('moving', 'arrived', 'moving', 'arrived'):
        runner.on_report({**own, 'state': state}, 0.1)
    assert runner.active
    runner.on_report({**own, 'state': 'moving', 'goal_number': '6', 'goal_stamp': '2.0'}, 0.2)
    assert runner.state is State.ENDED


@pytest.mark.slow
def test_a_program_that_has_not_passed_does_not_run(model: ArmModel) -> None:
    failed = check(Preview(model, SETTINGS), Program((Point('far', position=(3.0, 0.0, 0.0)),)), ZERO)
    with pytest.raises(InputError, match='has not passed'):
        Runner(failed)
    once = check(Preview(model, SETTINGS), Program((Point('p', joints=AT),)), ZERO)
    with pytest.raises(InputError, match='one run only'):
        Runner(once, loops=2)
