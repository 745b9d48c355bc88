# SPDX-License-Identifier: Apache-2.0
"""ik_retarget: poses of datasets and tables become joints that lead there; everything else stays."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace

import made_dataset
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from programs import Ended, Here, check_rejected, ran

from ik_node import Arm, Goal, IkSolver, InputError, Solution, Status
from ik_node.startup.arguments import URDF
from ik_node.steady import steady
from ik_node.tools import retarget
from ik_node.tools.episodes import EpisodeReport, EpisodeTable, solve_episode, worst_of
from ik_node.tools.goal_columns import GoalRows
from ik_node.tools.goal_files import open_goals
from ik_node.tools.lerobot_dataset import LerobotDataset

ARM = URDF / 'so101_like.urdf.xacro'
LENGTHS = [40, 25, 60]


@pytest.fixture(scope='module')
def solver() -> IkSolver:
    return IkSolver(Arm.from_file(ARM), compile='wait')


@pytest.fixture(scope='module')
def motions(solver):
    """Joints of three smooth episodes, and their poses."""
    joints = made_dataset.motions(solver.arm, LENGTHS)
    return joints, [made_dataset.poses(solver.arm, q) for q in joints]


def run(*arguments: object) -> Ended:
    return ran(retarget, ARM, *arguments)


def assert_same_poses(arm, q, given) -> None:
    np.testing.assert_allclose(made_dataset.poses(arm, q)[:, :6], given[:, :6], atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize('version', ['v2.1', 'v3.0'])
def test_joints_lead_to_the_poses_and_all_else_stays(tmp_path, solver, motions, version):
    arm, (joints, given) = solver.arm, motions
    made_dataset.write(tmp_path / 'in', version, given)
    code, said, why = run(tmp_path / 'in', tmp_path / 'out')
    assert code == 0, why
    assert f'3 episodes, {sum(LENGTHS)} frames' in said
    found = made_dataset.read(tmp_path / 'out')
    for q, action, before in zip(joints, found, given, strict=True):
        assert_same_poses(arm, np.radians(action[:, : arm.n]), before)
        np.testing.assert_array_equal(action[:, arm.n], before[:, 6])
        moves = (np.abs(np.diff(rows, axis=0)).max() for rows in (np.radians(action[:, : arm.n]), q))
        assert next(moves) < 1.5 * next(moves)
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


@pytest.mark.slow
def test_the_parts_of_a_run_that_failed_are_used_again(tmp_path, motions, monkeypatch):
    made_dataset.write(tmp_path / 'in', 'v3.0', motions[1])
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


def test_the_roll_turns_as_it_is_asked_at_frames_out_of_reach_too(solver):
    arm = solver.arm
    rows = rows_of(solver, made_dataset.motions(arm, [10])[0])
    rows.positions[5:] *= 5.0
    across = np.cross(rows.directions, [0.3, 0.5, 0.8])
    rows = replace(rows, laterals=across / np.linalg.norm(across, axis=1)[:, None])
    found = solve_episode(solver, rows, times(10))
    assert found.column('solved').to_pylist() == [True] * 5 + [False] * 5
    for k, q in enumerate(np.column_stack([found.column(name).to_numpy() for name in arm.joint_names])):
        goal = Goal(rows.positions[k], rows.directions[k], rows.laterals[k])
        status = Status.SOLVED if k < 5 else Status.NOT_FOUND
        turned = solver.align_lateral(goal, q, Solution(status, q, *solver.errors(goal, q)))
        np.testing.assert_allclose(turned.q, q, atol=1e-9)


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


def test_frames_without_a_goal_and_times_that_do_not_increase(solver):
    q = made_dataset.motions(solver.arm, [30])[0]
    found = solve_episode(solver, rows_of(solver, q[:3], wrong=(0, 1, 2)), times(3))
    assert found.column('invalid').to_pylist() == [True] * 3
    assert found.column('reason_text').to_pylist() == ['wrong'] * 3
    assert not any(found.column('too_fast').to_pylist())
    clock = times(30)
    clock[10], clock[20] = clock[9], np.nan
    found = solve_episode(solver, rows_of(solver, q), clock)
    fast = np.flatnonzero(found.column('too_fast').to_numpy(zero_copy_only=False))
    assert fast.tolist() == [10, 20, 21]


@pytest.mark.slow
def test_wrong_arguments_for_a_dataset(tmp_path, solver):
    q = made_dataset.motions(solver.arm, [5])[0]
    made_dataset.write(tmp_path / 'in', 'v3.0', [made_dataset.poses(solver.arm, q)] * 3)
    (tmp_path / 'circle').symlink_to('circle')
    for source, output, more, named in (
        ('circle', 'out', [], 'circle'),
        ('in', 'in', [], 'overwrite the input'),
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


@pytest.mark.slow
def test_a_busy_computer_finds_the_same_path(monkeypatch):
    solver = IkSolver(Arm.from_file(URDF / 'ball_joint_arm.urdf.xacro'), compile='wait')
    rows = rows_of(solver, made_dataset.motions(solver.arm, [12])[0])
    expected = solve_episode(solver, rows, times(12))
    clock = itertools.count(0.0, 1000.0)  # [s] between two looks
    monkeypatch.setattr(steady, 'read', lambda: next(clock))
    assert solve_episode(solver, rows, times(12)) == expected
    assert all(expected.column('solved').to_pylist())


def changed(data, name, values) -> None:
    """Replace a column of a file."""
    table = pq.read_table(data)
    pq.write_table(table.set_column(table.schema.get_field_index(name), name, pa.array(values)), data)


DAMAGES = {
    'has frames of 1 episodes, and 2': lambda data, _: data.unlink(),
    'episode_index must': lambda data, _: changed(data, 'episode_index', [None, 1, 1, 1, 1]),
    'action must hold lists of numbers, got double': lambda data, _: changed(data, 'action', np.zeros(5)),
    '0 frames per second': lambda _, info: info.write_text(info.read_text().replace('"fps": 30', '"fps": 0')),
    'episode 0 begins again': lambda data, _: pq.write_table(
        pq.read_table(data.with_name('episode_000000.parquet')).slice(0, 2), data.with_name('z.parquet')
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize('named', DAMAGES)
def test_a_damaged_dataset_is_rejected_in_one_line(tmp_path, solver, named):
    episodes = [made_dataset.poses(solver.arm, q) for q in made_dataset.motions(solver.arm, [5, 5])]
    made_dataset.write(tmp_path / 'in', 'v2.1', episodes)
    DAMAGES[named](tmp_path / 'in/data/chunk-000/episode_000001.parquet', tmp_path / 'in/meta/info.json')
    with pytest.raises(InputError, match=named):
        list(LerobotDataset(tmp_path / 'in', 'action').episodes(['ee.x']))
    check_rejected(run(tmp_path / 'in', tmp_path / 'out'), named)
    assert not (tmp_path / 'out').exists()


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


def test_links_to_the_blobs_of_a_cache_are_read_and_changes_meanwhile_are_noticed(tmp_path, solver):
    root = tmp_path / 'snapshots/1'
    made_dataset.write(root, 'v2.1', [np.zeros((5, 7), np.float32)])
    (tmp_path / 'blobs').mkdir()
    (root / 'videos/film.mp4').rename(tmp_path / 'blobs/0')
    (root / 'videos/film.mp4').symlink_to('../../../blobs/0')
    frames = pa.RecordBatch.from_pydict({name: np.zeros(5) for name in solver.arm.joint_names})
    dataset, names = LerobotDataset(root, 'action'), made_dataset.NAMES[:6]
    dataset.write(tmp_path / 'out', solver.arm, names, lambda _: frames)
    assert not (tmp_path / 'out/videos/film.mp4').is_symlink()
    assert (tmp_path / 'out/videos/film.mp4').read_bytes() == b'film'
    dataset = LerobotDataset(root, 'action')
    os.utime(next((root / 'data').rglob('*.parquet')), ns=(1, 1))
    with pytest.raises(InputError, match='has changed during the run'):
        dataset.write(tmp_path / 'other', solver.arm, names, lambda _: frames)


# --- tables --------------------------------------------------------------------------------------------

COLUMNS = ['--episode', 'take', '--time', 'stamp']


@pytest.mark.slow
@pytest.mark.parametrize('suffix', ['.parquet', '.csv'])
def test_rows_of_a_table_are_episodes_and_its_other_columns_stay(tmp_path, solver, motions, suffix):
    given, arm = np.concatenate(motions[1]).astype(float), solver.arm
    columns = dict(zip(made_dataset.NAMES, given.T.copy(), strict=True))
    columns['ee.y'][[40, 50]] = np.nan
    columns['stamp'] = np.concatenate([5.0 + np.arange(length) / 30.0 for length in LENGTHS])
    columns['take'] = np.repeat(['pick', 'place', 'wave'], LENGTHS)
    columns['frame'] = np.arange(len(given))  # counts frames: no frame of goals
    table = pa.table(columns)
    write = pq.write_table if suffix == '.parquet' else pyarrow.csv.write_csv
    write(table, tmp_path / f'in{suffix}')
    folder = tmp_path / 'recordings'
    options = [*COLUMNS, '--recordings', folder, '--report', tmp_path / 'report.json']
    code, said, why = run(tmp_path / f'in{suffix}', tmp_path / 'out.parquet', *options)
    assert code == 0, why
    assert f'3 episodes, {sum(LENGTHS)} frames' in said
    assert 'episode place: 23 of 25 frames solved' in said
    assert ['invalid', '2', 'frames'] in [line.split() for line in said.splitlines()]
    report = json.loads((tmp_path / 'report.json').read_text())
    assert [one['episode'] for one in report['episodes']] == ['pick', 'place', 'wave']
    assert [one['frames'] for one in report['episodes']] == LENGTHS
    assert report['episodes'][1]['flagged']['invalid'] == 2
    assert report['episodes'][1]['runs']['invalid'] == [[0, 0], [10, 10]]
    assert report['episodes'][1]['reason'].startswith('ee.y is ')
    found = pq.read_table(tmp_path / 'out.parquet')
    assert found.column_names[:4] == ['ee.gripper_pos', 'stamp', 'take', 'frame']
    assert list(map(int, found['frame'].to_pylist())) == list(range(len(given)))
    assert found['take'].to_pylist() == table['take'].to_pylist()
    np.testing.assert_allclose(np.array(found['stamp'], float), columns['stamp'])
    q, valid = np.column_stack([found[name] for name in arm.joint_names]), np.ones(len(given), bool)
    valid[[40, 50]] = False
    assert_same_poses(arm, q[valid], given[valid])
    np.testing.assert_array_equal(q[[40, 50]], q[[41, 49]])
    assert np.array(found['solved']).tolist() == valid.tolist()
    assert found['reason_text'].null_count == len(q) - 2
    assert not (tmp_path / 'out.parquet.parts').exists()
    assert sorted(path.name for path in folder.iterdir()) == [f'out_{take}.mcap' for take in ('pick', 'place', 'wave')]
    with (folder / 'out_place.mcap').open('rb') as stream:
        messages = list(make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages())
    assert {(schema.name, channel.topic) for schema, channel, _, _ in messages} == {
        ('sensor_msgs/msg/JointState', '/joint_states')
    }
    np.testing.assert_array_equal([decoded.position for *_, decoded in messages], q[40:65])
    stamps = [one.log_time * 1e-9 for *_, one, _ in messages]
    np.testing.assert_allclose(stamps, np.arange(25) / 30.0, atol=2e-9)
    assert all(decoded.name == list(arm.joint_names) for *_, decoded in messages)


def test_episodes_longer_and_shorter_than_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr('ik_node.tools.episodes.ROWS', 7)
    take = np.repeat([3.0, 1.0, 2.0], [20, 1, 4])
    np.savez(tmp_path / 'in.npz', take=take, x=np.arange(25.0))
    episodes = EpisodeTable(open_goals(tmp_path / 'in.npz'), 'take').episodes(['x'])
    found = [(name, frames.column('x').to_pylist()) for name, frames in episodes]
    assert found == [('3', list(range(20))), ('1', [20]), ('2', [21, 22, 23, 24])]


@pytest.mark.parametrize(
    ('lines', 'named'),
    [
        ('a,1\nb,1\na,1\n', 'take a begins again in row 2'),
        ('a,1\n,1\n', 'row 1 of ".*" has no take'),
        ('a,1\nb\n', 'row 1 of ".*" has no take'),  # while it is being written
    ],
)
def test_rows_that_belong_to_no_episode(tmp_path, lines, named):
    (tmp_path / 'in.csv').write_text('take,x\n' + lines)
    with pytest.raises(InputError, match=named):
        list(EpisodeTable(open_goals(tmp_path / 'in.csv'), 'take').episodes(['x']))
