# SPDX-License-Identifier: Apache-2.0
"""Methods in the viewer: the solver of ik_node chosen while it runs, and slow motion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from desk import SEED_ARM, SEED_FILE, SEED_JOINTS, Page, RobotSide, showing, viewer
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.parameter import Parameter, parameter_value_to_python
from waiting import answer_of

from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.solver.methods import METHODS
from ik_node.solver.solver import IkSolver
from ik_node.viewer.methods import Playback

pytestmark = pytest.mark.slow

Q = dict(zip(SEED_JOINTS, (0.3, -0.4, 0.9, -0.5, 0.7), strict=True))
DOWN = np.array([[1.0, 0.0, 0.0, 0.35], [0.0, -1.0, 0.0, -0.2], [0.0, 0.0, -1.0, 0.25], [0.0, 0.0, 0.0, 1.0]])
GOAL = Goal(DOWN[:3, 3], DOWN[:3, 2])


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Page, RobotSide]]:
    with showing(SEED_ARM, **Q) as both:
        yield both


@pytest.fixture
def page(running: tuple[Page, RobotSide]) -> Iterator[Page]:
    """The seed arm at Q, not watched."""
    page, robot = running
    robot.goals.clear()
    yield page
    page.choose('Watch', False)
    page.choose('Method', 'lm')
    page.choose('Beside it', 'none')
    robot.ask(**Q)  # the gizmo goes back to the tool
    page.wait(lambda: np.allclose(page.pose('/base/goal'), page.pose('/tip'), atol=1e-6), 'the gizmo')


@pytest.fixture
def arm() -> Arm:
    return Arm.from_urdf(SEED_ARM)


def ghost_is_at(page: Page, arm: Arm, index: int, q: np.ndarray) -> bool:
    """Whether the links of a ghost are where joints q put them; viser sends no smaller changes."""
    links = ['link1', 'link2', 'link3', 'link4', 'link5']  # in the order of their names, without tool0
    values = dict(zip(arm.joint_names, q, strict=True))
    wanted = [arm.robot.link_pose(link, values) for link in links]
    shown = [page.pose(f'/ghost{index}/{k}') for k in range(len(links))]
    return page.nodes[f'/ghost{index}']['visible'] and np.allclose(wanted, shown, atol=1e-4)


def last_step(arm: Arm, method: str, **switches: bool) -> np.ndarray:
    """What a descent of the method returns, by its definition: a search without restarts."""
    solver = IkSolver(arm, method=method, restarts=0, closed_form=False, method_options=switches)
    return solver.solve(GOAL, [Q[name] for name in arm.joint_names]).q


WATCHED = 'Method', 'Beside it', 'ccd: hinges', 'Steps per s', 'Playback'


def test_a_method_is_watched_to_its_own_end_and_nothing_is_commanded(
    running: tuple[Page, RobotSide], page: Page, arm: Arm
) -> None:
    page.choose('Steps per s', 20.0)
    assert not any(page.control(label)['visible'] for label in WATCHED)
    page.choose('Watch', True)
    page.drag(DOWN)
    page.wait(lambda: ghost_is_at(page, arm, 0, last_step(arm, 'lm')), 'the ghost at the end')
    page.wait(
        lambda: 'Watching</span>' in page.words() and re.search(r'lm (\d+) of \1 steps<', page.words()), 'the card'
    )
    assert all(page.control(label)['visible'] for label in WATCHED)
    assert not page.nodes['/ghost1']['visible']
    assert '/ghost0' in page.nodes
    page.wait(lambda: 'Position error</span>' in page.words() and '&lt; 1 µm' in page.words(), 'the errors')
    assert np.allclose(page.pose('/base/goal'), DOWN, atol=1e-6)
    assert np.allclose(page.pose('/tip'), arm.robot.link_pose('tool0', Q), atol=1e-6), 'the arm has moved'
    assert not running[1].goals
    page.choose('Watch', False)
    page.wait(lambda: not page.nodes['/ghost0']['visible'], 'the end of the ghost')
    page.wait(lambda: 'Watching' not in page.words(), 'the card of the arm')
    page.wait(lambda: np.allclose(page.pose('/base/goal'), page.pose('/tip'), atol=1e-6), 'the gizmo at the tool')
    page.drag(DOWN)
    running[1].wait(lambda: running[1].goals, 'a goal again')


def test_two_methods_go_in_step_and_each_has_its_count(page: Page, arm: Arm) -> None:
    page.choose('Steps per s', 0.5)
    page.choose('Beside it', 'ccd')
    page.choose('Watch', True)
    page.drag(DOWN)
    solvers = [IkSolver(arm, method=method) for method in ('lm', 'ccd')]
    steps = [list(solver.steps(GOAL, [Q[name] for name in arm.joint_names])) for solver in solvers]
    assert len(steps[0]) != len(steps[1]), 'choose another goal'
    page.wait(lambda: all(f'of {len(rows) - 1}<' in page.words() for rows in steps), 'both counts')
    page.choose('Playback', 'Restart')
    page.choose('Playback', 'Pause')
    page.wait(lambda: page.words().count('step 0 of') == 2, 'the start')
    for number in range(1, max(map(len, steps))):
        page.choose('Playback', 'Step')
        for index, rows in enumerate(steps):
            q = rows[min(number, len(rows) - 1)]
            page.wait(lambda i=index, q=q: ghost_is_at(page, arm, i, q), f'step {number} of ghost {index}')
    for rows in steps:
        count = len(rows) - 1
        page.wait(lambda n=count: f'step {n} of {n}<' in page.words(), 'the last step')
    plot = next(c for c in page.controls.values() if c['kind'] == 'GuiUplotMessage')
    assert plot['visible']


def test_a_method_that_is_stuck_says_so(page: Page) -> None:
    page.choose('Method', 'ccd')
    page.choose('ccd: hinges', False)
    page.choose('Steps per s', 20.0)
    page.choose('Watch', True)
    page.drag(DOWN)
    page.wait(lambda: 'steps (stuck; ik_node would restart here)' in page.words(), 'that it is stuck')


def test_a_rate_that_is_being_typed_does_not_end_the_viewer(page: Page, arm: Arm) -> None:
    """The page sends each number that is typed beside the slider: 0 on the way to 0.5."""
    page.choose('Watch', True)
    page.drag(DOWN)
    page.wait(lambda: 'step' in page.words(), 'its steps')
    page.choose('Steps per s', 0.0)
    page.choose('Playback', 'Restart')
    page.run(0.5)
    page.choose('Steps per s', 20.0)
    page.choose('Playback', 'Restart')
    page.wait(lambda: ghost_is_at(page, arm, 0, last_step(arm, 'lm')), 'the ghost at the end')


def test_every_method_of_the_registry_can_be_watched(page: Page) -> None:
    assert set(page.control('Method')['options']) == set(METHODS)
    page.choose('Watch', True)
    page.drag(DOWN)
    for method in METHODS:
        page.choose('Method', method)
        page.wait(lambda m=method: f'</span>{m}</span>' in page.words(), method)
        page.wait(lambda: 'step' in page.words(), 'its steps')
        assert 'Rejected' not in page.words()


def test_a_goal_of_others_does_not_move_the_gizmo_while_watched(running: tuple[Page, RobotSide], page: Page) -> None:
    page.choose('Watch', True)
    page.drag(DOWN)
    other = DOWN.copy()
    other[0, 3] = 0.2
    running[1].want(other)
    page.run(0.2)
    assert np.allclose(page.pose('/base/goal'), DOWN, atol=1e-6)


class Known:
    """A descent of which some steps are known."""

    def __init__(self, steps: int, ended: bool) -> None:
        self.steps, self.ended = list(range(steps)), ended
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_playback_waits_for_the_slower_method_and_ends_with_the_longer_one() -> None:
    playback, short, long = Playback(), Known(2, True), Known(2, False)
    playback.start([short, long])  # type: ignore[list-item]
    playback.playing = True
    playback.advance()
    playback.advance()
    assert playback.index == 1
    assert playback.playing
    long.steps.append(2)
    playback.advance()
    assert (playback.shown(short), playback.shown(long)) == ((1, 1), (2, 2))  # type: ignore[arg-type]
    long.ended = True
    playback.advance()
    assert playback.index == 2
    assert not playback.playing
    playback.play()
    assert playback.index == 0
    playback.start([])
    assert short.stopped
    assert long.stopped


def test_a_step_that_is_not_known_yet_is_shown_once_it_is() -> None:
    playback, descent = Playback(), Known(1, False)
    playback.start([descent])  # type: ignore[list-item]
    for _ in range(2):
        playback.step()
        playback.tick()
    assert playback.index == 0
    descent.steps += [1, 2, 3]
    for _ in range(3):
        playback.tick()
    assert playback.index == 2
    assert not playback.playing
    playback.step()
    playback.pause()
    playback.tick()
    assert playback.index == 2


# With ik_node


class Node:
    """The parameters of a running ik_node."""

    def __init__(self, robot: RobotSide) -> None:
        self._robot = robot

    def _call(self, kind: Any, service: str, request: Any) -> Any:
        client = self._robot.node.create_client(kind, f'ik_node/{service}')
        return answer_of(client, request, self._robot.wait, service)

    def get(self, name: str) -> Any:
        found = self._call(GetParameters, 'get_parameters', GetParameters.Request(names=[name]))
        return parameter_value_to_python(found.values[0])

    def set(self, name: str, value: Any) -> None:
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        assert self._call(SetParameters, 'set_parameters', request).results[0].successful


@pytest.fixture(scope='module')
def served() -> Iterator[tuple[Page, Node]]:
    with viewer(beside=(SEED_FILE,), page=False) as (table, robot), closing(Page(table)) as page:
        page.wait(lambda: not page.control('Solver')['disabled'], 'the parameters of ik_node')
        yield page, Node(robot)


def test_the_solver_is_chosen_while_the_node_runs(served: tuple[Page, Node]) -> None:
    page, node = served
    page.choose('Solver', 'ccd')
    page.wait(lambda: node.get('solver') == 'ccd', 'the solver')
    page.wait(lambda: 'Accepted by ik_node' in page.words(), 'the answer')
    page.choose('Solver', 'lm')
    page.wait(lambda: node.get('solver') == 'lm', 'the solver')


def test_the_velocity_is_chosen_while_the_node_runs(served: tuple[Page, Node]) -> None:
    page, node = served
    page.wait(lambda: not page.control('Velocity [%]')['disabled'], 'the slider')
    page.choose('Velocity [%]', 20)
    page.wait(lambda: node.get('speed_scaling') == pytest.approx(0.2), 'the velocity')
    node.set('speed_scaling', 0.5)
    page.wait(lambda: page.control('Velocity [%]')['value'] == 50, 'the change of another')


def test_changes_of_others_are_followed(served: tuple[Page, Node]) -> None:
    page, node = served
    node.set('solver', 'dls')
    page.wait(lambda: page.control('Solver')['value'] == 'dls', 'the choice')
    node.set('solver', 'lm')
    page.wait(lambda: page.control('Solver')['value'] == 'lm', 'the choice')


def test_a_rejection_is_shown_and_the_choice_goes_back(served: tuple[Page, Node]) -> None:
    page, node = served
    node.set('direction_weight', 0.1)
    page.choose('Solver', 'ccd')
    page.wait(lambda: 'direction_weight must be 0 for solver ccd' in page.words(), 'the reason')
    page.wait(lambda: page.control('Solver')['value'] == 'lm', 'the solver in use')
    assert node.get('solver') == 'lm'
    node.set('direction_weight', 0.0)


def test_switches_turn_parts_of_a_method_off_in_slow_motion(served: tuple[Page, Node], arm: Arm) -> None:
    page, node = served
    page.wait(lambda: page.nodes['/base/goal']['visible'], 'the gizmo')
    solver = {
        off: IkSolver(
            arm,
            method='ccd',
            method_options={'direction': not off},
            position_tolerance=node.get('position_tolerance'),
            direction_tolerance=node.get('direction_tolerance'),
        )
        for off in (True, False)
    }
    counts = {off: len(list(one.steps(GOAL, np.zeros(5)))) - 1 for off, one in solver.items()}
    page.choose('Method', 'ccd')
    page.choose('Watch', True)
    page.choose('ccd: direction', False)
    page.drag(DOWN)
    page.wait(lambda: f'of {counts[True]}<' in page.words(), 'the number of sweeps')
    page.choose('ccd: direction', True)
    page.wait(lambda: f'of {counts[False]}<' in page.words(), 'a new descent')
    page.choose('Watch', False)
