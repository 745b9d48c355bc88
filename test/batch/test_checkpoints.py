# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of an output: what a crash leaves, who writes, in which order they come."""

from __future__ import annotations

import contextlib
import resource
from dataclasses import replace

import pytest
from programs import Here
from slow_work import Slowly

from ik_node import Arm, IkSolver, InputError
from ik_node.errors import IkError
from ik_node.tools import workers
from ik_node.tools.checkpoints import Checkpoints
from ik_node.tools.goal_columns import GoalColumns
from ik_node.tools.solve_table import Task
from ik_node.tools.workers import LostError, Processes

CHUNKS = [bytes([k]) * 100 for k in range(12)]


def fill(parts: Checkpoints, workers: Processes) -> tuple[list[bytes], int]:
    """Return all results, and how many chunks were worked on."""
    worked = []

    class Counted:
        def results(self, chunks):
            for name, result in workers.results(chunks):
                worked.append(name)
                yield name, result

    with contextlib.suppress(KeyboardInterrupt), parts.writing():
        found = [parts.read(name) for name in parts.fill(Counted(), ((one, 1) for one in CHUNKS), done)]
        raise KeyboardInterrupt
    return found, len(worked)


def done(_: int) -> None:
    """Progress that nobody looks at."""


@pytest.mark.slow
def test_a_damaged_part_is_worked_on_again(tmp_path):
    parts = Checkpoints(tmp_path / 'out', b'key')
    with Processes(Slowly(), 1) as workers:
        assert fill(parts, workers) == ([chunk * 2 for chunk in CHUNKS], len(CHUNKS))
        path = next(parts.folder.glob('*.arrow'))
        data = path.read_bytes()
        for damaged in (data[:-50], b'', data[:9] + b'?' + data[10:]):
            path.write_bytes(damaged)
            assert fill(parts, workers) == ([chunk * 2 for chunk in CHUNKS], 1)
            assert path.read_bytes() == data


@pytest.mark.slow
def test_parts_come_in_order_while_later_chunks_are_not_even_read(tmp_path):
    read = []

    def chunks():
        for k, chunk in enumerate(CHUNKS):
            read.append(k)
            yield chunk, 1

    parts = Checkpoints(tmp_path / 'out', b'key')
    with Processes(Slowly(), 2) as workers, parts.writing() as temporary:
        names = parts.fill(workers, chunks(), done)
        assert parts.read(next(names)) == CHUNKS[0] * 2
        assert len(read) < len(CHUNKS)
        assert [parts.read(name) for name in names] == [chunk * 2 for chunk in CHUNKS[1:]]
        temporary.write_bytes(b'whole')
    assert (tmp_path / 'out').read_bytes() == b'whole'
    assert not parts.folder.exists()


@pytest.mark.parametrize('ahead', [1, 3])
def test_equal_chunks_are_worked_on_once(tmp_path, ahead):
    given = [CHUNKS[k] for k in (0, 0, 1, 0, 1, 1)]
    worked: list[bytes] = []

    def work(chunk: bytes) -> bytes:
        worked.append(chunk)
        return chunk * 2

    parts, progress = Checkpoints(tmp_path / 'out', b'key'), []
    with contextlib.suppress(KeyboardInterrupt), parts.writing():
        names = list(parts.fill(Here(work, ahead), ((one, 5) for one in given), progress.append))
        assert [parts.read(name) for name in names] == [one * 2 for one in given]
        raise KeyboardInterrupt
    assert sorted(worked) == CHUNKS[:2]
    assert sum(progress) == 5 * len(given)


def test_a_run_that_continues_another_names_what_it_does_not_use(tmp_path, capsys):
    worked: list[bytes] = []

    def work(chunk: bytes) -> bytes:
        worked.append(chunk)
        return chunk * 2

    def interrupted(key: bytes, chunks: list[bytes]) -> tuple[list[bytes], str]:
        parts = Checkpoints(tmp_path / 'out', key)
        worked.clear()
        with contextlib.suppress(KeyboardInterrupt), parts.writing():
            names = parts.fill(Here(work, 1), ((one, 1) for one in chunks), done)
            assert [parts.read(name) for name in names] == [one * 2 for one in chunks]
            raise KeyboardInterrupt
        return sorted(worked), capsys.readouterr().err

    assert interrupted(b'key', CHUNKS) == (CHUNKS, '')
    assert interrupted(b'key', CHUNKS) == ([], '')
    found, said = interrupted(b'other', CHUNKS[:4])
    assert found == CHUNKS[:4]
    assert 'of another arm, other options or another version of ik_node, and are not used' in said
    found, said = interrupted(b'key', [*CHUNKS[:9], b'new'])
    assert found == [b'new']
    assert 'the input has changed since an earlier run: 3 chunks of it not used' in said
    assert interrupted(b'other', CHUNKS[:4])[0] == []  # nothing is lost by it


def test_two_programs_do_not_write_one_output(tmp_path):
    output = tmp_path / 'out'
    with Checkpoints(output, b'key').writing() as temporary:
        temporary.write_bytes(b'first')
        with (
            pytest.raises(InputError, match='another process is writing'),
            Checkpoints(output, b'key').writing(),
        ):
            pytest.fail('the output is being written')
        assert temporary.exists()
    assert output.read_bytes() == b'first'


@pytest.mark.parametrize('name', ['out.parts/goals.parquet', 'out.writing'])
def test_files_of_others_are_neither_deleted_nor_written_over(tmp_path, name):
    foreign = tmp_path / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text('goals')
    with pytest.raises(InputError, match='name another'), Checkpoints(tmp_path / 'out', b'key').writing():
        pytest.fail('something of others is there')
    assert foreign.read_text() == 'goals'
    foreign.unlink()
    parts = Checkpoints(tmp_path / 'out', b'key')
    with parts.writing() as temporary:
        temporary.write_text('whole')
        (parts.folder / 'notes.txt').write_text('mine')
    assert [path.name for path in parts.folder.iterdir()] == ['notes.txt']


def test_a_worker_that_cannot_be_started_is_no_problem_of_the_output(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    parts = Checkpoints(tmp_path / 'out', b'key')

    def start() -> None:
        with parts.writing():
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
            Processes(Slowly(), 1)

    try:
        with pytest.raises(LostError, match='cannot start a worker process: Too many open files'):
            start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_key_names_what_results_depend_on_and_nothing_else(monkeypatch):
    arm = Arm.from_file('urdf/seed_arm.urdf.xacro')
    solver = IkSolver(arm)
    task = Task(solver, GoalColumns(('x', 'y', 'z')), True)
    key = workers.task_key(task)
    arm.describe()
    assert arm.is_plain
    assert workers.task_key(task) == key
    others = [
        workers.task_key(replace(task, **change))
        for change in (
            {'solver': IkSolver(Arm(arm.robot, tool_axis=(1.0, 0.0, 0.0)))},
            {'solver': IkSolver(Arm(arm.robot, tool_point=(0.0, 0.0, 1e-9)))},
            {'solver': IkSolver(arm, position_tolerance=1e-5)},
            {'columns': GoalColumns(('x', 'y', 'z'), degrees=True)},
            {'count': False},
        )
    ]
    monkeypatch.setattr(workers, 'code_digest', lambda: 'of another version')
    others.append(workers.task_key(task))
    assert len({key, *others}) == 1 + len(others)
    with pytest.raises(IkError, match='another version'):
        workers.check_code(key)


@pytest.mark.parametrize('folder', [False, True])
def test_what_a_killed_process_was_writing_does_not_get_into_the_output(tmp_path, folder):
    stale = tmp_path / 'out.writing'
    (tmp_path / 'out.parts').mkdir()  # is there before it, and deleted after it
    if folder:
        stale.mkdir()
        (stale / 'of another input').write_text('')
    else:
        stale.write_text('half')
    with Checkpoints(tmp_path / 'out', b'key').writing() as path:
        assert not path.exists()
        path.mkdir()
    assert not list((tmp_path / 'out').iterdir())
