# SPDX-License-Identifier: Apache-2.0
"""ik_solve and ik_inspect as a user meets them: what they print, and how they end."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from cases import arm_of
from programs import check_rejected, ran
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver
from ik_node.startup.arguments import URDF
from ik_node.tools import inspect, solve

pytestmark = pytest.mark.slow

SEED_ARM = URDF / 'seed_arm.urdf.xacro'
UNREACHABLE = (3, 0, 0.2, '--direction', 0, 0, -1)


def told(*arguments, code=0, path=SEED_ARM, program=solve) -> str:
    """What a program prints."""
    ended = ran(program, path, *arguments)
    assert ended.code == code, ended
    return ended.out


def data_of(*arguments, **more):
    return json.loads(told(*arguments, '--json', **more))


def goal_of(arm: Arm, seed: int = 0):
    """A position and a direction that the arm can take, from random joint values."""
    return arm.fk(arm.sample(np.random.default_rng(seed), 1)[0])


def test_a_cone_and_a_tolerance_are_those_of_the_goal():
    arm = arm_of('seed_arm')
    position, direction = goal_of(arm)
    given = (*position, '--direction', *direction, '--cone', 0.4, '--tolerance', 0.002)
    data, goal = data_of(*given), Goal(position, direction, cone=0.4, tolerance=0.002)
    np.testing.assert_allclose(data['q'], IkSolver(arm).solve(goal).q, atol=1e-9)
    assert 1e-3 < data['direction_error'] <= 0.4 + 1e-4
    assert not data['complete']
    check_rejected(ran(solve, SEED_ARM, *position, '--cone', 0.4), 'cone needs a direction')
    check_rejected(
        ran(solve, SEED_ARM, *position, '--direction', *direction, '--cone', 20), 'from 0 to pi [rad], got 20'
    )


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'prismatic_arm'])
def test_json_is_what_the_solver_says(name):
    arm = arm_of(name)
    position, direction = goal_of(arm)
    seed = (arm.middle + 0.1).tolist()
    path = URDF / f'{name}.urdf.xacro'
    data = data_of(*position, '--direction', *direction, '--seed', *seed, path=path)
    goal = Goal(position, direction)
    expected, every = IkSolver(arm).solve(goal, seed), IkSolver(arm).solve_all(goal, seed)
    assert (data['arm'], data['status'], data['reason']) == (name, 'solved', None)
    assert data['joint_names'] == list(arm.joint_names)
    np.testing.assert_allclose(data['q'], expected.q, atol=1e-9)
    assert (len(data['solutions']), data['complete']) == (len(every), every.complete)
    for one in data['solutions']:
        at, along = arm.fk(one['q'])
        assert np.linalg.norm(at - position) <= 1e-6
        assert math.acos(min(1.0, along @ direction)) <= 2e-6
        assert one['position_error'] == pytest.approx(np.linalg.norm(at - position), abs=1e-12)


def test_a_proof_on_request():
    pytest.importorskip('flint')
    position, direction = goal_of(arm_of('seed_arm'), 3)
    goal = *position, '--direction', *direction, '--prove'
    data = data_of(*goal)
    proof, count = data['proof'], len(data['solutions'])
    assert (proof['proven'], proof['reason'], proof['enclosed'], proof['bound']) == (True, '', 8, 8)
    for one, proven in zip(data['solutions'], proof['solutions'], strict=True):
        np.testing.assert_allclose(one['q'], proven['q'], atol=1e-9)
        assert proven['radius'] < 1e-9
    assert f'Proven: exactly {count} solutions' in told(*goal).splitlines()[-1]
    assert 'Proven: no solution' in told(*UNREACHABLE, '--prove', code=1)
    assert 'Not proven: ' in told(*position, '--prove').splitlines()[-1]


def test_text_has_every_solution_in_columns():
    arm = arm_of('seed_arm')
    position, direction = goal_of(arm, 3)
    lines = told(*position, '--direction', *direction).splitlines()
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


def test_position_only_and_the_seed_is_stayed_near():
    q = arm_of('seed_arm').sample(np.random.default_rng(5), 1)[0]
    data = data_of(*arm_of('seed_arm').fk(q)[0], '--seed', *q)
    np.testing.assert_allclose(data['q'], q, atol=1e-4)
    assert data['solutions']
    assert all(one['self_motion'] for one in data['solutions'])  # five joints, three numbers


def test_directions_of_any_length_and_negative_numbers():
    position, direction = goal_of(arm_of('seed_arm'))
    answers = [data_of(*position, '--direction', *(length * direction))['q'] for length in (1.0, 7.0, 1e200, 1e-200)]
    np.testing.assert_allclose(answers, np.tile(answers[0], (4, 1)), atol=1e-5)
    for number in ('-1e-3', '-.2', '-0.1', '-2E-1'):
        y = arm_of('seed_arm').fk(data_of(0.3, number, 0.3)['q'])[0][1]
        assert y == pytest.approx(float(number), abs=2e-6)


def test_an_unreachable_goal_ends_with_1_and_says_why():
    text = told(*UNREACHABLE, code=1)
    assert re.search(r'status +unreachable\nreason +\S.* m beyond the workspace\n', text)
    assert 'closest' in text
    assert 'solution 1' not in text
    data = data_of(3, 0, 0.2, code=1)
    assert (data['status'], data['complete'], data['solutions']) == ('unreachable', True, [])
    assert data['reason']['cause'] == 'too far'
    assert data['reason']['amount'] == pytest.approx(data['position_error'], rel=0.2)
    assert len(data['q']) == 5


def test_locked_joints_stay_and_the_others_are_all_found():
    arm = arm_of('seed_arm')
    q = arm.sample(np.random.default_rng(5), 1)[0]
    position, direction = arm.fk(q)
    goal = *position, '--direction', *direction, '--lock', arm.joint_names[0]
    data = data_of(*goal, '--seed', *q)
    np.testing.assert_allclose(data['q'], q, atol=1e-6)
    assert all(one['q'][0] == q[0] for one in data['solutions'])
    text = told(*goal, code=1)  # not at mid-range
    assert 'reason           there is no solution while these joints are locked' in text
    assert re.search(rf'joints locked +{arm.joint_names[0]}', text)


def test_a_tip_that_was_not_given_is_told():
    ended = ran(solve, shared_path('arms', 'so101.urdf'), 0.2, 0, 0.1, '--json')
    assert ended.out.startswith('{')
    assert 'tip_link is not set, using "gripper_frame_link" (5' in ended.err
    check_rejected(ran(inspect, shared_path('arms', 'dual_xarm5.urdf')), '"L_link_eef" (5)')


# --- ik_inspect ----------------------------------------------------------------------------------------


def test_inspect_tells_of_joints_reach_freedom_and_solutions():
    arm, text = arm_of('seed_arm'), told(program=inspect)
    rows = [line.split()[:6] for line in text.splitlines()]
    for name, low, high in zip(arm.joint_names, arm.lower, arm.upper, strict=True):
        assert [name, 'revolute', f'{low:.4g}', 'rad', f'{high:.4g}', 'rad'] in rows
    numbers = re.search(r'reach: ([\d.]+) to ([\d.]+) m .* upper bound ([\d.]+) m', text).groups()
    least, most, limit = map(float, numbers)
    assert 0 <= least < most <= limit == pytest.approx(arm.reach, abs=1e-3)
    assert re.findall(r'^  ([xyz])  (\d)$', text, re.MULTILINE) == [('x', '5'), ('y', '5'), ('z', '5')]
    assert 'closed form: ' in text
    assert re.search(r'solutions within the limits: \d+ to \d+, median \d+ \(500 random', text)


# The SO-101 has rank 5, but all but a few directions are out of its reach everywhere.
@pytest.mark.parametrize(
    ('path', 'tip', 'said'),
    [
        (URDF / 'so101_like.urdf.xacro', 'tool0', [r'^  z  4$', 'use position goals', 'effective DoF: x, y']),
        ('so101', 'gripper_frame_link', [r'^  z  5 \(in practice 4: ', r'^  x  5$', 'effective DoF: x, y']),
        ('panda', 'panda_hand_tcp', ['"panda_joint4": zero', 'has no formula', r'\d of \d joints .* --lock']),
    ],
)
def test_inspect_says_what_other_arms_cannot_do(path, tip, said):
    path = shared_path('arms', f'{path}.urdf') if isinstance(path, str) else path
    text = told('--tip-link', tip, program=inspect, path=path)
    assert [words for words in said if not re.search(words, text, re.MULTILINE)] == [], text
    assert ('in many directions' in text) == (tip == 'panda_hand_tcp')


@pytest.mark.slow
def test_inspect_says_which_axis_is_the_tool_and_never_hints_at_a_wrong_one():
    index = json.loads(shared_path('arms', 'index.json').read_text())
    right = 0
    for name, row in index.items():
        for tip in row['tips']:
            path, link = shared_path('arms', f'{name}.urdf'), tip['tip_link']
            hint = inspect.along_tip(Arm.from_file(path, link, base_link=row['base_link'], tool_axis='z'))
            assert hint in ('', tip['approach_axis']), name
            right += hint != ''
    assert right >= 12
    px150 = ('--tip-link', 'px150/ee_gripper_link')
    text = told(*px150, program=inspect, path=shared_path('arms', 'px150.urdf'))
    assert 'tool axis: z of px150/ee_gripper_link (default)\nnote: ' in text
    assert 'along x; if the tool points there: --tool-axis x\n' in text
    text = told(*px150, '--tool-axis', 'x', program=inspect, path=shared_path('arms', 'px150.urdf'))
    assert 'tool axis: x of px150/ee_gripper_link\n' in text
    assert 'note: the tip' not in text


# --- as programs ---------------------------------------------------------------------------------------


def test_exit_codes_reach_the_shell_even_if_the_reader_of_a_pipe_leaves_early():
    run = f'{sys.executable} -m ik_node.start ik_solve seed_arm.urdf.xacro'
    for command, said in (
        (f'{run} 0.4 0 0.2 --json | {sys.executable} -m json.tool | grep -c solved', '1\n'),
        (f'{run} 9 0 0 --json | true; echo ${{PIPESTATUS[0]}}', '1\n'),
        (f'{run} nan 0 0 2>&1 | true; echo ${{PIPESTATUS[0]}}', '2\n'),
    ):
        done = subprocess.run(
            ['bash', '-c', command],
            cwd=URDF,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(URDF.parent), *sys.path])},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.stdout, done.stderr) == (said, '')
