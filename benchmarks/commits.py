# SPDX-License-Identifier: Apache-2.0
"""An earlier commit of this repository, to compare with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from oracles.arms import ROOT

from benchmarks.contest import ENVIRONMENTS

BASE = os.environ.get('BASE', '5fac4be')  # by default the last commit with the old following


def base_folder() -> Path | None:
    """Return the folder with the files of BASE, None, and say so, if git does not have it."""
    folder = ENVIRONMENTS / f'ik_node-{BASE}'
    if folder.exists():
        return folder
    archive = subprocess.run(['git', 'archive', BASE], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        print(f'git has no commit {BASE}: no comparison.')
        return None
    folder.mkdir(parents=True)
    subprocess.run(['tar', '-x'], cwd=folder, input=archive.stdout, check=True)
    return folder
