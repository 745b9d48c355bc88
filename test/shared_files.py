# SPDX-License-Identifier: Apache-2.0
"""The way to ../shared with the real arms and the broken URDFs; tests that need them skip without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get('IK_NODE_SHARED') or Path(__file__).resolve().parents[2] / 'shared')


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
