# SPDX-License-Identifier: Apache-2.0
"""Datasets in the layouts of LeRobot v2.1 and v3.0: poses of smooth joint motions of an arm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ik_node import Arm

NAMES = ['ee.x', 'ee.y', 'ee.z', 'ee.wx', 'ee.wy', 'ee.wz', 'ee.gripper_pos']
FPS = 30


def rotation_vector(R):
    """Return the rotation vector (3,) of R (3, 3), for angles below a half turn."""
    angle = np.arccos(np.clip((np.trace(R) - 1.0) / 2.0, -1.0, 1.0))
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return axis * (angle / (2.0 * np.sin(angle)) if angle > 1e-9 else 0.5)


def motions(arm: Arm, lengths: list[int]):
    """Return joints (N, n) for each episode."""
    rng = np.random.default_rng(0)
    lower, upper = np.maximum(arm.lower, -2.0), np.minimum(arm.upper, 2.0)
    found = []
    for length in lengths:
        t = np.linspace(0.0, 1.0, length)[:, None]
        middle = lower + (upper - lower) * (0.35 + 0.3 * rng.random(arm.n))
        swing = 0.2 * (upper - lower) * rng.random(arm.n)
        found.append(middle + swing * np.sin(4.0 * t + 6.0 * rng.random(arm.n)))
    return found


def poses(arm: Arm, joints):
    """Return poses and a gripper position for joints (N, n), an array (N, 7) of float32."""
    rows = []
    for k, q in enumerate(joints):
        T = arm.robot.link_pose(arm.tip_link, dict(zip(arm.joint_names, q, strict=True)))
        rows.append([*T[:3, 3], *rotation_vector(T[:3, :3]), k])
    return np.array(rows, np.float32)


def write(root: Path, version: str, episodes) -> None:
    """Write episodes, arrays (N, 7), as the feature action of a dataset."""
    (root / 'meta').mkdir(parents=True)
    (root / 'videos').mkdir()
    (root / 'videos' / 'film.mp4').write_bytes(b'film')
    info = {
        'codebase_version': version,
        'total_episodes': len(episodes),
        'total_frames': sum(map(len, episodes)),
        'fps': FPS,
        'features': {'action': {'dtype': 'float32', 'shape': [len(NAMES)], 'names': NAMES}},
    }
    (root / 'meta' / 'info.json').write_text(json.dumps(info))
    tables = [_table(number, values) for number, values in enumerate(episodes)]
    data = root / 'data' / 'chunk-000'
    data.mkdir(parents=True)
    if version == 'v2.1':
        for number, table in enumerate(tables):
            pq.write_table(table, data / f'episode_{number:06d}.parquet')
        lines = [
            json.dumps({'episode_index': number, 'stats': {'action': {'mean': [0.0] * 7, 'count': [0]}}})
            for number in range(len(episodes))
        ]
        (root / 'meta' / 'episodes_stats.jsonl').write_text('\n'.join(lines))
        return
    pq.write_table(pa.concat_tables(tables[:2]), data / 'file-000.parquet')
    pq.write_table(pa.concat_tables(tables[2:]), data / 'file-001.parquet')
    keys = ('min', 'max', 'mean', 'std', 'count', 'q50')
    (root / 'meta' / 'stats.json').write_text(json.dumps({'action': {key: [0.0] * 7 for key in keys}}))
    (root / 'meta' / 'episodes' / 'chunk-000').mkdir(parents=True)
    rows = {'episode_index': list(range(len(episodes))), 'length': list(map(len, episodes))}
    rows |= {f'stats/action/{key}': [[0.0] * 7] * len(episodes) for key in keys}
    pq.write_table(pa.table(rows), root / 'meta' / 'episodes' / 'chunk-000' / 'file-000.parquet')


def _table(number: int, values) -> pa.Table:
    described = {'info': {'features': {'action': {'length': 7, '_type': 'Sequence'}}}}
    columns = {
        'action': pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), len(NAMES)),
        'frame_index': np.arange(len(values)),
        'episode_index': np.full(len(values), number),
    }
    return pa.table(columns).replace_schema_metadata({'huggingface': json.dumps(described)})


def read(root: Path):
    """Return the actions of each episode."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted((root / 'data').rglob('*.parquet'))])
    index = table['episode_index'].to_numpy()
    values = np.array(table['action'].to_pylist())
    return [values[index == number] for number in dict.fromkeys(index.tolist())]
