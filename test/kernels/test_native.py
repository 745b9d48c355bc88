# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels in a running program: where they are, who may change them, and doing without them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ik_node import Goal, kernels
from ik_node.kernels import build, native
from ik_node.kernels.native import Stage

ROOT = Path(__file__).resolve().parents[2]
A, B = np.array([1.0, 2.0]), np.array([4.0, 2.5])
PERIOD = np.zeros(2)


@pytest.fixture
def made():
    """The file of compiled kernels that the other tests use."""
    path = native.find()
    assert path is not None
    return path


@pytest.fixture
def folder(made, tmp_path, monkeypatch):  # noqa: ARG001 - made: before this looks elsewhere
    """An empty folder for compiled kernels, and a loader that has loaded none; plain kernels are back."""
    compiled = {name: getattr(kernels, name) for name in kernels.KERNELS if name in vars(kernels)}
    tmp_path.chmod(0o700)
    monkeypatch.setenv(native.FOLDER, str(tmp_path))
    monkeypatch.setattr(native, '_loader', native._Loader())
    monkeypatch.setattr(native, 'INTERVAL', 0.001)
    native.cache_folder.cache_clear()
    for name in compiled:
        delattr(kernels, name)
    yield tmp_path
    native.cache_folder.cache_clear()
    for name, kernel in compiled.items():
        setattr(kernels, name, kernel)


@pytest.fixture
def compiled(folder, made, monkeypatch):  # noqa: ARG001
    """Compiling takes a copy of what was compiled before; returns how often it did."""
    runs = []

    def run(there):
        runs.append(there)
        shutil.copy(made, there / native.file_name())
        return 0

    monkeypatch.setattr(native, '_run_builder', run)
    return runs


def in_time(act):
    """Return what act returns, in a thread: it must not hang."""
    found = []
    thread = threading.Thread(target=lambda: found.append(act()), daemon=True)
    thread.start()
    thread.join(60.0)
    assert found, 'it hangs'
    return found[0]


def test_they_are_compiled_once_and_then_replace_the_plain_ones(folder, compiled):
    plain = kernels.largest_move(PERIOD, A, B)
    assert native.state().stage is Stage.PLAIN
    state = in_time(lambda: native.prepare(wait=True))
    assert (state.stage, state.compiled) == (Stage.READY, True)
    assert type(kernels.largest_move).__name__ == 'builtin_function_or_method'
    assert kernels.largest_move(PERIOD, A, B) == plain == 3.0
    native._loader = native._Loader()
    state = native.prepare()
    assert (state.stage, state.compiled, len(compiled)) == (Stage.READY, False, 1)
    assert native.ready()
    assert str(native.find()).startswith(str(folder))


def test_plain_kernels_read_arrays_and_leave_other_numbers_to_the_caller(folder):  # noqa: ARG001
    out = np.zeros(2)
    for given in (A.tolist(), np.array([1, 2]), A[None], 'ab'):
        assert kernels.read_finite(given, out) is None
    assert kernels.read_finite(A, out)
    assert out.tolist() == A.tolist()
    assert Goal([1, 2.5, 3], (0.0, 0.6, 0.8)).packed[:6].tolist() == [1.0, 2.5, 3.0, 0.0, 0.6, 0.8]
    assert native.state().stage is Stage.PLAIN


def test_the_file_is_named_by_all_sources(tmp_path, monkeypatch):
    """A change of a kernel, of the translation or of a header makes another file necessary."""
    copy = shutil.copytree(native.HERE, tmp_path / 'kernels', ignore=shutil.ignore_patterns('__pycache__'))
    monkeypatch.setattr(native, 'HERE', copy)
    found = []
    for file in (None, 'chain.py', 'methods/lm.py', 'emit/module.h', 'emit/expressions.py'):
        if file:
            path = copy / file
            path.write_text(path.read_text() + '\n')
        native.digest.cache_clear()
        found.append(native.file_name())
    native.digest.cache_clear()
    assert len(set(found)) == len(found)


@pytest.mark.usefixtures('compiled')
def test_a_failure_is_final_in_the_background_and_tried_again_by_those_that_wait(folder, monkeypatch):
    run = native._run_builder
    native.log_file(folder).write_text('Compiling\nthere is no C compiler: install one\n')
    monkeypatch.setattr(native, '_run_builder', lambda _: 1)
    state = in_time(lambda: native.prepare(wait=True))
    assert state.stage is Stage.FAILED
    assert 'there is no C compiler: install one (see ' in str(state)
    monkeypatch.setattr(native, '_run_builder', run)
    assert native.prepare().stage is Stage.FAILED
    assert kernels.largest_move(PERIOD, A, B) == 3.0  # the plain one
    assert in_time(lambda: native.prepare(wait=True)).stage is Stage.READY
    assert native.state().reason == ''


@pytest.mark.usefixtures('compiled')
def test_what_another_process_compiles_is_waited_for(monkeypatch):
    copy, turns = native._run_builder, iter((None, None, 'done'))

    def run(there):
        if next(turns) is None:
            return None
        return copy(there)

    monkeypatch.setattr(native, '_run_builder', run)
    assert in_time(lambda: native.prepare(wait=True)).stage is Stage.READY


def test_any_error_while_compiling_leaves_the_plain_kernels(folder, monkeypatch):  # noqa: ARG001
    def fails(_):
        raise RuntimeError('made up')

    monkeypatch.setattr(native, '_run_builder', fails)
    state = in_time(lambda: native.prepare(wait=True))
    assert (state.stage, state.reason) == (Stage.FAILED, 'RuntimeError: made up')


@pytest.mark.parametrize('content', [b'', b'not a library'])
def test_a_damaged_file_is_replaced(folder, compiled, content):
    """As after a power cut."""
    (folder / native.file_name()).write_bytes(content)
    state = in_time(lambda: native.prepare(wait=True))
    assert (state.stage, len(compiled)) == (Stage.READY, 1)


@pytest.mark.parametrize('mode', [0o777, 0o722])
def test_a_file_or_folder_that_others_can_write_to_is_not_used(folder, compiled, mode):
    """Native code that another user can change would run as this one."""
    native._run_builder(folder)
    path = native.find()
    assert path is not None
    path.chmod(mode)
    assert native.find() is None
    path.chmod(0o755)
    folder.chmod(mode)
    assert native.find() is None
    native.cache_folder.cache_clear()
    assert native.cache_folder() != folder
    folder.chmod(0o700)
    assert compiled


def test_a_folder_that_cannot_be_used_is_named(folder, tmp_path, monkeypatch):
    link = tmp_path / 'link'
    link.symlink_to(folder)
    for chosen, usable in ((link, True), (folder / 'new', True), (Path('/proc/none'), False)):
        monkeypatch.setenv(native.FOLDER, str(chosen))
        native.cache_folder.cache_clear()
        assert (native.obstacle() == '') == usable
    assert native.obstacle().endswith(', got /proc/none')


def test_a_file_that_lacks_a_part_or_a_bit_is_not_loaded(made, tmp_path):
    content = made.read_bytes()
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for number, damaged in enumerate((b'', content[:4096], content[:middle], content[:-1], changed)):
        path = tmp_path / f'{number}.so'
        path.write_bytes(damaged)
        with pytest.raises(ImportError, match='damaged'):  # the loader of the system would end the process
            native.load(path)


@pytest.mark.parametrize('place', ['package', 'package/__pycache__'])
@pytest.mark.parametrize('damage', ['', 'damaged', 'open to others'])
def test_a_file_of_the_package_serves_where_no_other_folder_is_chosen(
    folder, compiled, tmp_path, monkeypatch, place, damage
):
    """As where it came with a wheel, or root has compiled the kernels for all users."""
    beside = tmp_path / place
    beside.mkdir(0o755, parents=True)
    name = native.file_name()
    native._run_builder(beside)
    if damage == 'damaged':
        (beside / name).write_bytes(b'for another computer')
    elif damage:
        (beside / name).chmod(0o777)
    monkeypatch.setattr(native, 'HERE', tmp_path / 'package')
    monkeypatch.setattr(native, 'file_name', lambda: name)
    assert native.find() is None
    monkeypatch.delenv(native.FOLDER)
    monkeypatch.setattr(native, '_candidates', lambda: iter([folder]))  # a user who may not write beside it
    native.cache_folder.cache_clear()
    state = in_time(lambda: native.prepare(wait=True))
    assert (state.stage, state.compiled) == (Stage.READY, damage != '')
    assert compiled == [beside, folder] if damage else [beside]


def test_without_a_home_there_is_a_folder(monkeypatch):
    monkeypatch.setattr(native, 'HERE', Path('/proc/none'))
    for name in (native.FOLDER, 'HOME', 'XDG_CACHE_HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr('os.path.expanduser', lambda path: path)
    monkeypatch.chdir('/proc')
    native.cache_folder.cache_clear()
    assert native.is_private(native.cache_folder())
    native.cache_folder.cache_clear()


def test_a_child_of_a_fork_does_not_wait_for_a_lock_of_its_parent():
    with native._loader.changed:
        done = os.fork()
        if done == 0:
            native.state()
            with native._loader.changed:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(done, 0)[1]) == 0


def test_files_of_other_versions_go_when_nobody_has_used_them_for_long(folder):
    old, new = folder / f'{native.MODULE}-old.so', folder / f'{native.MODULE}-new.so'
    for path in (old, new):
        path.write_text('')
    os.utime(old, (1.0, 1.0))
    native.remove_old(folder)
    assert (old.exists(), new.exists()) == (False, True)


def test_the_compiling_process_reads_no_modules_of_the_folder_that_a_user_is_in(folder, tmp_path, monkeypatch):
    """python -m looks there first."""
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    (elsewhere / 'argparse.py').write_text('raise SystemExit(77)')
    monkeypatch.chdir(elsewhere)
    (folder / native.file_name()).write_text('there already')
    assert native._run_builder(folder) == 0


@pytest.mark.usefixtures('folder')
def test_plain_kernels_can_be_asked_for(monkeypatch):
    monkeypatch.setenv(native.FOLDER, 'plain')
    state = native.prepare(wait=True)
    assert str(state) == f'goals take longer, because there are no fast kernels: {native.FOLDER} is plain'


def test_arrays_that_are_kept_in_another_way_are_noticed(folder, compiled, monkeypatch):
    """As in a version of NumPy that does not exist yet."""
    native._run_builder(folder)
    load = native.load_module

    class Wrong:
        def __init__(self, module):
            self.goal_errors = lambda *given: module.goal_errors(*given)[::-1]

    monkeypatch.setattr(native, 'load_module', lambda name, path: Wrong(load(name, path)))
    state = native.prepare(wait=True)
    assert state.stage is Stage.FAILED
    assert 'are not read correctly' in state.reason
    assert compiled


def python(folder, *command, **environment):
    env = {**os.environ, 'PYTHONPATH': str(ROOT), native.FOLDER: str(folder), **environment}
    done = subprocess.run([sys.executable, *command], cwd='/', env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_program_compiles_once_and_says_where(tmp_path):
    tmp_path.chmod(0o700)
    code, text = python(tmp_path, '-m', 'ik_node.kernels.build')
    assert (code, 'kernels compiled in' in text) == (0, True), text
    code, text = python(tmp_path, '-m', 'ik_node.kernels.build')
    assert (code, text.startswith('kernels are compiled: ')) == (0, True), text
    assert [path.suffix for path in tmp_path.iterdir()] in (['.so', '.lock'], ['.lock', '.so'])


def test_without_a_compiler_the_remedy_is_named(tmp_path):
    tmp_path.chmod(0o700)
    code, text = python(
        tmp_path, '-c',
        'import sys; from ik_node.kernels import build\n'
        'build.find_spec = lambda _: None; sys.exit(build.main([]))',
        PATH='/nonexistent', CC='',
    )  # fmt: skip
    assert (code, text.count('\n')) == (1, 1)
    assert 'there is no C compiler: install one (sudo apt install gcc)' in text


def test_an_error_of_the_compiler_is_passed_on_and_leaves_nothing(tmp_path):
    with pytest.raises(build.BuildError, match='exit code 1'):
        build.compile_module('this is not C;', tmp_path / 'x.so')
    assert list(tmp_path.iterdir()) == []


def test_one_process_compiles_at_a_time(folder, monkeypatch):
    monkeypatch.undo()
    with native.lock_file(folder).open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert native._run_builder(folder) is None
