# SPDX-License-Identifier: Apache-2.0
"""Programs in the page, with a real ik_node: taught, checked, run, disturbed; nothing moves unasked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import trimesh
from desk import ROOT, SEED_ARM, SEED_FILE, SEED_JOINTS, Desk, Page, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.ros.parameters import RemoteParameters
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.teach.program import LINE, Point, Program
from ik_node.viewer.guard import OLDEST
from ik_node.viewer.teach import DOUBLE_CLICK, GUIDING, REOPEN, fields_at_gizmo, possible_direction

pytestmark = pytest.mark.slow

ARM = Arm.from_urdf(SEED_ARM)
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
QUIET = 0.7  # [s] in which something would happen if it did at all


class Lesson(NamedTuple):
    """A page, the robot's side, and the folder of the programs."""

    page: Page
    robot: RobotSide
    folder: Path
    table: Desk


@pytest.fixture(scope='module')
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lesson]:
    folder = tmp_path_factory.mktemp('programs')
    given = f'programs:={folder}'
    with viewer(given, beside=(SEED_FILE,), page=False) as (table, robot), closing(Page(table)) as page:
        robot.wait(lambda: robot.joints, 'the arm')
        yield Lesson(page, robot, folder, table)


@pytest.fixture
def desk(running: Lesson) -> Lesson:
    """The arm rests at Q; the program has two points, a line to the second one, and is saved as two.yaml."""
    page, robot = running.page, running.robot
    page.press('Resume')
    page.wait(lambda: state(page) not in ('Running', 'Checking', 'Pausing'), 'no run')
    robot.go(**Q)
    page.wait(lambda: np.allclose(page.pose('/tip'), ARM.robot.link_pose('tool0', Q), atol=1e-3), 'the arm')
    two_points().save(running.folder / 'two.yaml')
    page.wait(lambda: 'two' in page.control('Open')['options'], 'the file')
    page.choose('Program file', 'New')
    page.wait(lambda: not points(page), 'no points')
    page.choose('Open', 'none')
    page.choose('Open', 'two')
    page.wait(lambda: points(page) == ['1: ready', '2: end · line'], 'the program')
    page.choose('Loops', 1)
    robot.joint_goals.clear()
    return running


def test_the_gripper_is_that_of_the_parameters() -> None:
    arm = ROOT / 'urdf' / 'so101_like.urdf.xacro'
    beside = (f'urdf_file:={arm}', 'gripper_joint:=gripper', 'gripper_positions:=[0.0, 0.5]')
    with viewer(beside=beside, page=False) as (table, robot), closing(Page(table)) as page:
        robot.wait(lambda: robot.joints, 'the arm')
        slider = page.wait(lambda: next((one for one in page.labels() if one.startswith('gripper [')), ''), 'it')
        page.wait(lambda: page.control(slider)['max'] == pytest.approx(28.6, abs=0.1), 'its range')


def two_points(way: float = 0.05, **values: Any) -> Program:
    position, direction = ARM.fk(np.array(list(Q.values())))
    end = tuple(position + np.array([0.0, way, 0.0]))
    start = Point('ready', joints={**Q, 'joint1': 0.1}, **values)
    return Program((start, Point('end', position=end, direction=tuple(direction), motion=LINE, near=Q, **values)))


def state(page: Page) -> str:
    """The title that the folder shows."""
    titles = ('Checking', 'Ready to run', 'Rejected', 'Running', 'Pausing', 'Paused', 'Finished', 'Ended')
    _card, *others = page.html() or ['']  # the card has the state of the goal, which may be rejected, too
    return next((title for title in titles for text in others if f'>{title}<' in text), '')


def points(page: Page) -> list[str]:
    """The labels of the points."""
    buttons = [one for one in list(page.controls.values()) if one['kind'] == 'GuiButtonMessage']
    labels = [one['label'].removeprefix('▸ ') for one in buttons]
    return [label for label in labels if label[:1].isdigit()]


def select(page: Page, number: int) -> None:
    (uuid,) = [k for k, c in list(page.controls.items()) if c.get('label', '').lstrip('▸ ').startswith(f'{number}: ')]
    page._send('GuiUpdateMessage', uuid=uuid, updates={'value': True})


def wait_state(desk: Lesson, title: str) -> None:
    desk.page.wait(lambda: state(desk.page) == title, title)


def tool(robot: RobotSide) -> np.ndarray:
    return ARM.fk(np.array([robot.joints[name] for name in SEED_JOINTS]))[0]


def stands(desk: Lesson) -> None:
    """Nothing moves and no goal is sent."""
    before, count = dict(desk.robot.joints), len(desk.robot.joint_goals)
    desk.page.run(QUIET)
    assert desk.robot.joints == pytest.approx(before, abs=1e-9)
    assert len(desk.robot.joint_goals) == count


def test_points_are_taught_and_edited_and_saved(desk: Lesson) -> None:
    page, robot = desk.page, desk.robot
    page.choose('Program file', 'New')
    page.wait(lambda: not points(page), 'no points')
    page.choose('Add point', 'At the arm')
    page.wait(lambda: points(page) == ['1: P1'], 'the first point')
    page.choose('Name', 'ready')
    page.wait(lambda: points(page) == ['1: ready'], 'its name')
    T = ARM.robot.link_pose('tool0', Q)
    T[0, 3] -= 0.03
    page.drag(T)
    robot.wait(lambda: robot.goals and np.allclose(tool(robot), robot.goal()[:3, 3], atol=1e-3), 'the arm')
    page.choose('Add point', 'At the arrows')
    page.wait(lambda: points(page) == ['1: ready', '2: P2'], 'the second point')
    for label, value in (('Motion', 'line'), ('Speed [%]', 40), ('Wait [s]', 0.2)):
        page.choose(label, value)
    page.wait(lambda: points(page)[1] == '2: P2 · line · 40 % · 0.2 s', 'what was edited')
    page.choose('File name', 'mine')
    page.choose('Save', True)
    robot.wait(lambda: (desk.folder / 'mine.yaml').exists(), 'the file')
    program = Program.load(desk.folder / 'mine.yaml')
    first, second = program.points
    assert first.joints == pytest.approx(Q, abs=1e-3)
    assert second.position == pytest.approx(tuple(T[:3, 3]), abs=1e-5)
    assert second.direction == pytest.approx(tuple(T[:3, 2]), abs=1e-5)
    assert (second.motion, second.speed, second.wait) == (LINE, 0.4, 0.2)
    assert set(second.near) == set(SEED_JOINTS)

    page.choose('Order', 'Up')
    page.wait(lambda: points(page)[0].startswith('1: P2'), 'another order')
    select(page, 2)
    page.wait(lambda: page.control('Name')['value'] == 'ready', 'the editor of the other point')
    page.choose('Stored as', 'tool')
    page.choose('Name', 'P2')
    page.wait(lambda: 'two points are called' in page.words().lower(), 'the reason')
    page.choose('Order', 'Delete')
    page.wait(lambda: len(points(page)) == 1, 'one point less')
    assert not robot.joint_goals


def test_a_check_moves_nothing_and_a_run_visits_all(desk: Lesson) -> None:
    page, robot = desk.page, desk.robot
    page.choose('Program', 'Check')
    wait_state(desk, 'Ready to run')
    stands(desk)
    page.choose('Loops', 2)
    page.choose('Run', True)
    wait_state(desk, 'Finished')
    assert len(robot.joint_goals) == 2
    assert np.allclose(tool(robot), two_points().points[1].position, atol=3e-4)
    assert '2 complete runs' in page.words()
    stands(desk)


def test_a_point_out_of_reach_is_rejected_by_name_and_nothing_moves(desk: Lesson) -> None:
    page = desk.page
    select(page, 2)
    page.wait(lambda: page.control('Name')['value'] == 'end', 'the editor')
    T = page.pose('/base/goal')
    T[:3, 3] = (0.0, 0.0, 3.0)
    page.drag(T, release=False)
    page.choose('Set', 'To the arrows')
    page.wait(lambda: np.allclose(page.pose('/teach/1')[:3, 3], T[:3, 3], atol=1e-5), 'the point there')
    page.release()
    desk.robot.go(**Q)
    desk.robot.joint_goals.clear()
    for what in ('Check', 'Run', 'Step'):
        page.choose(*((what, True) if what == 'Run' else ('Program', what)))
        page.wait(lambda: state(page) == 'Checking', 'the check')
        wait_state(desk, 'Rejected')
        assert '&quot;end&quot;: unreachable' in page.words()
        stands(desk)


def test_a_run_is_paused_continued_stopped_and_continued(desk: Lesson) -> None:
    page = desk.page
    page.choose('Loops', 0)
    page.choose('Run', True)
    page.wait(lambda: 'after 1 complete run' in page.words(), 'the second run')
    page.age = 2.0 * OLDEST  # a pause counts however late
    page.choose('Pause', True)
    page.age = 0.0
    wait_state(desk, 'Paused')
    stands(desk)
    page.choose('Program', 'Continue')
    wait_state(desk, 'Running')
    page.press('Stop')
    wait_state(desk, 'Ended')
    assert 'stopped' in page.words().lower()  # by the service, or by the page
    page.run(QUIET)
    stands(desk)
    page.choose('Program', 'Continue')  # ik_node is still stopped
    page.wait(lambda: state(page) in ('Checking', 'Running'), 'another check')
    wait_state(desk, 'Ended')
    stands(desk)
    page.press('Resume')
    page.wait(lambda: 'Ready</span>' in page.words(), 'the arm is ready')
    page.choose('Program', 'Continue')
    wait_state(desk, 'Running')
    page.choose('Pause', True)
    wait_state(desk, 'Paused')


def test_the_next_point_stays_the_next_one_while_a_paused_program_is_edited(desk: Lesson) -> None:
    page = desk.page
    page.choose('Program', 'Step')
    wait_state(desk, 'Paused')
    assert 'Next: &quot;end&quot;' in page.words()
    select(page, 1)
    page.wait(lambda: page.control('Name')['value'] == 'ready', 'the editor')
    page.choose('Order', 'Delete')
    page.wait(lambda: points(page) == ['1: end · line'], 'one point less')
    page.wait(lambda: state(page) == '', 'nothing that was true of the old program')
    page.choose('Program', 'Check')
    wait_state(desk, 'Ready to run')
    page.choose('Speed [%]', 50)
    page.wait(lambda: state(page) == '', 'a program that was not checked')


def test_the_first_point_comes_first_however_a_program_is_edited_before_its_run(desk: Lesson) -> None:
    page, robot = desk.page, desk.robot
    page.choose('Order', 'Down')
    page.wait(lambda: points(page) == ['1: end · line', '2: ready'], 'the other order')
    assert state(page) == ''
    page.choose('Program', 'Step')
    wait_state(desk, 'Paused')
    assert np.allclose(tool(robot), two_points().points[1].position, atol=1e-3)


def test_a_viewer_that_ends_during_a_run_stops_the_arm_and_loses_nothing(desk: Lesson, tmp_path: Path) -> None:
    robot = desk.robot
    slow = replace(two_points(), points=tuple(replace(point, speed=0.05) for point in two_points(0.2).points))
    slow.save(tmp_path / 'slow.yaml')
    parameters = RemoteParameters(robot.node, 'ik_node', ['goal_speed'])
    other = Desk(desk.table.world)
    viewer = other.make('ik_viewer', 'page_port:=0', f'programs:={tmp_path}')
    page = Page(other)
    page.wait(lambda: page.labels() and 'slow' in page.control('Open')['options'], 'the arm and the file')
    page.choose('Open', 'slow')
    page.wait(lambda: len(points(page)) == 2, 'the program')
    page.choose('Speed [%]', 6)
    page.wait(lambda: points(page)[0] == '1: ready · 6 %', 'an edited program')
    page.choose('Run', True)
    page.wait(lambda: state(page) == 'Running' and 'end' in page.words().partition('Moving to')[2], 'a run')
    place = dict(robot.joints)
    robot.wait(lambda: max(abs(robot.joints[name] - place[name]) for name in Q) > 1e-3, 'a motion')
    robot.wait(lambda: parameters.refresh() or parameters.values == {'goal_speed': 0.05}, 'its speed')
    viewer.come_to_rest()
    page.close()
    viewer.close()
    robot.run(1.0)  # the arm brakes
    stands(desk)
    robot.wait(lambda: parameters.refresh() or parameters.values == {'goal_speed': 1.0}, 'the whole speed again')
    assert Program.load(tmp_path / 'unsaved.yaml').points[0].speed == pytest.approx(0.06)
    desk.page.press('Resume')


def test_no_program_is_lost(desk: Lesson) -> None:
    page = desk.page
    page.choose('Speed [%]', 70)
    page.wait(lambda: points(page)[0] == '1: ready · 70 %', 'an edited program')
    page.choose('Program file', 'New')
    page.wait(lambda: 'kept as unsaved' in page.words(), 'where it is')
    first = re.findall(r'kept as (\w+)', page.words())[0]
    assert Program.load(desk.folder / f'{first}.yaml').points[0].speed == pytest.approx(0.7)
    page.wait(lambda: page.control(REOPEN)['visible'], 'the way back')
    page.choose(REOPEN, True)
    page.wait(lambda: points(page)[:1] == ['1: ready · 70 %'], 'the program that was kept')
    assert not page.control(REOPEN)['visible']
    page.choose('Program file', 'New')
    page.wait(lambda: f'Your last program was kept as {first}: open it below' in page.words(), 'where it is')
    page.choose('Add point', 'At the arm')
    page.wait(lambda: points(page) == ['1: P1'], 'another program')
    page.choose('File name', 'two')
    page.choose('Save', True)
    page.wait(lambda: 'is another program: press save again' in page.words().lower(), 'a question')
    assert len(Program.load(desk.folder / 'two.yaml').points) == 2
    page.run(2.0 * DOUBLE_CLICK)
    page.choose('Save', True)
    page.wait(lambda: 'Saved as' in page.words(), 'the file')
    assert len(Program.load(desk.folder / 'two.yaml').points) == 1
    page.choose('Speed [%]', 60)
    page.wait(lambda: points(page) == ['1: P1 · 60 %'], 'an edited program')
    page.choose('Open', first)
    page.wait(lambda: points(page)[0] == '1: ready · 70 %', 'the program that was kept')
    (second,) = set(re.findall(r'kept as (\w+)', page.words())) - {first}
    assert Program.load(desk.folder / f'{second}.yaml').points[0].speed == pytest.approx(0.6)
    assert Program.load(desk.folder / f'{first}.yaml').points[0].speed == pytest.approx(0.7)


def test_only_the_steps_that_can_be_done_now_are_enabled(desk: Lesson) -> None:
    page = desk.page

    def enabled() -> list[str]:
        steps = [(label, page.control(label)) for label in ('Run', 'Pause', 'Program', 'Save', GUIDING)]
        return [label for label, one in steps if one['visible'] and not one.get('disabled')]

    idle = ['Run', 'Program', 'Save']
    page.wait(lambda: enabled() == idle, 'a program that can be run')
    page.choose('Loops', 0)
    page.choose('Run', True)
    wait_state(desk, 'Running')
    assert enabled() == ['Pause', 'Program', 'Save']
    page.choose('Pause', True)
    wait_state(desk, 'Paused')
    assert enabled() == idle
    assert 'Continue goes on there' in page.words()
    page.choose('Program file', 'New')
    page.wait(lambda: not enabled(), 'nothing to run')
    assert 'No points</span>' in page.words()
    assert 'add the first point' in page.words()
    page.choose('Add point', 'At the arm')
    page.wait(lambda: enabled() == idle and 'add the next point' in page.words(), 'one point')
    page.press('Stop')
    page.wait(lambda: enabled() == ['Program', 'Save'], 'no run of an arm that is stopped')
    assert 'press Resume at the top' in page.words()


def test_a_name_may_be_typed_letter_by_letter(desk: Lesson) -> None:
    page = desk.page
    select(page, 2)
    page.wait(lambda: page.control('Name')['value'] == 'end', 'the editor')
    for text in ('', 'r', 'ready', 'ready2'):
        page.choose('Name', text)
    page.wait(lambda: points(page)[1] == '2: ready2 · line', 'the name')
    assert page.control('Name')['value'] == 'ready2'


def test_a_point_at_the_gizmo_has_a_direction_that_the_arm_can_reach() -> None:
    arm = Arm.from_file(ROOT / 'urdf' / 'so101_like.urdf.xacro')
    solver, rng = IkSolver(arm), np.random.default_rng(3)
    rejected = 0
    for q in arm.sample(rng, 20):
        position, direction = arm.fk(q)
        turned = direction + 0.1 * rng.normal(size=3)
        turned /= np.linalg.norm(turned)
        near = dict(zip(arm.joint_names, q.tolist(), strict=True))
        rejected += not solver.solve(Goal(position, turned), q).solved
        found = np.round(possible_direction(arm, position, turned, near), 6)
        assert solver.solve(Goal(position, found), q).solved
    assert rejected > 10
    far = np.array([0.0, 0.0, 1.0])
    assert possible_direction(arm, 9.0 * far, far, {}) == far.tolist()


def test_a_point_at_the_gizmo_says_how_far_its_direction_is_from_the_one_wanted() -> None:
    arm = Arm.from_file(ROOT / 'urdf' / 'so101_like.urdf.xacro')
    q = np.array([0.0, 0.3, 0.3, 0.4, 0.0])
    T = arm.link_in_base(arm.tip_link, dict(zip(arm.joint_names, q.tolist(), strict=True)))
    for angle in (0.0, 0.2):  # about the vertical axis, across the plane of the arm
        turn = trimesh.transformations.rotation_matrix(angle, (0.0, 0.0, 1.0), T[:3, 3])
        gizmo = SimpleNamespace(gizmo_pose=lambda turn=turn: turn @ T, directed=True)
        fields = fields_at_gizmo(SimpleNamespace(arm=arm, scene=gizmo), dict(zip(arm.joint_names, q, strict=True)))
        wanted = turn[:3, :3] @ arm.fk(q)[1]
        off = math.acos(min(1.0, wanted @ np.array(fields['direction'])))
        assert fields['turned'] == pytest.approx(off if angle else 0.0, abs=1e-9)
        assert (fields['turned'] > 0.05) == (angle > 0.0)
