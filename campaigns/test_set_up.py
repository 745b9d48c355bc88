# SPDX-License-Identifier: Apache-2.0
"""tools/set_up.py: uv does as pip is configured, what is there is kept, and errors come in full."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = {'PIP_NO_INDEX': '1', 'PIP_CONFIG_FILE': os.devnull, 'PYTHONDONTWRITEBYTECODE': '1'}


@pytest.fixture
def set_up(tmp_path: Path) -> ModuleType:
    """The program in a folder of its own, as a module."""
    (tmp_path / 'tools').mkdir()
    shutil.copy(ROOT / 'tools' / 'set_up.py', tmp_path / 'tools')
    (tmp_path / 'setup.py').write_text('from setuptools import setup\nsetup(name="nothing")\n')
    spec = importlib.util.spec_from_file_location('set_up', tmp_path / 'tools' / 'set_up.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(set_up: ModuleType, *extras: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(('PIP_', 'UV_'))}
    return subprocess.run(
        [sys.executable, set_up.__file__, *extras],
        env={**environment, **OFFLINE},
        capture_output=True,
        text=True,
        check=False,
    )


def pretend(set_up: ModuleType, *extras: str) -> None:
    """An environment that looks as if it had been set up."""
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', set_up.VENV], check=True)
    set_up.STATE.write_text(json.dumps(set_up.wanted(list(extras))))


def test_uv_takes_over_what_pip_is_configured_to(set_up, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(('PIP_', 'UV_', 'SSL_', 'ALL_PROXY'))]:
        monkeypatch.delenv(name)
    config = tmp_path / 'pip.conf'
    config.write_text(
        '[global]\nindex-url = https://a.example/simple\ntimeout = 10\ncert = /etc/ours.pem\n'
        'extra-index-url = https://b.example/simple\n    file:///c/simple\nfind-links = /d /e\n'
        'proxy = http://f.example:1\nno-cache-dir = true\n[install]\ntimeout = 20\n[list]\nformat = freeze\n'
    )
    monkeypatch.setenv('PIP_CONFIG_FILE', str(config))
    monkeypatch.setenv('PIP_TRUSTED_HOST', 'g.example')
    monkeypatch.setenv('PIP_INDEX_URL', "https://o'h.example/simple")
    monkeypatch.setenv('PYTHONPATH', set_up.pip_wheel())
    said = subprocess.check_output([sys.executable, '-m', 'pip', 'config', 'list'], text=True)
    settings = set_up.uv_settings(said)
    assert settings == {
        'UV_INDEX_STRATEGY': 'unsafe-best-match',
        'UV_DEFAULT_INDEX': "https://o'h.example/simple",
        'UV_EXTRA_INDEX_URL': 'https://b.example/simple file:///c/simple',
        'UV_FIND_LINKS': '/d,/e',
        'UV_HTTP_TIMEOUT': '20',
        'UV_INSECURE_HOST': 'g.example',
        'UV_NO_CACHE': 'true',
        'ALL_PROXY': 'http://f.example:1',
        'SSL_CERT_FILE': '/etc/ours.pem',
    }
    monkeypatch.setenv('UV_HTTP_TIMEOUT', '30')
    assert 'UV_HTTP_TIMEOUT' not in set_up.uv_settings(said)  # the user's own word for uv


def test_errors_are_told_in_full(set_up):
    done = run(set_up, 'viewer')
    assert done.returncode == 1
    assert 'creating .venv for Python 3.' in done.stdout
    assert 'failed after' in done.stdout
    assert 'No matching distribution found for uv' in done.stderr  # why uv is not used
    assert 'No matching distribution found for setuptools' in done.stderr  # why pip failed then
    assert 'Traceback (most recent call last):\n  File "' + set_up.__file__ not in done.stderr
    assert set_up.present() == {}  # the next run starts afresh


def test_what_is_set_up_is_left_alone(set_up):
    pretend(set_up, 'viewer', 'test')
    for extras in ((), ('viewer',), ('test', 'viewer')):
        done = run(set_up, *extras)
        assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


def test_a_changed_setup_py_is_installed_into_what_is_there(set_up):
    pretend(set_up, 'viewer')
    (set_up.ROOT / 'setup.py').write_text('# another')
    done = run(set_up, 'viewer')
    assert done.returncode == 1  # there is no network here
    assert 'up to date' in done.stdout
    assert 'creating' not in done.stdout


@pytest.mark.parametrize('harm', ['', 'folder', 'python', 'state'])
def test_an_environment_that_cannot_work_does_not_count(set_up, harm):
    pretend(set_up, 'test')
    if harm == 'folder':
        set_up.STATE.write_text(json.dumps({**set_up.wanted([]), 'folder': '/elsewhere'}))
    elif harm == 'python':
        set_up.PYTHON.unlink()
        set_up.PYTHON.symlink_to('/no/such/python')
    elif harm == 'state':
        set_up.STATE.write_text(str(set_up.ROOT))
    assert set_up.present() == ({} if harm else set_up.wanted(['test']))


def test_newest_takes_no_notice_of_the_tested_versions(set_up):
    set_up.CONSTRAINTS.write_text('numpy==1.0 \\\n    --hash=sha256:0\n')
    assert set_up.constraints(newest=True) == ''
    assert set_up.constraints(newest=False).startswith('numpy==1.0')
    assert set_up.wanted(['test'], newest=True) != set_up.wanted(['test'])


@pytest.mark.parametrize('tool', ['uv', 'pip'])
def test_a_file_with_another_hash_ends_the_installation(set_up, monkeypatch, tool):
    set_up.CONSTRAINTS.write_text('numpy==1.0 \\\n    --hash=sha256:0\n')
    said = {'uv': 'Hash mismatch for `numpy==1.0`', 'pip': 'THESE PACKAGES DO NOT MATCH THE HASHES'}
    calls = []

    def call(*command, **_):
        calls.append(command)
        if (tool == 'uv') == (command[0] == set_up.UV) and 'install' in command:
            raise set_up.StepError(said[tool])
        return ''

    monkeypatch.setattr(set_up, 'call', call)
    set_up.VENV.mkdir()
    with pytest.raises(set_up.StepError, match=said[tool]):
        set_up.install(['test'])
    assert '--require-hashes' in calls[0] or tool == 'uv'
    assert sum('install' in command for command in calls) == {'uv': 2, 'pip': 1}[tool]


def test_a_clone_beside_a_script_does_not_hide_the_package(tmp_path: Path) -> None:
    if not Path(sysconfig.get_path('purelib'), 'ik_node_first.pth').exists():
        pytest.skip('this environment was not made by tools/set_up.py')
    (tmp_path / 'ik_node').mkdir()
    done = subprocess.run([sys.executable, '-c', 'from ik_node import Arm'], cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_headers_go_and_versions_of_a_library_are_stored_once(set_up):
    packages = set_up.VENV / 'lib' / 'python3.11' / 'site-packages'
    prefix = packages / 'cmeel.prefix'
    files = {prefix / 'lib' / name: b'a' * 200_000 for name in ('libone.so', 'libone.so.6', 'libone.so.6.0')}
    files |= {prefix / 'lib' / 'libtwo.so': b'b' * 200_000, packages / 'other' / 'libone.so': b'a' * 200_000}
    for path, content in (files | {prefix / 'include' / 'boost' / 'any.hpp': b''}).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    set_up.save_space()
    set_up.save_space()  # what has been done stays
    assert not (prefix / 'include').exists()
    assert {path: path.read_bytes() for path in files} == files
    assert [path.stat().st_nlink for path in files] == [3, 3, 3, 1, 1]
