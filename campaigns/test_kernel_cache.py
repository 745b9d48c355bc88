# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels: who fills it, and where it is kept. Each test compiles anew."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_copies import ALONE, CALLER, build, copied, environment, run

COLD = f"""
import numpy as np, sys
from ik_node import kernels
kernels.prepare(['{ALONE}'])
a, b = np.zeros(3), np.ones(3)
print(kernels.state().stage.value, kernels.largest_move(a, a, b), 'numba' in sys.modules, flush=True)
kernels.prepare(['{ALONE}'], wait=True)
print(kernels.state(), kernels.largest_move(a, a, b), type(kernels.largest_move).__name__, flush=True)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return copied(tmp_path)


def test_plain_kernels_serve_until_the_compiled_ones_take_over(package: Path, tmp_path: Path) -> None:
    first, later = run(COLD, package, tmp_path / 'cache').stdout.splitlines()
    assert first == 'compiling 1.0 False'
    assert later.startswith('fast kernels ready after ')
    assert later.endswith(' 1.0 CPUDispatcher')
    first, later = run(COLD, package, tmp_path / 'cache').stdout.splitlines()
    assert first == 'ready 1.0 True'
    assert later.startswith('fast kernels loaded after ')


def test_of_two_processes_one_compiles(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / 'cache'
    processes = [
        subprocess.Popen(
            [sys.executable, '-c', COLD], cwd='/', env=environment(package, cache), stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for process in processes:
        assert b'CPUDispatcher' in process.communicate()[0]
    assert '1 of 1 kernels compiled' in (cache / 'compiling.log').read_text()


def test_a_killed_builder_leaves_no_lock(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / 'cache'
    command = [sys.executable, '-m', 'ik_node.kernels.runtime.build', CALLER]
    builder = subprocess.Popen(command, cwd='/', env=environment(package, cache), stdout=subprocess.PIPE)
    while not list(cache.glob('compiling-*.lock')):
        assert builder.poll() is None
        time.sleep(0.01)
    builder.kill()
    builder.wait()
    assert 'waiting' not in build(package, cache, ALONE)


def test_a_ctrl_c_ends_the_builder_too(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / 'cache'
    program = subprocess.Popen(
        [sys.executable, '-c', COLD],
        cwd='/',
        env=environment(package, cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline().startswith(b'compiling')
    os.killpg(program.pid, signal.SIGINT)
    assert program.wait() != 0
    with next(cache.glob('compiling-*.lock')).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the builder has ended
    assert not list(cache.glob(f'*/{ALONE}-*.ready'))


def test_folders_that_nobody_has_used_for_a_month_are_removed(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / 'cache'
    for name, days in (('0123456789abcdef', 40), ('fedcba9876543210', 20), ('something-else', 40)):
        (cache / name).mkdir(parents=True)
        os.utime(cache / name, times=(time.time() - 86400 * days,) * 2)
    build(package, cache, ALONE)
    assert not (cache / '0123456789abcdef').exists()
    assert (cache / 'fedcba9876543210').exists()
    assert (cache / 'something-else').exists()
    (used,) = [path for path in cache.iterdir() if list(path.glob(f'{ALONE}-*.ready'))]
    os.utime(used, times=(time.time() - 86400 * 40,) * 2)
    build(package, cache, 'out_of_reach')
    assert used.exists(), 'old, but of the present kernels'


@pytest.fixture
def stranger(tmp_path: Path) -> list[str]:
    """A command that runs another as a user who may write to the temporary folder alone."""
    setpriv = shutil.which('setpriv')
    if os.getuid() != 0 or setpriv is None:
        pytest.skip('needs root and setpriv, to become another user')
    may_read = '-all,+dac_read_search'  # the interpreter may lie in a home
    become = [setpriv, '--reuid=65534', '--regid=65534', '--clear-groups', f'--inh-caps={may_read}']
    become += [f'--ambient-caps={may_read}', f'--bounding-set={may_read}']
    if subprocess.run([*become, 'true'], capture_output=True, check=False).returncode:
        pytest.skip('setpriv may not become another user here')
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    temporary.chmod(0o1777)
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(path.stat().st_mode | 0o055)
    return [*become, 'env', 'HOME=/nonexistent', 'XDG_CACHE_HOME=', f'TMPDIR={temporary}']


def test_another_user_without_a_place_to_write_is_served(
    package: Path, tmp_path: Path, stranger: list[str]
) -> None:
    """As a service user: neither the package nor a home can be written, the temporary folder can."""
    done = run(COLD, package, None, *stranger)
    first, later = done.stdout.splitlines()
    assert first == 'compiling 1.0 False'
    assert later.endswith('CPUDispatcher')
    (line,) = done.stderr.splitlines()
    assert 'NUMBA_CACHE_DIR' in line
    folder = tmp_path / 'temporary' / 'ik_node-65534'
    assert str(folder) in line
    assert folder.stat().st_mode & 0o077 == 0, 'what it holds is code'


def test_another_user_uses_what_was_compiled_at_installation(package: Path, stranger: list[str]) -> None:
    command = [sys.executable, '-m', 'ik_node.kernels.runtime.build', ALONE]
    subprocess.run(command, cwd='/', env=environment(package, None), capture_output=True, check=True)
    assert run(COLD, package, None, *stranger).stdout.startswith('ready 1.0 True')
