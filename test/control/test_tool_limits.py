# SPDX-License-Identifier: Apache-2.0
"""What no sample and no motion may leave: limits of the tool, the workspace, the cone of a ball joint."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from control_harness import PERIOD, SETTINGS, Rig, arm_model, positions, reject
from small_arm import arm_urdf

from ik_node import Goal
from ik_node.control.checks import CONE_SLACK, BallGate, MotionCheck, States, ToolGate
from ik_node.control.models import ArmModel
from ik_node.control.motion import JointMotion, positions_to_rest, tool_motion
from ik_node.control.settings import ArmSettings, Workspace
from ik_node.control.states import State
from ik_node.control.trajectory import JointTrajectory
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.ball import swing_angle
from ik_node.model.urdf.reader import load_description

BOX = (-0.3, -0.5, 0.0, 0.6, 0.5, 0.6)
ARMS = ['seed_arm', 'so101_like', 'prismatic_arm']


def rig_with(model: ArmModel, **values: object) -> Rig:
    rig = Rig(model)
    rig.settings = replace(SETTINGS, **values)
    rig.controller.set_limits(rig.settings)
    return rig


def tool_of(rig: Rig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tool points (k, 3), speeds (k,) and turn rates (k,) of the samples of the arm."""
    rows = [sample.names.index(name) for sample in rig.output.samples[:1] for name in rig.model.first.arm.joint_names]
    q = np.array([sample.positions[rows] for sample in rig.output.samples])
    qd = np.array([sample.velocities[rows] for sample in rig.output.samples])
    motion = tool_motion(rig.model.first.arm, q, qd)
    return motion.point, motion.speed, motion.turn_rate


@pytest.mark.slow
@pytest.mark.parametrize('name', ARMS)
def test_the_motion_of_the_tool_is_that_of_the_jacobian(name):
    arm = Arm.from_file(f'urdf/{name}.urdf.xacro')
    rng = np.random.default_rng(1)
    q, qd = arm.sample(rng, 50), rng.normal(size=(50, arm.n))
    motion = tool_motion(arm, q, qd)
    for k in range(50):
        assert motion.point[k] == pytest.approx(arm.fk(q[k])[0], abs=1e-12)
        assert motion.speed[k] == pytest.approx(np.linalg.norm(arm.jacobian(q[k])[:3] @ qd[k]))
        assert motion.speed_bound[k] >= motion.speed[k] - 1e-12
        assert motion.turn_rate_bound[k] >= motion.turn_rate[k] - 1e-12


@pytest.mark.slow
def test_a_move_uses_most_of_the_speed_that_the_tool_may_have(model):
    rig = rig_with(model, max_tool_speed=0.1)
    rig.go(yaw=1.5)
    rig.settle()
    speed = tool_of(rig)[1]
    assert 0.095 < speed.max() <= 0.1
    assert rig.position('yaw') == pytest.approx(1.5)
    free = rig_with(model)
    free.go(yaw=1.5)
    free.settle()
    assert tool_of(free)[1].max() > 0.4


@pytest.mark.slow
def test_a_speed_lowered_in_motion_slows_the_arm_down_and_it_arrives(model):
    rig = rig_with(model)
    rig.go(yaw=2.0)
    rig.tick(60)
    rig.controller.set_limits(replace(SETTINGS, max_tool_speed=0.05))
    rig.settle()
    assert rig.state is State.HOLDING
    assert rig.position('yaw') == pytest.approx(2.0)
    speed = tool_of(rig)[1]
    assert speed[-1000:].max() <= 0.05


def gate_of(model: ArmModel, corners=(0.0,) * 6, speed=np.inf, rate=np.inf) -> ToolGate:
    gate = ToolGate(model.first.arm, np.arange(5))
    gate.set_limits(Workspace.of(model.first.arm, corners), speed, rate)
    return gate


def test_a_sample_in_which_the_tool_is_too_fast_is_rejected(model):
    gate = gate_of(model, speed=0.5, rate=1.0)
    place = np.zeros(5)
    assert reject(gate, place, moving=False) is None
    place[0] = 0.008
    reason = reject(gate, place)  # 0.7 m from the axis
    assert 'tool speed 0.559999' in reason
    place[0], place[3] = 0.0, 0.011  # the roll moves no point of the tool axis
    assert 'tool turn rate 1.1' in reject(gate, place)
    place[3] = 0.009
    assert reject(gate, place) is None


def test_a_sample_outside_the_workspace_is_rejected(model):
    gate = gate_of(model, BOX)
    assert reject(gate, [0.8, 0.5, 1.0, 0.0, 0.0], moving=False) is None
    reason = reject(gate, np.zeros(5))
    assert 'x 0.7, allowed: -0.3 to 0.6' in reason


STATES = {
    'setpoint': lambda _, outside: States.setpoint(PERIOD, outside, 0.0 * outside, moving=True),
    'trajectory': lambda inside, outside: along(inside, outside, 'rates'),
    'planned motion': lambda inside, outside: along(inside, outside),
    'configuration': lambda _, outside: States.configuration(outside),
}


def along(begin: np.ndarray, end: np.ndarray, rates: str = '') -> States:
    """A straight motion in 50 states; as a trajectory with its rates, which begins when it is joined."""
    times, rows = PERIOD * np.arange(50), np.linspace(begin, end, 50)
    if not rates:
        return States(times, rows, start=begin)
    return States(times, rows, np.zeros_like(rows), 0.0, np.zeros_like(rows))


@pytest.mark.parametrize('kind', STATES)
@pytest.mark.parametrize(
    ('inside', 'outside', 'words'),
    [
        ({'yaw': 2.499}, {'yaw': 2.502}, 'joint "yaw": position 2.50'),
        ({'yaw': 0.545}, {'yaw': 0.536}, ' the workspace: x 0.60'),
    ],
)
def test_one_check_judges_setpoints_trajectories_motions_and_configurations(model, kind, inside, outside, words):
    corners = BOX if 'x 0' in words else (0.0,) * 6
    check = MotionCheck(model, replace(SETTINGS, workspace=corners))
    rows = [model.joints.filled(row) for row in (inside, outside)]
    fine = States.setpoint(PERIOD, rows[0], 0.0 * rows[0], moving=False)
    assert check.violation(fine) is None
    check.accept(fine)
    assert check.violation(States.configuration(rows[0])) is None
    found = check.violation(STATES[kind](*rows))
    assert words in found.sentence
    assert (found.state > 10) == (kind in {'trajectory', 'planned motion'})


def test_a_planned_motion_may_come_back_from_outside(model):
    check = MotionCheck(model, replace(SETTINGS, workspace=BOX))
    outside, inside = (model.joints.filled({'yaw': yaw}) for yaw in (0.0, 0.7))
    assert check.violation(along(outside, inside)) is None
    farther = along(model.joints.filled({'yaw': 0.3}), outside)
    assert 'would leave the workspace: x 0.' in check.violation(farther).sentence
    beyond = model.joints.filled({'wrist': 2.6})
    assert check.violation(along(beyond, model.joints.filled({'wrist': 2.4}))) is None
    assert '"wrist": position 2.6' in check.violation(States.configuration(beyond)).sentence


def test_tools_continue_from_where_a_controller_is(model):
    """A setpoint far from the last one, but near the state of the controller, is no jump of the tool."""
    check = MotionCheck(model, replace(SETTINGS, max_tool_speed=0.5))
    check.joints = []  # their gates continue by themselves
    last, there, next_one = (model.joints.filled({'yaw': yaw}) for yaw in (0.0, 0.2, 0.205))
    first, following = (States.setpoint(PERIOD, values, 0.0 * values, moving=True) for values in (last, next_one))
    assert check.violation(first) is None
    check.accept(first)
    assert 'tool speed' in check.violation(following).sentence
    check.continue_from(there[model.index])
    assert check.violation(following) is None


def test_a_trajectory_moves_only_joints_that_are_commanded(model):
    rig = rig_with(model)
    check, names = rig.controller._motion.check, model.joint_names
    start = rig.controller._motion.group.motion.position
    moved = np.zeros((3, 6))
    moved[2, -1] = moved[1, -1] = 0.01  # the last joint is of another controller
    times, rest = np.array([0.0, 0.5, 1.0]), np.zeros((3, 6))
    rows = np.hstack([np.tile(start, (3, 1)), np.zeros((3, 1))])
    still = JointTrajectory((*names, 'finger'), times, rows, rest, rest, 0.0, 0.0)
    values = model.joints.filled(dict(zip(names, start.tolist(), strict=True)))
    assert check.trajectory_violation(still, values) is None
    sentence = check.trajectory_violation(replace(still, positions=rows + moved), values)
    assert 'joint "finger" must not move' in sentence


def test_by_default_the_workspace_is_the_reach_and_rejects_nothing(model):
    rig = rig_with(model)
    said = Workspace.of(model.first.arm, (0.0,) * 6).describe()
    assert 'x -0.700 to 0.700' in said
    assert rig.ask(Goal((3.0, 0.0, 0.0))).phase == 'moving'  # to the closest configuration
    rng = np.random.default_rng(2)
    box = Workspace.of(model.first.arm, (0.0,) * 6)
    assert all(box.outside(model.first.arm.fk(q)[0]) is None for q in model.first.arm.sample(rng, 500))


def test_goals_outside_the_workspace_are_rejected(model):
    rig = rig_with(model, workspace=BOX)
    rig.controller.set_limits(rig.settings)
    report = rig.ask(Goal((0.4, 0.0, -0.1)))
    assert 'z -0.1, allowed: 0 to 0.6' in report.message
    report = rig.go(shoulder=1.2)
    assert 's after the start of the motion, the tool point would leave the workspace: ' in report.message
    assert rig.state is State.HOLDING


def start_inside(model: ArmModel, **start: float) -> Rig:
    rig = Rig(model, measured=True)
    rig.measure_all(**start)
    rig.tick(3)
    rig.controller.set_limits(replace(SETTINGS, workspace=BOX, measured_timeout=0.0))
    return rig


def test_a_motion_between_two_places_inside_that_passes_outside_is_rejected(model):
    # At yaw 0.7 and -0.7 the tool is inside x < 0.6, between them the stretched arm is not.
    rig = start_inside(model, yaw=0.7, shoulder=0.0)
    report = rig.go(yaw=-0.7)
    assert 'would leave the workspace' in report.message
    assert 'x 0.6' in report.message
    assert rig.go(yaw=0.75).phase == 'moving'


def test_an_arm_that_starts_outside_may_come_back_in_but_not_go_out_again(model):
    rig = start_inside(model, yaw=0.0)
    assert 'x 0.7' not in rig.reports[-1].message
    assert rig.go(yaw=0.75).phase == 'moving'
    rig.settle()
    assert rig.state is State.HOLDING
    assert 'would leave the workspace' in rig.go(yaw=0.0).message


def test_a_workspace_has_a_volume():
    with pytest.raises(InputError, match='workspace'):
        ArmSettings(workspace=(0.0, 0.0, 0.0, 1.0, 1.0, -1.0))
    arm = Arm.from_urdf(arm_urdf(yaw='continuous'), 'tool0', base_link='base_link')
    assert np.isfinite(Workspace.of(arm, (0.0,) * 6).high).all()


@pytest.mark.slow
def test_a_motion_is_known_ahead_as_it_will_be_stepped():
    arm = Arm.from_file('urdf/seed_arm.urdf.xacro')
    motion = JointMotion(arm.lower, arm.upper, arm.middle)
    motion.go_to(arm.middle + 0.5)
    for _ in range(3):
        ahead, stepped = positions_to_rest(motion.twin()), [motion.position]
        twin = motion.twin()
        while twin.moving:
            stepped.append(twin.step(PERIOD)[0])
        assert ahead == pytest.approx(np.array(stepped), abs=1e-9)
        for _ in range(7):
            motion.step(PERIOD)


TEXT = load_description(Path(__file__).resolve().parents[2] / 'urdf' / 'ball_joint_arm.urdf.xacro')
SWING = 1.2
# The twist joint first, so that ball_pitch and ball_roll swing the ball. Each alone may be at 1.2 rad.
ON_EDGE = 0.98 * math.acos(math.sqrt(math.cos(SWING)))  # of both at once


def ball_settings(**changes: object) -> ArmSettings:
    return ArmSettings(tip_link='tool0', self_collision='false', **changes)


class BallRig(Rig):
    """The shipped ball-joint arm."""

    def __init__(self, **changes: object) -> None:
        super().__init__(arm_model(TEXT, ball_settings(**changes)))

    def swing(self) -> float:
        return swing_angle(self.position('ball_pitch'), self.position('ball_roll'))


@pytest.fixture
def ball() -> BallRig:
    ball = BallRig()
    ball.tick(5)
    return ball


@pytest.fixture(scope='module')
def cone_gate() -> BallGate:
    arm = Arm.from_urdf(TEXT)
    (ball,) = arm.balls
    return BallGate([(ball, np.array([arm.joint_names.index(name) for name in ball.joints]))])


def test_a_sample_outside_is_rejected(cone_gate):
    cone_gate.restart()
    assert reject(cone_gate, ([0.0, 1.1, 0.0, 0.0, 0.0])) is None
    assert reject(cone_gate, ([0.0, SWING + 0.9 * CONE_SLACK, 0.0, 0.0, 0.0])) is None
    rejection = reject(cone_gate, ([0.0, 1.0, 1.0, 0.0, 0.0]))
    assert rejection == 'ball joint ball_yaw, ball_pitch, ball_roll: swing 1.27456 rad, allowed: 1.2'


def test_a_ball_that_starts_outside_may_come_back_but_not_move_farther_out(cone_gate):
    cone_gate.restart()
    for place in (1.0, 1.0, 0.97):
        assert reject(cone_gate, ([0.0, 1.0, place, 0.0, 0.0])) is None
    assert reject(cone_gate, ([0.0, 1.0, 1.0, 0.0, 0.0])) is not None


def test_of_a_trajectory_the_first_sample_outside_is_named(cone_gate):
    cone_gate.restart()
    rows = np.zeros((20, 5))
    rows[:, 1] = rows[:, 2] = np.linspace(0.0, 1.1, 20)
    times = 0.01 * np.arange(20)
    k, reason = cone_gate.violation(States(times, rows, 0.0 * rows, 0.0, 0.0 * rows))
    assert swing_angle(*rows[k, 1:3]) > SWING >= swing_angle(*rows[k - 1, 1:3])
    assert 'allowed: 1.2' in reason


def test_a_joint_goal_outside_the_cone_is_rejected(ball):
    report = ball.go(ball_pitch=1.0, ball_roll=1.0)
    assert report.status == 'rejected'
    assert 'swing 1.27456 rad, allowed: 1.2' in report.message
    ball.tick(20)
    assert ball.state is State.HOLDING


@pytest.mark.slow
def test_motions_between_places_inside_stay_inside(ball):
    """Along the edge, with an elbow that needs longer; every third goal is replaced on the way."""
    rng = np.random.default_rng(5)
    (joint,) = ball.model.first.arm.balls
    for k in range(6):
        angle = rng.uniform(0.0, 2.0 * math.pi)
        swing = 1.19 * math.cos(angle), 1.19 * math.sin(angle)
        edge = joint.joint_positions(*swing, 0.0, (0.0, 0.0, 0.0))
        goal = dict(zip(joint.joints, edge, strict=True)) | {'elbow': rng.uniform(-2.0, 2.0)}
        report = ball.go(**goal)
        assert report.status != 'rejected', report
        for tick in range(3000):
            ball.tick()
            assert ball.swing() <= SWING + CONE_SLACK
            if ball.state is not State.MOVING or (k % 3 == 2 and tick == 60):
                break
    ball.settle()
    assert ball.state is State.HOLDING


@pytest.mark.slow
def test_a_goal_replaced_on_the_way_is_not_reached_through_the_outside(ball):
    """The pitch is fast when the roll is asked for: braking it as fast as it can would lead outside."""
    ball.controller.set_limits(ball_settings(max_acceleration=1.5, max_jerk=15.0, speed_scaling=0.7))
    most = 0.0
    for ticks in (110, 130):
        ball.go(ball_pitch=-1.0, ball_roll=0.3)
        ball.settle()
        ball.go(ball_pitch=1.15, ball_roll=0.3)
        ball.tick(ticks)
        ball.go(ball_pitch=0.1, ball_roll=1.15)
        while ball.state is State.MOVING:
            ball.tick()
            most = max(most, ball.swing())
        assert ball.state is State.HOLDING, ball.reports[-1]
        assert ball.position('ball_roll') == pytest.approx(1.15)
    assert 0.95 * SWING < most <= SWING + CONE_SLACK


def test_home_is_put_inside_the_cone():
    model = arm_model(TEXT, ball_settings(home=(0.0, 1.1, 1.1, 0.0, 0.0)))
    assert model.first.arm.ball_excess(model.home) == 0.0


def test_the_gate_stops_an_arm_that_is_led_outside(ball):
    """Whatever makes the samples: here the motion itself is broken."""
    motion = ball.controller._motion.group.motion
    motion.keeps = None
    ball.controller._motion.choose = lambda plan, *_: plan
    assert ball.go(ball_pitch=1.1, ball_roll=1.1).status != 'rejected'
    for _ in range(400):
        sample = ball.tick()
        if sample is not None and 'ball_pitch' in sample.names:
            there = positions(sample)
            assert swing_angle(there['ball_pitch'], there['ball_roll']) <= SWING + CONE_SLACK
    assert ball.state is State.FAULTED
    assert 'swing' in ball.reports[-1].message


def test_margins_of_joints_count_for_the_cone():
    model = arm_model(TEXT, ball_settings(joint_limit_margins=(0.1,)))
    assert model.first.arm.balls[0].swing == pytest.approx(SWING - 0.1)
    assert model.first.arm.upper[1] == pytest.approx(SWING - 0.1)
    assert model.first.arm.ball_excess(np.array([0.0, 0.9, 0.7, 0.0, 0.0])) == 0.0
    assert model.first.arm.ball_excess(np.array([0.0, 0.9, 0.9, 0.0, 0.0])) > 0.05
