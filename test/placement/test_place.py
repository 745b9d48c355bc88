"""ik_place: no worse than many random placements, and the same judgement as by solving each goal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import shipped_cases

from ik_node import Arm, Goal, IkSolver, InputError
from ik_node.placement import search
from ik_node.placement.region import Region
from ik_node.placement.search import PlacementSearch

ROOT = Path(__file__).resolve().parents[2]
CASES = {case.label: case for case in shipped_cases()}
LOWER, UPPER = np.array([-0.5, -0.6, 0.0, -3.0]), np.array([0.5, 0.6, 0.1, 3.0])


def made(name: str, seed: int, R_up=None, count: int = 6) -> tuple[PlacementSearch, Region, IkSolver, tuple]:
    """A search for goals that the arm reaches from somewhere in the region."""
    rng = np.random.default_rng(seed)
    solver = IkSolver(CASES[name].arm(), compile='wait')
    region = Region(LOWER, UPPER, np.eye(3) if R_up is None else R_up)
    base = rng.uniform(LOWER, UPPER)
    R = region.rotation(base[3])
    pairs = [solver.arm.fk(q) for q in solver.arm.sample(rng, count)]
    positions, directions = (np.array(values) for values in zip(*pairs, strict=True))
    goals = positions @ R.T + base[:3], directions @ R.T
    return PlacementSearch(solver, *goals, region), region, solver, (base, *goals)


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like'])
def test_a_placement_is_judged_as_its_goals_are_solved(name):
    placements, region, solver, (base, positions, directions) = made(name, 0)
    assert placements.judge(base).unmet == ()
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = rng.uniform(LOWER, UPPER)
        R = region.rotation(other[3])
        found = [
            solver.solve(Goal((position - other[:3]) @ R, direction @ R)).solved
            for position, direction in zip(positions, directions, strict=True)
        ]
        assert placements.judge(other).unmet == tuple(np.flatnonzero(~np.array(found)))


@pytest.mark.parametrize('seed', range(3))
def test_no_random_placement_is_better(monkeypatch, seed):
    monkeypatch.setattr(search, 'GRID', 2000)
    placements, _, _, _ = made('seed_arm', seed)
    best, coarse, steps = placements.best(10, lambda _: None)
    assert len(coarse) >= 1000
    assert (steps[:2] > 0.0).all()
    rng = np.random.default_rng(seed)
    random = min(
        (placements.judge(rng.uniform(LOWER, UPPER)) for _ in range(3000)), key=lambda one: one.score
    )
    assert best[0].score <= random.score
    assert [one.score for one in best] == sorted(one.score for one in best)
    for one in best:
        assert (one.base >= LOWER).all()
        assert (one.base <= UPPER).all()
    places = [tuple(one.base[:3]) for one in best]
    assert len(set(places)) == len(places)


def test_an_arm_on_a_wall():
    """z of the base points away from the wall."""
    R_up = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    placements, region, _, (base, *_) = made('seed_arm', 4, R_up)
    assert placements.judge(base).unmet == ()
    np.testing.assert_allclose(region.rotation(1.0)[:, 2], [1.0, 0.0, 0.0], atol=1e-12)


def test_a_region_that_is_a_point():
    region = Region(LOWER, LOWER, np.eye(3))
    grid, steps = region.grid(100, 1.0)
    np.testing.assert_array_equal(grid, [LOWER])
    assert not steps.any()


def test_bounds_that_are_crossed_are_rejected():
    with pytest.raises(InputError, match='--y must be two finite numbers, the lower one first, got 1 0'):
        Region(np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4), np.eye(3))


def ik_place(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / 'goals.csv').write_text(text)
    return subprocess.run(
        [
            sys.executable,
            '-m',
            'ik_node.start',
            'ik_place',
            str(ROOT / 'urdf/seed_arm.urdf.xacro'),
            'goals.csv',
            *arguments,
        ],
        cwd=folder,
        env=os.environ | {'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_the_program_writes_a_table_a_file_and_a_picture(tmp_path):
    text = 'x,y,z,dx,dy,dz\n0.4,0,0.1,0,0,-1\n0.6,0.3,0.2,1,0,0\n'
    done = ik_place(
        tmp_path, text, '--x', '-0.3', '0.3', '--y', '-0.2', '0.2', '--yaw', '0', '90', '--output', 'out'
    )
    assert done.returncode == 0, done.stderr
    assert '        1 ' in done.stdout
    assert '2/2' in done.stdout
    assert 'one that meets every goal was found' in done.stdout
    found = json.loads((tmp_path / 'out.json').read_text())
    first = found['placements'][0]
    assert first['unmet'] == []
    assert -0.3 <= first['x'] <= 0.3
    arm = Arm.from_file(ROOT / 'urdf/seed_arm.urdf.xacro')
    c, s = np.cos(first['yaw']), np.sin(first['yaw'])
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    base = np.array([first[name] for name in ('x', 'y', 'z')])
    assert (
        IkSolver(arm)
        .solve(Goal((np.array([0.6, 0.3, 0.2]) - base) @ R, np.array([1.0, 0.0, 0.0]) @ R))
        .solved
    )
    assert (tmp_path / 'out.png').stat().st_size > 10_000


@pytest.mark.parametrize(
    ('text', 'arguments', 'code', 'words'),
    [
        ('x,y,z\n9,0,0\n', ['--x', '0', '1', '--y', '0', '1'], 1, '0/1'),
        ('x,y,z\n', ['--x', '0', '1', '--y', '0', '1'], 2, 'must hold 1 to 10000 goals'),
        ('x,y,z\n1,a,0\n', ['--x', '0', '1', '--y', '0', '1'], 2, 'holds no goal: y is'),
        ('x,y,z\n1,0,0\n', ['--x', '1', '0', '--y', '0', '1'], 2, '--x must be two finite numbers'),
        ('x,y,z\n1,0,0\n', ['--x', '0', '1', '--y', '0', '1', '--yaw', '0', '400'], 2, 'more than a turn'),
        ('x,y,z\n1,0,0\n', ['--x', '0', '1', '--y', '0', '1', '--output', '/nowhere/a'], 2, 'cannot write'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(tmp_path, text, arguments, code, words):
    done = ik_place(tmp_path, text, *arguments)
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert 'Traceback' not in done.stderr
