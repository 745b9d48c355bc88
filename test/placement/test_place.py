# SPDX-License-Identifier: Apache-2.0
"""ik_place: no worse than many random placements, and the same judgement as by solving each goal."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from cases import BY_NAME, arm_of
from programs import Ended, check_rejected, full_disk, ran

from ik_node import Goal, IkSolver, InputError
from ik_node.model.urdf.reader import rotation
from ik_node.tools import place as program
from ik_node.tools.placement import PlacementJudge, PlacementSearch, Region, distinct, excluded_share
from ik_node.tools.self_collision import clearance_of

pytestmark = pytest.mark.slow

SEED_ARM = BY_NAME['seed_arm'].path
LOWER, UPPER = np.array([-0.5, -0.6, 0.0, 0.0, 0.0, -3.0]), np.array([0.5, 0.6, 0.1, 0.0, 0.0, 3.0])
WALL = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])


def made(name: str, seed: int, region: Region | None = None, count: int = 6) -> tuple[PlacementSearch, tuple]:
    """A search for goals that the arm reaches from somewhere in the region."""
    rng = np.random.default_rng(seed)
    arm = arm_of(name)
    region = region or Region(LOWER, UPPER)
    base = rng.uniform(region.lower, region.upper)
    (place,), (R,) = region.poses(base[None])
    pairs = [arm.fk(q) for q in arm.sample(rng, count)]
    positions, directions = (np.array(values) for values in zip(*pairs, strict=True))
    goals = positions @ R.T + place, directions @ R.T
    return PlacementSearch(arm, *goals, region), (base, *goals)


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like'])
def test_a_placement_is_judged_as_its_goals_are_solved(name):
    search, (base, positions, directions) = made(name, 0)
    solver = IkSolver(search.arm, compile='wait')
    rng = np.random.default_rng(1)
    bases = np.vstack([base, rng.uniform(LOWER, UPPER, (12, 6))])
    judged = search.judged(bases)
    assert judged.unmet[0] == 0
    assert judged.complete == 1.0
    unmet = []
    for place, R in zip(*search.region.poses(bases), strict=True):
        found = [
            solver.solve(Goal((position - place) @ R, direction @ R)).solved
            for position, direction in zip(positions, directions, strict=True)
        ]
        unmet.append(found.count(False))
    np.testing.assert_array_equal(judged.unmet, unmet)
    assert len(set(unmet)) > 1
    fully = PlacementJudge(search, solver, None)
    for row in range(3):
        one = fully.judged(bases[row])
        assert len(one.unmet) == judged.unmet[row]
        assert one.to_limits == pytest.approx(judged.distances[row])


def test_no_random_placement_is_better():
    search, _ = made('seed_arm', 1)
    grid, steps = search.coarse(1000, lambda _: None)
    assert len(grid.bases) >= 500
    assert (steps[[0, 1, 5]] > 0.0).all()
    best = search.best(grid, steps)
    random = search.judged(np.random.default_rng(1).uniform(LOWER, UPPER, (600, 6)))
    assert not random[random.order[:1]].better(best[np.arange(1)])[0]
    np.testing.assert_array_equal(best.order, np.arange(len(best.bases)))
    assert ((best.bases >= LOWER) & (best.bases <= UPPER)).all()
    kept = distinct(search.region, best.bases, 10)
    places = best.bases[kept][:, None] - best.bases[kept]
    assert (np.abs(places) > 0.05 * (UPPER - LOWER)).any(axis=2)[~np.eye(len(kept), dtype=bool)].all()


def test_goals_are_met_that_no_placement_of_the_grid_meets():
    """The position ties the direction of this arm: the placements that meet a goal are a thin sheet."""
    search, _ = made('so101_like', 0)
    grid, steps = search.coarse(1000, lambda _: None)
    assert grid.unmet.min() == search.count
    assert search.best(grid, steps).unmet[0] < search.count


def test_goals_without_a_direction_are_met_wherever_the_arm_comes_to_them():
    search, (base, positions, _) = made('seed_arm', 5)
    search = PlacementSearch(search.arm, positions, None, search.region)
    judged = search.judged(base[None])
    assert judged.unmet[0] == 0
    assert judged.distances[0] > 0.1
    one = PlacementJudge(search, IkSolver(search.arm, compile='wait'), None).judged(base)
    (place,), (R,) = search.region.poses(base[None])
    for q, position in zip(one.joints, positions, strict=True):
        np.testing.assert_allclose(search.arm.fk(q)[0] @ R.T + place, position, atol=1e-5)


@pytest.mark.parametrize('mounting', ['wall', 'rail', 'free'])
def test_other_regions(mounting):
    if mounting == 'wall':  # z of the base points away from the wall
        region = Region(LOWER, UPPER, WALL)
        np.testing.assert_allclose(region.poses(np.ones((1, 6)) * [0, 0, 0, 0, 0, 1])[1][0, :, 2], [1, 0, 0])
    elif mounting == 'rail':
        along = np.array([0.6, 0.8, 0.0])
        upper = np.array([1.0, 0, 0, 0, 0, math.pi])
        region = Region(-upper * [0, 1, 1, 1, 1, 1], upper, origin=np.ones(3), axes=np.outer(along, [1, 0, 0]))
        places, _ = region.poses(region.spread(50))
        shares = (places - 1.0) @ along
        np.testing.assert_allclose(places, 1.0 + np.outer(shares, along))
        assert np.ptp(shares) > 0.9
    else:
        angles = np.array([math.pi, math.pi / 2, math.pi])
        region = Region(np.append([-0.4, -0.4, -0.4], -angles), np.append([0.4, 0.4, 0.4], angles))
        R = region.poses(region.spread(50))[1]
        np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.tile(np.eye(3), (50, 1, 1)), atol=1e-12)
        assert np.ptp(R[:, 2, 2]) > 1.5
    search, (base, *_) = made('seed_arm', 4, region)
    assert search.judged(base[None]).unmet[0] == 0
    best = search.best(*search.coarse(1000, lambda _: None))
    assert best.unmet[0] <= 2


def test_roll_pitch_and_yaw_are_those_of_urdf():
    base = np.array([0, 0, 0, 0.3, -0.4, 0.5])
    R = Region(LOWER, UPPER).poses(base[None])[1][0]
    np.testing.assert_allclose(R, rotation(*base[3:]), atol=1e-9)


def test_a_whole_turn_has_no_ends():
    bounds = np.array([0, 0, 0, 0, 0, math.pi])
    region = Region(-bounds, bounds)
    beyond = np.array([[0, 0, 0, 0, 0, math.pi + 0.1]])
    np.testing.assert_allclose(region.within(beyond)[0, 5], -math.pi + 0.1)
    np.testing.assert_allclose(region.gaps(beyond * 0 - bounds, bounds)[0], 0.0, atol=1e-12)
    half = Region(-bounds / 2, bounds / 2)
    np.testing.assert_allclose(half.within(beyond)[0, 5], math.pi / 2)
    grid, steps = region.grid(8, 1.0)
    np.testing.assert_allclose(np.diff(grid[:, 5]), steps[5])
    np.testing.assert_allclose(grid[0, 5] + 2 * math.pi - grid[-1, 5], steps[5])


def test_a_region_that_is_a_point():
    region = Region(LOWER, LOWER)
    grid, steps = region.grid(100, 1.0)
    np.testing.assert_array_equal(grid, [LOWER])
    assert not steps.any()
    search, _ = made('seed_arm', 0, region)
    assert search.best(*search.coarse(100, lambda _: None)).unmet[0] == 0
    away = PlacementSearch(search.arm, np.full((1, 3), 9.0), None, region)
    counts: list[int] = []
    assert away.best(*away.coarse(100, counts.append), counts.append).unmet[0] == 1
    assert sum(counts) < 5  # there is nothing to search


def test_bounds_that_are_crossed_are_rejected():
    with pytest.raises(InputError, match=r'--y must be .* got 1 0'):
        Region(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), np.zeros(6))


def test_what_is_excluded_has_no_better_placement():
    search, _ = made('seed_arm', 2)
    grid, steps = search.coarse(1500, lambda _: None)
    rng = np.random.default_rng(0)
    inside = 0
    for row in range(0, len(grid.bases), 30):
        if excluded_share(search, grid.bases[row : row + 1], steps, 1) == 1.0:
            cell = grid.bases[row] + (rng.uniform(size=(200, 6)) - 0.5) * steps
            assert (search.judged(cell).unmet > 1).all()
            inside += 1
    assert inside > 3
    assert 0.0 < excluded_share(search, grid.bases, steps, 1) < 1.0
    assert excluded_share(search, grid.bases, steps, 6) == 0.0


def test_a_solution_in_collision_does_not_count():
    pytest.importorskip('coal')
    arm = arm_of('seed_arm')
    clearance, _ = clearance_of(SEED_ARM, arm)
    assert clearance is not None
    rng = np.random.default_rng(0)
    colliding = [q for q in arm.sample(rng, 2000) if clearance(q) < 0.0]
    positions, directions = (np.array(values) for values in zip(*map(arm.fk, colliding), strict=True))
    base, search = np.zeros(6), PlacementSearch(arm, positions, directions, Region(LOWER, UPPER))
    solver = IkSolver(arm, compile='wait')
    without, checked = (PlacementJudge(search, solver, one).judged(base) for one in (None, clearance))
    assert without.unmet == ()
    assert without.clearance is None
    assert checked.clearance is not None
    assert checked.clearance >= 0.0
    met = [row for row in range(len(colliding)) if row not in checked.unmet]
    assert 0 < len(met) < len(colliding)
    assert min(map(clearance, without.joints)) < 0.0
    assert min(map(clearance, checked.joints[met])) >= 0.0


def test_jumps_along_a_path_are_counted():
    search, _ = made('seed_arm', 0)
    arm = search.arm
    solver = IkSolver(arm, compile='wait')
    place, axis = arm.fk(arm.middle)
    angles = np.linspace(0.0, 0.6, 20)
    c, s, o, i = np.cos(angles), np.sin(angles), np.zeros(20), np.ones(20)
    R = np.stack([np.stack([c, -s, o], -1), np.stack([s, c, o], -1), np.stack([o, o, i], -1)], 1)
    along = PlacementSearch(arm, R @ place, R @ axis, search.region)
    one = PlacementJudge(along, solver, None, (np.arange(20),)).judged(np.zeros(6))
    assert one.unmet == ()
    assert one.breaks == 0
    turned = PlacementSearch(
        arm,
        np.vstack([place, [[-0.3, 0.1, 0.2]], place]),
        np.vstack([axis, [[0, 0, -1]], axis]),
        search.region,
    )
    assert PlacementJudge(turned, solver, None, (np.arange(3),)).judged(np.zeros(6)).breaks > 0


@pytest.fixture
def ik_place(tmp_path, monkeypatch):
    """A function that runs ik_place on goals, given as a table, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, 'GRID', 400)
    monkeypatch.setattr(program, 'COUNT', 2)

    def run(text: str, *arguments: str) -> Ended:
        (tmp_path / 'goals.csv').write_text(text)
        return ran(program, SEED_ARM, 'goals.csv', *arguments)

    return run


TEXT = 'x,y,z,dx,dy,dz,way\n0.4,0,0.1,0,0,-1,a\n0.6,0.3,0.2,1,0,0,a\n'
SMALL = ('--x', '-0.1', '0.1', '--y', '0', '0', '--yaw', '0', '30')


def test_the_program_writes_a_table_a_file_and_pictures(tmp_path, ik_place):
    ended = ik_place(TEXT, *SMALL, '--path', 'way', '--output', 'out')
    assert ended.code == 0, ended.err
    assert '2/2' in ended.out
    assert 'All goals are met' in ended.out
    found = json.loads((tmp_path / 'out.json').read_text())
    first = found['placements'][0]
    assert first['unmet'] == []
    assert first['jumps'] == 0
    assert -0.1 <= first['x'] <= 0.1
    arm = arm_of('seed_arm')
    R, base = np.array(first['rotation']), np.array([first[name] for name in ('x', 'y', 'z')])
    place, axis = arm.fk(first['joints'][1])
    np.testing.assert_allclose(R @ place + base, [0.6, 0.3, 0.2], atol=1e-5)
    np.testing.assert_allclose(R @ axis, [1.0, 0.0, 0.0], atol=1e-3)
    limits = np.minimum(np.array(first['joints']) - arm.lower, arm.upper - np.array(first['joints']))
    assert limits.min() == pytest.approx(first['to_limits'])
    for name in ('out.png', 'out_01.png'):
        assert (tmp_path / name).stat().st_size > 10_000
    assert not list(tmp_path.glob('*.part'))


def test_other_lengths_of_a_link(ik_place):
    still = '--x', '0', '0', '--y', '0', '0', '--yaw', '0', '0'
    ended = ik_place('x,y,z\n0.62,0,0.1\n', *still, '--length', 'forearm=0.1:0.3')
    assert 'forearm [m]' in ended.out, ended.err
    rows = [line.split() for line in ended.out.splitlines() if line.strip().startswith('0.')]
    assert [row[0] for row in rows] == ['0.100', '0.150', '0.200', '0.250', '0.300']
    assert rows[0][1] == '0/1'
    assert rows[-1][1] == '1/1'
    assert '2 cm more forearm' in ended.out


def test_a_full_disk(tmp_path, ik_place):
    (tmp_path / 'out.png').write_text('before')
    with full_disk(20_000):
        ended = ik_place(TEXT, *SMALL, '--output', 'out', '--overwrite')
    check_rejected(ended, 'cannot write "out.png": File too large')
    assert (tmp_path / 'out.png').read_text() == 'before'
    assert not list(tmp_path.glob('*.part'))


def test_a_goal_that_no_placement_meets(ik_place):
    ended = ik_place('x,y,z\n9,0,0\n', *SMALL)
    assert ended.code == 1
    assert '0/1' in ended.out
    assert 'In 100 % of the region no placement meets more goals' in ended.out
