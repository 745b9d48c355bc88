# SPDX-License-Identifier: Apache-2.0
"""Episodes: the poses of successive frames become joint positions of an arm, each episode as one path."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from mcap_ros2.writer import Writer
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError, join_names, path_text, quoted
from ik_node.files import whole_file
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal, Solution, Status
from ik_node.solver.solver import IkSolver
from ik_node.solver.spare_roll import spare_roll

from .checkpoints import Checkpoints, packed, unpacked
from .goal_columns import GoalColumns, GoalRows, numbers, read_rows
from .goal_files import GoalFile, check_csv, table_writer
from .workers import Workers, task_key

Mask = NDArray[np.bool_]

SAME = 1e-3  # [rad or m] between configurations of one branch
STRAY = 0.02  # of the reach
SLACK = 1.0 + 1e-9  # of velocities, for rounding
FLAGS = ('solved', 'jump', 'too_fast', 'invalid')
NAMED = ('invalid', 'jump', 'too_fast')  # flags whose frames a report names
FOUND = ('position_error', 'direction_error', *FLAGS, 'reason_text')
SECONDS = 'seconds'


def solve_episode(solver: IkSolver, rows: GoalRows, times: Array) -> pa.RecordBatch:
    """Return a row for each frame: joints [rad or m], position_error [m], direction_error [rad], FLAGS.

    reason_text: why a frame is invalid. SECONDS: times (N,) [s] of the frames, as given.

    The path is that of IkSolver.solve_path, whose largest joint move is least. Frames that cannot be met, and
    those between them, follow the frame before as IkSolver.solve_nearby does. A frame without a goal is
    invalid: it holds the joints, and its errors are null, as is that of a direction that was not asked for.
    jump: no continuous motion along the goals leads there from the frame before, or, where one of both is
    not met, the tool leaves the straight way between them by more than STRAY. too_fast: a joint exceeds its
    velocity limit from the frame before, as every motion does where the time does not increase.
    """
    arm = solver.arm
    count = len(rows.positions)
    goals = [_goal(rows, k) for k in range(count)]
    valid = np.ones(count, np.bool_)
    valid[list(rows.wrong)] = False
    frames = valid.nonzero()[0]
    directions = None if rows.directions is None else rows.directions[frames]
    seed = arm.middle if rows.seeds is None or not len(frames) else rows.seeds[frames[0]]
    path = solver.solve_path(rows.positions[frames], directions, seed, time_budget=math.inf)
    q, solved = np.repeat(seed[None], count, axis=0), np.zeros(count, np.bool_)
    q[frames], solved[frames] = path.q, path.solved
    jump = np.zeros(count, np.bool_)
    jump[frames[list(path.breaks)]] = True
    _fill(solver, goals, q, solved, valid, jump)
    if rows.laterals is not None and spare_roll(arm) >= 0:
        _turn_rolls(solver, goals, q, solved, valid)
    loose = np.flatnonzero(~(solved[1:] & solved[:-1]))
    jump[loose + 1] |= _strays(arm, q[loose], q[loose + 1])
    errors = np.array([solver.errors(goal, row) for goal, row in zip(goals, q, strict=True)]).reshape(-1, 2)
    errors[~valid] = np.nan
    if rows.directions is None:
        errors[:, 1] = np.nan
    moves = np.abs(np.diff(q, axis=0, prepend=q[:1]))
    periods = np.nan_to_num(np.diff(times, prepend=times[:1]), posinf=0.0).clip(0.0)
    too_fast = (moves > arm.velocity * periods[:, None] * SLACK).any(axis=1)
    columns = [pa.array(column) for column in (*q.T, solved, jump, too_fast, ~valid)]
    columns[arm.n : arm.n] = [pa.array(column, from_pandas=True) for column in errors.T]  # NaN: null
    columns.append(pa.array([rows.wrong.get(k) for k in range(count)], pa.string()))
    columns.append(pa.array(times))
    return pa.RecordBatch.from_arrays(columns, [*arm.joint_names, *FOUND, SECONDS])


def _strays(arm: Arm, before: Array, after: Array) -> Mask:
    """Return whether the tool leaves the straight way by more than STRAY, (k,), in steps between (k, n)."""
    first, middle, last = (
        np.array([arm.fk(q)[0] for q in rows]).reshape(-1, 3) for rows in (before, (before + after) / 2.0, after)
    )
    away: Mask = np.linalg.norm(middle - (first + last) / 2.0, axis=1) > STRAY * arm.reach
    return away


def _goal(rows: GoalRows, k: int) -> Goal:
    direction = None if rows.directions is None else rows.directions[k]
    return Goal(rows.positions[k], direction, None if rows.laterals is None else rows.laterals[k])


def _fill(solver: IkSolver, goals: list[Goal], q: Array, solved: Mask, valid: Mask, jump: Mask) -> None:
    """Have frames that are not solved follow their neighbours, in place."""
    count = len(goals)
    if not valid.any():
        return
    first = int(solved.argmax())
    if not solved[first]:  # none is solved: from the closest configuration of the first
        first = int(valid.argmax())
        q[first] = solver.solve(goals[first], q[first]).q
    for k in range(first - 1, -1, -1):
        q[k] = solver.solve_nearby(goals[k], q[k + 1]).q if valid[k] else q[k + 1]
    for k in range(first + 1, count):
        if not solved[k]:
            q[k] = solver.solve_nearby(goals[k], q[k - 1]).q if valid[k] else q[k - 1]
        elif not solved[k - 1]:  # solve_path knows nothing of the frames between
            there = solver.solve_nearby(goals[k], q[k - 1])
            jump[k] = not (there.solved and np.abs(there.q - q[k]).max() < SAME)


def _turn_rolls(solver: IkSolver, goals: list[Goal], q: Array, solved: Mask, valid: Mask) -> None:
    """Turn spare rolls towards the lateral axes, each near that of the frame before, in place."""
    before = q[0]
    for k, goal in enumerate(goals):
        if valid[k]:
            status = Status.SOLVED if solved[k] else Status.NOT_FOUND
            found = Solution(status, q[k], *solver.errors(goal, q[k]))
            q[k] = solver.align_lateral(goal, before, found).q
        else:
            q[k] = before
        before = q[k]
    first = int(valid.argmax())
    q[:first] = q[first]


ROWS = 50_000  # read and written at once


class EpisodeTable:
    """A file of goals whose rows of one episode follow each other, in the order of their frames.

    names: of its columns. count: of the episodes, which is not known before all is read.
    """

    count = None

    def __init__(self, file: GoalFile, episode: str) -> None:
        """episode: a column of names or numbers. Raises InputError if there is none."""
        if episode not in file.names:
            raise InputError(f'no column {quoted(episode)}; the columns are {join_names(file.names)}')
        if twice := [name for name in file.names if list(file.names).count(name) > 1]:
            raise InputError(f'two columns have the name {quoted(twice[0])}')
        self._file, self._episode = file, episode
        self.names: list[str] = list(file.names)
        self.others: dict[str, list[str]] = {}  # a table has no other features

    def episodes(self, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return each episode with some columns of its frames.

        Raises InputError for a damaged file, a row without an episode, and an episode that begins again.
        """
        current, batches = '', list[pa.RecordBatch]()
        row, seen = 0, set[str]()
        for batch in self._file.batches(list(dict.fromkeys([*columns, self._episode])), ROWS):
            start = 0
            for name, group in groupby(batch.column(self._episode).to_pylist(), _name):
                if not name:
                    raise InputError(f'row {row + start} of "{self._file.path}" has no {self._episode}')
                if name != current:
                    if batches:
                        yield current, pa.concat_batches(batches)
                    if name in seen:
                        raise InputError(
                            f'{self._episode} {name} begins again in row {row + start} of '
                            f'"{self._file.path}": the rows of an episode must follow each other'
                        )
                    seen.add(name)
                    current, batches = name, []
                count = sum(1 for _ in group)
                batches.append(batch.slice(start, count).select(columns))
                start += count
            row += batch.num_rows
        if batches:
            yield current, pa.concat_batches(batches)

    def written(self, arm: Arm, replaced: Sequence[str]) -> list[str]:
        """Return the columns that write gives the table: those not replaced, then what was found.

        Raises InputError if there would be two of one name.
        """
        kept, found = self._kept(replaced), [*arm.joint_names, *FOUND]
        if twice := [name for name in kept if name in found]:
            raise InputError(f'the output has a column {quoted(twice[0])} too: rename that of the input')
        return kept + found

    def _kept(self, replaced: Sequence[str]) -> list[str]:
        return [name for name in self.names if name not in replaced]

    def check_csv(self, replaced: Sequence[str]) -> None:
        """Raise InputError for columns that stay and that a CSV file cannot hold."""
        for batch in self._file.batches(self._kept(replaced), 1):
            check_csv(batch.schema)
            return

    def write(self, output: Path, arm: Arm, replaced: Sequence[str], found: Callable[[str], pa.RecordBatch]) -> None:
        """Write by table_writer the columns that are not replaced, and what was found of each episode.

        Raises InputError for a file without rows, and for one that has changed since it was solved.
        """
        rows = self._joined(self._kept(replaced), [*arm.joint_names, *FOUND], found)
        first = next(rows, None)
        if first is None:
            raise InputError(f'"{self._file.path}" has no rows')
        with table_writer(output, first.schema, compression='zstd') as write:
            pending = [first]
            for batch in rows:
                if sum(one.num_rows for one in pending) >= ROWS:
                    write(pa.concat_batches(pending))
                    pending = []
                pending.append(batch)
            write(pa.concat_batches(pending))

    def _joined(
        self, kept: Sequence[str], added: Sequence[str], found: Callable[[str], pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for name, before in self.episodes(kept):
            try:
                frames = found(name)
                arrays = [*before.columns, *(frames.column(one) for one in added)]
                yield pa.RecordBatch.from_arrays(arrays, [*kept, *added])
            except (KeyError, pa.ArrowInvalid):
                raise InputError(f'"{self._file.path}" has changed while it was read') from None


def _name(episode: Any) -> str:
    """Return the name of an episode, empty without one; arrays of NumPy have whole numbers as floats."""
    if episode is None or episode != episode:
        return ''
    return f'{episode:.15g}' if isinstance(episode, float) else str(episode)


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


def _runs(flag: Mask) -> list[tuple[int, int]]:
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
        self.parts = Checkpoints(output, task_key(task))
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
        columns = [*self._task.columns.names, *[self._task.time] * bool(self._task.time)]
        for episode, frames in self._source.episodes(list(dict.fromkeys(columns))):
            episodes.append(episode)
            yield packed(frames), 1


TOPIC = '/joint_states'
KIND = 'sensor_msgs/msg/JointState'
DEFINITION = f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{80 * '='}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{80 * '='}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""


def write_recording(path: Path, names: Sequence[str], times: Array, q: Array) -> None:
    """Write joints q (N, n) [rad or m] at times (N,) [s], those since the first; replace what is there.

    A frame whose time is no later than that of one before has the time of that. Raises OSError.
    """
    since = np.nan_to_num(times - times[:1], nan=0.0, posinf=0.0, neginf=0.0)
    stamps = np.maximum.accumulate(np.rint(1e9 * since.clip(0.0, 2.0**31)).astype(np.int64)).tolist()
    with whole_file(path) as stream, Writer(stream) as writer:
        kind = writer.register_msgdef(KIND, DEFINITION)
        for stamp, row in zip(stamps, q.tolist(), strict=True):
            at = {'sec': stamp // 10**9, 'nanosec': stamp % 10**9}
            message = {
                'header': {'stamp': at, 'frame_id': ''},
                'name': list(names),
                'position': row,
                'velocity': [],
                'effort': [],
            }
            writer.write_message(TOPIC, kind, message, stamp)
