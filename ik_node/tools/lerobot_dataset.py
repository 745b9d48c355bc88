# SPDX-License-Identifier: Apache-2.0
"""LerobotDataset: a dataset of LeRobot, v2.1 or v3.0, read and written without LeRobot.

https://huggingface.co/docs/lerobot/lerobot-dataset-v3 describes the layout.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ik_node.checks import Array
from ik_node.errors import InputError, join_names, path_text
from ik_node.files import real_path
from ik_node.model.arm import Arm

from .goal_files import InputFingerprint

VERSIONS = ('v2.1', 'v3.0')
EPISODE = 'episode_index'
FICLONE = 0x40049409  # ioctl of Linux: the copy shares its blocks until one of both is written to
EE_GRIPPER, GRIPPER = 'ee.gripper_pos', 'gripper.pos'  # LeRobot's own step to joints renames it so
QUANTILES = {'q01': 0.01, 'q10': 0.1, 'q50': 0.5, 'q90': 0.9, 'q99': 0.99}


class LerobotDataset:
    """A dataset in a folder, and one of its features, whose components have names.

    root, feature, fps [1/s], names: of the components. count: of the episodes. others: the names of the
    components of other features.
    """

    def __init__(self, root: Path, feature: str) -> None:
        """Raises InputError for a folder that is not such a dataset, or has no such feature."""
        self.root, self.feature = root, feature
        _check_links(root)
        try:
            self._info = json.loads((root / 'meta' / 'info.json').read_text(encoding='utf-8'))
            version, features = self._info['codebase_version'], self._info['features']
            self.fps, self.count = float(self._info['fps']), int(self._info['total_episodes'])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f'"{root}" is not a LeRobot dataset: meta/info.json: {error!r}. A table needs --episode'
            ) from None
        if version not in VERSIONS:
            raise InputError(f'"{root}" has version {version}, expected {" or ".join(VERSIONS)}')
        if not (math.isfinite(self.fps) and self.fps > 0.0):
            raise InputError(f'"{root}" has {self.fps:g} frames per second in meta/info.json')
        if feature not in features:
            raise InputError(f'no feature {feature!r}; the features are {join_names(features)}')
        names = _names_of(features[feature])
        if not names:
            raise InputError(f'the components of {feature!r} have no names in meta/info.json')
        self.names: list[str] = names
        self.others = {name: _names_of(one) for name, one in features.items() if name != feature}
        self._files = [path for path in _files(root / 'data') if path.suffix == '.parquet']
        self._fingerprint = InputFingerprint(root, self._files)

    def _check(self) -> None:
        """Raise InputError unless all episodes are there: before any of them is solved."""
        found = set[int]()
        for path in self._files:
            index = _read(path, [EPISODE])[EPISODE]
            if index.null_count or not pa.types.is_integer(index.type):
                raise InputError(f'"{path}": {EPISODE} must be a whole number in every frame')
            found.update(index.unique().to_pylist())
        if len(found) != self.count or not found:
            raise InputError(f'"{self.root}" has frames of {len(found)} episodes, and {self.count} in meta/info.json')

    def episodes(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return each episode with some components of its frames. Raises InputError for a damaged dataset."""
        self._check()
        columns_of = {name: self.names.index(name) for name in columns}
        seen = set[int]()
        for path in self._files:
            table = _read(path, [EPISODE, self.feature])
            values, index = self._values(path, table), table[EPISODE].to_numpy()
            starts = np.flatnonzero(np.diff(index, prepend=index[:1] - 1))
            for start, end in zip(starts, [*starts[1:], len(index)], strict=True):
                episode = int(index[start])
                if episode in seen:
                    raise InputError(f'episode {episode} begins again in "{path}": its frames must follow each other')
                seen.add(episode)
                frames = {name: values[start:end, place] for name, place in columns_of.items()}
                yield episode, pa.RecordBatch.from_pydict(frames)

    def _values(self, path: Path, table: pa.Table) -> Array:
        column = table[self.feature].combine_chunks()
        if not isinstance(column.type, (pa.ListType, pa.LargeListType, pa.FixedSizeListType)):
            raise InputError(f'"{path}": {self.feature} must hold lists of numbers, got {column.type}')
        flat = column.flatten().to_numpy(zero_copy_only=False)
        if len(flat) != len(table) * len(self.names):
            raise InputError(f'"{path}": {self.feature} does not have {len(self.names)} components in every frame')
        values: Array = flat.reshape(-1, len(self.names)).astype(np.float64)
        return values

    def written(self, arm: Arm, replaced: Sequence[str]) -> list[str]:
        """Return the components that write gives the feature: `<joint>.pos`, then those not replaced."""
        joints, kept = [f'{name}.pos' for name in arm.joint_names], self._kept(replaced)
        if EE_GRIPPER in kept and GRIPPER not in (*joints, *kept):
            kept[kept.index(EE_GRIPPER)] = GRIPPER
        return joints + kept

    def _kept(self, replaced: Sequence[str]) -> list[str]:
        return [name for name in self.names if name not in replaced]

    def write(self, output: Path, arm: Arm, replaced: Sequence[str], found: Callable[[int], pa.RecordBatch]) -> None:
        """Write the dataset to a folder with joints [degrees or mm] in the feature, its statistics anew.

        replaced: components that become joints. found: those of an episode [rad or m]. All else is copied.
        Raises InputError for a dataset that has
        changed since it was opened.
        """
        self._fingerprint.check()
        names = self.written(arm, replaced)
        kept = [self.names.index(name) for name in self._kept(replaced)]
        unit = np.where(arm.prismatic, 1e3, 180.0 / np.pi)
        own = {self.root / 'meta' / 'info.json', *self._files, *self._statistics()}
        for path in _files(self.root):
            place = path.relative_to(self.root)
            if path not in own:
                _copy(path, output / place)
        every: dict[int, Array] = {}
        for path in self._files:
            table = _read(path, None)
            index, before = table[EPISODE].to_numpy(), self._values(path, table)[:, kept]
            parts = []
            for episode in dict.fromkeys(index.tolist()):
                frames = found(episode)
                q = np.column_stack([frames.column(name).to_numpy() for name in arm.joint_names]) * unit
                every[episode] = np.column_stack([q, before[index == episode]]).astype(np.float32)
                parts.append(every[episode])
            target = output / path.relative_to(self.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(self._replaced(table, np.concatenate(parts), len(names)), target)
        self._write_info(output, names)
        self._write_statistics(output, every)
        self._fingerprint.check()

    def _replaced(self, table: pa.Table, values: Array, width: int) -> pa.Table:
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), pa.float32()), width)
        metadata = dict(table.schema.metadata or {})
        if b'huggingface' in metadata:  # the package datasets has the lengths of lists there
            described = json.loads(metadata[b'huggingface'])
            feature = described.get('info', {}).get('features', {}).get(self.feature, {})
            if 'length' in feature:
                feature['length'] = width
            metadata[b'huggingface'] = json.dumps(described).encode()
        place = table.schema.get_field_index(self.feature)
        return table.set_column(place, self.feature, column).replace_schema_metadata(metadata)

    def _write_info(self, output: Path, names: Sequence[str]) -> None:
        info = json.loads(json.dumps(self._info))
        info['features'][self.feature] |= {'dtype': 'float32', 'shape': [len(names)], 'names': list(names)}
        path = output / 'meta' / 'info.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(info, indent=4), encoding='utf-8')

    def _statistics(self) -> list[Path]:
        """Return the files that hold statistics of the feature."""
        meta = self.root / 'meta'
        files = [
            meta / 'stats.json',
            meta / 'episodes_stats.jsonl',
            *sorted((meta / 'episodes').rglob('*.parquet')),
        ]
        return [path for path in files if path.exists()]

    def _write_statistics(self, output: Path, episodes: dict[int, Array]) -> None:
        for path in self._statistics():
            target = output / path.relative_to(self.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.name == 'stats.json':
                found = json.loads(path.read_text(encoding='utf-8'))
                if self.feature in found:
                    every = np.concatenate(list(episodes.values()))
                    found[self.feature] = _statistics_of(every, found[self.feature])
                target.write_text(json.dumps(found, indent=4), encoding='utf-8')
            elif path.suffix == '.jsonl':
                lines = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines() if line]
                for line in lines:
                    if self.feature in line['stats']:
                        values = episodes[line[EPISODE]]
                        line['stats'][self.feature] = _statistics_of(values, line['stats'][self.feature])
                target.write_text('\n'.join(map(json.dumps, lines)) + '\n', encoding='utf-8')
            else:
                pq.write_table(self._with_statistics(_read(path, None), episodes), target)

    def _with_statistics(self, table: pa.Table, episodes: dict[int, Array]) -> pa.Table:
        head = f'stats/{self.feature}/'
        keys = [name.removeprefix(head) for name in table.column_names if name.startswith(head)]
        rows = [_statistics_of(episodes[index], keys) for index in table[EPISODE].to_pylist()]
        for key in keys:
            place = table.schema.get_field_index(head + key)
            column = pa.array([row[key] for row in rows], table.schema.field(place).type)
            table = table.set_column(place, table.schema.field(place), column)
        return table


def _names_of(feature: Any) -> list[str]:
    """Return the names of the components of a feature in meta/info.json."""
    names = feature.get('names') if isinstance(feature, dict) else None
    if isinstance(names, dict):  # either with their places, or in groups
        columns_of: dict[str, Any] = names
        if all(isinstance(place, int) for place in columns_of.values()):
            return sorted(columns_of, key=lambda name: columns_of[name])
        names = [name for group in names.values() if isinstance(group, list) for name in group]
    return [str(name) for name in names] if isinstance(names, list) else []


def _statistics_of(values: Array, keys: Any) -> dict[str, list[float]]:
    """Return those statistics of frames (N, components) that keys names."""
    values = values.astype(np.float64)
    known = {'min': values.min(axis=0), 'max': values.max(axis=0), 'mean': values.mean(axis=0)}
    known |= {'std': values.std(axis=0), 'count': np.array([len(values)])}
    known |= {name: np.quantile(values, share, axis=0) for name, share in QUANTILES.items()}
    return {key: known[key].tolist() for key in keys if key in known}


def _read(path: Path, columns: list[str] | None) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns, partitioning=None)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InputError(f'cannot read "{path}": {error}') from None


def _check_links(root: Path) -> None:
    """Raise InputError for links out of the dataset, links to folders, and what is neither file nor folder.

    The snapshots in the cache of Hugging Face consist of links to the blobs beside them, which are allowed.
    """
    inside = [real_path(root)]
    if real_path(root).parent.name == 'snapshots':
        inside.append(real_path(root).parents[1] / 'blobs')
    for folder, folders, names in os.walk(root):
        for path in (Path(folder, name) for name in (*folders, *names)):
            real, link = real_path(path), path.is_symlink()
            if link and not any(real.is_relative_to(one) for one in inside):
                raise InputError(f'"{path_text(path)}" is a link out of the dataset: delete or replace it')
            if link and not path.is_file():
                raise InputError(f'"{path_text(path)}" is a link, but not to a file: delete or replace it')
            if not (path.is_file() or path.is_dir()):
                raise InputError(f'"{path_text(path)}" is a device or pipe, not a file: delete it')


def _files(folder: Path) -> list[Path]:
    """Return all files below a folder, in order."""
    return sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)


def _copy(path: Path, target: Path) -> None:
    """Copy a file, by sharing its blocks where the file system can: never by a link to the original."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open('rb') as source, target.open('wb') as copy:
        try:
            fcntl.ioctl(copy, FICLONE, source.fileno())
        except OSError:
            shutil.copyfileobj(source, copy, 1 << 20)
    with contextlib.suppress(OSError):  # a file system without such times or permissions
        shutil.copystat(path, target)
