# SPDX-License-Identifier: Apache-2.0
"""The wheel that is released works in an environment where nothing else is installed, with every Python."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

from campaigns import ROOT
from ik_node.kernels import native

PYTHONS = ('3.10', '3.11', '3.12', '3.13', '3.14')
START = 300.0  # [s] for a program that starts on a busy computer
# Every reachable goal of every shipped arm with one tool is solved, and what is out of reach is rejected.
SOLVE = """
import sys, pathlib, numpy as np
from ik_node import Arm, Goal, IkSolver, Status, kernels
state = kernels.prepare()
assert kernels.ready() and not state.compiled, state
for path in sorted(pathlib.Path(sys.argv[1]).glob('*_arm.urdf.xacro')):
    arm = Arm.from_file(path)
    solver = IkSolver(arm)
    for q in arm.sample(np.random.default_rng(0), 200):
        goal = Goal(*arm.fk(q))
        solution = solver.solve(goal)
        assert solution.solved, (path, q)
        assert np.linalg.norm(arm.fk(solution.q)[0] - goal.position) < 1e-4
    assert solver.solve(Goal((9.0, 0.0, 0.0))).status is Status.UNREACHABLE
print('all solved')
"""


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    """Run a program in a folder, and return what it printed; the kernels are those of the wheel."""
    env = {name: value for name, value in os.environ.items() if name != native.FOLDER}
    done = subprocess.run(command, cwd=folder, env=env | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python_of(version: str) -> str | None:
    """Return the interpreter of a version on this machine: this one, of the system, or of pyenv."""
    if version == '.'.join(map(str, sys.version_info[:2])):
        return sys.executable
    of_pyenv = sorted(Path.home().glob(f'.pyenv/versions/{version}.*/bin/python'))
    return str(of_pyenv[-1]) if of_pyenv else shutil.which(f'python{version}')


@pytest.fixture(scope='module')
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, with compiled kernels for two kinds of computers."""
    folder = tmp_path_factory.mktemp('wheel')
    run(sys.executable, ROOT / 'tools' / 'wheel.py', folder, folder=ROOT)
    (found,) = folder.glob('ik_node-*-py3-none-any.whl')
    names = zipfile.ZipFile(found).namelist()
    binaries = {native.file_name(machine) for machine in ('x86_64', 'aarch64')}
    assert {Path(name).name for name in names if name.endswith('.so')} == binaries
    return found


def test_the_kernels_of_the_wheel_call_the_functions_of_math_that_python_calls(wheel):
    """Zig has some of its own, with other last bits, and links them all if one part of its runtime is used."""
    files = zipfile.ZipFile(wheel)
    for name in (name for name in files.namelist() if name.endswith('.so')):
        symbols = files.read(name)  # stripped: the names left are those of what is called in libraries
        for function in (b'sin', b'cos', b'tan', b'acos', b'asin', b'atan2', b'exp', b'log', b'pow', b'hypot'):
            assert b'\0' + function + b'\0' in symbols, (name, function)


def installed(wheel: Path, python: str, folder: Path, extras: str = '') -> Path:
    """Return the folder with the programs of a new environment that has the wheel."""
    run(python, '-m', 'venv', folder / 'empty', folder=folder)
    programs = folder / 'empty' / 'bin'
    run(programs / 'python', '-m', 'pip', 'install', '-q', f'{wheel}{extras}', folder=folder)
    found = run(programs / 'python', '-c', 'import ik_node; print(ik_node.__file__)', folder=folder)
    assert found.startswith(str(folder))
    return programs


@pytest.mark.parametrize('version', PYTHONS)
def test_the_solver_of_the_wheel_works_with_every_python(wheel, version, tmp_path):
    python = python_of(version)
    if python is None:
        pytest.skip(f'there is no Python {version} here')
    programs = installed(wheel, python, tmp_path)
    urdf = tmp_path / 'empty' / 'share' / 'ik_node' / 'urdf'
    assert 'all solved' in run(programs / 'python', '-c', SOLVE, urdf, folder=tmp_path, PATH='/nonexistent')
    (sample,) = re.findall(r'^```python\n(.*?)^```', (ROOT / 'README.md').read_text(), re.MULTILINE | re.DOTALL)
    sample = sample.replace('urdf/seed_arm', f'{urdf}/seed_arm')
    assert 'Status.SOLVED' in run(programs / 'python', '-c', sample, folder=tmp_path)
    goal = ('0.4', '0.1', '0.2', '--direction', '0', '0', '-1')
    assert 'solved' in run(programs / 'ik_solve', urdf / 'seed_arm.urdf.xacro', *goal, folder=tmp_path).lower()


def test_the_viewer_of_the_wheel_serves_its_page_and_the_stop_page(wheel, tmp_path):
    programs = installed(wheel, sys.executable, tmp_path, '[viewer,ros-wheels]')
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    viewer = subprocess.Popen(
        [programs / 'ik_viewer', '--ros-args', '-p', f'page_port:={port}'],
        cwd=tmp_path,
        env={
            **os.environ,
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
            'ROS_DOMAIN_ID': str(1 + port % 100),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert viewer.stdout is not None
        found, end, said = None, time.monotonic() + START, ''
        while found is None and time.monotonic() < end:
            line = viewer.stdout.readline()
            assert line, f'it ended: {said}'
            said += line
            found = re.search(r'http://\S+', line)
        assert found is not None, said
        url = found[0].rstrip('/.')
        around = read(f'{url}/')  # our page with the stop button, and that of viser in it
        assert 'stop' in around[1].lower()
        assert around[0] == 200
        (inner,) = re.findall(r'<iframe[^>]* src="([^"]+)"', around[1])
        assert read(f'{url}/{inner.lstrip("./")}')[0] == 200
        assert read(f'{url}/stop')[0] == 503  # there is no ik_node that would take it
    finally:
        viewer.terminate()
        assert viewer.wait(timeout=60) == 0


def read(url: str) -> tuple[int, str]:
    """Return the status and the text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=60) as page:
            return page.status, page.read().decode(errors='replace')
    except urllib.error.HTTPError as error:
        return error.code, ''
