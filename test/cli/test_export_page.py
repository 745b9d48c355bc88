# SPDX-License-Identifier: Apache-2.0
"""ik_export --html: the code of a page answers as IkSolver does and steps as its methods do; a page is one file."""

from __future__ import annotations

import base64
import ctypes
import json
import re
import shutil
import subprocess
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cases import arm_of

from ik_node import Goal, IkSolver, Status
from ik_node.kernels import page
from ik_node.solver.goal import Cause
from ik_node.startup.arguments import URDF
from ik_node.tools.export import html, program, shapes, wasm

pytestmark = pytest.mark.slow

STATUSES = [Status.SOLVED, Status.UNREACHABLE, Status.NOT_FOUND]
CAUSES = [Cause.TOO_FAR, Cause.TOO_NEAR, Cause.DIRECTION_CONSTRAINED, Cause.JOINT_LIMIT, Cause.SEARCH_ENDED]
SAME = 1e-9  # m and rad


class Native:
    """The code of a page, compiled for this computer instead of WebAssembly, with the memory that a page uses."""

    def __init__(self, arm, folder: Path) -> None:
        source = wasm.PageSource(arm)
        file, library = folder / 'page.c', folder / 'page.so'
        file.write_text(source.text(), encoding='utf-8')
        command = [
            'cc',
            '-std=gnu99',
            '-O1',
            '-ffp-contract=off',
            '-shared',
            '-fPIC',
            str(file),
            '-o',
            str(library),
            '-lm',
        ]
        subprocess.run(command, check=True, capture_output=True)
        self.c, self.layout, self.n = ctypes.CDLL(str(library)), source.layout, arm.n
        self.c.page.restype = ctypes.POINTER(ctypes.c_double)
        self.memory = self.c.page()

    def put(self, name: str, values) -> None:
        for k, value in enumerate(values):
            self.memory[self.layout[name] + k] = value

    def get(self, name: str, count: int) -> np.ndarray:
        return np.array(self.memory[self.layout[name] : self.layout[name] + count])

    def ask(self, goal: Goal, seed) -> None:
        self.put('goal', goal.packed)
        self.put('seed', seed)


@pytest.fixture(scope='module', params=['seed_arm', 'so101_like'])
def native(request, tmp_path_factory):
    if not shutil.which('cc'):
        pytest.skip('needs a C compiler: cc')
    arm = arm_of(request.param)
    return arm, IkSolver(arm), Native(arm, tmp_path_factory.mktemp(request.param))


def goals_of(arm, count: int):
    """Goals in and out of reach, some with a direction by chance, and seeds."""
    rng = np.random.default_rng(11)
    for k, (q, seed) in enumerate(zip(arm.sample(rng, count), arm.sample(rng, count), strict=True)):
        position, direction = arm.fk(q)
        if k % 4 == 1:
            position = 1.5 * position
        if k % 4 == 2:
            direction = rng.normal(size=3)
            direction /= np.linalg.norm(direction)
        yield Goal(position, direction), seed


def test_answers_are_those_of_the_solver(native) -> None:
    arm, solver, code = native
    causes = set()
    for goal, seed in goals_of(arm, 120):
        code.ask(goal, seed)
        code.c.answer()
        want, (status, position, direction, cause, amount, joint) = solver.solve(goal, seed), code.get('report', 6)
        assert STATUSES[int(status)] is want.status
        assert np.abs([position - want.position_error, direction - want.direction_error]).max() < SAME
        causes.add(want.reason and want.reason.cause)
        if want.solved:
            assert np.abs(code.get('q', arm.n) - want.q).max() < SAME
        else:
            assert CAUSES[int(cause)] is want.reason.cause
            assert abs(amount - want.reason.amount) < SAME
            assert (None if joint < 0 else arm.joint_names[int(joint)]) == want.reason.joint
    assert {None, Cause.TOO_FAR, Cause.DIRECTION_CONSTRAINED} <= causes


def test_solutions_are_all_that_there_are(native) -> None:
    arm, solver, code = native
    counts = set()
    for goal, seed in goals_of(arm, 40):
        code.ask(goal, seed)
        count, want = code.c.solutions(), solver.solve_all(goal, seed)
        assert (count >= 0) is want.complete
        rows = code.get('found', 16 * arm.n).reshape(16, arm.n)[: count if count >= 0 else -1 - count]
        for one in want:  # whole turns are left out
            assert min(np.abs(np.sin(0.5 * (row - one.q))).max() for row in rows) < SAME
        counts.add(count)
    assert max(counts) > 1


@pytest.mark.parametrize('method', ['ccd', 'transpose'])
def test_steps_are_those_of_the_method(native, method: str) -> None:
    arm, _, code = native
    goal, seed = next(goals_of(arm, 1))
    steps = list(islice(IkSolver(arm, method=method).steps(goal, seed), 40))
    assert len(steps) > 5
    for count, want in enumerate(steps[:-1]):  # the last one may be the best on the way
        code.ask(goal, seed)
        assert getattr(code.c, f'steps_{method}')(count, 1) == count
        assert np.abs(code.get('q', arm.n) - want).max() < SAME


def test_links_are_placed_where_the_model_has_them(native) -> None:
    arm, _, code = native
    (q,) = arm.sample(np.random.default_rng(3), 1)
    code.put('goal', np.zeros(9))
    code.put('q', q)
    code.c.place()
    poses = code.get('poses', 12 * (arm.n + 1)).reshape(-1, 4, 3)
    for link in arm.robot.links:
        row, zero = shapes.place_of(arm, link)
        pose = np.eye(4)
        pose[:3] = poses[row].T
        want = arm.link_in_base(link, dict(zip(arm.joint_names, q, strict=True)))
        assert np.abs(pose @ zero - want).max() < SAME


def test_a_page_is_one_file_that_needs_no_network(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(html, 'compile_wasm', lambda _: b'made')
    file = tmp_path / 'arm.html'
    assert program.main([str(URDF / 'seed_arm.urdf.xacro'), '--html', str(file)]) == 0
    text = file.read_text(encoding='utf-8')
    assert not re.search(r'https?:|\bsrc=|\bhref=|\bimport\b|fetch\(|XMLHttpRequest', text)
    (given,) = re.findall('<script id="data" type="application/json">(.*?)</script>', text)
    data = json.loads(given)
    assert base64.b64decode(data['wasm']) == b'made'
    assert {shape['link'] for shape in data['shapes']} == set(range(6))
    assert len(data['sentences']) == page.SEARCH_ENDED + 1


def test_without_a_compiler_the_remedy_is_told(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setattr(wasm, 'shutil', SimpleNamespace(which=lambda _: None))
    monkeypatch.setattr(wasm, 'find_spec', lambda _: None)
    file = tmp_path / 'arm.html'
    assert program.main([str(URDF / 'seed_arm.urdf.xacro'), '--html', str(file)]) == 2
    assert 'pip install ziglang' in capsys.readouterr().err
    assert not file.exists()


def test_meshes_keep_their_size_with_fewer_triangles() -> None:
    trimesh = pytest.importorskip('trimesh')
    ball = trimesh.creation.icosphere(subdivisions=5, radius=0.1)
    points, faces = shapes.joined(np.array(ball.vertices), np.array(ball.faces), 0.02)
    assert 100 < len(faces) < 0.1 * len(ball.faces)
    assert np.abs(np.linalg.norm(points, axis=1) - 0.1).max() < 0.01
    assert faces.max() == len(points) - 1
