# SPDX-License-Identifier: Apache-2.0
"""A check plans what the controller then does, and names each point that cannot be reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from control_harness import SETTINGS, Rig, arm_model
from small_arm import ARM_JOINTS, arm_urdf, folding_urdf

from ik_node.control.models import ArmModel
from ik_node.control.paths import ToolPath
from ik_node.control.preview import Preview, Previews
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.control.states import State
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.share import share_path
from ik_node.solver.goal import Goal
from ik_node.teach.check import CheckReport, DryRun, check
from ik_node.teach.program import LINE, Point, Program

pytestmark = pytest.mark.slow

ZERO = dict.fromkeys(ARM_JOINTS, 0.0)
AT = {'yaw': 0.2, 'shoulder': 0.3, 'elbow': 0.9, 'roll': 0.1, 'wrist': 0.4}
FAR = (3.0, 0.0, 0.2)


def at(model: ArmModel, joints: dict[str, float] = AT) -> tuple[np.ndarray, np.ndarray]:
    """Position and direction of the tool."""
    return model.first.arm.fk(np.array([joints[name] for name in ARM_JOINTS]))


def place(model: ArmModel, move: tuple[float, float, float], **values: object) -> Point:
    """A point of the tool, moved from AT."""
    position, direction = at(model)
    return Point(position=tuple(position + move), direction=tuple(direction), **values)


@pytest.fixture(scope='module')
def program(model: ArmModel) -> Program:
    return Program(
        (
            Point('ready', joints=AT, speed=0.5),
            place(model, (0.0, 0.1, 0.0), name='above', near=AT),
            place(model, (0.0, 0.1, -0.05), name='pick', motion=LINE, gripper=0.03, speed=0.8),
            place(model, (0.0, -0.1, -0.05), name='across', motion=LINE),
            Point('anywhere', position=(0.3, 0.1, 0.2)),
        ),
        gripper='finger',
    )


def run(model: ArmModel, checked: CheckReport, places: dict[str, float]) -> list[dict[str, float]]:
    """Have a controller make the motions of a check; return the joints after each."""
    rig, ends = Rig(model), []
    rig.controller.submit()
    rig.tick(2)
    rig.go(**places)
    rig.settle()
    for number in range(checked.begin, len(checked.moves)):
        move, point = checked.moves[number], checked.program.points[number]
        rig.controller.set_limits(replace(SETTINGS, speed_scaling=SETTINGS.speed_scaling * point.speed))
        if move.joints is not None:
            rig.go(**move.joints)
        else:
            goal = model.first.pose_goal(move.T_base_tip)
            rig.ask(ToolPath(np.array([goal.position]), np.array([goal.direction])))
        rig.settle()
        if point.gripper is not None:
            rig.go(finger=point.gripper)
            rig.settle()
            assert rig.position('finger') == point.gripper
        assert rig.state is State.HOLDING
        assert all(report.status == 'solved' for report in rig.reports if report.request is not None)
        ends.append({name: rig.position(name) for name in ARM_JOINTS})
    return ends


def test_a_controller_ends_each_motion_where_the_check_says(model: ArmModel, program: Program) -> None:
    checked = check(Preview(model, SETTINGS), program, ZERO, again=True)
    assert checked.passed, checked.findings
    assert not checked.findings
    for move, end in zip(checked.moves, run(model, checked, ZERO), strict=True):
        assert end == pytest.approx(move.end, abs=1e-6)
    for point, move in zip(program.points, checked.moves, strict=True):
        if point.position is not None:
            errors = model.first.solver.errors(Goal(point.position, point.direction), list(move.end.values()))
            assert errors[0] < 2e-4
            assert errors[1] < 2e-3
    assert checked.moves[0].end == AT


def test_every_point_out_of_reach_is_named(model: ArmModel, program: Program) -> None:
    points = [replace(p, position=FAR) if p.name in ('above', 'across') else p for p in program.points]
    far = replace(program, points=tuple(points))
    checked = check(Preview(model, SETTINGS), far, ZERO, again=True)
    assert not checked.passed
    assert not checked.moves
    assert [finding.point for finding in checked.findings if finding.serious] == ['above', 'across']
    assert all('beyond the workspace' in str(finding) for finding in checked.findings)


@pytest.mark.parametrize(
    ('point', 'said'),
    [
        (Point('p', joints={**AT, 'elbow': 2.6}), 'joint "elbow" cannot move to 2.6, its limits are'),
        (Point('p', joints={'yaw': 0.1}), 'but the arm has'),
        (Point('p', joints={**AT, 'finger': 0.0}), 'but the arm has'),
        (Point('p', joints=AT, gripper=0.1), 'joint "finger" cannot move to 0.1'),
        (
            Point('p', position=(-0.4, -0.1, -0.25), direction=(0.0, 0.0, -1.0), motion=LINE),
            'the line cannot be followed: after',
        ),
        (Point('p', joints={**AT, 'yaw': -2.0, 'elbow': -0.9}, motion=LINE), ''),
    ],
)
def test_what_the_node_would_reject_is_rejected(model: ArmModel, point: Point, said: str) -> None:
    checked = check(Preview(model, SETTINGS), Program((Point('first', joints=AT), point), gripper='finger'), ZERO)
    assert not checked.passed
    (finding,) = checked.findings
    assert finding.point == 'p'
    assert said in finding.sentence


@pytest.mark.parametrize('gripper', ['claw', 'yaw'])
def test_a_gripper_must_be_a_joint_off_the_arm(model: ArmModel, gripper: str) -> None:
    checked = check(Preview(model, SETTINGS), Program((Point('p', joints=AT, gripper=0.0),), gripper=gripper), ZERO)
    assert 'joints off the arm: "finger"' in str(checked.findings[0])


def test_an_empty_program_does_not_pass(model: ArmModel) -> None:
    checked = check(Preview(model, SETTINGS), Program(), ZERO)
    assert not checked.passed
    assert [str(one) for one in checked.findings] == ['the program has no points']


def test_the_settings_of_the_node_count(model: ArmModel) -> None:
    """A workspace of the user forbids a motion that is possible without."""
    narrow = replace(SETTINGS, workspace=(0.3, -0.2, -0.5, 0.7, 0.2, 0.5))
    program = Program((Point('in', joints=AT), Point('out', joints={**AT, 'yaw': 1.5})))
    assert check(Preview(model, SETTINGS), program, AT).passed
    checked = check(Preview(model, narrow), program, AT)
    assert [finding.point for finding in checked.findings] == ['out']
    assert 'would leave the workspace' in str(checked.findings[0])


def test_a_change_of_configuration_is_told_at_its_point(model: ArmModel) -> None:
    position, direction = at(model)
    others = [s.q for s in model.first.solver.solve_all(Goal(position + np.array([0.0, 0.05, 0.0]), direction))]
    other = max(others, key=lambda q: abs(q[2] - AT['elbow']))
    near = dict(zip(ARM_JOINTS, other.tolist(), strict=True))
    points = (Point('one', joints=AT), place(model, (0.0, 0.05, 0.0), name='two', near=near))
    checked = check(Preview(model, SETTINGS), Program(points), AT)
    assert checked.passed
    assert [finding.point for finding in checked.findings] == ['two']
    assert 'changes its configuration' in str(checked.findings[0])
    assert checked.moves[1].end == pytest.approx(near, abs=1e-4)
    assert not check(Preview(model, SETTINGS), Program((points[0], replace(points[1], near=AT))), AT).findings


def test_a_line_decides_the_configuration_before_it(model: ArmModel) -> None:
    """The nearest solution of the first point may end on the line; then another one is chosen."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        position, direction = model.first.arm.fk(rng.uniform(model.first.arm.lower, model.first.arm.upper))
        end = position + rng.uniform(-0.2, 0.2, 3)
        nearest = model.first.solver.solve(Goal(position, direction), np.zeros(5))
        if not nearest.solved or not len(model.first.solver.solve_all(Goal(end, direction), np.zeros(5))):
            continue
        near = dict(zip(ARM_JOINTS, nearest.q.tolist(), strict=True))
        first = Point('a', position=tuple(position), direction=tuple(direction), near=near)
        line = Point('b', position=tuple(end), direction=tuple(direction), motion=LINE)
        alone = check(Preview(model, SETTINGS), Program((Point('a', joints=near), line)), near)
        if not alone.passed and check(Preview(model, SETTINGS), Program((first, line)), near).passed:
            return
    raise AssertionError('no example')


def test_a_loop_that_comes_back_otherwise_is_rejected(model: ArmModel) -> None:
    """A line to the first point keeps the configuration of the last one, which is another one."""
    position, direction = at(model)
    end = position + np.array([0.0, 0.05, 0.0])
    others = [s.q for s in model.first.solver.solve_all(Goal(position, direction))]
    other = max(others, key=lambda q: abs(q[2] - AT['elbow']))
    back = Point('back', joints=dict(zip(ARM_JOINTS, other.tolist(), strict=True)))
    first = Point('first', position=tuple(end), direction=tuple(direction), motion=LINE)
    assert check(Preview(model, SETTINGS), Program((first, back)), AT).passed
    checked = check(Preview(model, SETTINGS), Program((first, back)), AT, again=True)
    assert [finding.point for finding in checked.findings if finding.serious] == ['first']
    assert 'a second run would reach it with' in str(next(f for f in checked.findings if f.serious))


def test_a_run_continues_with_the_same_configurations(model: ArmModel, program: Program) -> None:
    whole = check(Preview(model, SETTINGS), program, ZERO, again=True)
    middle = dict(whole.moves[2].end)
    rest = check(Preview(model, SETTINGS), program, middle, begin=3, again=True, before=whole)
    assert rest.passed
    assert rest.begin == 3
    for one, other in zip(whole.moves, rest.moves, strict=True):
        assert other.end == pytest.approx(one.end, abs=1e-6)
    once = check(Preview(model, SETTINGS), program, middle, begin=3, before=whole)
    assert once.passed
    assert once.moves[3].end == pytest.approx(whole.moves[3].end, abs=1e-6)


def test_a_second_run_makes_the_same_motions_and_is_not_planned_again(
    model: ArmModel, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[object] = []
    go = DryRun._go
    monkeypatch.setattr(DryRun, '_go', lambda *given: (moved.append(given), go(*given))[1])
    check(Preview(model, SETTINGS), program, ZERO)
    once = len(moved)
    check(Preview(model, SETTINGS), program, ZERO, again=True)
    assert len(moved) - once < 2 * once  # the gripper is open at the first points of the second run


def test_a_collision_on_the_way_is_told() -> None:
    pytest.importorskip('coal')
    settings = ArmSettings(tip_link='hand', tool_axis=(1.0, 0.0, 0.0), tool_point=(0.05, 0.0, 0.0))
    folding = arm_model(folding_urdf(), settings)
    names = folding.first.arm.joint_names
    rng = np.random.default_rng(0)
    start = dict.fromkeys(names, 0.0)
    for q in rng.uniform(folding.first.arm.lower, folding.first.arm.upper, (200, len(names))):
        program = Program((Point('folded', joints=dict(zip(names, q.tolist(), strict=True))),))
        checked = check(Preview(folding, settings), program, start)
        if not checked.passed:
            assert 'link' in str(checked.findings[0])
            return
    raise AssertionError('no collision')


def test_a_joint_without_limits_ends_where_the_controller_takes_it() -> None:
    """By the shorter way, and so perhaps a whole turn from the position of its point."""
    endless = arm_model(arm_urdf('continuous'))
    assert endless.tree.continuous[0]
    program = Program((Point('left', joints={**AT, 'yaw': 3.0}), Point('right', joints={**AT, 'yaw': -3.0})))
    checked = check(Preview(endless, SETTINGS), program, {**ZERO, 'yaw': 2.5})
    assert checked.passed
    assert not checked.findings
    assert checked.moves[1].end['yaw'] == pytest.approx(2.0 * np.pi - 3.0)
    for move, end in zip(checked.moves, run(endless, checked, {**ZERO, 'yaw': 2.5}), strict=True):
        assert end == pytest.approx(move.end, abs=1e-6)


def test_joints_of_an_earlier_check_are_not_kept_for_another_robot(model: ArmModel) -> None:
    program = Program((place(model, (0.0, 0.1, 0.0), name='above', near=AT),))
    before = check(Preview(model, SETTINGS), program, ZERO)
    assert before.passed
    again = check(Preview(model, SETTINGS), program, ZERO, before=before)
    assert again.moves[0].joints == before.moves[0].joints
    longer = arm_model(arm_urdf().replace('xyz="0.3 0 0"', 'xyz="0.36 0 0"'), SETTINGS)
    after = check(Preview(longer, SETTINGS), program, ZERO, before=before)
    assert after.passed
    q = np.array([after.moves[0].joints[name] for name in ARM_JOINTS])
    assert np.allclose(longer.first.arm.fk(q)[0], program.points[0].position, atol=1e-5)


def test_a_point_whose_direction_was_not_met_is_told_and_may_be_visited(model: ArmModel) -> None:
    points = (Point('there', joints=AT, turned=0.1047), Point('back', joints={**AT, 'yaw': 0.2}))
    program = Program(points)
    assert Program.parse(program.text()) == program
    found = check(Preview(model, SETTINGS), program, ZERO)
    assert found.passed
    (told,) = map(str, found.findings)
    assert told.startswith('"there": the tool points 0.105 rad away from the direction wanted there')


def test_the_gripper_of_another_arm_is_rejected() -> None:
    text = load_description(share_path('urdf', 'torso_arms.urdf.xacro'))  # they share a joint
    jaws = ''.join(
        f'<link name="{side}_jaw"/><joint name="{side}_gripper" type="prismatic">'
        f'<parent link="{side}_tool0"/><child link="{side}_jaw"/>'
        '<axis xyz="0 1 0"/><limit lower="0" upper="0.04" velocity="1" effort="1"/></joint>'
        for side in ('left', 'right')
    )
    text = text.replace('</robot>', f'{jaws}</robot>')
    own = {side: {'tip_link': f'{side}_tool0'} for side in ('left', 'right')}
    settings, robot = RobotSettings(ArmSettings(), own), read_urdf(text)
    start = dict.fromkeys(robot.joints, 0.0)
    point = Point('there', joints=dict.fromkeys(Arm(robot, 'right_tool0').joint_names, 0.1), gripper=0.01)
    for side, passed in (('right', True), ('left', False)):
        program = Program((point,), tool='right', gripper=f'{side}_gripper')
        found = check(Previews().of(text, settings, program.tool), program, start)
        assert found.passed == passed, found.findings
    assert '"left_gripper"' in str(found.findings[0])
