# SPDX-License-Identifier: Apache-2.0
"""ik_export --header: C that gives the same bits as the kernels, on every compiler there is, and what is refused."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from cases import arm_of
from programs import check_rejected, ran
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, kernels
from ik_node.kernels import header as status
from ik_node.model.urdf.reader import load_description
from ik_node.solver.pipeline import errors_of
from ik_node.startup.arguments import URDF
from ik_node.tools import inspect
from ik_node.tools.export import header, program

pytestmark = pytest.mark.slow

STRICT = ['-std=c99', '-O1', '-Wall', '-Wextra', '-Werror', '-pedantic', '-ffp-contract=off']
FAMILIES = {  # by arm, of urdf/
    'seed_arm': 'parallel axes',
    'so101_like': 'parallel axes, and a roll',
    'moveo_like': 'a wrist',
    'prismatic_arm': 'elimination',
}
CART = """<robot name="cart"><link name="base"/><link name="wheel"/><joint name="hub" type="continuous">
  <parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/></joint></robot>"""
needs_cc = pytest.mark.skipif(not shutil.which('cc'), reason='needs a C compiler: cc')


def compiled(folder: Path, name: str, real: str, *command: str, arm: Arm | None = None) -> Path:
    """The program goals.c with the header of an arm of urdf/, or of another one."""
    text = header.arm_header(arm or arm_of(name), name, real)
    (folder / f'{name}.h').write_text(text, encoding='utf-8')
    defined = f'-DHEADER="{name}.h"', f'-DNAME={name}', f'-DBIG={name.upper()}', f'-DREAL={real}'
    source, result = Path(__file__).with_name('goals.c'), folder / f'{name}_{real}'
    compiler = command or ('cc', *STRICT)
    libraries = () if '-c' in compiler else ('-lm',)
    line = [*compiler, f'-I{folder}', *defined, str(source), '-o', str(result), *libraries]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return result


class Answers:
    """What the program answers to goals (N, 6) from seeds (N, n): arrays with N rows."""

    def __init__(self, command: list[str], folder: Path, goals: np.ndarray, seeds: np.ndarray, most: int) -> None:
        given, got, n = folder / 'goals', folder / 'answers', seeds.shape[1]
        np.hstack([goals, seeds]).tofile(given)
        subprocess.run([*command, str(given), str(got)], check=True)
        table = np.fromfile(got).reshape(len(goals), 12 + n + most * n)
        self.status, self.errors, self.joint = table[:, 0].astype(int), table[:, 1:3], table[:, 3].astype(int)
        self.count, self.complete, self.forward = table[:, 4].astype(int), table[:, 5] == 1.0, table[:, 6:12]
        self.q, self.found = table[:, 12 : 12 + n], table[:, 12 + n :].reshape(len(goals), most, n)


def goals_of(arm, count: int, far: int = 5):
    """Goals (count, 6) of random configurations, each one of far moved away, and random seeds (count, n)."""
    rng = np.random.default_rng(7)
    goals = np.array([np.concatenate(arm.fk(q)) for q in arm.sample(rng, count)])
    goals[::far, :3] += rng.normal(size=(len(goals[::far]), 3)) * 0.3 * arm.reach
    return goals, arm.sample(rng, count)


def packed_of(goal):
    return np.concatenate([goal, [math.nan] * 3])


@needs_cc
@pytest.mark.parametrize('name', FAMILIES)
def test_the_header_has_the_bits_of_the_kernels(name, tmp_path):
    arm = arm_of(name)
    solver = IkSolver(arm, compile='wait')
    goals, seeds = goals_of(arm, 300)
    options = header.search_options('lm', arm.reach, *header.TOLERANCES['double'], 'greedy', None)
    model = header.model_of(arm, options)
    answers = Answers([str(compiled(tmp_path, name, 'double'))], tmp_path, goals, seeds, model.most)
    solved = answers.status == status.SOLVED
    assert 200 < solved.sum() < 300
    free = np.array([[-math.inf], [math.inf]]) * np.ones(arm.n)
    free[:, arm.idle] = 0.0
    for k, (goal, seed) in enumerate(zip(goals, seeds, strict=True)):
        packed, q, found = packed_of(goal), seed.copy(), np.zeros((model.most, arm.n))
        frames = arm.frames(seed)
        assert np.array_equal(answers.forward[k], frames[-3:-1].ravel())
        if model.by_formula:
            met, *errors, _ = kernels.nearest_by_formula(seed, solver._model, packed, q)
            count, regular = kernels.formula_solutions(
                arm.joints, arm.tool, arm.limits, arm.period, model.constants, packed, options, seed, found
            )
            proves = regular and arm.effective_dof == 5
            assert answers.complete[k] == proves if count else answers.complete[k] <= proves
        else:
            model_ = arm.joints, arm.tool, arm.limits, free, arm.period, model.constants
            count, complete = kernels.eliminated(*model_, packed, options, seed, found, 0)
            proves = complete and arm.effective_dof == 5
            assert answers.complete[k] == proves if count else answers.complete[k] <= proves
            met = count > 0
            q = found[np.abs(found[:count] - seed).max(axis=1).argmin()] if met else q
            errors = errors_of(arm, packed, q)
        assert answers.count[k] == count
        order = np.abs(found[:count] - seed).max(axis=1).argsort(kind='stable')
        assert np.array_equal(answers.found[k, :count], found[order])
        if met:
            assert answers.status[k] == status.SOLVED
            assert np.array_equal(answers.q[k], q)
            assert np.array_equal(answers.errors[k], errors)


@needs_cc
@pytest.mark.parametrize('name', FAMILIES)
def test_what_a_status_claims_is_true(name, tmp_path):
    arm = arm_of(name)
    solver = IkSolver(arm, compile='wait')
    goals, seeds = goals_of(arm, 300, far=1)
    most = 64 if name == 'prismatic_arm' else 16
    answers = Answers([str(compiled(tmp_path, name, 'double'))], tmp_path, goals, seeds, most)
    seen = set()
    for k, (goal, seed) in enumerate(zip(goals, seeds, strict=True)):
        solution = solver.solve(Goal(goal[:3], goal[3:]), seed)
        claim = answers.status[k]
        seen.add(claim)
        assert np.all((arm.lower <= answers.q[k]) & (answers.q[k] <= arm.upper))
        assert answers.errors[k] == pytest.approx(errors_of(arm, packed_of(goal), answers.q[k]), abs=1e-15)
        if claim == status.SOLVED:
            assert solution.solved
        elif claim != status.NOT_FOUND:
            assert solution.status.value == 'unreachable'
    assert (status.OUT_OF_REACH in seen) == (arm.effective_dof == 5)
    assert (status.SOLVED in seen) == (arm.effective_dof == 5)


@needs_cc
@pytest.mark.parametrize('name', ['seed_arm', 'moveo_like', 'prismatic_arm'])
def test_nothing_is_proven_next_to_the_border_of_the_workspace(name, tmp_path):
    arm = arm_of(name)
    solver = IkSolver(arm, compile='wait')
    goals, seeds = goals_of(arm, 4, far=4)
    outward = goals[:, :3] / np.linalg.norm(goals[:, :3], axis=1)[:, None]
    rows = []
    for goal, out, seed in zip(goals[1:], outward[1:], seeds[1:], strict=True):
        inside, beyond = 0.0, 3.0  # how far along out [m]
        while beyond - inside > 1e-7:
            middle = 0.5 * (inside + beyond)
            solved = solver.solve(Goal(goal[:3] + middle * out, goal[3:]), seed).solved
            inside, beyond = (middle, beyond) if solved else (inside, middle)
        rows += [np.concatenate([goal[:3] + (beyond + far) * out, goal[3:]]) for far in (3e-6, 0.05)]
    most = 64 if name == 'prismatic_arm' else 16
    program = str(compiled(tmp_path, name, 'double'))
    answers = Answers([program], tmp_path, np.array(rows), np.repeat(seeds[1:], 2, axis=0), most)
    assert set(answers.status[::2]) <= {status.SOLVED, status.NOT_FOUND}
    assert {status.JOINT_LIMIT, status.OUT_OF_REACH} & set(answers.status[1::2])


@needs_cc
@pytest.mark.parametrize('name', FAMILIES)
def test_float_meets_the_goals_as_double_does(name, tmp_path):
    arm = arm_of(name)
    goals, seeds = goals_of(arm, 300)
    most = 64 if name == 'prismatic_arm' else 16
    double, single = (
        Answers([str(compiled(tmp_path, name, real))], tmp_path, goals, seeds, most) for real in ('double', 'float')
    )
    solved = single.status == status.SOLVED
    assert abs(int(solved.sum()) - int((double.status == status.SOLVED).sum())) <= 1
    assert set(single.status) <= {status.SOLVED, status.NOT_FOUND}
    assert not single.complete.any()
    errors = np.array([errors_of(arm, packed_of(goals[k]), single.q[k]) for k in np.flatnonzero(solved)])
    assert np.all(errors < header.TOLERANCES['float'])
    assert np.median(np.abs(single.q - double.q).max(axis=1)[solved]) < 1e-5


@needs_cc
@pytest.mark.parametrize('real', ['double', 'float'])
def test_a_geometry_that_is_nearly_a_wrist(real, tmp_path):
    arm = Arm.from_file(shared_path('arms/moveo.urdf'), tool_axis='z')
    goals, seeds = goals_of(arm, 1000, far=1000)
    answers = Answers([str(compiled(tmp_path, 'moveo', real, arm=arm))], tmp_path, goals, seeds, 16)
    assert (answers.status == status.SOLVED).sum() >= 998
    assert set(answers.status) <= {status.SOLVED, status.NOT_FOUND}


@needs_cc
def test_what_is_no_number_is_invalid(tmp_path):
    arm = arm_of('seed_arm')
    goals, seeds = goals_of(arm, 8, far=8)
    goals[0, 0], goals[1, 4], goals[2, 1], goals[3, 3:], seeds[4, 2] = math.nan, math.inf, 1e10, 0.0, math.nan
    goals[5, 3:] *= 1e4
    answers = Answers([str(compiled(tmp_path, 'seed_arm', 'double'))], tmp_path, goals, seeds, 16)
    assert answers.status.tolist() == [status.INVALID] * 5 + [status.SOLVED] * 3
    assert np.array_equal(answers.q[:4], seeds[:4])
    assert not answers.count[:5].any()
    assert answers.errors[5] == pytest.approx([0.0, 0.0], abs=1e-9)


ZIG = (sys.executable, '-m', 'ziglang', 'cc') if find_spec('ziglang') else ()
TARGETS = {  # the command of a compiler, and what makes zig one
    'aarch64': (('aarch64-linux-gnu-gcc',), ('-target', 'aarch64-linux-gnu')),
    'cortex-m4': (
        ('arm-none-eabi-gcc', '-mcpu=cortex-m4', '-mthumb'),
        ('-target', 'thumb-linux-musleabi', '-mcpu=cortex_m4'),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize('real', ['double', 'float'])
@pytest.mark.parametrize('target', TARGETS)
@pytest.mark.parametrize('name', FAMILIES)
def test_the_header_compiles_for_other_processors(name, target, real, tmp_path):
    command, zig = TARGETS[target]
    if not shutil.which(command[0]):
        if not ZIG:
            pytest.skip(f'needs {command[0]} or the package ziglang')
        command = (*ZIG, *zig)
    compiled(tmp_path, name, real, *command, *STRICT, '-Os', '-c')
    if target == 'aarch64' and shutil.which('qemu-aarch64'):  # another libm: other last bits
        goals, seeds = goals_of(arm_of(name), 200)
        most = 64 if name == 'prismatic_arm' else 16
        there, here = (
            Answers([*run, str(compiled(tmp_path, name, real, *how, *STRICT))], tmp_path, goals, seeds, most)
            for run, how in ((['qemu-aarch64'], (*command, '-static')), ([], ('cc',)))
        )
        assert np.array_equal(there.status, here.status)
        assert np.quantile(np.abs(there.q - here.q).max(axis=1), 0.9) < (1e-9 if real == 'double' else 1e-4)


def exported(tmp_path, *arguments, path=URDF / 'seed_arm.urdf.xacro'):
    return ran(program, path, '--header', tmp_path / 'arm.h', *arguments)


@needs_cc
@pytest.mark.parametrize('real', [(), ('--float',)], ids=['double', 'float'])
@pytest.mark.parametrize('compiler', [('cc', '-std=c99'), ('c++', '-std=c++17', '-x', 'c++')], ids=['c', 'c++'])
def test_the_example_compiles_without_warnings_and_runs(real, compiler, tmp_path):
    assert exported(tmp_path, *real).code == 0
    if not shutil.which(compiler[0]):
        pytest.skip(f'needs {compiler[0]}')
    warnings = (
        '-Wall',
        '-Wextra',
        '-Werror',
        '-pedantic',
        *(['-Wdouble-promotion'] if real and 'cc' in compiler else []),
    )
    line = [*compiler, *warnings, str(tmp_path / 'arm_main.c'), '-o', str(tmp_path / 'arm'), '-lm']
    subprocess.run(line, check=True)
    told = subprocess.run([tmp_path / 'arm'], check=True, capture_output=True, text=True).stdout
    assert told.count('\nsolved; off by') == 1
    assert ('unreachable: ' in told) == (not real)
    assert '2 in all' in told


@pytest.mark.parametrize(
    ('given', 'wanted'),
    [('so101', 'so101'), ('0 \u00e4rm-*/x"', 'arm_0_rm_x'), ('***', 'arm'), ('_Px-150', 'px_150'), ('int', 'int')],
)
def test_names_become_identifiers(given, wanted):
    assert header.identifier(given) == wanted


def test_names_and_comments_of_a_hostile_description_stay_there(tmp_path):
    text = load_description(str(URDF / 'so101_like.urdf.xacro')).replace(
        'name="so101_like"', 'name="*/ int x; /* &#34;\\"'
    )
    (tmp_path / 'arm.urdf').write_text(text)
    assert exported(tmp_path, path=tmp_path / 'arm.urdf').code == 0
    assert '* / int x;' in (tmp_path / 'arm.h').read_text()


def test_the_command_of_the_example_holds_for_any_path(tmp_path):
    file = tmp_path / "it's; an arm.h"
    assert ran(program, URDF / 'seed_arm.urdf.xacro', '--header', file).code == 0
    (line,) = re.findall(r'^ \*     (cc .*?) && .*$', file.with_name("it's; an arm_main.c").read_text(), re.MULTILINE)
    assert shlex.split(line)[3] == "it's; an arm_main.c"
    check_rejected(ran(program, URDF / 'seed_arm.urdf.xacro', '--header', tmp_path / 'a".h'), '#include')


def test_no_file_is_replaced_unless_asked(tmp_path):
    (tmp_path / 'arm_main.c').write_text('mine')
    check_rejected(exported(tmp_path), 'arm_main.c', '--overwrite')
    assert not (tmp_path / 'arm.h').exists()
    assert exported(tmp_path, '--overwrite').code == 0
    assert (tmp_path / 'arm_main.c').read_text() != 'mine'


def test_what_is_refused(tmp_path):
    check_rejected(ran(program, URDF / 'seed_arm.urdf.xacro'), '--header')
    check_rejected(ran(program, URDF / 'seed_arm.urdf.xacro', '--header', tmp_path / 'arm.py'), 'arm.py', '.h')
    check_rejected(exported(tmp_path, path=Path(__file__)), 'malformed XML')
    check_rejected(exported(tmp_path, path=URDF / 'ball_joint_arm.urdf.xacro'), 'ball_yaw')
    check_rejected(ran(program, URDF / 'seed_arm.urdf.xacro', '--header', '/proc/arm.h'), '/proc/arm.h')
    others = ['--moveit', tmp_path / 'package'], ['--html', tmp_path / 'arm.html'], []
    for given in others:
        header = ['--header', tmp_path / 'arm.h'] if given else ['--html', tmp_path / 'arm.html']
        check_rejected(ran(program, URDF / 'seed_arm.urdf.xacro', '--float', *header, *given), '--float')
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('output', program.OUTPUTS)
def test_a_robot_whose_joints_move_no_tool_is_no_arm(output, tmp_path):
    (tmp_path / 'cart.urdf').write_text(CART)
    told = ran(program, tmp_path / 'cart.urdf', f'--{output}', tmp_path / 'result.h')
    check_rejected(told, 'no arm found', '--tip-link')
    inspected = ran(inspect, tmp_path / 'cart.urdf')
    assert inspected.code == 0
    assert 'Traceback' not in inspected.err
