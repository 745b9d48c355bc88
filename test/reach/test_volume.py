# SPDX-License-Identifier: Apache-2.0
"""ik_reach --volume: what it says of a position is what the solver finds there, and others read its file."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from cases import BY_NAME, arm_of
from made_arms import make_arm
from programs import check_rejected, full_disk, ran
from small_arm import WITH_SPARE

from ik_node import Arm, Goal, IkSolver, InputError
from ik_node.model.urdf.reader import read_urdf
from ik_node.solver.limit_distances import distances_to_limits
from ik_node.tools import reach
from ik_node.tools.pictures import draw_volume
from ik_node.tools.reach_volume import Survey, as_netcdf, coarse_rows, refined, surveyed
from ik_node.tools.self_collision import clearance_of
from ik_node.tools.slices import lattice

pytestmark = pytest.mark.slow

SEED_ARM = BY_NAME['seed_arm']
WITHIN, EXACTLY = math.radians(8.0), math.radians(0.01)  # EXACTLY: nothing near a direction counts
FEW = 20  # directions


def places_of(arm, count, seed=1):
    return [arm.fk(q)[0] for q in arm.sample(np.random.default_rng(seed), count)]


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like'])
def test_what_is_reached_is_what_the_solver_reaches(name):
    """Cells if and only if, and directions if and only if it comes within the angle."""
    arm = arm_of(name)
    survey = Survey(arm, FEW, WITHIN, count=name == 'seed_arm')
    volume = surveyed(survey, *lattice(arm, 0.15))
    there = ~np.isnan(volume.share)
    grid = np.stack(np.meshgrid(volume.x, volume.y, volume.z, indexing='ij'), axis=-1)
    solved = IkSolver(arm, restarts=300).solve_batch(grid.reshape(-1, 3)).solved.reshape(there.shape)
    np.testing.assert_array_equal(there, solved)
    assert 0.1 < there.mean() < 0.9
    for axis in range(3):  # the lattice holds the whole workspace: its faces are out of reach
        assert not there.take([0, -1], axis).any()
    solver, cells, wrong = IkSolver(arm, restarts=100), np.argwhere(there), 0
    for i, j, k in cells[np.random.default_rng(0).choice(len(cells), 5, replace=False)]:
        place = np.array([volume.x[i], volume.y[j], volume.z[k]])
        nearest = [solver.solve(Goal(place, direction)) for direction in survey.directions]
        reached = survey.at(place, int(np.ravel_multi_index((i, j, k), there.shape)))
        counted = reached.to_limits > -np.inf
        assert counted.mean() == volume.share[i, j, k]
        if survey.counts:  # of directions that are met exactly
            numbers = [float(number) for number in reached.solutions if number > 0]
            mean = np.mean(numbers) if numbers else np.nan
            assert volume.solutions[i, j, k] == pytest.approx(mean, nan_ok=True)
        at = [one.position_error <= 1e-5 and one.direction_error <= WITHIN for one in nearest]
        wrong += int((np.array(at) != counted).sum())
    assert wrong <= 0.04 * 5 * FEW  # the counts are lower bounds, and so are those of the solver


@pytest.mark.parametrize('name', ['seed_arm', 'moveo_like', 'prismatic_arm'])
def test_distances_counts_and_singular_values_are_those_of_all_solutions(name):
    arm = arm_of(name)
    count = name != 'prismatic_arm'
    narrow, solver, compared = Survey(arm, FEW, EXACTLY, count=count), IkSolver(arm), 0
    for place in places_of(arm, 5):
        reached = narrow.at(place, 0)
        for k, direction in enumerate(narrow.directions):
            rows = np.array([one.q for one in solver.solve_all(Goal(place, direction))]).reshape(-1, arm.n)
            distances = distances_to_limits(arm, rows)
            best = distances.max(initial=-np.inf)
            assert reached.to_limits[k] == pytest.approx(best, abs=2e-3)
            assert not count or len(rows) == np.nan_to_num(reached.solutions[k])
            if len(rows):
                scale = np.repeat([arm.reach, 1.0], 3)[:, None]
                least = [np.linalg.svd(arm.jacobian(q) / scale)[1][4] for q in rows[distances > best - 2e-3]]
                assert np.abs(np.array(least) - reached.singular[k]).min() < 2e-3
                compared += 1
    assert 15 < compared < 5 * FEW


def test_self_motions_are_not_counted():
    with pytest.raises(InputError, match='a joint to spare'):
        Survey(Arm(read_urdf(WITH_SPARE)), FEW, WITHIN, count=True)


def test_configurations_in_self_collision_do_not_count():
    """Where the solution farthest from the limits collides, the others are looked at."""
    pytest.importorskip('coal')
    arm = SEED_ARM.arm()
    clearance, _ = clearance_of(SEED_ARM.path, arm)
    assert clearance is not None
    free, checked = (Survey(arm, 40, EXACTLY, one) for one in (None, clearance))
    solver, fewer, kept = IkSolver(arm), 0, 0
    colliding = [q for q in arm.sample(np.random.default_rng(0), 1000) if clearance(q) < 0.0][:8]
    for place in [arm.fk(q)[0] for q in colliding]:
        without, reached = free.at(place, 0), checked.at(place, 0)
        assert without is not None
        if reached is None:
            continue
        assert (reached.to_limits <= without.to_limits + 1e-9).all()
        for k in np.flatnonzero(without.to_limits > -np.inf):
            found = solver.solve_all(Goal(place, checked.directions[k]))
            apart = np.array([one.q for one in found if clearance(one.q) >= 0.0]).reshape(-1, arm.n)
            best = distances_to_limits(arm, apart).max(initial=-np.inf)
            assert reached.to_limits[k] == pytest.approx(best, abs=2e-3)
            fewer += not len(apart)
            kept += bool(len(apart)) and best < without.to_limits[k] - 1e-3
    assert fewer > 0
    assert kept > 0


def test_a_wider_angle_gives_no_less():
    """With the angle the directions and the distances grow: configurations nearby count, too."""
    arm = arm_of('so101_like')  # 4 effective DoF: it meets nearly no direction exactly
    place = arm.fk(arm.middle)[0]
    narrow, wide = (Survey(arm, 40, math.radians(angle)).at(place, 0).to_limits for angle in (2.0, 30.0))
    assert (wide >= narrow).all()
    assert (wide > -np.inf).sum() > (narrow > -np.inf).sum() + 3
    assert wide.max() == pytest.approx(distances_to_limits(arm, arm.middle[None])[0], abs=0.3)


def test_a_tolerance_interpolates_where_nothing_changes_on_any_number_of_cores(monkeypatch):
    arm, done = SEED_ARM.arm(), []
    survey, axes = Survey(arm, 10, WITHIN), lattice(arm, 0.15)
    every, some = surveyed(survey, *axes), surveyed(survey, *axes, 0.4, done.append)
    assert every.surveyed.all()
    assert sum(done) == some.share.size
    assert 0.1 < some.surveyed.mean() < 0.8
    monkeypatch.setattr('ik_node.solver.batch.usable_cores', lambda: 1)
    alone = surveyed(survey, *axes, 0.4)
    for name in ('share', 'to_limits', 'singular'):
        full, part = getattr(every, name), getattr(some, name)
        assert getattr(alone, name).tobytes() == part.tobytes()
        np.testing.assert_array_equal(part[some.surveyed], full[some.surveyed])
        both = ~np.isnan(full) & ~np.isnan(part)
        off = np.abs(part - full)[both & ~some.surveyed] / np.ptp(full[both])
        assert np.quantile(off, 0.9) < 0.4
        assert (np.isnan(full) != np.isnan(part)).mean() < 0.02


def test_a_linear_field_is_interpolated_exactly_and_its_edge_is_surveyed():
    shape = 9, 7, 6
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing='ij')).reshape(3, -1)
    values = np.where(grid[0] > 4, np.nan, np.array([[1.0, 2.0, -3.0]]) @ grid)
    known, coarse = np.full_like(values, np.nan), coarse_rows(shape, 4)
    known[:, coarse] = values[:, coarse]
    assert set(np.unique(grid[2, coarse])) == {0, 4, 5}
    rows, between, uncertain = refined(known, shape, 4, np.array([30.0]))
    assert len(np.intersect1d(rows, coarse)) == 0
    assert set(rows) | set(coarse) == set(coarse_rows(shape, 2))
    inner = grid[0, rows] <= 4
    np.testing.assert_allclose(between[:, inner], values[:, rows[inner]], atol=1e-12)
    assert not len(np.intersect1d(rows[inner], uncertain))
    assert set(uncertain) == set(rows[grid[0, rows] == 6])  # between what is in reach and what is not
    assert len(refined(known, shape, 4, np.array([1.0]))[2]) > len(uncertain)


def test_an_arm_without_limits_has_a_picture():
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0, 0, 0.3), (0, 0, 0.1)]
    arm = make_arm(axes, offsets, [(0, 0)] * 5, ['continuous'] * 5, tool_point=(0.05, 0, 0.1))
    volume = surveyed(Survey(arm, 10, WITHIN), *lattice(arm, 0.25), 0.3)
    assert not volume.surveyed.all()
    reached = volume.share > 0.0
    assert reached.any()
    assert np.isinf(volume.to_limits[reached]).all()
    figure = draw_volume(arm, volume, None, WITHIN)
    assert len(figure.axes) == 9  # six slices, three scales
    assert all(np.isfinite(panel.collections[0].get_clim()).all() for panel in figure.axes[:6])


# --- the file and the program --------------------------------------------------------------------------


def test_others_read_the_file(tmp_path):
    xarray, scipy_io = pytest.importorskip('xarray'), pytest.importorskip('scipy.io')
    robot = copy.copy(SEED_ARM.arm().robot)
    robot.name = 'Müller'  # names may have any letters
    arm, path = Arm(robot), tmp_path / 'reach.nc'
    volume = surveyed(Survey(arm, FEW, WITHIN), *lattice(arm, 0.25))
    path.write_bytes(as_netcdf(volume, arm, FEW, WITHIN))
    with xarray.open_dataset(path, engine='scipy') as data:
        assert data.share.dims == data.to_limits.dims == ('z', 'y', 'x')
        for axis in 'xyz':
            np.testing.assert_array_equal(data[axis], getattr(volume, axis))
            assert data[axis].units == 'm'
        i, j, k = (int(number) for number in np.argwhere(volume.share > 0.0)[-1])
        cell = data.sel(x=volume.x[i], y=volume.y[j], z=volume.z[k])
        found = cell.share.item(), cell.to_limits.item(), cell.least_singular_value.item()
        expected = [getattr(volume, name)[i, j, k] for name in ('share', 'to_limits', 'singular')]
        assert found == pytest.approx(expected, rel=1e-6)
        assert 'solutions' not in data
        assert data.surveyed.all()
        assert data.attrs['self_collision'] == 'not checked'
        assert (data.attrs['arm'], data.attrs['base_link']) == ('Müller', arm.base_link)
        assert data.attrs['joint_names'].split() == list(arm.joint_names)
        assert (data.attrs['directions'], float(data.attrs['within'])) == (FEW, WITHIN)
    with scipy_io.netcdf_file(path, mmap=False) as data:
        np.testing.assert_allclose(data.variables['share'][:], volume.share.T, rtol=1e-6)
        assert data.variables['to_limits'].units == b'rad'
    content = path.read_bytes()
    for length in (0, 50, len(content) // 2, len(content) - 4):
        (tmp_path / 'cut.nc').write_bytes(content[:length])
        with pytest.raises((TypeError, ValueError)):
            scipy_io.netcdf_file(tmp_path / 'cut.nc', mmap=False)


def test_the_program_replaces_an_older_file_only_when_it_has_ended(tmp_path, monkeypatch):
    scipy_io = pytest.importorskip('scipy.io')
    (tmp_path / 'out.nc').write_text('older')
    few = ['--volume', '--resolution', 0.25, '--directions', 5, '--overwrite', '--output', tmp_path / 'out']

    def interrupted(*given):
        given[-1](1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr('ik_node.tools.reach.surveyed', interrupted)
        assert ran(reach, SEED_ARM.path, *few).code == 130
    assert [path.name for path in tmp_path.iterdir()] == ['out.nc']
    assert (tmp_path / 'out.nc').read_text() == 'older'
    ended = ran(reach, SEED_ARM.path, *few)
    assert ended.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ['out.nc', 'out.png']
    with scipy_io.netcdf_file(tmp_path / 'out.nc', mmap=False) as data:
        share = data.variables['share'][:].copy()
        assert data.directions == 5
        np.testing.assert_allclose(np.diff(data.variables['x'][:]), 0.25, atol=1e-9)
    assert f'{share.size} positions, 250 mm apart: {(~np.isnan(share)).sum()} reached, ' in ended.out
    assert (tmp_path / 'out.png').stat().st_size > 20_000


def test_a_full_disk_is_one_sentence(tmp_path):
    few = ['--volume', '--resolution', 0.5, '--directions', 2, '--output', tmp_path / 'out']
    with full_disk(100):
        check_rejected(ran(reach, SEED_ARM.path, *few), f'"{tmp_path}/out.nc": File too large')
    assert list(tmp_path.iterdir()) == []
