# SPDX-License-Identifier: Apache-2.0
"""Limits from a joint_limits.yaml and margins: they hold for the solver, the motion and the gate alike."""

import numpy as np
import pytest
from control_harness import Rig, arm_model
from small_arm import PARAMETERS, arm_urdf

from ik_node import Goal
from ik_node.control.models import ArmModel
from ik_node.control.paths import limits_of_motion
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError

AS_MOVEIT_WRITES_IT = """
default_velocity_scaling_factor: 0.1
default_acceleration_scaling_factor: 0.1
joint_limits:
  yaw:
    has_position_limits: true
    min_position: -0.5
    max_position: 0.5
    has_velocity_limits: true
    max_velocity: 15e-1
    has_acceleration_limits: true
    max_acceleration: 3.0
    has_jerk_limits: true
    max_jerk: 20.0
  elbow:
    has_velocity_limits: false
    max_velocity: 0
    has_acceleration_limits: false
    max_acceleration: 0
  other_finger:
    has_velocity_limits: true
    max_velocity: 0.5
    has_position_limits: true
    min_position: -0.03
    max_position: 0.0
"""


@pytest.fixture
def build(tmp_path):
    """Builds the small arm with the text of a limits file and further settings."""

    def make(text: str = '', yaw: str = 'revolute', **values) -> tuple[ArmModel, ArmSettings]:
        path = tmp_path / 'joint_limits.yaml'
        path.write_text(text)
        file = {'joint_limits_file': str(path)} if text else {}
        chosen = ArmSettings(**PARAMETERS, **file, **values)
        return arm_model(arm_urdf(yaw), chosen), chosen

    return make


def limits_of(model: ArmModel, settings: ArmSettings, name: str) -> list[float]:
    limits = limits_of_motion(model, model.joints.indices([name]), settings)
    every = (limits.lower, limits.upper, limits.velocity, limits.acceleration, limits.jerk)
    return [float(value[0]) for value in every]


def test_a_file_tightens_every_limit_of_the_joints_that_it_names(build):
    model, settings = build(AS_MOVEIT_WRITES_IT)
    assert limits_of(model, settings, 'yaw') == pytest.approx([-0.5, 0.5, 0.75, 3.0, 20.0])
    assert limits_of(model, settings, 'elbow') == pytest.approx([-2.5, 2.5, 1.0, 5.0, 50.0])
    # The finger drives the other one with ratio -1.
    assert limits_of(model, settings, 'finger')[:3] == pytest.approx([0.0, 0.03, 0.25])
    assert not model.first.arm.warnings


def test_the_solver_obeys_the_limits_of_the_file(build):
    wide, _ = build()
    tight, _ = build(AS_MOVEIT_WRITES_IT)
    goal = Goal(*wide.first.arm.fk([1.0, 0.2, 0.3, 0.1, 0.2]))
    assert wide.first.solver.solve(goal).solved
    solution = tight.first.solver.solve(goal)
    assert abs(solution.q[0]) <= 0.5
    assert not solution.solved


def test_samples_keep_the_limits_of_the_file(build):
    model, settings = build(AS_MOVEIT_WRITES_IT)
    rig = Rig(model)
    assert rig.controller.configure(model, settings)
    assert 'its limits are -0.5 to 0.5' in rig.go(yaw=0.6).message
    rig.go(yaw=0.5)
    rig.settle()
    speed = np.array([sample.velocities[0] for sample in rig.output.samples])
    assert np.abs(speed).max() <= 0.75 + 1e-9
    assert np.abs(np.diff(speed)).max() <= 3.0 * 0.01 + 1e-9
    assert np.abs(np.diff(speed, 2)).max() <= 20.0 * 0.01**2 + 1e-9
    assert rig.position('yaw') == pytest.approx(0.5)


def test_a_file_cannot_unlock_what_the_urdf_forbids_and_unused_fields_are_named(build):
    model, settings = build(
        'joint_limits: {yaw: {has_velocity_limits: true, max_velocity: 9.0, has_position_limits: true,'
        ' min_position: -9.0, max_position: 1.0, has_effort_limits: true}}'
    )
    assert limits_of(model, settings, 'yaw')[:3] == pytest.approx([-2.5, 1.0, 1.0])
    said = ' '.join(model.first.arm.warnings)
    assert all(word in said for word in ('min_position -9', 'max_velocity 9', 'has_effort_limits'))
    block = 'robot_description_planning:\n' + AS_MOVEIT_WRITES_IT.replace('\n', '\n  ')
    assert limits_of(*build(block), 'yaw')[2] == pytest.approx(0.75)


POSITIONS = 'has_position_limits: true, min_position'


@pytest.mark.parametrize(
    ('text', 'yaw', 'words'),
    [
        ('joint_limits: {jaw: {}}', '', '"jaw"'),
        ('joint_limits: {stand: {}}', '', '"stand"'),
        (
            'joint_limits: {yaw: {has_velocity_limits: true}}',
            '',
            'joint_limits.yaw.max_velocity must be a finite number greater than 0, got None',
        ),
        ('joint_limits: {yaw: {has_jerk_limits: true, max_jerk: 0}}', '', 'got 0'),
        ('joint_limits: {yaw: {has_jerk_limits: true, max_jerk: .nan}}', '', 'got nan'),
        ('joint_limits: {yaw: {has_jerk_limits: 1, max_jerk: 5}}', '', 'got 1'),
        ('joint_limits: {yaw: {max_velocty: 1}}', '', '"max_velocity"?'),
        (f'joint_limits: {{yaw: {{{POSITIONS}: 1, max_position: -1}}}}', '', 'max_position -1'),
        (f'joint_limits: {{yaw: {{{POSITIONS}: 3, max_position: 4}}}}', '', 'the URDF -2.5 to 2.5'),
        (f'joint_limits: {{yaw: {{{POSITIONS}: -1, max_position: 1}}}}', 'continuous', 'continuous'),
        ('joint_limits: [1, 2]', '', 'mapping'),
        ('5', '', 'mapping'),
        ('limits: {}', '', 'joint_limits'),
        ('joint_limits: {yaw: {', '', 'YAML'),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_what_is_allowed(build, text, yaw, words):
    with pytest.raises(InputError) as error:
        build(text, yaw or 'revolute')
    assert words in str(error.value)
    assert '\n' not in str(error.value)


def test_margins_move_the_limits_of_the_arm_inwards_and_leave_the_gripper(build):
    model, settings = build(joint_limit_margins=(0.1,))
    assert limits_of(model, settings, 'yaw')[:2] == pytest.approx([-2.4, 2.4])
    assert limits_of(model, settings, 'finger')[:2] == pytest.approx([0.0, 0.04])
    assert model.first.arm.upper == pytest.approx(np.full(5, 2.4))
    model, settings = build(joint_limit_margins=(0.1, 0.2, 0.3, 0.4, 0.5))
    assert limits_of(model, settings, 'wrist')[:2] == pytest.approx([-2.0, 2.0])


@pytest.mark.parametrize('margins', [(0.1, 0.2), (3.0,), (-0.1,), ()])
def test_margins_that_make_no_sense_are_rejected(build, margins):
    with pytest.raises(InputError, match='joint_limit_margins'):
        build(joint_limit_margins=margins)


def test_a_joint_in_its_margin_comes_back_with_the_first_goal_and_is_not_moved_before(build):
    model, settings = build(joint_limit_margins=(0.1,), measured_timeout=0.0)
    rig = Rig(model, measured=True)
    assert rig.controller.configure(model, settings)
    rig.measure_all(yaw=2.45)
    rig.tick(20)
    assert rig.position('yaw') == 2.45
    rig.go(yaw=2.0)
    rig.settle()
    assert rig.position('yaw') == pytest.approx(2.0)


def test_margins_can_be_changed_while_the_arm_moves(build):
    model, settings = build()
    rig = Rig(model)
    rig.go(yaw=2.5)
    rig.tick(20)
    other, changed = build(joint_limit_margins=(0.2,))
    assert not settings.same_model(changed)
    while not rig.controller.configure(other, changed):
        rig.tick()
    place = rig.position('yaw')
    rig.tick(5)
    assert rig.position('yaw') == place
    assert 'its limits are -2.3 to 2.3' in rig.go(yaw=2.5).message
