# SPDX-License-Identifier: Apache-2.0
"""What all tests share: markers, which worker runs what, compiled kernels, the folder ../shared."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from shared_files import shared_path

from ik_node.kernels import native

# A busy machine is no failure. The same examples every time; IK_NODE_EXPLORE=1 draws others.
settings.register_profile('ik_node', deadline=None, derandomize='IK_NODE_EXPLORE' not in os.environ)
settings.load_profile('ik_node')

os.environ['IK_NODE_CHECK_LOCKS'] = '1'  # a wrong order of locks raises
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'  # of this process and of those that it starts

# nohup and some CI runners ignore Ctrl-C, which the programs under test would inherit.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

ROOT = Path(__file__).resolve().parents[1]
CRASHES = 'IK_NODE_CRASHES'  # variable: the folder with a file for each worker
# Folders and files whose tests make nodes.
NODES = ('test/launch/', 'test/recording/', 'test/ros/', 'test/servos/test_servos_node', 'test/viewer/')
ALONE = {
    'process': 'test/process/',
    'browser': 'test/browser/',
}  # by mark: what make test runs after the others


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile before anything is tested: uncompiled kernels are slow."""
    if not hasattr(session.config, 'workerinput') and native.find() is None:
        subprocess.run([sys.executable, '-m', 'ik_node.kernels.build'], check=True)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have a worker that crashes leave where it did."""
    if hasattr(config, 'workerinput'):
        path = Path(os.environ[CRASHES], config.workerinput['workerid'])
        faulthandler.enable(path.open('w'))
    else:
        os.environ[CRASHES] = tempfile.mkdtemp(prefix='crashes_')


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show where workers have crashed."""
    if hasattr(config, 'workerinput'):
        return
    folder = Path(os.environ[CRASHES])
    for path in sorted(folder.iterdir()):
        if text := path.read_text(errors='replace'):
            terminalreporter.section(f'crash of worker {path.name}')
            for line in text.partition('Extension modules')[0].splitlines():
                if not any(f'/{name}/' in line for name in ('pluggy', '_pytest', 'xdist', 'execnet')):
                    terminalreporter.write_line(line)
    shutil.rmtree(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file if -m leaves all of its tests out: some make arms and solvers first."""
    expression = config.option.markexpr
    if not re.fullmatch(r'not \w+( and not \w+)*', expression) or not collection_path.match('test_*.py'):
        return None
    file, text = collection_path.relative_to(ROOT).as_posix(), collection_path.read_text(encoding='utf-8')
    marks = re.findall(r'not (\w+)', expression)
    whole = any(f'\npytestmark = pytest.mark.{mark}\n' in text for mark in marks)
    return whole or any(mark in marks and file.startswith(folder) for mark, folder in ALONE.items()) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that start programs, and those in a browser."""
    for mark, folder in ALONE.items():
        if item.nodeid.startswith(folder):
            item.add_marker(mark)


def pytest_collection_finish() -> None:
    """Keep what was imported out of the collections of garbage after each test."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Leave signals as they were, and destroy DDS participants here.

    Programs that run in a test handle signals, and nobody takes that back. rclpy keeps participants in
    cycles: each has eight threads, which crash if another thread destroys it, as the collection of garbage
    would. What outlives a file are modules and caches: no collection needs to look at them again.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    nodes = item.nodeid.startswith(NODES)
    if nodes:
        gc.disable()
    try:
        return (yield)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if nodes:
            gc.collect()
            gc.enable()
            if nextitem is None or nextitem.path != item.path:
                gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    """Tell what the page showed when a test in a browser failed."""
    report = yield
    if report.failed and 'browser' in item.funcargs:
        try:
            report.sections.append(('The page', item.funcargs['browser'].words()))
        except Exception as error:  # it shows another page, or it or its driver has ended
            report.sections.append(('The page', f'cannot be read: {error}'))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have one worker run the tests of a file that makes nodes: they may share one."""
    from xdist.scheduler import LoadScopeScheduling

    class NodesByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition('::')[0] if nodeid.startswith(NODES) else nodeid

    return NodesByFile(config, log)


@pytest.fixture(scope='session')
def shared() -> Path:
    """The directory ../shared; tests that ask for it skip visibly where it is absent."""
    return shared_path()


@pytest.fixture(scope='session')
def arms_index(shared: Path) -> dict[str, Any]:
    """arms/index.json: by arm name (file arms/NAME.urdf), its base link, tips, tool points and axes."""
    index: dict[str, Any] = json.loads((shared / 'arms' / 'index.json').read_text())
    return index
