# SPDX-License-Identifier: Apache-2.0
"""The tool: its speed, its turn rate and the box that it may not leave."""

from dataclasses import replace

import numpy as np
import pytest
from control_harness import PERIOD, SETTINGS, Rig
from small_arm import arm_urdf

from ik_node import Goal
from ik_node.control.checks.motion_check import places_of
from ik_node.control.checks.tool_gate import ToolGate
from ik_node.control.motion.motion import JointMotion
from ik_node.control.motion.plans import Planner
from ik_node.control.motion.tool_motion import tool_motion
from ik_node.control.motion.tool_pace import ToolPace
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.workspace import Workspace
from ik_node.control.state.states import State
from ik_node.errors import InputError
from ik_node.model.arm import Arm

BOX = (-0.3, -0.5, 0.0, 0.6, 0.5, 0.6)
ARMS = ['seed_arm', 'so101_like', 'prismatic_arm']


def rig_with(model: ArmModel, **values: object) -> Rig:
    rig = Rig(model)
    rig.settings = replace(SETTINGS, **values)
    rig.controller.set_limits(rig.settings)
    return rig


def tool_of(rig: Rig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tool points (k, 3), speeds (k,) and turn rates (k,) of the samples of the arm."""
    rows = [
        sample.names.index(name) for sample in rig.output.samples[:1] for name in rig.model.arm.joint_names
    ]
    q = np.array([sample.positions[rows] for sample in rig.output.samples])
    qd = np.array([sample.velocities[rows] for sample in rig.output.samples])
    motion = tool_motion(rig.model.arm, q, qd)
    return motion.point, motion.speed, motion.turn_rate


@pytest.mark.parametrize('name', ARMS)
def test_the_motion_of_the_tool_is_that_of_the_jacobian(name):
    arm = Arm.from_file(f'urdf/{name}.urdf.xacro')
    rng = np.random.default_rng(1)
    q, qd = arm.sample(rng, 50), rng.normal(size=(50, arm.n))
    motion = tool_motion(arm, q, qd)
    for k in range(50):
        assert motion.point[k] == pytest.approx(arm.fk(q[k])[0], abs=1e-12)
        assert motion.speed[k] == pytest.approx(np.linalg.norm(arm.jacobian(q[k])[:3] @ qd[k]))
        assert motion.most_speed[k] >= motion.speed[k] - 1e-12
        assert motion.most_turn_rate[k] >= motion.turn_rate[k] - 1e-12


@pytest.mark.parametrize(
    ('name', 'speed', 'rate'),
    [('seed_arm', 0.1, np.inf), ('so101_like', np.inf, 0.4), ('prismatic_arm', 0.25, 1.0)],
)
def test_no_sample_exceeds_the_tool_limits_whatever_is_asked(name, speed, rate):
    arm = Arm.from_file(f'urdf/{name}.urdf.xacro')
    rng = np.random.default_rng(0)
    low, high = np.maximum(arm.lower, -3.0), np.minimum(arm.upper, 3.0)
    motion = JointMotion(arm.lower, arm.upper, rng.uniform(low, high))
    kinds = [np.where(arm.prismatic, *pair) for pair in ((1.0, 5.0), (10.0, 50.0))]
    motion.set_limits(arm.velocity, *kinds)
    motion.set_pace(ToolPace([(arm, np.arange(arm.n))], speed, rate))
    gate = ToolGate(arm)
    gate.set_limits(Workspace.of(arm, (0.0,) * 6), speed, rate)
    moved = 0
    for _ in range(600):
        if not motion.moving or rng.random() < 0.02:
            motion.go_to(rng.uniform(low, high))
        elif rng.random() < 0.02:
            motion.stop()
        before = motion.position
        dt = rng.uniform(0.002, 0.015)
        q, qd = motion.step(dt)
        assert gate.reject(q, motion.moving, dt) is None
        now = tool_motion(arm, q[None], qd[None])
        assert now.speed[0] <= speed
        assert now.turn_rate[0] <= rate
        moved += bool((q != before).any())
    assert moved > 540


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


# The last check


def gate_of(model: ArmModel, corners=(0.0,) * 6, speed=np.inf, rate=np.inf) -> ToolGate:
    gate = ToolGate(model.arm)
    gate.set_limits(Workspace.of(model.arm, corners), speed, rate)
    return gate


def test_a_sample_in_which_the_tool_is_too_fast_is_rejected(model):
    gate = gate_of(model, speed=0.5, rate=1.0)
    place = np.zeros(5)
    assert gate.reject(place, False, PERIOD) is None
    place[0] = 0.008
    reason = gate.reject(place, True, PERIOD)  # 0.7 m from the axis
    assert reason == 'tool speed 0.559999 m/s, allowed: 0.5'
    place[0], place[3] = 0.0, 0.011  # the roll moves no point of the tool axis
    assert gate.reject(place, True, PERIOD) == 'tool turn rate 1.1 rad/s, allowed: 1'
    place[3] = 0.009
    assert gate.reject(place, True, PERIOD) is None


def test_a_sample_outside_the_workspace_is_rejected(model):
    gate = gate_of(model, BOX)
    assert gate.reject(np.array([0.8, 0.5, 1.0, 0.0, 0.0]), False, PERIOD) is None
    reason = gate.reject(np.zeros(5), True, PERIOD)
    assert reason == 'the tool point leaves the workspace: x 0.7, allowed: -0.3 to 0.6'


def test_what_the_gate_rejects_is_not_published_and_faults_the_arm(model):
    rig = rig_with(model)
    rig.go(yaw=1.0)
    rig.tick(30)
    rig.controller._joints._gates._tools[0][0]._bounds = (0.01, np.inf)
    assert rig.tick() is None
    assert rig.state is State.FAULTED
    assert 'a setpoint was not published: tool speed' in rig.reports[-1].message


# The workspace


def test_by_default_the_workspace_is_the_reach_and_rejects_nothing(model):
    rig = rig_with(model)
    said = Workspace.of(model.arm, (0.0,) * 6).describe()
    assert 'reach of the arm' in said
    assert 'x -0.700 to 0.700' in said
    assert rig.ask(Goal((3.0, 0.0, 0.0))).phase == 'moving'  # to the closest configuration
    rng = np.random.default_rng(2)
    box = Workspace.of(model.arm, (0.0,) * 6)
    assert all(box.outside(model.arm.fk(q)[0]) is None for q in model.arm.sample(rng, 500))


def test_goals_outside_the_workspace_are_rejected(model):
    rig = rig_with(model, workspace=BOX)
    rig.controller.set_limits(rig.settings)
    report = rig.ask(Goal((0.4, 0.0, -0.1)))
    assert report.message == 'test rejected: the goal is outside the workspace: z -0.1, allowed: 0 to 0.6'
    report = rig.go(shoulder=1.2)
    assert 'the tool point would leave the workspace after' in report.message
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


def test_a_workspace_without_volume_is_rejected():
    with pytest.raises(InputError, match='least x, y, z and then the largest'):
        ArmSettings(workspace=(0.0, 0.0, 0.0, 1.0, 1.0, -1.0))


def test_a_continuous_arm_has_a_workspace_too():
    arm = Arm.from_urdf(arm_urdf(yaw='continuous'), 'tool0', base_link='base_link')
    assert np.isfinite(Workspace.of(arm, (0.0,) * 6).high).all()


def test_an_arm_too_fast_for_new_tool_limits_brakes_without_searching_for_plans(monkeypatch):
    arm = Arm.from_file('urdf/seed_arm.urdf.xacro')
    motion = JointMotion(arm.lower, arm.upper, arm.middle)
    motion.set_limits(np.full(5, 2.0), np.full(5, 5.0), np.full(5, 50.0))
    motion.go_to(arm.middle + 0.9)
    for _ in range(45):
        motion.step(PERIOD)
    pace = ToolPace([(arm, np.arange(5))], 0.05, np.inf)
    motion.set_limits(np.full(5, 2.0), np.full(5, 5.0), np.full(5, 5.0))
    motion.set_pace(pace)
    plans, planned = [], Planner.planned
    monkeypatch.setattr(Planner, 'planned', lambda *args: plans.append(1) or planned(*args))
    steps = 0
    while pace.excess(motion.position[None], motion.velocity[None]) > 1.0:
        motion.step(PERIOD)
        steps += 1
    assert steps > 20
    assert len(plans) <= 3 * steps
    while motion.moving:
        motion.step(PERIOD)
        assert pace.excess(motion.position[None], motion.velocity[None]) < 1.0
    assert motion.position == pytest.approx(arm.middle + 0.9)


def test_a_motion_is_known_ahead_as_it_will_be_stepped():
    arm = Arm.from_file('urdf/seed_arm.urdf.xacro')
    motion = JointMotion(arm.lower, arm.upper, arm.middle)
    motion.go_to(arm.middle + 0.5)
    for _ in range(3):
        ahead, stepped = places_of(motion.twin()), [motion.position]
        twin = motion.twin()
        while twin.moving:
            stepped.append(twin.step(PERIOD)[0])
        assert ahead == pytest.approx(np.array(stepped), abs=1e-9)
        for _ in range(7):
            motion.step(PERIOD)
