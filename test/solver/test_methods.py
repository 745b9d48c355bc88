# SPDX-License-Identifier: Apache-2.0
"""The local methods: their switches, steps and restarts; and kernels that are not compiled yet."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import BY_NAME, arm_of, shipped_cases

from ik_node import Arm, Goal, IkSolver, InputError, kernels
from ik_node.kernels.arrays import ACCEPTANCE
from ik_node.model.urdf.description import load_description
from ik_node.solver.autodiff_method import squared_error
from ik_node.solver.methods import METHODS
from ik_node.solver.restarts import SCHEDULES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ('options', 'named'),
    [
        ({'method': 'newton'}, f"{', '.join(METHODS)}, got 'newton'"),
        ({'schedule': None}, 'greedy, metropolis, got None'),
        ({'method': 'ccd', 'method_options': {'axis': False}}, "hinges, limits, direction .*'axis': False"),
        ({'method': 'ccd', 'method_options': {'limits': 1}}, "'limits': 1"),
        ({'method': 'lm', 'method_options': {'limits': False}}, "of lm may be none, got 'limits': False"),
    ],
)
def test_methods_schedules_and_switches_that_there_are_not(options, named):
    with pytest.raises(InputError, match=named):
        IkSolver(arm_of('seed_arm'), **options)


@pytest.mark.parametrize('off', ['hinges', 'limits', 'direction'])
def test_ccd_without_a_switch_is_another_method_within_the_limits(off):
    """Answers keep the limits and are as good as they say; without direction, only direction is missed."""
    arm = arm_of('seed_arm')
    options = {'method': 'ccd', 'restarts': 20, 'position_tolerance': 1e-3, 'direction_tolerance': 1e-3}
    plain, solver = IkSolver(arm, **options), IkSolver(arm, method_options={off: False}, **options)
    different, positions = 0, 0
    for q in arm.sample(np.random.default_rng(1), 12):
        goal = Goal(*arm.fk(q))
        solution = solver.solve(goal)
        assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
        assert solver.errors(goal, solution.q) == (solution.position_error, solution.direction_error)
        different += not np.array_equal(solution.q, plain.solve(goal).q)
        positions += solver.solve(Goal(goal.position)).solved
    assert different > 0
    assert positions >= {'direction': 12, 'limits': 6, 'hinges': 1}[off]


def test_the_automatic_gradient_is_that_of_the_jacobian():
    for arm in (case.arm() for case in shipped_cases()):
        for q, target in arm.sample(np.random.default_rng(2), 4).reshape(2, 2, -1):
            goal = Goal(*arm.fk(target))
            error = squared_error(arm.joints, arm.tool, goal.packed, 0.3, q)
            missed = np.concatenate(arm.fk(q)) - goal.packed[:6]
            weighted = np.repeat([1.0, 0.09], 3) * missed
            np.testing.assert_allclose(error.slope, 2.0 * weighted @ arm.jacobian(q), rtol=0, atol=1e-13)
            np.testing.assert_allclose(error.value, weighted @ missed, rtol=1e-12)


@np.errstate(over='ignore')  # of the plain random numbers
def test_worse_places_are_accepted_with_metropolis_probability():
    """exp(-rise of the weighted error / (temperature * acceptance)); never where acceptance is 0."""
    options, state, draws = np.zeros(9), np.array([3], dtype=np.uint64), 4000
    for acceptance, temperature in ((0.1, 1.0), (0.1, 0.25), (0.0, 1.0)):
        options[ACCEPTANCE] = acceptance
        taken = sum(kernels.accepted(0.3**2, 0.25**2, temperature, options, state) for _ in range(draws))
        expected = math.exp(-0.05 / (temperature * acceptance)) if acceptance > 0.0 else 0.0
        assert abs(taken / draws - expected) < 4.0 * math.sqrt(0.25 / draws)
        assert kernels.accepted(0.25**2, 0.3**2, temperature, options, state)


def test_both_schedules_solve_and_differ_only_after_the_first_random_restart():
    text = load_description(BY_NAME['ball_joint_arm'].path)
    # Without the cone of its ball, whose corners are not where those of the joints are.
    arm = Arm.from_urdf(re.sub('<ik_node>.*?</ik_node>', '', text, flags=re.DOTALL))
    solvers = [IkSolver(arm, schedule=name, direction_tolerance=1e-6) for name in SCHEDULES]
    rng, late = np.random.default_rng(4), 0
    for _ in range(60):
        q = np.where(rng.random(arm.n) < 0.5, arm.lower, arm.upper)  # corners: many restarts
        goal = Goal(*arm.fk(np.where(rng.random(arm.n) < 0.7, q, (arm.lower + arm.upper) / 2)))
        answers = [solver.solve(goal) for solver in solvers]
        assert all(answer.solved for answer in answers)
        if answers[0].restarts <= kernels.INFORMED + 1:
            np.testing.assert_array_equal(answers[0].q, answers[1].q)
        late += answers[0].restarts > kernels.INFORMED + 1
    assert late > 0, 'too easy to show anything'


# --- kernels serve plain until they are compiled -------------------------------------------------------

ANSWERS = """
import json, sys, warnings
import numpy as np
from ik_node import Arm, Goal, IkSolver, kernels

warnings.simplefilter('error')
name, wait = sys.argv[1:]
arm = Arm.from_file(f'urdf/{name}.urdf.xacro')
solver = IkSolver(arm, compile=wait, time_budget=np.inf)
answers = {}

def add(what, *values):
    answers[what] = [
        value.tobytes().hex() if isinstance(value, np.ndarray)
        else float(value).hex() if isinstance(value, float) else str(value) for value in values
    ]

def add_solution(what, found):
    add(what, found.status, found.q, found.position_error, found.direction_error, found.reason)

joints = arm.sample(np.random.default_rng(7), 10)
places, axes = map(np.array, zip(*map(arm.fk, joints)))
for k, q in enumerate(joints):
    add_solution(f'reachable {k}', solver.solve(Goal(places[k], axes[k]), q + 0.3))
for k, q in enumerate(joints[:4]):
    add_solution(f'place alone {k}', solver.solve(Goal(places[k]), q + 0.3))
goals = {
    'lateral': Goal(places[0], axes[0], arm.frames(joints[0])[-1]),
    'too far': Goal(1.7 * places[1], axes[1]),
    'odd direction': Goal(places[2], axes[3]),
    'on the base axis': Goal((0, 0, places[4][2]), (0, 0, 1)),
}
for what, goal in goals.items():
    add_solution(what, solver.solve(goal, joints[5]))
add_solution('track', solver.track(Goal(*arm.fk(joints[0] + 0.02)), joints[0]))
found = solver.solve_batch(places, axes)
add('batch', found.q, found.position_error, found.direction_error)
path = solver.solve_path(*map(np.array, zip(*map(arm.fk, np.linspace(joints[0], joints[0] + 0.1, 3)))))
add('path', path.q, path.largest_move, path.breaks)
add('all', *[one.q for one in solver.solve_all(Goal(places[0], axes[0]), time_budget=np.inf)])
print(json.dumps([kernels.state().stage.value, answers]))
"""
IN_VAIN = """
from ik_node import Arm, IkSolver
from ik_node.errors import KernelError
try:
    IkSolver(Arm.from_file('urdf/seed_arm.urdf.xacro'), compile='wait')
except KernelError as error:
    print(error)
"""


def said(program: str, *arguments: str, **environment: str) -> str:
    """What a process of its own prints."""
    command, env = [sys.executable, '-c', program, *arguments], {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plain_and_compiled_kernels_give_the_same_bits():
    stage, plain = json.loads(said(ANSWERS, 'seed_arm', 'background', IK_NODE_KERNELS='plain'))
    assert stage == 'failed'
    stage, compiled = json.loads(
        said(ANSWERS, 'seed_arm', 'wait', IK_NODE_LANES='0')
    )  # goals in lanes differ by rounding
    assert stage == 'ready'
    assert plain.keys() == compiled.keys()
    assert [what for what in plain if plain[what] != compiled[what]] == []


def test_waiting_in_vain_for_compiled_kernels_is_an_error():
    assert 'IK_NODE_KERNELS is plain' in said(IN_VAIN, IK_NODE_KERNELS='plain')
