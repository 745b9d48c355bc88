# SPDX-License-Identifier: Apache-2.0
"""ik_reach --volume: what it says of a position is what the solver finds there, and others read its file."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
from cases import shipped_cases
from made_arms import make_arm
from spare_arm import WITH_SPARE

from ik_node import Arm, Goal, IkSolver, InputError
from ik_node.cli.lattice import lattice
from ik_node.cli.reach import main
from ik_node.cli.reach_picture import draw_volume
from ik_node.cli.self_collision import clearance_of
from ik_node.model.urdf.reader import read_urdf
from ik_node.reach import volume as module
from ik_node.reach.file import as_netcdf
from ik_node.reach.refinement import coarse_rows, refined
from ik_node.reach.survey import Survey
from ik_node.reach.volume import surveyed
from ik_node.solver.limit_distances import distances_to_limits

pytestmark = pytest.mark.slow

CASES = {case.label: case for case in shipped_cases()}
SEED_ARM = CASES['seed_arm']
WITHIN = math.radians(8.0)
FEW = 40  # directions
ARMS = ['seed_arm', 'so101_like']


def whole(name: str, resolution: float):
    """(arm, survey, volume)."""
    arm = CASES[name].arm()
    survey = Survey(arm, FEW, WITHIN)
    return arm, survey, surveyed(survey, *lattice(arm, resolution))


@pytest.mark.parametrize('name', ARMS)
def test_a_cell_is_reached_if_and_only_if_the_solver_reaches_it(name: str) -> None:
    arm, _, volume = whole(name, 0.12)
    there = ~np.isnan(volume.share)
    grid = np.stack(np.meshgrid(volume.x, volume.y, volume.z, indexing='ij'), axis=-1)
    solved = IkSolver(arm, restarts=300).solve_batch(grid.reshape(-1, 3)).solved.reshape(there.shape)
    np.testing.assert_array_equal(there, solved)
    assert 0.1 < there.mean() < 0.9
    for axis in range(3):  # the lattice holds the whole workspace: its faces are out of reach
        assert not there.take([0, -1], axis).any()


@pytest.mark.parametrize('name', ARMS)
def test_a_direction_counts_if_and_only_if_the_solver_comes_within_the_angle(name: str) -> None:
    arm, survey, volume = whole(name, 0.12)
    solver = IkSolver(arm, restarts=100)
    cells = np.argwhere(~np.isnan(volume.share))
    wrong = 0
    for i, j, k in cells[np.random.default_rng(0).choice(len(cells), 6, replace=False)]:
        place = np.array([volume.x[i], volume.y[j], volume.z[k]])
        nearest = [solver.solve(Goal(place, direction)) for direction in survey.directions]
        counted = survey.at(place, int(np.ravel_multi_index((i, j, k), volume.share.shape))).to_limits
        assert (counted > -np.inf).mean() == volume.share[i, j, k]
        at = [one.position_error <= 1e-5 and one.direction_error <= WITHIN for one in nearest]
        wrong += int((np.array(at) != (counted > -np.inf)).sum())
    assert wrong <= 0.03 * 6 * FEW  # the counts are lower bounds, and so are those of the solver


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_the_distance_to_the_limits_is_that_of_the_best_solution(name: str) -> None:
    arm = CASES[name].arm()
    narrow = Survey(arm, FEW, math.radians(0.01))  # so that nothing near a direction counts
    solver = IkSolver(arm)
    compared = 0
    for place in [arm.fk(q)[0] for q in arm.sample(np.random.default_rng(1), 6)]:
        distances = narrow.at(place, 0).to_limits
        for direction, distance in zip(narrow.directions, distances, strict=True):
            rows = np.array([one.q for one in solver.solve_all(Goal(place, direction))]).reshape(-1, arm.n)
            best = distances_to_limits(arm, rows).max(initial=-np.inf)
            assert distance == pytest.approx(best, abs=2e-3)
            compared += best > -np.inf
    assert 50 < compared < 6 * FEW


def test_solutions_are_counted_and_their_singular_values_told() -> None:
    arm = CASES['moveo_like'].arm()
    narrow = Survey(arm, FEW, math.radians(0.01), count=True)
    solver = IkSolver(arm)
    counted = 0
    for place in [arm.fk(q)[0] for q in arm.sample(np.random.default_rng(1), 4)]:
        reached = narrow.at(place, 0)
        for k, direction in enumerate(narrow.directions):
            rows = [one.q for one in solver.solve_all(Goal(place, direction))]
            assert len(rows) == np.nan_to_num(reached.solutions[k])
            if rows:
                distances = distances_to_limits(arm, np.array(rows))
                best = [
                    q
                    for q, distance in zip(rows, distances, strict=True)
                    if distance > distances.max() - 2e-3
                ]
                least = [
                    np.linalg.svd(arm.jacobian(q) / np.repeat([arm.reach, 1.0], 3)[:, None])[1][4]
                    for q in best
                ]
                assert np.abs(np.array(least) - reached.singular[k]).min() < 2e-3
                counted += len(rows)
    assert counted > 30


def test_self_motions_are_not_counted() -> None:
    with pytest.raises(InputError, match='a joint to spare'):
        Survey(Arm(read_urdf(WITH_SPARE)), FEW, WITHIN, count=True)


def test_configurations_in_self_collision_do_not_count() -> None:
    """Where the solution farthest from the limits collides, the others are looked at."""
    pytest.importorskip('coal')
    arm = SEED_ARM.arm()
    clearance, _ = clearance_of(SEED_ARM.path, arm)
    assert clearance is not None
    free, checked = (Survey(arm, FEW, math.radians(0.01), one) for one in (None, clearance))
    solver = IkSolver(arm)
    fewer = kept = 0
    colliding = [q for q in arm.sample(np.random.default_rng(0), 1000) if clearance(q) < 0.0][:8]
    for place in [arm.fk(q)[0] for q in colliding]:
        without, reached = free.at(place, 0), checked.at(place, 0)
        assert without is not None
        if reached is None:
            continue
        assert (reached.to_limits <= without.to_limits + 1e-9).all()
        for k in np.flatnonzero(without.to_limits > -np.inf):
            goal = Goal(place, checked.directions[k])
            apart = [one.q for one in solver.solve_all(goal) if clearance(one.q) >= 0.0]
            best = distances_to_limits(arm, np.array(apart).reshape(-1, arm.n)).max(initial=-np.inf)
            assert reached.to_limits[k] == pytest.approx(best, abs=2e-3)
            fewer += not apart
            kept += bool(apart) and best < without.to_limits[k] - 1e-3
    assert fewer > 0
    assert kept > 0


def test_a_wider_angle_gives_no_less() -> None:
    """With the angle the directions and the distances grow: configurations nearby count, too."""
    arm = CASES['so101_like'].arm()  # 4 effective DoF: it meets nearly no direction exactly
    place = arm.fk(arm.middle)[0]
    narrow, wide = (Survey(arm, FEW, math.radians(angle)).at(place, 0).to_limits for angle in (2.0, 30.0))
    assert (wide >= narrow).all()
    assert (wide > -np.inf).sum() > (narrow > -np.inf).sum() + 3
    assert wide.max() == pytest.approx(distances_to_limits(arm, arm.middle[None])[0], abs=0.3)


def test_the_values_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = SEED_ARM.arm()
    survey, axes = Survey(arm, 10, WITHIN), lattice(arm, 0.25)
    done: list[int] = []
    many = surveyed(survey, *axes, done=done.append)
    assert sum(done) == many.share.size
    monkeypatch.setattr(module, 'usable_cores', lambda: 1)
    alone = surveyed(survey, *axes)
    assert many.share.tobytes() == alone.share.tobytes()
    assert many.to_limits.tobytes() == alone.to_limits.tobytes()
    assert many.singular.tobytes() == alone.singular.tobytes()


def test_a_tolerance_interpolates_where_nothing_changes() -> None:
    arm = SEED_ARM.arm()
    survey, axes = Survey(arm, 10, WITHIN), lattice(arm, 0.15)
    done: list[int] = []
    every, some = surveyed(survey, *axes), surveyed(survey, *axes, 0.4, done.append)
    assert every.surveyed.all()
    assert sum(done) == some.share.size
    assert 0.1 < some.surveyed.mean() < 0.8
    for name in ('share', 'to_limits', 'singular'):
        full, part = getattr(every, name), getattr(some, name)
        np.testing.assert_array_equal(part[some.surveyed], full[some.surveyed])
        both = ~np.isnan(full) & ~np.isnan(part)
        off = np.abs(part - full)[both & ~some.surveyed] / np.ptp(full[both])
        assert np.quantile(off, 0.9) < 0.4
        assert (np.isnan(full) != np.isnan(part)).mean() < 0.02


def test_a_linear_field_is_interpolated_exactly_and_its_edge_is_surveyed() -> None:
    shape = 9, 7, 6
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing='ij')).reshape(3, -1)
    field = np.array([[1.0, 2.0, -3.0]]) @ grid
    values = np.where(grid[0] > 4, np.nan, field)
    known = np.full_like(values, np.nan)
    coarse = coarse_rows(shape, 4)
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


def test_an_arm_without_limits_has_a_picture() -> None:
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0, 0, 0.3), (0, 0, 0.1)]
    arm = make_arm(axes, offsets, [(0, 0)] * 5, ['continuous'] * 5, tool_point=(0.05, 0, 0.1))
    coarse = surveyed(Survey(arm, 10, WITHIN), *lattice(arm, 0.2), 0.3)
    assert not coarse.surveyed.all()
    assert (coarse.share[np.isinf(coarse.to_limits)] > 0.0).all()
    assert not np.isnan(coarse.to_limits[coarse.share > 0.0]).any()
    volume = surveyed(Survey(arm, 10, WITHIN), *lattice(arm, 0.3))
    reached = volume.share > 0.0
    assert reached.any()
    assert np.isinf(volume.to_limits[reached]).all()
    figure = draw_volume(arm, volume, None, WITHIN)
    assert len(figure.axes) == 9  # six slices, three scales
    assert all(np.isfinite(panel.collections[0].get_clim()).all() for panel in figure.axes[:6])


# --- the file ------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def stored(tmp_path_factory: pytest.TempPathFactory):
    """(arm, volume, path of its file)."""
    arm, _, volume = whole('seed_arm', 0.2)
    path = tmp_path_factory.mktemp('volume') / 'reach.nc'
    path.write_bytes(as_netcdf(volume, arm, FEW, WITHIN))
    return arm, volume, path


def test_xarray_reads_the_file(stored) -> None:
    xarray = pytest.importorskip('xarray')
    arm, volume, path = stored
    with xarray.open_dataset(path, engine='scipy') as data:
        assert data.share.dims == data.to_limits.dims == ('z', 'y', 'x')
        for axis in 'xyz':
            np.testing.assert_array_equal(data[axis], getattr(volume, axis))
            assert data[axis].units == 'm'
        i, j, k = (int(number) for number in np.argwhere(volume.share > 0.0)[-1])
        cell = data.sel(x=volume.x[i], y=volume.y[j], z=volume.z[k])
        assert cell.share.item() == pytest.approx(volume.share[i, j, k], rel=1e-6)
        assert cell.to_limits.item() == pytest.approx(volume.to_limits[i, j, k], rel=1e-6)
        assert cell.least_singular_value.item() == pytest.approx(volume.singular[i, j, k], rel=1e-6)
        assert 'solutions' not in data
        assert data.surveyed.all()
        assert data.attrs['self_collision'] == 'not checked'
        assert data.attrs['base_link'] == arm.base_link
        assert data.attrs['joint_names'].split() == list(arm.joint_names)
        assert data.attrs['directions'] == FEW
        assert float(data.attrs['within']) == WITHIN


def test_names_may_have_any_letters(stored, tmp_path: Path) -> None:
    xarray = pytest.importorskip('xarray')
    arm, volume, _ = stored
    robot = copy.copy(arm.robot)
    robot.name = 'Müller'
    (tmp_path / 'reach.nc').write_bytes(as_netcdf(volume, Arm(robot), FEW, WITHIN))
    with xarray.open_dataset(tmp_path / 'reach.nc', engine='scipy') as data:
        assert data.attrs['arm'] == 'Müller'


def test_scipy_reads_the_file_and_rejects_one_that_is_cut(stored, tmp_path: Path) -> None:
    scipy_io = pytest.importorskip('scipy.io')
    _, volume, path = stored
    with scipy_io.netcdf_file(path, mmap=False) as data:
        np.testing.assert_allclose(data.variables['share'][:], volume.share.T, rtol=1e-6)
        np.testing.assert_allclose(data.variables['to_limits'][:], volume.to_limits.T, rtol=1e-6)
        assert data.variables['to_limits'].units == b'rad'
    content = path.read_bytes()
    for length in (0, 50, len(content) // 2, len(content) - 4):
        (tmp_path / 'cut.nc').write_bytes(content[:length])
        with pytest.raises((TypeError, ValueError)):
            scipy_io.netcdf_file(tmp_path / 'cut.nc', mmap=False)


# --- the program ---------------------------------------------------------------------------------------


def test_the_program_replaces_an_older_file_and_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scipy_io = pytest.importorskip('scipy.io')
    (tmp_path / 'out.nc').write_text('older')
    few = ['--resolution', '0.2', '--directions', '10']
    assert main([SEED_ARM.path, '--volume', *few, '--overwrite', '--output', str(tmp_path / 'out.nc')]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ['out.nc', 'out.png']
    with scipy_io.netcdf_file(tmp_path / 'out.nc', mmap=False) as data:
        share = data.variables['share'][:].copy()
        assert data.directions == 10
        np.testing.assert_allclose(np.diff(data.variables['x'][:]), 0.2, atol=1e-9)
    said, progress = capsys.readouterr()
    assert f'{share.size} positions, 200 mm apart: {(~np.isnan(share)).sum()} reached, ' in said
    assert progress.splitlines()[-1].startswith(f'100 % of {share.size} positions, ')
    assert (tmp_path / 'out.png').stat().st_size > 20_000


def test_ctrl_c_leaves_an_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given) -> None:
        given[-1](1)
        raise KeyboardInterrupt

    (tmp_path / 'out.nc').write_text('older')
    monkeypatch.setattr('ik_node.cli.reach.surveyed', interrupted)
    coarse = ['--volume', '--resolution', '0.2', '--overwrite', '--output', str(tmp_path / 'out')]
    assert main([SEED_ARM.path, *coarse]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ['out.nc']
    assert (tmp_path / 'out.nc').read_text() == 'older'


def test_a_full_disk_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / 'out.nc.part').symlink_to('/dev/full')
    few = ['--resolution', '0.5', '--directions', '2']
    assert main([SEED_ARM.path, '--volume', *few, '--output', str(tmp_path / 'out')]) == 2
    assert f'error: cannot write "{tmp_path}/out.nc": No space left' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
