# SPDX-License-Identifier: Apache-2.0
"""ik_retarget: poses of a dataset become joints that lead there; everything else stays."""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path

import made_dataset
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import Ended, Here, check_rejected, ran

from ik_node import Arm, IkSolver, InputError
from ik_node.batch.episodes import solve_episode
from ik_node.batch.goal_columns import GoalRows
from ik_node.batch.lerobot_dataset import LerobotDataset
from ik_node.batch.retargeting import EpisodeReport, worst_of
from ik_node.cli import retarget
from ik_node.startup.robots import URDF

ARM = URDF / 'so101_like.urdf.xacro'
LENGTHS = [40, 25, 60]


@pytest.fixture(scope='module')
def solver() -> IkSolver:
    return IkSolver(Arm.from_file(ARM), compile='wait')


def run(*arguments: object) -> Ended:
    return ran(retarget, ARM, *arguments)


@pytest.mark.parametrize('version', ['v2.1', 'v3.0'])
def test_joints_lead_to_the_poses_and_all_else_stays(tmp_path, solver, version):
    arm = solver.arm
    joints = made_dataset.motions(arm, LENGTHS)
    given = [made_dataset.poses(arm, q) for q in joints]
    made_dataset.write(tmp_path / 'in', version, given)
    code, said, why = run(tmp_path / 'in', tmp_path / 'out')
    assert code == 0, why
    assert f'3 episodes, {sum(LENGTHS)} frames' in said
    found = made_dataset.read(tmp_path / 'out')
    for q, action, before in zip(joints, found, given, strict=True):
        np.testing.assert_allclose(
            made_dataset.poses(arm, np.radians(action[:, : arm.n]))[:, :6], before[:, :6], atol=2e-4
        )
        np.testing.assert_array_equal(action[:, arm.n], before[:, 6])
        assert np.abs(np.diff(action[:, : arm.n], axis=0)).max() < 1.5 * np.degrees(
            np.abs(np.diff(q, axis=0)).max()
        )
    info = json.loads((tmp_path / 'out/meta/info.json').read_text())
    names = [f'{name}.pos' for name in arm.joint_names] + ['gripper.pos']
    assert info['features']['action'] == {'dtype': 'float32', 'shape': [6], 'names': names}
    assert (tmp_path / 'out/videos/film.mp4').read_bytes() == b'film'
    data = sorted((tmp_path / 'out/data').rglob('*.parquet'))
    described = json.loads(pq.read_schema(data[0]).metadata[b'huggingface'])
    assert described['info']['features']['action']['length'] == 6
    every = np.concatenate(found)
    if version == 'v2.1':
        lines = (tmp_path / 'out/meta/episodes_stats.jsonl').read_text().splitlines()
        for line, action in zip(map(json.loads, lines), found, strict=True):
            np.testing.assert_allclose(line['stats']['action']['mean'], action.mean(axis=0), atol=1e-4)
            assert line['stats']['action']['count'] == [len(action)]
    else:
        stats = json.loads((tmp_path / 'out/meta/stats.json').read_text())['action']
        np.testing.assert_allclose(stats['max'], every.max(axis=0))
        np.testing.assert_allclose(stats['q50'], np.median(every, axis=0), atol=1e-4)
        rows = pq.read_table(tmp_path / 'out/meta/episodes', partitioning=None)
        np.testing.assert_allclose(rows['stats/action/min'][1].as_py(), found[1].min(axis=0))
    assert not (tmp_path / 'out.parts').exists()


def test_the_parts_of_a_run_that_failed_are_used_again(tmp_path, solver, monkeypatch):
    episodes = [made_dataset.poses(solver.arm, q) for q in made_dataset.motions(solver.arm, LENGTHS)]
    made_dataset.write(tmp_path / 'in', 'v3.0', episodes)
    assert run(tmp_path / 'in', tmp_path / 'whole').code == 0
    begun = []

    def stop() -> None:
        begun.append(1)
        if len(begun) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Here, 'meanwhile', staticmethod(stop))
    assert run(tmp_path / 'in', tmp_path / 'broken').code == 130
    assert not (tmp_path / 'broken').exists()
    assert run(tmp_path / 'in', tmp_path / 'broken').code == 0
    assert len(begun) == 1 + len(LENGTHS)
    for path in sorted((tmp_path / 'whole').rglob('*')):
        other = tmp_path / 'broken' / path.relative_to(tmp_path / 'whole')
        assert path.is_dir() or path.read_bytes() == other.read_bytes()


def times(count: int):
    """Return the times [s] of frames, 30 per second."""
    return np.arange(count) / 30.0


def rows_of(solver: IkSolver, q, wrong=()) -> GoalRows:
    positions, directions = map(np.array, zip(*map(solver.arm.fk, q), strict=True))
    return GoalRows(positions, directions, None, None, dict.fromkeys(wrong, 'wrong'))


def test_a_jump_to_another_branch_is_told_at_its_frame(solver):
    """Two motions that no continuous one connects within a frame."""
    arm = solver.arm
    first, second = (made_dataset.motions(arm, [30, 30])[k] for k in range(2))
    found = solve_episode(solver, rows_of(solver, np.concatenate([first, second])), times(60))
    assert all(found.column('solved').to_pylist())
    fast = np.flatnonzero(found.column('too_fast').to_numpy(zero_copy_only=False))
    assert 30 in fast
    alone = solve_episode(solver, rows_of(solver, first), times(30))
    assert not any(alone.column('jump').to_pylist())
    assert not any(alone.column('too_fast').to_pylist())


def test_frames_without_a_goal_hold_the_joints_and_do_not_hide_the_motion(solver):
    q = made_dataset.motions(solver.arm, [30])[0]
    found = solve_episode(solver, rows_of(solver, q, wrong=(0, 10, 11, 29)), times(30))
    assert np.flatnonzero(found.column('invalid').to_numpy(zero_copy_only=False)).tolist() == [0, 10, 11, 29]
    joints = np.column_stack([found.column(name).to_numpy() for name in solver.arm.joint_names])
    np.testing.assert_array_equal(joints[[0, 10, 11, 29]], joints[[1, 9, 9, 28]])
    assert not any(found.column('jump').to_pylist())


def test_frames_out_of_reach_are_followed_as_closely_as_possible(solver):
    arm = solver.arm
    rows = rows_of(solver, made_dataset.motions(arm, [40])[0])
    base = arm.joints[0, 3:6]
    stretch = np.linspace(1.0, 3.0, 40)[:, None]
    rows.positions[:] = base + (rows.positions - base) * stretch
    found = solve_episode(solver, rows, times(40))
    joints = np.column_stack([found.column(name).to_numpy() for name in arm.joint_names])
    assert (joints >= arm.lower).all()
    assert (joints <= arm.upper).all()
    away = np.linalg.norm(rows.positions[-1] - base)
    assert found.column('position_error')[-1].as_py() < away
    assert found.column('position_error')[-1].as_py() > 0.1
    assert not found.column('solved')[-1].as_py()


def test_a_jump_between_frames_out_of_reach_is_told(solver):
    """Behind the arm its nearest configuration is another one."""
    arm = solver.arm
    rows = rows_of(solver, made_dataset.motions(arm, [20])[0])
    base = arm.joints[0, 3:6]
    rows.positions[:10] = np.add(base, (2.0, 0.02, 0.1))
    rows.positions[10:] = np.add(base, (-2.0, 0.02, 0.1))
    found = solve_episode(solver, rows, times(20))
    assert not any(found.column('solved').to_pylist())
    assert np.flatnonzero(found.column('jump').to_numpy(zero_copy_only=False)).tolist() == [10]


def test_an_episode_of_frames_that_hold_no_goal(solver):
    q = made_dataset.motions(solver.arm, [3])[0]
    found = solve_episode(solver, rows_of(solver, q, wrong=(0, 1, 2)), times(3))
    assert found.column('invalid').to_pylist() == [True] * 3
    assert found.column('reason_text').to_pylist() == ['wrong'] * 3
    assert not any(found.column('too_fast').to_pylist())


def test_motion_is_too_fast_where_the_time_does_not_increase(solver):
    q = made_dataset.motions(solver.arm, [30])[0]
    clock = times(30)
    clock[10], clock[20] = clock[9], np.nan
    found = solve_episode(solver, rows_of(solver, q), clock)
    fast = np.flatnonzero(found.column('too_fast').to_numpy(zero_copy_only=False))
    assert fast.tolist() == [10, 20, 21]


def test_wrong_arguments_for_a_dataset(tmp_path, solver):
    q = made_dataset.motions(solver.arm, [5])[0]
    made_dataset.write(tmp_path / 'in', 'v3.0', [made_dataset.poses(solver.arm, q)] * 3)
    for source, output, more, named in (
        ('none', 'out', [], 'meta/info.json'),
        ('in', 'in', [], 'into the input'),
        ('in', 'no/out', [], 'no/out'),
        ('in', 'out', ['--feature', 'state'], "'state'"),
        ('in', 'out', ['--position', 'a', 'b', 'c'], '"a"'),
    ):
        check_rejected(run(tmp_path / source, tmp_path / output, *more), named)


def test_the_worst_episodes_have_frames_without_a_goal_then_jumps_then_errors():
    reports = [
        EpisodeReport(name, 9, {'invalid': invalid, 'jump': jumps}, {}, (0.0, error), None, 0.0, '')
        for name, invalid, jumps, error in (
            ('good', 0, 0, 1e-6), ('off', 0, 0, 0.2), ('far', 0, 0, 0.3),
            ('jump', 0, 1, 0.0), ('no', 1, 0, 0.0), ('jumps', 0, 2, 0.1),
        )
    ]  # fmt: skip
    assert [one.episode for one in worst_of(reports)] == ['no', 'jumps', 'jump', 'far', 'off']


def test_a_busy_computer_finds_the_same_path(monkeypatch):
    solver = IkSolver(Arm.from_file(URDF / 'ball_joint_arm.urdf.xacro'), compile='wait')
    rows = rows_of(solver, made_dataset.motions(solver.arm, [12])[0])
    expected = solve_episode(solver, rows, times(12))
    clock = itertools.count(0.0, 1000.0)  # [s] between two looks
    monkeypatch.setattr(time, 'perf_counter', lambda: next(clock))
    assert solve_episode(solver, rows, times(12)) == expected
    assert all(expected.column('solved').to_pylist())


def test_an_episode_that_begins_again_in_another_file_is_rejected(tmp_path, solver):
    episodes = [made_dataset.poses(solver.arm, q) for q in made_dataset.motions(solver.arm, [5] * 3)]
    made_dataset.write(tmp_path / 'in', 'v3.0', episodes)
    data = tmp_path / 'in/data/chunk-000'
    pq.write_table(pq.read_table(data / 'file-000.parquet').slice(0, 2), data / 'file-002.parquet')
    check_rejected(run(tmp_path / 'in', tmp_path / 'out'), 'episode 0 begins again')
    assert not (tmp_path / 'out').exists()


def damaged(root: Path, how: str) -> None:
    """Damage a dataset of two files, v2.1."""
    info, data = root / 'meta/info.json', root / 'data/chunk-000/episode_000001.parquet'
    described, table = json.loads(info.read_text()), pq.read_table(data)
    if how == 'absent':
        data.unlink()
    elif how == 'no number':
        index = pa.array([None, *[1] * (len(table) - 1)])
        pq.write_table(
            table.set_column(table.schema.get_field_index('episode_index'), 'episode_index', index), data
        )
    elif how == 'no lists':
        numbers = pa.array(np.zeros(len(table)))
        pq.write_table(table.set_column(table.schema.get_field_index('action'), 'action', numbers), data)
    else:
        described['fps'] = 0
    info.write_text(json.dumps(described))


@pytest.mark.parametrize(
    ('how', 'words'),
    [
        ('absent', 'has frames of 1 episodes, and 2 in meta/info.json'),
        ('no number', 'episode_index must be a whole number in every frame'),
        ('no lists', 'action must hold lists of numbers, got double'),
        ('no rate', 'has 0 frames per second in meta/info.json'),
    ],
)
def test_a_damaged_dataset_is_rejected_in_one_line(tmp_path, solver, how, words):
    episodes = [made_dataset.poses(solver.arm, q) for q in made_dataset.motions(solver.arm, [5, 5])]
    made_dataset.write(tmp_path / 'in', 'v2.1', episodes)
    damaged(tmp_path / 'in', how)
    with pytest.raises(InputError, match=words):
        list(LerobotDataset(tmp_path / 'in', 'action').episodes(['ee.x']))


def test_names_with_their_places_and_files_behind_links(tmp_path, solver):
    arm = solver.arm
    episodes = [made_dataset.poses(arm, q) for q in made_dataset.motions(arm, [5])]
    made_dataset.write(tmp_path / 'in', 'v2.1', episodes)
    info = tmp_path / 'in/meta/info.json'
    described = json.loads(info.read_text())
    described['features']['action']['names'] = {name: k for k, name in enumerate(made_dataset.NAMES)}
    info.write_text(json.dumps(described))
    (tmp_path / 'in/meta/tasks.jsonl').write_text('{}')
    (tmp_path / 'in/videos/other.mp4').symlink_to('film.mp4')
    dataset = LerobotDataset(tmp_path / 'in', 'action')
    assert dataset.names == made_dataset.NAMES
    frames = pa.RecordBatch.from_pydict({name: np.zeros(5) for name in arm.joint_names})
    dataset.write(tmp_path / 'deeper/out', arm, made_dataset.NAMES[:6], lambda _: frames)
    for name in ('film.mp4', 'other.mp4'):
        assert (tmp_path / 'deeper/out/videos' / name).read_bytes() == b'film'
    for name in ('meta/tasks.jsonl', 'videos/film.mp4', 'videos/other.mp4'):
        before = (tmp_path / 'in' / name).read_bytes()
        with (tmp_path / 'deeper/out' / name).open('ab') as file:
            file.write(b'more')
        assert (tmp_path / 'in' / name).read_bytes() == before


@pytest.mark.parametrize('target', ['../../secret', '../../folder', '.', '../data', 'nowhere', None])
def test_links_are_not_followed_out_of_a_dataset_nor_round_in_it(tmp_path, target):
    made_dataset.write(tmp_path / 'in', 'v2.1', [np.zeros((5, 7), np.float32)])
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'secret').write_text('key')
    extra = tmp_path / 'in/videos/extra'
    os.mkfifo(extra) if target is None else extra.symlink_to(target)
    with pytest.raises(InputError, match=r'extra" is a (link|device or pipe)'):
        LerobotDataset(tmp_path / 'in', 'action')


def test_links_to_the_blobs_of_a_cache_are_read(tmp_path, solver):
    root = tmp_path / 'snapshots/1'
    made_dataset.write(root, 'v2.1', [np.zeros((5, 7), np.float32)])
    (tmp_path / 'blobs').mkdir()
    (root / 'videos/film.mp4').rename(tmp_path / 'blobs/0')
    (root / 'videos/film.mp4').symlink_to('../../../blobs/0')
    frames = pa.RecordBatch.from_pydict({name: np.zeros(5) for name in solver.arm.joint_names})
    LerobotDataset(root, 'action').write(
        tmp_path / 'out', solver.arm, made_dataset.NAMES[:6], lambda _: frames
    )
    assert not (tmp_path / 'out/videos/film.mp4').is_symlink()
    assert (tmp_path / 'out/videos/film.mp4').read_bytes() == b'film'


def test_a_dataset_that_changes_meanwhile_is_rejected(tmp_path, solver):
    episodes = [made_dataset.poses(solver.arm, q) for q in made_dataset.motions(solver.arm, [5])]
    made_dataset.write(tmp_path / 'in', 'v2.1', episodes)
    dataset = LerobotDataset(tmp_path / 'in', 'action')
    os.utime(next((tmp_path / 'in/data').rglob('*.parquet')), ns=(1, 1))
    with pytest.raises(InputError, match='has changed during the run'):
        dataset.write(tmp_path / 'out', solver.arm, made_dataset.NAMES[:6], lambda _: None)
