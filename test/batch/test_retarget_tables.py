# SPDX-License-Identifier: Apache-2.0
"""ik_retarget with tables: rows of one episode become joints, the other columns stay."""

from __future__ import annotations

import json

import made_dataset
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from programs import Ended, check_rejected, ran

from ik_node import Arm
from ik_node.batch.episode_table import EpisodeTable
from ik_node.batch.goal_files import open_goals
from ik_node.cli import retarget
from ik_node.errors import InputError
from ik_node.startup.robots import URDF

ARM = URDF / 'so101_like.urdf.xacro'
LENGTHS = [40, 25, 60]
COLUMNS = ['--episode', 'take', '--time', 'stamp']


def run(*arguments: object) -> Ended:
    return ran(retarget, ARM, *arguments)


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_file(ARM)


def made_table(arm: Arm) -> pa.Table:
    """Return three takes of smooth motions."""
    poses = np.concatenate([made_dataset.poses(arm, q) for q in made_dataset.motions(arm, LENGTHS)])
    columns = dict(zip(made_dataset.NAMES, poses.T.astype(float), strict=True))
    columns['stamp'] = np.concatenate([5.0 + np.arange(length) / 30.0 for length in LENGTHS])
    columns['take'] = np.repeat(['pick', 'place', 'wave'], LENGTHS)
    columns['note'] = np.array([f'frame {k}' for k in range(sum(LENGTHS))])
    return pa.table(columns)


@pytest.mark.parametrize('suffix', ['.parquet', '.csv'])
def test_joints_lead_to_the_poses_and_other_columns_stay(tmp_path, arm, suffix):
    table = made_table(arm)
    wrong = table['ee.y'].to_numpy().copy()
    wrong[[40, 50]] = np.nan
    table = table.set_column(1, 'ee.y', pa.array(wrong))
    write = pq.write_table if suffix == '.parquet' else pyarrow.csv.write_csv
    write(table, tmp_path / f'in{suffix}')
    folder = tmp_path / 'recordings'
    options = [*COLUMNS, '--recordings', folder, '--report', tmp_path / 'report.json']
    code, said, why = run(tmp_path / f'in{suffix}', tmp_path / 'out.parquet', *options)
    assert code == 0, why
    assert f'3 episodes, {sum(LENGTHS)} frames' in said
    assert 'episode place: 23 of 25 frames solved' in said
    assert '2 frames invalid (first: 0); frame 0: ee.y is ' in said
    report = json.loads((tmp_path / 'report.json').read_text())
    assert report['quantiles'] == [0.5, 0.95, 1.0]
    assert [one['episode'] for one in report['episodes']] == ['pick', 'place', 'wave']
    assert [one['frames'] for one in report['episodes']] == LENGTHS
    assert report['episodes'][1]['flagged']['invalid'] == 2
    assert report['episodes'][1]['runs']['invalid'] == [[0, 0], [10, 10]]
    assert report['episodes'][1]['reason'].startswith('ee.y is ')
    found = pq.read_table(tmp_path / 'out.parquet')
    assert found.column_names[:4] == ['ee.gripper_pos', 'stamp', 'take', 'note']
    assert found['note'].to_pylist() == table['note'].to_pylist()
    assert found['take'].to_pylist() == table['take'].to_pylist()
    np.testing.assert_allclose(np.array(found['stamp'], float), np.array(table['stamp']))
    q = np.column_stack([found[name] for name in arm.joint_names])
    valid = ~np.isin(np.arange(len(q)), (40, 50))
    given = np.column_stack([table[name] for name in made_dataset.NAMES[:6]])
    np.testing.assert_allclose(made_dataset.poses(arm, q)[valid, :6], given[valid], atol=2e-4)
    np.testing.assert_array_equal(q[[40, 50]], q[[41, 49]])
    assert np.array(found['solved']).tolist() == valid.tolist()
    assert found['reason_text'].null_count == len(q) - 2
    assert not (tmp_path / 'out.parquet.parts').exists()
    assert sorted(path.name for path in folder.iterdir()) == [
        'out_pick.mcap',
        'out_place.mcap',
        'out_wave.mcap',
    ]
    with (folder / 'out_place.mcap').open('rb') as stream:
        messages = list(make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages())
    assert {(schema.name, channel.topic) for schema, channel, _, _ in messages} == {
        ('sensor_msgs/msg/JointState', '/joint_states')
    }
    np.testing.assert_array_equal([decoded.position for *_, decoded in messages], q[40:65])
    np.testing.assert_allclose(
        [one.log_time * 1e-9 for *_, one, _ in messages], np.arange(25) / 30.0, atol=2e-9
    )
    assert all(decoded.name == list(arm.joint_names) for *_, decoded in messages)


def test_episodes_longer_and_shorter_than_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr('ik_node.batch.episode_table.ROWS', 7)
    take = np.repeat([3.0, 1.0, 2.0], [20, 1, 4])
    np.savez(tmp_path / 'in.npz', take=take, x=np.arange(25.0))
    episodes = EpisodeTable(open_goals(tmp_path / 'in.npz'), 'take').episodes(['x'])
    found = [(name, frames.column('x').to_pylist()) for name, frames in episodes]
    assert found == [('3', list(range(20))), ('1', [20]), ('2', [21, 22, 23, 24])]


@pytest.mark.parametrize(
    ('lines', 'words'),
    [
        ('a,1\nb,1\na,1\n', 'take a begins again in row 2 of'),
        ('a,1\n,1\n', 'row 1 of ".*" has no take'),
        ('a,1\nb\n', 'row 1 of ".*" has no take'),  # while it is being written
    ],
)
def test_rows_that_belong_to_no_episode(tmp_path, lines, words):
    (tmp_path / 'in.csv').write_text('take,x\n' + lines)
    with pytest.raises(InputError, match=words):
        list(EpisodeTable(open_goals(tmp_path / 'in.csv'), 'take').episodes(['x']))


@pytest.mark.parametrize(
    ('header', 'arguments', 'named'),
    [
        ('take,x,y,z', ['--fps', '30'], '--episode'),
        ('take,x,y,z', [], '--episode'),
        ('take,x,y,z', ['--episode', 'take'], '--fps RATE [1/s]'),
        ('take,x,y,z', ['--episode', 'take', '--fps', '0'], '--fps'),
        ('take,x,y,z', ['--episode', 'no', '--fps', '30'], 'no column "no"'),
        ('take,x,y,z', COLUMNS, 'no column "stamp"'),
        ('take,x,y,z,solved', ['--episode', 'take', '--fps', '30'], 'a column "solved"'),
        ('take,x,y,z', ['--episode', 'take', '--fps', '30'], 'has no rows'),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path, header, arguments, named):
    (tmp_path / 'in.csv').write_text(f'{header}\n')
    check_rejected(run(tmp_path / 'in.csv', tmp_path / 'out.parquet', *arguments), named)
    assert not (tmp_path / 'out.parquet').exists()


def test_a_column_that_counts_frames_is_no_frame_of_goals_and_stays(tmp_path, arm):
    table = made_table(arm)
    table = table.append_column('frame', pa.array(range(len(table))))
    pyarrow.csv.write_csv(table, tmp_path / 'in.csv')
    assert run(tmp_path / 'in.csv', tmp_path / 'out.parquet', *COLUMNS).code == 0
    found = pq.read_table(tmp_path / 'out.parquet')
    assert found['frame'].to_pylist() == [str(k) for k in range(len(table))]
    assert all(found['solved'].to_pylist())
