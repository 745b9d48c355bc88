# SPDX-License-Identifier: Apache-2.0
"""ik_solve and ik_inspect as a user meets them: what they print, and how they end."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from programs import check_rejected, ran
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver
from ik_node.cli import inspect, reach, solve
from ik_node.startup import demo

URDF = Path(__file__).resolve().parents[2] / 'urdf'
SEED_ARM = URDF / 'seed_arm.urdf.xacro'
Capture = pytest.CaptureFixture[str]


def run_solve(*arguments: object) -> int:
    return solve.main([str(argument) for argument in arguments])


def run_inspect(*arguments: object) -> int:
    return inspect.main([str(argument) for argument in arguments])


def goal_of(arm: Arm, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A position and a direction that the arm can take, from random joint values."""
    return arm.fk(arm.sample(np.random.default_rng(seed), 1)[0])


# --- ik_solve ------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'prismatic_arm'])
def test_json_is_what_the_solver_says(name: str, capsys: Capture) -> None:
    path = URDF / f'{name}.urdf.xacro'
    arm = Arm.from_file(path)
    position, direction = goal_of(arm)
    seed = (arm.middle + 0.1).tolist()
    code = run_solve(path, *position, '--direction', *direction, '--seed', *seed, '--json')
    data = json.loads(capsys.readouterr().out)
    assert code == 0
    solver = IkSolver(arm)
    goal = Goal(position, direction)
    expected, every = solver.solve(goal, seed), solver.solve_all(goal, seed)
    assert data['arm'] == name
    assert data['joint_names'] == list(arm.joint_names)
    assert data['status'] == 'solved'
    assert data['reason'] is None
    np.testing.assert_allclose(data['q'], expected.q, atol=1e-9)
    assert len(data['solutions']) == len(every)
    assert data['complete'] is every.complete
    for one in data['solutions']:
        at, along = arm.fk(one['q'])
        assert np.linalg.norm(at - position) <= 1e-6
        assert math.acos(min(1.0, along @ direction)) <= 2e-6
        assert one['position_error'] == pytest.approx(np.linalg.norm(at - position), abs=1e-12)


def test_a_proof_on_request(capsys: Capture) -> None:
    pytest.importorskip('flint')
    arm = Arm.from_file(SEED_ARM)
    position, direction = goal_of(arm, 3)
    goal = *position, '--direction', *direction
    assert run_solve(SEED_ARM, *goal, '--prove', '--json') == 0
    data = json.loads(capsys.readouterr().out)
    proof = data['proof']
    assert (proof['proven'], proof['reason'], proof['enclosed'], proof['bound']) == (True, '', 8, 8)
    for one, proven in zip(data['solutions'], proof['solutions'], strict=True):
        np.testing.assert_allclose(one['q'], proven['q'], atol=1e-9)
        assert proven['radius'] < 1e-9
    assert run_solve(SEED_ARM, *goal, '--prove') == 0
    count = len(data['solutions'])
    said = (
        f'Proven: exactly {count} solutions within the limits (8 complex ones enclosed, no more can exist).'
    )
    assert capsys.readouterr().out.splitlines()[-1] == said
    assert run_solve(SEED_ARM, 3, 0, 0.2, '--direction', 0, 0, -1, '--prove') == 1
    assert 'Proven: no solution within the limits' in capsys.readouterr().out
    assert run_solve(SEED_ARM, *position, '--prove') == 0
    assert capsys.readouterr().out.endswith('Not proven: the goal has no direction.\n')


def test_text_has_every_solution_in_columns(capsys: Capture) -> None:
    arm = Arm.from_file(SEED_ARM)
    position, direction = goal_of(arm, 3)
    assert run_solve(SEED_ARM, *position, '--direction', *direction) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == arm.describe()
    assert lines[1].split() == ['status', 'solved']
    every = IkSolver(arm).solve_all(Goal(position, direction))
    assert len(every) > 1
    head = next(i for i, line in enumerate(lines) if line.startswith('joint'))
    assert len(re.findall(r'solution \d', lines[head])) == min(8, len(every))
    for joint, name in enumerate(arm.joint_names):
        row = lines[head + 1 + joint]
        assert row.startswith(name)
        values = [float(value) for value in re.findall(r'(-?\d+\.\d{5}) \(', row)]
        np.testing.assert_allclose(values, [answer.q[joint] for answer in every[:8]], atol=6e-6)


def test_position_only_and_the_seed_is_stayed_near(capsys: Capture) -> None:
    arm = Arm.from_file(SEED_ARM)
    q = arm.sample(np.random.default_rng(5), 1)[0]
    position, _ = arm.fk(q)
    assert run_solve(SEED_ARM, *position, '--seed', *q, '--json') == 0
    data = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(data['q'], q, atol=1e-4)
    assert data['solutions']
    assert all(one['self_motion'] for one in data['solutions'])  # five joints, three numbers


def test_a_direction_may_have_any_length(capsys: Capture) -> None:
    arm = Arm.from_file(SEED_ARM)
    position, direction = goal_of(arm)
    answers = []
    for length in (1.0, 7.0, 1e200, 1e-200):
        assert run_solve(SEED_ARM, *position, '--direction', *(length * direction), '--json') == 0
        answers.append(json.loads(capsys.readouterr().out)['q'])
    for answer in answers[1:]:
        np.testing.assert_allclose(answers[0], answer, atol=1e-5)


def test_an_unreachable_goal_ends_with_1_and_says_why(capsys: Capture) -> None:
    assert run_solve(SEED_ARM, 3, 0, 0.2, '--direction', 0, 0, -1) == 1
    text = capsys.readouterr().out
    assert re.search(r'status +unreachable\nreason +\S.* m beyond the workspace\n', text)
    assert 'closest' in text
    assert 'solution 1' not in text
    assert run_solve(SEED_ARM, 3, 0, 0.2, '--json') == 1
    data = json.loads(capsys.readouterr().out)
    assert data['status'] == 'unreachable'
    assert data['complete'] is True
    assert data['solutions'] == []
    assert data['reason']['cause'] == 'too far'
    assert data['reason']['amount'] == pytest.approx(data['position_error'], rel=0.2)
    assert len(data['q']) == 5


@pytest.mark.parametrize('number', ['-1e-3', '-.2', '-0.1', '-2E-1'])
def test_negative_numbers_are_numbers(number: str, capsys: Capture) -> None:
    assert run_solve(SEED_ARM, 0.3, number, 0.3, '--json') == 0
    q = json.loads(capsys.readouterr().out)['q']
    assert Arm.from_file(SEED_ARM).fk(q)[0][1] == pytest.approx(float(number), abs=2e-6)


# Programs, what they are given, and what the one line of their error names.
WRONG = [
    (solve, (SEED_ARM, 'nan', 0, 0.2), 'position must be finite'),
    (solve, (SEED_ARM, '-inf', 0, 0.2), 'position must be finite'),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--direction', 0, 0, 0), '0 0 0'),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--direction', 1, 'nan', 0), '1 nan 0'),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--direction', '-inf', 0, 1), '-inf 0 1'),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--seed', 1, 2), 'seed must be 5'),
    (
        solve,
        (SEED_ARM, 0.3, 0, 0.2, '--tip-link', 'hand'),
        'tip_link "hand" does not exist; links: ',
    ),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--base-link', 'world'), 'base_link "world"'),
    (solve, ('nothing.urdf', 0.3, 0, 0.2), 'nothing.urdf: No such file'),
    (solve, (Path(__file__), 0.3, 0, 0.2), f'{__file__}: malformed XML at line 1'),
    (solve, (SEED_ARM, 0.3, 0), 'required: z'),
    (solve, (SEED_ARM, 0.3, 'a', 0), "argument y: invalid float value: 'a'"),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--direction', 0, 1), '--direction: expected 3 arguments'),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--tool-axis', 'w'), "'w'"),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--tool-axis', '0,0,0'), 'tool_axis must be a unit vector'),
    (solve, (SEED_ARM, 0.3, 0, 0.2, '--lock', 'nobody'), 'nobody'),
    (reach, ('nothing.urdf',), 'nothing.urdf: No such file'),
    (reach, (SEED_ARM, '--resolution', 0), '--resolution must be greater than 0, got 0'),
    (reach, (SEED_ARM, '--resolution', 'nan'), '--resolution must be greater than 0, got nan'),
    (reach, (SEED_ARM, '--resolution', 1e-9), 'are allowed'),
    (reach, (SEED_ARM, '--volume', '--resolution', 0.002), 'at most 2.0e+06'),
    (reach, (SEED_ARM, '--volume', '--resolution', 1e-320), 'at most 2.0e+06'),
    (reach, (SEED_ARM, '--volume', '--directions', 1001), 'at most 1000, got 1001'),
    (reach, (SEED_ARM, '--within', 0), '--within must be greater than 0 and at most 180, got 0'),
    (reach, (SEED_ARM, '--within', 'nan'), '--within must be'),
    (reach, (SEED_ARM, '--directions', 0), '--directions must be greater than 0'),
    (reach, (SEED_ARM, '--height', 'inf'), '--height must be finite'),
    (reach, (SEED_ARM, '--tip-link', 'hand'), 'tip_link "hand"'),
    (reach, (SEED_ARM, '--output', '/nowhere/at/all'), '"/nowhere/at"'),
]


@pytest.mark.parametrize(('program', 'arguments', 'named'), WRONG)
def test_wrong_arguments(program, arguments, named, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = ran(program, *arguments)
    check_rejected(ended, named)
    assert ended.out == ''
    assert list(tmp_path.iterdir()) == []


# --- ik_inspect ----------------------------------------------------------------------------------------


def test_inspect_tells_of_joints_reach_freedom_and_solutions(capsys: Capture) -> None:
    arm = Arm.from_file(SEED_ARM)
    assert run_inspect(SEED_ARM) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    for name, low, high in zip(arm.joint_names, arm.lower, arm.upper, strict=True):
        assert [name, 'revolute', f'{low:.4g}', 'rad', f'{high:.4g}', 'rad'] in [row[:6] for row in rows]
    least, most, limit = map(
        float, re.search(r'reach: ([\d.]+) to ([\d.]+) m .* upper bound ([\d.]+) m', text).groups()
    )
    assert 0 <= least < most <= limit == pytest.approx(arm.reach, abs=1e-3)
    assert re.findall(r'^  ([xyz])  (\d)$', text, re.MULTILINE) == [('x', '5'), ('y', '5'), ('z', '5')]
    assert 'not every direction can be reached at every position' in text
    assert 'closed form: ' in text
    assert re.search(r'solutions within the limits: \d+ to \d+, median \d+ \(500 random', text)


def test_inspect_says_what_four_degrees_of_freedom_mean(capsys: Capture) -> None:
    assert run_inspect(URDF / 'so101_like.urdf.xacro') == 0
    text = capsys.readouterr().out
    assert re.search(r'^  z  4$', text, re.MULTILINE)
    assert 'use position goals' in text
    assert 'tool axes with 5 effective DoF: x, y' in text
    assert 'varied independently' not in text


def test_inspect_takes_no_small_offset_for_freedom(capsys: Capture) -> None:
    """The SO-101 has rank 5, but all but a few directions are out of its reach everywhere."""
    assert run_inspect(shared_path('arms', 'so101.urdf'), '--tip-link', 'gripper_frame_link') == 0
    text = capsys.readouterr().out
    assert re.search(r'^  z  5 \(in practice 4: condition number \d+\)$', text, re.MULTILINE)
    assert re.search(r'^  x  5$', text, re.MULTILINE)
    assert re.search(
        r'5 effective DoF, in practice 4 \(condition number \d+\): the position constrains', text
    )
    assert 'tool axes with 5 effective DoF: x, y' in text
    assert 'varied independently' not in text


@pytest.mark.slow
def test_inspect_notes_what_is_suspicious(capsys: Capture) -> None:
    assert run_inspect(shared_path('arms', 'panda.urdf'), '--tip-link', 'panda_hand_tcp') == 0
    text = capsys.readouterr().out
    assert 'note: joint "panda_joint4": zero is outside its limits' in text
    assert 'no closed form' in text
    assert re.search(r'\d of \d joints (is|are) spare: ik_solve --lock', text)


def test_inspect_asks_for_a_tip_that_is_not_plain(capsys: Capture) -> None:
    assert run_inspect(shared_path('arms', 'dual_xarm5.urdf')) == 2
    said = capsys.readouterr().err
    assert 'tip_link must be given' in said
    assert '"L_link_eef" (5)' in said
    assert said.count('\n') == 1


# --- as programs ---------------------------------------------------------------------------------------


def piped(command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(URDF.parent), *sys.path])}
    return subprocess.run(
        ['bash', '-o', 'pipefail', '-c', command.replace('RUN', f'{sys.executable} -m ik_node.start')],
        cwd=URDF,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_exit_codes_reach_the_shell_even_if_the_reader_of_a_pipe_leaves_early() -> None:
    done = piped(f'RUN ik_solve seed_arm.urdf.xacro 0.4 0 0.2 --json | {sys.executable} -m json.tool')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)['status'] == 'solved'
    for goal, code in (('9 0 0 --json', 1), ('nan 0 0 2>&1', 2)):
        done = piped(f'RUN ik_solve seed_arm.urdf.xacro {goal} | true; echo ${{PIPESTATUS[0]}}')
        assert (done.stdout, done.stderr) == (f'{code}\n', '')


@pytest.mark.parametrize('script', [solve, inspect, reach, demo])
@pytest.mark.parametrize('columns', ['30', '80', '200'])
def test_help(script: ModuleType, columns: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('COLUMNS', columns)
    with pytest.raises(SystemExit) as ended:
        script.main(['--help'])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, '')
    assert '--tip-link' in out
    assert '--tool-axis' in out


def test_locked_joints_stay_and_the_others_are_all_found(capsys: Capture) -> None:
    arm = Arm.from_file(SEED_ARM)
    q = arm.sample(np.random.default_rng(5), 1)[0]
    position, direction = arm.fk(q)
    locked = arm.joint_names[0]
    told = (SEED_ARM, *position, '--direction', *direction, '--seed', *q, '--lock', locked, '--json')
    assert run_solve(*told) == 0
    data = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(data['q'], q, atol=1e-6)
    assert all(one['q'][0] == q[0] for one in data['solutions'])
    assert (
        run_solve(SEED_ARM, *position, '--direction', *direction, '--lock', locked) == 1
    )  # not at mid-range
    text = capsys.readouterr().out
    assert 'no solution while these joints are locked' in text
    assert re.search(r'^joint +seed$', text, re.MULTILINE)
    assert f'joints locked    {locked}' in text
