"""What all tests share: the way to ../shared with the real arms and the broken URDFs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from ik_node.kernels.cache import is_there
from ik_node.kernels.signatures import SERVING

settings.register_profile('ik_node', deadline=None)  # a busy machine is no failure
settings.load_profile('ik_node')

os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'  # of this process and of those that it starts

MARKS = {'ros': ('ros',), 'viewer': ('ros',)}  # by folder below test/

SHARED = Path(os.environ.get('IK_NODE_SHARED') or Path(__file__).resolve().parents[2] / 'shared')


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile before anything is tested: uncompiled kernels would be tested for a minute, and slow."""
    if not hasattr(session.config, 'workerinput') and not all(map(is_there, SERVING)):
        subprocess.run([sys.executable, '-m', 'ik_node.kernels.build'], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder; those that start nodes run one at a time, on one worker of pytest-xdist."""
    here = Path(__file__).parent
    for item in items:
        for name in MARKS.get(item.path.relative_to(here).parts[0], ()):
            item.add_marker(name)
        if item.get_closest_marker('ros'):
            item.add_marker(pytest.mark.xdist_group('ros'))


def shared_path(*parts: str) -> Path:
    """Return a path below ../shared (or $IK_NODE_SHARED); skip the test or module where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f'{path} is absent: set IK_NODE_SHARED to the directory with arms/ and broken_urdf/',
            allow_module_level=True,
        )
    return path


def shared_names(*parts: str, suffix: str = '.urdf') -> list[str]:
    """Return the sorted file names in a directory below ../shared for parametrize; a stand-in if absent."""
    directory = SHARED.joinpath(*parts)
    if not directory.is_dir():
        return ['absent']
    return sorted(path.name for path in directory.iterdir() if path.name.lower().endswith(suffix))


@pytest.fixture(scope='session')
def shared() -> Path:
    """The directory ../shared; tests that ask for it skip visibly where it is absent."""
    return shared_path()


@pytest.fixture(scope='session')
def arms_index(shared: Path) -> dict[str, Any]:
    """arms/index.json: by arm name (file arms/NAME.urdf), its base link, tips, tool points and axes."""
    index: dict[str, Any] = json.loads((shared / 'arms' / 'index.json').read_text())
    return index
