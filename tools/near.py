# SPDX-License-Identifier: Apache-2.0
"""Print the folders of tests for what has changed since a commit: python tools/near.py [COMMIT]

COMMIT is HEAD if none is given, so what is not committed yet counts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
# Folders of ik_node whose tests are in folders of other names; all others have a folder of theirs.
FOLDERS = {
    'kernels': ('kernels', 'model', 'solver'),
    'model': ('model', 'solver'),
    'startup': ('launch',),
    'tools': ('batch', 'cli', 'placement', 'reach'),
    'viewer': ('recording', 'viewer'),
}
# What else is in the repository.
BESIDE = {'examples': 'package', 'launch': 'launch', 'urdf': 'model', 'config': 'launch', 'tools': 'package'}


def folders_of(files: Iterable[str]) -> list[str]:
    """Return folders of tests, and test files, for files named from the root of the repository."""
    found = set()
    for file in files:
        match PurePosixPath(file).parts:
            case ('test', folder, name) if name.startswith('test_') and name.endswith('.py'):
                found.add(f'test/{folder}/{name}')
            case ('test', folder, *_) if (ROOT / 'test' / folder).is_dir():
                found.add(f'test/{folder}')
            case ('ik_node', folder, _, *_):
                found.update(f'test/{each}' for each in FOLDERS.get(folder, (folder,)))
            case ('ik_node', name):
                found.update(('test/package', 'test/cli'))
                own = (ROOT / 'test').glob(f'*/test_{name.removesuffix(".py")}.py')
                found.update(str(path.relative_to(ROOT)) for path in own)
            case (place, *_) if place in BESIDE:
                found.add(f'test/{BESIDE[place]}')
            case _:
                pass
    existing = {each if (ROOT / each).exists() else 'test/package' for each in found}
    return sorted(each for each in existing if str(PurePosixPath(each).parent) not in existing)


def changed(commit: str) -> list[str]:
    """Return the files that differ from a commit, and those that git does not know yet."""
    commands = (['diff', '--name-only', commit], ['ls-files', '--others', '--exclude-standard'])
    runs = [subprocess.run(['git', *each], cwd=ROOT, capture_output=True, check=True) for each in commands]
    return [name for run in runs for name in run.stdout.decode().splitlines()]


if __name__ == '__main__':
    print(*folders_of(changed(*sys.argv[1:] or ['HEAD'])))
