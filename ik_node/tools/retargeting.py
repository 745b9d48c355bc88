# SPDX-License-Identifier: Apache-2.0
"""Retargeting: the poses of episodes become joint positions of an arm."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError, path_text
from ik_node.files import whole_file
from ik_node.model.arm import Arm
from ik_node.solver.solver import IkSolver

from .episodes import FLAGS, NAMED, SECONDS, solve_episode
from .goal_columns import GoalColumns, numbers, read_rows
from .parts import Checkpoints, packed, unpacked
from .workers import Workers, task_key, work_of

if TYPE_CHECKING:
    from .goal_columns import GoalColumns

SHARES = (0.5, 0.95, 1.0)  # quantiles of errors in a report
WORST = 5  # episodes that are listed and recorded
LONGEST = 100  # characters of the name of a recording


@dataclass(frozen=True)
class EpisodeTask:
    """What is done with each episode: all that its result depends on.

    fps [1/s] of the frames, unless there is a column time of their times [s].
    """

    solver: IkSolver
    columns: GoalColumns
    fps: float
    time: str = ''

    def answer(self, chunk: bytes) -> bytes:
        """Return a batch of joints for the batch of poses of an episode, both in Arrow's IPC format."""
        frames = unpacked(chunk)
        rows = read_rows(frames, self.columns, self.solver.arm)
        times = numbers(frames, self.time) if self.time else np.arange(frames.num_rows) / self.fps
        return packed(solve_episode(self.solver, rows, times))


@dataclass(frozen=True)
class EpisodeReport:
    """How well an episode was met.

    frames, and how many of them have each of FLAGS. runs: of NAMED, the first and the last frame of each run
    of frames that have it. reason: why the first invalid frame is so.
    position_errors [m] and direction_errors [rad]: quantiles at SHARES, None where no frame has a pose or a
    direction. largest_step [rad or m] of a joint.
    """

    episode: int | str
    frames: int
    flagged: dict[str, int]
    runs: dict[str, list[tuple[int, int]]]
    position_errors: tuple[float, ...] | None
    direction_errors: tuple[float, ...] | None
    largest_step: float
    reason: str

    @classmethod
    def of(cls, episode: int | str, found: pa.RecordBatch, joints: Sequence[str]) -> EpisodeReport:
        """Report on the result of solve_episode."""
        flags = {name: found.column(name).to_numpy(zero_copy_only=False) for name in FLAGS}
        q = joints_of(found, joints)
        return cls(
            episode,
            found.num_rows,
            {name: int(flag.sum()) for name, flag in flags.items()},
            {name: _runs(flags[name]) for name in NAMED},
            _quantiles(found.column('position_error')),
            _quantiles(found.column('direction_error')),
            float(np.abs(np.diff(q, axis=0)).max(initial=0.0)),
            next((one.as_py() for one in found.column('reason_text').drop_null()), ''),
        )


def write_reports(path: Path, reports: Sequence[EpisodeReport]) -> None:
    """Write reports as JSON: the fields of EpisodeReport of each episode. Raises OSError."""
    written = {'quantiles': SHARES, 'episodes': [asdict(report) for report in reports]}
    with whole_file(path) as stream:
        stream.write(f'{json.dumps(written, indent=1, allow_nan=False)}\n'.encode())


def worst_of(reports: Sequence[EpisodeReport]) -> list[EpisodeReport]:
    """Return the WORST episodes, the worst first."""

    def badness(report: EpisodeReport) -> tuple[float, ...]:
        flagged = report.flagged
        largest = [max(errors or (0.0,)) for errors in (report.position_errors, report.direction_errors)]
        return flagged['invalid'], flagged['jump'], *largest

    return sorted(reports, key=badness, reverse=True)[:WORST]


def joints_of(found: pa.RecordBatch, names: Sequence[str]) -> Array:
    """Return the joints (N, n) [rad or m] in the result of solve_episode."""
    return np.column_stack([found.column(name).to_numpy() for name in names])


def _runs(flag: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and the last frame of each run of frames that have a flag."""
    changes = np.flatnonzero(np.diff(flag, prepend=False, append=False)).tolist()
    return [(first, end - 1) for first, end in zip(changes[::2], changes[1::2], strict=True)]


def _quantiles(errors: pa.Array) -> tuple[float, ...] | None:
    """Return the errors at SHARES, of frames that have one; None if none has."""
    known = errors.drop_null().to_numpy()
    return tuple(np.quantile(known, SHARES).tolist()) if len(known) else None


class Episodes(Protocol):
    """Where episodes of poses come from, and how they are written with joints: see LerobotDataset."""

    def episodes(self, columns: Sequence[str]) -> Iterator[tuple[Any, pa.RecordBatch]]: ...

    def written(self, arm: Arm, replaced: Sequence[str]) -> list[str]: ...

    def write(
        self, output: Path, arm: Arm, replaced: Sequence[str], found: Callable[[Any], pa.RecordBatch]
    ) -> None: ...


class Retargeting:
    """Writes episodes anew with joints in place of poses; its parts are kept as those of a Job."""

    def __init__(self, task: EpisodeTask, source: Episodes, output: Path) -> None:
        self._task, self._source, self._output = task, source, output
        self.work = work_of(task)
        self.parts = Checkpoints(output, task_key(task.solver, task.columns, task.fps, task.time))
        self.written = source.written(task.solver.arm, task.columns.poses)

    def run(
        self,
        workers: Workers,
        done: Callable[[int], None],
        recordings: Path | None = None,
        report: Path | None = None,
    ) -> list[EpisodeReport]:
        """Write the output; done: called with the numbers of episodes that are done. Raises IkError.

        recordings: folder for recordings of the worst episodes. report: file for the reports of all.
        """
        arm = self._task.solver.arm
        episodes: list[int | str] = []
        parts: dict[int | str, str] = {}
        reports = []

        def found(episode: int | str) -> pa.RecordBatch:
            frames = unpacked(self.parts.read(parts[episode]))
            reports.append(EpisodeReport.of(episode, frames, arm.joint_names))
            return frames

        with self.parts.writing() as temporary:
            names = list(self.parts.fill(workers, self._chunks(episodes), done))
            parts.update(zip(episodes, names, strict=True))
            self._source.write(temporary, arm, self._task.columns.poses, found)
            worst = [(one.episode, self.parts.read(parts[one.episode])) for one in worst_of(reports)]
        try:  # once the output is written: a full disk does not undo that
            if recordings:
                self._record(recordings, worst)
            if report:
                write_reports(report, reports)
        except OSError as error:
            why = error.strerror or error
            raise InputError(
                f'wrote "{path_text(self._output)}", but could not write its report or recordings: {why}'
            ) from None
        return reports

    def _record(self, folder: Path, worst: Sequence[tuple[int | str, bytes]]) -> None:
        """Write recordings of episodes, given with their parts."""
        from .episodes import write_recording

        joints = self._task.solver.arm.joint_names
        taken = set[str]()
        for episode, part in worst:
            name = re.sub(r'[^\w.-]', '_', f'{self._output.stem}_{episode}')[:LONGEST]
            while name in taken or (folder / f'{name}.mcap').exists():  # of "a/b" and "a_b", and of others
                name += '_'
            taken.add(name)
            found = unpacked(part)
            path, seconds = folder / f'{name}.mcap', found.column(SECONDS).to_numpy()
            write_recording(path, joints, seconds, joints_of(found, joints))

    def _chunks(self, episodes: list[int | str]) -> Iterator[tuple[bytes, int]]:
        """Return the poses of each episode, in Arrow's IPC format, and note the episodes."""
        wanted = [*self._task.columns.names, *[self._task.time] * bool(self._task.time)]
        for episode, frames in self._source.episodes(list(dict.fromkeys(wanted))):
            episodes.append(episode)
            yield packed(frames), 1
