# SPDX-License-Identifier: Apache-2.0
"""Each program of examples/ that needs no ROS runs to its end and prints what is true."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from programs import Here

from ik_node import Arm, Goal, IkSolver

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / 'examples'
WITH_ROS = ('08_node', '09_teleoperation', '10_taught_program')  # see test/process
NUMBER = r'[-+]?\d+\.?\d*(?:e[-+]\d+)?'
GOAL = np.array([0.4, 0.1, 0.2])
Run = Callable[..., str]


def numbers(text: str) -> list[float]:
    """Return the numbers in a text."""
    return [float(number) for number in re.findall(NUMBER, text)]


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_file(ROOT / 'urdf' / 'seed_arm.urdf.xacro')


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run an example in a folder of no importance, and return what it printed."""

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, 'argv', [name, *arguments])
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(EXAMPLES / f'{name}.py'), run_name='__main__')
        return capsys.readouterr().out

    return run


def test_every_example_is_numbered_described_and_tested() -> None:
    here = Path(__file__).read_text(encoding='utf-8')
    in_processes = (ROOT / 'test' / 'process' / 'test_example_processes.py').read_text(encoding='utf-8')
    names = sorted(path.stem for path in EXAMPLES.glob('*.py'))
    assert [name[:3] for name in names] == [f'{number:02}_' for number in range(1, len(names) + 1)]
    assert set(WITH_ROS) < set(names)
    listed = (EXAMPLES / 'README.md').read_text(encoding='utf-8')
    for name in names:
        assert f"('{name}'" in (in_processes if name in WITH_ROS else here), f'no test runs {name}'
        assert f'[{name}.py]({name}.py)' in listed


def test_a_goal_is_solved(run: Run, arm: Arm) -> None:
    said = run('01_solve')
    assert 'status: solved' in said
    q = [float(re.search(rf'{name}: ({NUMBER}) rad', said)[1]) for name in arm.joint_names]
    position, direction = arm.fk(q)
    assert position == pytest.approx(GOAL, abs=1e-5)
    assert direction == pytest.approx([0.0, 0.0, -1.0], abs=1e-5)


def test_all_solutions_are_listed(run: Run, arm: Arm) -> None:
    first, others, _, *rows = run('02_all_solutions').splitlines()
    assert int(first.split()[0]) == len(rows) > 1
    assert others == 'there are no others'
    for row in rows:
        *q, error = numbers(row)
        assert arm.fk(q)[0] == pytest.approx([0.3, 0.1, 0.3], abs=1e-3)
        assert error < 1e-6


def test_an_unreachable_goal_has_a_reason_and_a_best_effort(run: Run) -> None:
    far, turned = run('03_unreachable_goal').split('at the edge')
    for said, cause in ((far, 'TOO_FAR'), (turned, 'DIRECTION_CONSTRAINED')):
        assert ': unreachable' in said
        assert cause in said
    closest = numbers(re.search(r'closest tool point (.*)', far)[1])
    assert closest[3] == pytest.approx(np.linalg.norm(np.array(closest[:3]) - (2.0, 0.0, 0.2)), abs=1e-3)
    assert closest[3] > 1.0
    assert numbers(re.search(r'closest tool point (.*)', turned)[1])[3] == 0.0


def test_a_line_is_straight_and_has_a_duration(run: Run) -> None:
    length, *rows, fastest = run('04_straight_line').splitlines()
    metres, duration = numbers(length)
    assert metres == pytest.approx(0.3)
    times, points = np.split(np.array([numbers(row) for row in rows]), [1], axis=1)
    assert times[-1] == pytest.approx(duration)
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1) / np.diff(times[:, 0])
    assert 0.2 < steps.max() < 0.255  # tool_speed is 0.25 m/s
    assert points[0] == pytest.approx(GOAL, abs=2e-4)
    assert points[-1] == pytest.approx([0.4, -0.1, 0.3], abs=2e-4)
    assert np.ptp(points[:, 0]) < 4e-4
    off_line = np.minimum(np.abs(points[:, 1] + 0.1), np.abs(points[:, 2] - 0.2))
    assert off_line.max() < 4e-4  # on one of the two lines
    assert 'joint' in fastest


def test_a_batch_counts_what_single_goals_give(run: Run, arm: Arm) -> None:
    said = run('05_batch')
    goals, solved = numbers(said.splitlines()[0])
    layers = [numbers(row)[1:] for row in re.findall(r'height .*', said)]
    assert np.sum(layers, axis=0).tolist() == [solved, goals]
    assert sum(numbers(row)[0] for row in re.findall(r'^  [A-Z_]+: .*', said, re.MULTILINE)) == goals - solved
    axis = np.linspace(-0.6, 0.6, 13)
    solver = IkSolver(arm)
    single = [solver.solve(Goal((x, y, 0.05), (0, 0, -1))).solved for x in axis for y in axis]
    assert layers[0][0] == sum(single)


@pytest.mark.parametrize('arguments', [(), (str(ROOT / 'urdf' / 'seed_arm.urdf.xacro'), 'tool0')])
def test_an_arm_of_your_own_is_described_and_solved(run: Run, arguments: tuple[str, ...]) -> None:
    said = run('06_your_own_arm', *arguments)
    assert said.startswith('seed_arm' if arguments else 'so101_like')
    assert len(re.findall('^  .* to ', said, re.MULTILINE)) == 5
    assert '200 of 200' in said


def test_an_error_about_an_arm_of_your_own_is_one_line(run: Run) -> None:
    with pytest.raises(SystemExit, match=r'^error: .*"?no_such_arm\.urdf'):
        run('06_your_own_arm', 'no_such_arm.urdf')


def test_two_arms_turn_the_torso_for_both(run: Run) -> None:
    together, apart = run('07_two_arms').split('largest joint move: ')
    assert 'both: solved' in together
    assert re.findall(r'(\w+): solved,', together) == ['left', 'right']
    assert apart.startswith('1.000 rad, torso_yaw')
    assert re.search(r'left: not found, .*together with "right"', apart)
    assert re.search(r'right: unreachable, the position is out of reach', apart)


def test_retargeting_tells_episodes_apart(run: Run, arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('ik_node.tools.workers.Processes', Here)
    said = run('11_retargeting')
    assert 'exit code 0' in said
    near, far = (int(n) for n in re.findall(r"^episode \d: {'solved': (\d+)", said, re.MULTILINE))
    assert near == 60 > far > 0
    q = [float(re.search(rf'{name}=({NUMBER})', said)[1]) for name in arm.joint_names]
    assert arm.fk(q)[0] == pytest.approx([0.45, 0.0, 0.2], abs=1e-3)
