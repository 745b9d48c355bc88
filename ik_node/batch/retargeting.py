# SPDX-License-Identifier: Apache-2.0
"""Retargeting: the poses of a dataset's episodes become joint positions of an arm."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from ik_node.batch.episodes import FLAGS, solve_episode
from ik_node.batch.goal_columns import GoalColumns, read_rows
from ik_node.batch.lerobot_dataset import LerobotDataset
from ik_node.batch.parts import Parts, packed, unpacked
from ik_node.batch.workers import Workers
from ik_node.checks import Array
from ik_node.solver.solver import IkSolver

SHARES = (0.5, 0.95, 1.0)  # quantiles of errors in a report


@dataclass(frozen=True)
class EpisodeTask:
    """What is done with each episode: all that its result depends on."""

    solver: IkSolver
    columns: GoalColumns
    fps: float


@dataclass(frozen=True)
class SolveEpisode:
    """The work on an episode: a batch of poses to a batch of joints, both in Arrow's IPC format."""

    task: bytes

    def __call__(self, chunk: bytes) -> bytes:
        task = _task(self.task)
        rows = read_rows(unpacked(chunk), task.columns, task.solver.arm)
        return packed(solve_episode(task.solver, rows, task.fps))


@lru_cache(maxsize=4)
def _task(pickled: bytes) -> EpisodeTask:
    task: EpisodeTask = pickle.loads(pickled)
    return task


@dataclass(frozen=True)
class EpisodeReport:
    """How well an episode was met.

    frames, and how many of them have each of FLAGS. first: the first frame with each of these, -1 without.
    position_errors [m] and direction_errors [rad]: quantiles at SHARES. largest_step [rad or m] of a joint.
    """

    episode: int
    frames: int
    flagged: dict[str, int]
    first: dict[str, int]
    position_errors: tuple[float, ...]
    direction_errors: tuple[float, ...]
    largest_step: float

    @classmethod
    def of(cls, episode: int, found: pa.RecordBatch, joints: Sequence[str]) -> EpisodeReport:
        """Report on the result of solve_episode."""
        flags = {name: found.column(name).to_numpy(zero_copy_only=False) for name in FLAGS}
        q = np.column_stack([found.column(name).to_numpy() for name in joints])
        return cls(
            episode,
            found.num_rows,
            {name: int(flag.sum()) for name, flag in flags.items()},
            {name: int(flag.argmax()) if flag.any() else -1 for name, flag in flags.items()},
            _quantiles(found.column('position_error').to_numpy()),
            _quantiles(found.column('direction_error').to_numpy()),
            float(np.abs(np.diff(q, axis=0)).max(initial=0.0)),
        )


def _quantiles(errors: Array) -> tuple[float, ...]:
    """Return the errors at SHARES, of frames that have one; zero if none has."""
    errors = errors[~np.isnan(errors)]
    return tuple(np.quantile(errors, SHARES).tolist()) if len(errors) else (0.0,) * len(SHARES)


class Retargeting:
    """Writes a dataset anew with joints in place of poses; its parts are kept as those of a Job."""

    def __init__(self, task: EpisodeTask, dataset: LerobotDataset, output: Path) -> None:
        self._task, self._dataset, self._output = task, dataset, output
        self.work = SolveEpisode(pickle.dumps(task))
        self.parts = Parts(output, self.work.task)
        columns = task.columns.names
        self._kept = [name for name in dataset.names if name not in columns]

    def names(self) -> list[str]:
        """Return the components of the feature: `<joint>.pos` [degrees or mm], then what was kept."""
        return [f'{name}.pos' for name in self._task.solver.arm.joint_names] + self._kept

    def run(self, workers: Workers, done: Callable[[int], None]) -> list[EpisodeReport]:
        """Write the output; done: called with the numbers of episodes that are done. Raises IkError."""
        arm = self._task.solver.arm
        names = self.parts.fill(workers, self._chunks(), done)
        numbers = [episode for episode, _ in self._dataset.episodes()]
        parts = dict(zip(numbers, names, strict=True))
        kept = [self._dataset.names.index(name) for name in self._kept]
        before = {}
        if kept:
            before = {episode: values[:, kept] for episode, values in self._dataset.episodes()}
        unit = np.where(arm.prismatic, 1e3, 180.0 / np.pi)
        reports = []

        def frames(episode: int) -> Array:
            found = unpacked(self.parts.read(parts[episode]))
            reports.append(EpisodeReport.of(episode, found, arm.joint_names))
            q: Array = np.column_stack([found.column(name).to_numpy() for name in arm.joint_names]) * unit
            return np.column_stack([q, before[episode]]) if kept else q

        with self.parts.finished(self._output) as temporary:
            self._dataset.write(temporary, self.names(), frames)
        return reports

    def _chunks(self) -> Iterator[tuple[bytes, int]]:
        """Return the poses of each episode, in Arrow's IPC format."""
        wanted = self._task.columns.names
        for _, values in self._dataset.episodes():
            columns = {name: values[:, self._dataset.names.index(name)] for name in wanted}
            yield packed(pa.RecordBatch.from_pydict(columns)), 1
