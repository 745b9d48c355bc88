"""Controllers of one robot: the arms move at the same time and never touch each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from control_harness import Asked, Kept

from ik_node import Goal
from ik_node.control.controller import ArmController
from ik_node.control.report import Report
from ik_node.control.robot_models import build_models
from ik_node.control.robot_settings import RobotSettings
from ik_node.control.settings import ArmSettings
from ik_node.control.shared_robot import SharedRobot
from ik_node.control.states import State
from ik_node.control.tree_model import TreeModel
from ik_node.errors import InputError
from ik_node.model.description import load_description
from ik_node.ros.share import share_path

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
        robot = SharedRobot()
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

    def ask(self, tool: str, wanted: object) -> Report:
        """Submit a goal of a tool, and return the report on it."""
        request = Asked(wanted, tool=tool, received=self.time)
        first = next(
            first
            for first, model in self.models.items()
            if first == tool or (isinstance(model, TreeModel) and tool in model.arms)
        )
        self.controllers[first].submit(request)
        return next(r for r in self.reports if r.request is request)


def test_arms_that_move_at_once_do_not_touch_each_other():
    pytest.importorskip('coal')
    arms = Arms('two_arms')
    rng = np.random.default_rng(1)
    answered = {'moving': 0, 'refused': 0}
    least, faults = np.inf, 0
    for _ in range(30):
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
    assert answered['moving'] > 15
    assert answered['refused'] > 3
    assert faults <= 3  # an arm that was in the way has stopped there


def test_a_goal_of_one_tool_leaves_the_other_where_it_was_sent():
    arms = Arms('torso_arms', self_collision='false')
    (model,) = arms.models.values()
    assert isinstance(model, TreeModel)
    rng = np.random.default_rng(2)
    for _ in range(10):
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
    bent = (0.3, 0.6, -0.9, 0.3, 0.0)  # far from singular configurations
    arms.ask('left', {f'{tool}_joint{i}': q for tool in OWN for i, q in enumerate(bent, 1)})
    arms.tick(400)
    start = {name: point for name, (point, _) in model.tree.fk(arms.values()[model.index]).items()}
    late = []

    def goals_at(time: float) -> dict[str, np.ndarray]:
        turn = 2.0 * time
        shift = 0.05 * np.array([np.cos(turn) - 1.0, np.sin(turn), np.sin(turn) - 0.02])
        return {name: point + shift for name, point in start.items()}

    for name, goal in goals_at(0.0).items():
        arms.ask(name, Goal(goal))
    arms.tick(300)
    for k in range(500):
        now = arms.time
        if k % 2 == 0:
            for name, goal in goals_at(now).items():
                arms.ask(name, Goal(goal))
        arms.tick(1)
        if k > 250:
            places = model.tree.fk(arms.values()[model.index])
            late += [np.linalg.norm(places[name][0] - goal) for name, goal in goals_at(arms.time).items()]
    assert np.median(late) < 0.003  # at 0.1 m/s; goals that are places to stop at are 8 mm behind


def test_a_joint_has_one_arm_that_commands_it():
    arms = Arms('two_arms', self_collision='false')
    assert 'commanded by another tool' in arms.ask('left', {'right_joint1': 0.5}).message
    report = arms.ask('left', {'left_joint1': 0.5, 'right_joint1': 0.5})
    assert report.status == 'refused'
    arms.tick(100)
    assert arms.values()[0] == 0.0


def test_controllers_may_not_share_joints():
    settings = RobotSettings(
        GENERAL, {**OWN, 'left': {**OWN['left'], 'controller_joints': ('right_joint1',)}}
    )
    text = load_description(share_path('urdf', 'two_arms.urdf.xacro'))
    with pytest.raises(InputError, match='controller_joints'):
        build_models(text, settings, {})
