# SPDX-License-Identifier: Apache-2.0
"""The local methods: their registry, their switches, their steps and the schedules of their restarts."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import shipped_cases

from ik_node import Arm, Goal, IkSolver, InputError, kernels
from ik_node.kernels.arrays.layout import ACCEPTANCE
from ik_node.model.urdf.description import load_description
from ik_node.solver.methods.autodiff_method import squared_error
from ik_node.solver.methods.registry import METHODS
from ik_node.solver.restarts import SCHEDULES

ROOT = Path(__file__).resolve().parents[2]
ARMS = {case.label: case for case in shipped_cases()}

TOY = '''
"""Toy: steps along single joints, each the best for the linear model."""

from ..chain.forward import clip, forward, jacobian
from ..runtime.compiled import compiled
from ..arrays.layout import WEIGHT
from .restarts import anneal
from ..runtime.specialised import specialised
from .driver import drive


@compiled
def step(iteration, joints, tool, limits, goal, options, q, frames, work):
    n, m = q.shape[0], joints.shape[0]
    jac = work[:n, :6]
    for i in range(n):
        jacobian(joints, frames, jac)
        slope, curve = 0.0, 1e-12
        for k in range(6):
            share = 1.0 if k < 3 else options[WEIGHT]
            slope += share * share * jac[i, k] * (goal[k] - frames[2 * m + k // 3, k % 3])
            curve += share * share * jac[i, k] * jac[i, k]
        q[i] += slope / curve
        clip(q, limits)
        forward(joints, tool, q, frames)
    return True


local_toy = specialised(drive, 'local_toy', __file__, step=step)
search_toy = specialised(anneal, 'search_toy', __file__, descend=local_toy)
'''
ROW = "    'toy': Method('one joint after the other.', 100, 0.1, (20, 0.1), Promise(4), (1, 1)),\n"
USE = """
import sys
sys.path[:0] = [r'{copy}', r'{copy}/test']
import numpy as np
from conformance import PROMISES, Subject, reachable_goals_are_solved
from cases import shipped_cases
from ik_node import Arm, Goal, IkSolver, kernels
from ik_node.control.settings.arm import ArmSettings
from benchmarks.compare import METHODS
import ik_node
assert ik_node.__file__.startswith(r'{copy}')
case = next(case for case in shipped_cases() if case.label == 'moveo_like')
arm = case.arm()
solver = IkSolver(arm, method='toy', position_tolerance=1e-3, direction_tolerance=1e-3)
goal = Goal(*arm.fk(arm.middle + 0.3))
assert solver.solve(goal, arm.middle + 0.2).solved
assert len(list(solver.steps(goal, arm.middle + 0.2))) > 2
assert 'toy' in PROMISES and 'toy' in METHODS
assert ArmSettings(solver='toy').search()['method'] == 'toy'
"""


@pytest.mark.slow
def test_a_method_is_one_file_and_one_row(tmp_path: Path) -> None:
    """A toy method, added to a copy of the package, is chosen, stepped and tested as any other."""
    for folder in ('ik_node', 'test', 'benchmarks', 'urdf', 'config'):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns('__pycache__'))
    (tmp_path / 'ik_node' / 'kernels' / 'methods' / 'toy.py').write_text(TOY.lstrip())
    registry = tmp_path / 'ik_node' / 'solver' / 'methods' / 'registry.py'
    text = registry.read_text()
    registry.write_text(text.replace('METHODS = {\n', f'METHODS = {{\n{ROW}'))
    assert registry.read_text() != text
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', USE.format(copy=tmp_path)],
        # Uncompiled: the same source, and no minute of compiling what the copy has in common.
        env={**os.environ, 'NUMBA_DISABLE_JIT': '1', 'IK_NODE_SHARED': str(tmp_path / 'absent')},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_method_or_schedule_is_rejected_with_those_there_are() -> None:
    arm = ARMS['seed_arm'].arm()
    with pytest.raises(InputError, match=f"method must be one of {', '.join(METHODS)}, got 'newton'"):
        IkSolver(arm, method='newton')
    with pytest.raises(InputError, match='schedule must be one of greedy, metropolis, got None'):
        IkSolver(arm, schedule=None)


@pytest.mark.parametrize(
    ('method', 'given', 'says'),
    [
        (
            'ccd',
            {'axis': False},
            r"of ccd may be hinges, limits, direction \(True or False\), got 'axis': False",
        ),
        ('ccd', {'limits': 1}, "got 'limits': 1"),
        ('lm', {'limits': False}, "of lm may be none, got 'limits': False"),
        ('ccd', 'limits', "must be a dictionary, got 'limits'"),
    ],
)
def test_switches_that_a_method_lacks_are_rejected(method, given, says) -> None:
    with pytest.raises(InputError, match=f'method_options.*{says}'):
        IkSolver(ARMS['seed_arm'].arm(), method=method, method_options=given)


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
@pytest.mark.parametrize('off', ['hinges', 'limits', 'direction'])
def test_ccd_without_a_switch_is_another_method_within_the_limits(name, off) -> None:
    """Answers keep the limits and are as good as they say; without direction, only direction is missed."""
    arm = ARMS[name].arm()
    tolerances = {'position_tolerance': 1e-3, 'direction_tolerance': 1e-3}
    plain = IkSolver(arm, method='ccd', restarts=20, **tolerances)
    solver = IkSolver(arm, method='ccd', restarts=20, method_options={off: False}, **tolerances)
    different, positions = 0, 0
    for q in arm.sample(np.random.default_rng(1), 12):
        goal = Goal(*arm.fk(q))
        solution = solver.solve(goal)
        assert (solution.q >= arm.lower).all()
        assert (solution.q <= arm.upper).all()
        assert solver.errors(goal, solution.q) == (solution.position_error, solution.direction_error)
        different += not np.array_equal(solution.q, plain.solve(goal).q)
        positions += solver.solve(Goal(goal.position)).solved
    assert different > 0
    assert positions >= {'direction': 12, 'limits': 6, 'hinges': 1}[off]


def test_the_automatic_gradient_is_that_of_the_jacobian() -> None:
    for case in ARMS.values():
        arm = case.arm()
        for q, target in arm.sample(np.random.default_rng(2), 10).reshape(5, 2, -1):
            goal = Goal(*arm.fk(target))
            error = squared_error(arm.joints, arm.tool, goal.packed, 0.3, q)
            position, direction = arm.fk(q)
            missed = np.concatenate([position - goal.position, 0.3**2 * (direction - goal.direction)])
            np.testing.assert_allclose(error.slope, 2.0 * missed @ arm.jacobian(q), rtol=0, atol=1e-13)
            squares = np.sum((position - goal.position) ** 2) + 0.09 * np.sum(
                (direction - goal.direction) ** 2
            )
            np.testing.assert_allclose(error.value, squares, rtol=1e-12)


@np.errstate(over='ignore')  # of the plain random numbers
def test_worse_places_are_accepted_with_metropolis_probability() -> None:
    """exp(-rise of the weighted error / (temperature * acceptance)); never where acceptance is 0."""
    options, state = np.zeros(9), np.array([3], dtype=np.uint64)
    draws = 4000
    for acceptance, temperature in ((0.1, 1.0), (0.1, 0.25), (0.0, 1.0)):
        options[ACCEPTANCE] = acceptance
        taken = sum(kernels.accepted(0.3**2, 0.25**2, temperature, options, state) for _ in range(draws))
        expected = math.exp(-0.05 / (temperature * acceptance)) if acceptance > 0.0 else 0.0
        assert abs(taken / draws - expected) < 4.0 * math.sqrt(0.25 / draws)
        assert kernels.accepted(0.25**2, 0.3**2, temperature, options, state)


def test_both_schedules_solve_and_differ_only_after_the_first_random_restart() -> None:
    text = load_description(ARMS['ball_joint_arm'].path)
    # Without the cone of its ball, whose corners are not where those of the joints are.
    arm = Arm.from_urdf(re.sub('<ik_node>.*?</ik_node>', '', text, flags=re.DOTALL))
    lower, upper = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)
    solvers = [IkSolver(arm, schedule=name, direction_tolerance=1e-6) for name in SCHEDULES]
    rng, late = np.random.default_rng(4), 0
    for _ in range(60):
        q = np.where(rng.random(arm.n) < 0.5, lower, upper)  # corners: many restarts
        goal = Goal(*arm.fk(np.where(rng.random(arm.n) < 0.7, q, (lower + upper) / 2)))
        answers = [solver.solve(goal) for solver in solvers]
        assert all(answer.solved for answer in answers)
        if answers[0].restarts <= kernels.INFORMED + 1:
            np.testing.assert_array_equal(answers[0].q, answers[1].q)
        late += answers[0].restarts > kernels.INFORMED + 1
    assert late > 0, 'too easy to show anything'
