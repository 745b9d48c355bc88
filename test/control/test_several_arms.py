# SPDX-License-Identifier: Apache-2.0
"""Controllers of one robot: the arms move at the same time and never touch each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from control_harness import AFTER, Asked, Kept

from ik_node import Goal
from ik_node.control.arm_motion import JointArbiter
from ik_node.control.controller import ArmController
from ik_node.control.models import build_models, check_models
from ik_node.control.requests import Report
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.control.states import State
from ik_node.control.teleop import TeleopController
from ik_node.errors import InputError
from ik_node.model.urdf.description import load_description
from ik_node.share import share_path

pytestmark = pytest.mark.slow

PERIOD = 0.01
GENERAL = ArmSettings(tools=('left', 'right'), speed_scaling=1.0)
OWN = {tool: {'tip_link': f'{tool}_tool0'} for tool in GENERAL.tools}


def models_of(name: str, **general: object) -> tuple[RobotSettings, dict]:
    settings = RobotSettings(replace(GENERAL, **general), OWN)
    text = load_description(share_path('urdf', f'{name}.urdf.xacro'))
    return settings, build_models(text, settings, {})


class Arms:
    """The controllers of one robot and their clock."""

    def __init__(self, name: str, **general: object) -> None:
        self.settings, self.models = models_of(name, **general)
        self.reports: list[Report] = []
        self.outputs = {first: Kept() for first in self.models}
        robot = JointArbiter()
        self.controllers = {
            first: ArmController(self.reports.append, [self.outputs[first]], robot) for first in self.models
        }
        self.time = 0.0
        for first, controller in self.controllers.items():
            controller.activate()
            assert controller.configure(self.models[first], self.settings.arms[first])
        self.tick(2)

    def tick(self, count: int) -> None:
        for _ in range(count):
            self.time += PERIOD
            for controller in self.controllers.values():
                controller.tick(self.time)

    def values(self) -> np.ndarray:
        """The variables of the robot in the last samples."""
        joints = next(iter(self.models.values())).joints
        named: dict[str, float] = {}
        for output in self.outputs.values():
            last = output.samples[-1]
            assert not named.keys() & set(last.names)  # every joint is in one sample
            named |= dict(zip(last.names, last.positions.tolist(), strict=True))
        assert set(named) == set(joints.names)  # and all are
        return joints.filled(named)

    def ask(self, tool: str, wanted: object, stamp: float | None = None) -> Report:
        """Submit a goal of a tool, with a stamp of a moving one, and return the report on it."""
        request = Asked(wanted, tool=tool, arrival=AFTER + self.time, received=self.time, goal_time=stamp)
        first = next(first for first, model in self.models.items() if tool in model.tools)
        self.controllers[first].submit(request)
        return next(r for r in self.reports if r.request is request)


def test_arms_that_move_at_once_do_not_touch_each_other():
    pytest.importorskip('coal')
    arms = Arms('two_arms')
    rng = np.random.default_rng(1)
    answered = {'moving': 0, 'rejected': 0}
    least, faults = np.inf, 0
    for _ in range(12):
        for tool in rng.permutation(['left', 'right']).tolist():
            # In front of the bench, within the reach of both.
            place = rng.uniform((0.1, -0.25, 0.05), (0.5, 0.25, 0.5))
            answered[arms.ask(tool, Goal(place)).phase] += 1
            if rng.random() < 0.1:
                arms.controllers[tool].stop()
            for _ in range(int(rng.integers(1, 60))):
                arms.tick(1)
                least = min(least, arms.models['left'].collision.distance(arms.values())[0])
            for controller in arms.controllers.values():
                faults += controller.state is State.FAULTED
                if controller.state in (State.STOPPED, State.FAULTED):
                    controller.resume()
    assert least > 0.0
    assert answered['moving'] > 6
    assert answered['rejected'] > 0
    assert faults == 0  # an arm brakes when another one comes into its way


def test_an_arm_is_teleoperated_beside_another_one():
    arms = Arms('two_arms', self_collision='false')
    teleop, before = TeleopController(arms.controllers['right']), arms.values()
    for _ in range(20):
        teleop.jog(teleop.ready(), np.full(5, 0.2), arms.time, arms.settings.arms['right'])
        arms.tick(1)
    names, moved = arms.models['right'].joints.variables, np.abs(arms.values() - before) > 1e-3
    assert {name for name, moves in zip(names, moved, strict=True) if moves} == {f'right_joint{k}' for k in range(1, 6)}


def test_a_goal_of_one_tool_leaves_the_other_where_it_was_sent():
    arms = Arms('torso_arms', self_collision='false')
    (model,) = arms.models.values()
    rng = np.random.default_rng(2)
    for _ in range(4):
        goals = {name: Goal(*place) for name, place in model.tree.fk(model.tree.sample(rng, 1)[0]).items()}
        reports = []
        for tool, goal in goals.items():
            reports.append(arms.ask(tool, goal))  # the first may need a torso that the second has to allow
            arms.tick(int(rng.integers(1, 50)))
        assert reports[1].status == 'solved'
        arms.tick(600)
        ended = [r for r in arms.reports if r.phase == 'arrived'][-2:]
        assert [(r.request.tool, r.status) for r in ended] == [('left', 'solved'), ('right', 'solved')]
        found = model.tree.fk(arms.values()[model.index])
        for tool, goal in goals.items():
            assert np.linalg.norm(found[tool][0] - goal.position) < 2e-4
            assert found[tool][1] @ goal.direction > np.cos(2e-3)
    arrived = [r.request.tool for r in arms.reports if r.phase == 'arrived']
    assert {'left', 'right'} <= set(arrived)


def test_streams_of_goals_for_two_tools_on_one_torso_are_followed():
    arms = Arms('torso_arms', self_collision='false')
    (model,) = arms.models.values()
    bent = (0.3, 0.5, 0.9, 0.6, 0.4)  # far from singular configurations
    arms.ask('left', {f'{tool}_joint{i}': q for tool in OWN for i, q in enumerate(bent, 1)})
    arms.tick(400)
    start = {name: point for name, (point, _) in model.tree.fk(arms.values()[model.index]).items()}
    late = []

    began, rng = arms.time, np.random.default_rng(3)

    def goals_at(time: float) -> dict[str, np.ndarray]:
        turn = 2.0 * (time - began)
        shift = 0.05 * np.array([np.cos(turn) - 1.0, np.sin(turn), np.sin(turn)])
        return {name: point + shift for name, point in start.items()}

    for k in range(300):
        for tool, due in (('left', 0), ('right', 1)):  # in turns
            if k % 2 == due:
                sent = arms.time - rng.uniform(0.0, 0.003)
                arms.ask(tool, Goal(goals_at(sent)[tool]), sent)
        arms.tick(1)
        if k > 150:
            places = model.tree.fk(arms.values()[model.index])
            late += [np.linalg.norm(places[name][0] - goal) for name, goal in goals_at(arms.time).items()]
    assert np.median(late) < 0.001  # at 0.1 m/s; goals that are places to stop at are 8 mm behind


def test_a_joint_has_one_arm_that_commands_it():
    arms = Arms('two_arms', self_collision='false')
    assert 'commanded by another tool' in arms.ask('left', {'right_joint1': 0.5}).message
    report = arms.ask('left', {'left_joint1': 0.5, 'right_joint1': 0.5})
    assert report.status == 'rejected'
    arms.tick(100)
    assert arms.values()[0] == 0.0


def test_controllers_may_not_share_joints():
    settings = RobotSettings(GENERAL, {**OWN, 'left': {**OWN['left'], 'controller_joints': ('right_joint1',)}})
    text = load_description(share_path('urdf', 'two_arms.urdf.xacro'))
    with pytest.raises(InputError, match='controller_joints'):
        build_models(text, settings, {})


def named(prefix: str, values: tuple[float, ...]) -> dict[str, float]:
    return dict(zip([f'{prefix}_joint{i}' for i in range(1, 6)], values, strict=True))


def test_a_way_is_checked_until_the_other_arm_has_arrived():
    pytest.importorskip('coal')
    arms = Arms('two_arms')
    begin, end = (-1.6067, -0.4013, -1.0656, 0.6698, 0.6917), (1.2, -0.4013, -1.0656, 0.6698, 0.6917)
    beside, across = (-1.0738, 0.9317, -1.269, -1.5916, -0.7229), (-0.7356, 0.7091, -1.1447, -1.3128, -0.4774)
    for tool, place in (('right', begin), ('left', beside)):
        assert arms.ask(tool, named(tool, place)).phase == 'moving'
        arms.tick(500)
    assert arms.ask('right', named('right', end)).phase == 'moving'
    arms.tick(3)
    # The left arm would be there before the right one comes by.
    report = arms.ask('left', named('left', across))
    assert report.status == 'rejected'
    assert 'link "left_' in report.message
    arms.tick(500)
    assert arms.ask('left', named('left', across)).phase == 'moving'  # the other one has passed


def test_a_faulted_arm_is_where_it_is_measured():
    arms = Arms('two_arms', self_collision='false')
    joints = arms.models['left'].joints
    places = dict.fromkeys(joints.variables, 0.0)
    for controller in arms.controllers.values():
        controller.expect_measured(True)
    for _ in range(20):
        for controller in arms.controllers.values():
            controller.on_measured(places, arms.time)
        arms.tick(1)
    assert arms.controllers['right'].state is State.HOLDING
    places['right_joint2'] = 1.0
    for _ in range(50):
        for controller in arms.controllers.values():
            controller.on_measured(places, arms.time)
        arms.tick(1)
    assert arms.controllers['right'].state is State.FAULTED
    values = arms.controllers['left'].snapshot('left').values
    assert values[joints.variables.index('right_joint2')] == 1.0


def test_no_tool_reports_an_arrival_that_another_tool_has_prevented():
    arms = Arms('torso_arms', self_collision='false')
    (model,) = arms.models.values()
    place = model.tree.fk(np.full(model.tree.n, 0.3))['right'][0]
    arms.ask('right', Goal(place))
    arms.tick(5)
    arms.ask('left', {'torso_yaw': -1.0})
    arms.tick(500)
    assert [(r.request.tool, r.phase) for r in arms.reports if r.request][-2:] == [
        ('right', 'stopped'),
        ('left', 'arrived'),
    ]
    arms.ask('right', {'right_joint1': 1.0, 'right_joint2': 0.5})
    arms.tick(5)
    q = arms.values()[model.index]
    q[model.tools['left'].own] += 0.1  # with the torso where it is
    assert arms.ask('left', Goal(*model.tree.fk(q)['left'])).status == 'solved'
    arms.tick(500)
    assert {r.request.tool for r in arms.reports[-2:]} == {'left', 'right'}
    assert all(r.phase == 'arrived' for r in arms.reports[-2:])
    values = dict(zip(model.joint_names, arms.values()[model.index].tolist(), strict=True))
    assert values['right_joint1'] == pytest.approx(1.0)
    assert values['right_joint2'] == pytest.approx(0.5)


def test_settings_that_tools_on_one_torso_cannot_have_are_rejected_before_they_are_used():
    settings, models = models_of('torso_arms', self_collision='false')
    text = next(iter(models.values())).text
    for changes, says in (
        ({'solver': 'ccd'}, 'solver'),
        ({'direction_weight': 0.1}, 'direction_weight'),
        ({'left.base_link': 'torso'}, 'restart ik_node'),
    ):
        own = {tool: {**OWN[tool], 'base_link': ''} for tool in OWN}
        changed = RobotSettings(settings.general, own).changed(changes)
        with pytest.raises(InputError, match=says):
            check_models(text, changed, models)
    other = load_description(share_path('urdf', 'two_arms.urdf.xacro'))
    with pytest.raises(InputError, match='restart ik_node'):
        check_models(other, settings, models)
