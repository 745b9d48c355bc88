"""Other commits of this repository, to compare with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks.arms import ROOT

BASE = os.environ.get('BASE', '5fac4be')  # by default the last commit with the old following


def check_out(commit: str, to: Path) -> bool:
    """Write the files of a commit to a new folder; False if git does not have it."""
    archive = subprocess.run(['git', 'archive', commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return False
    to.mkdir(parents=True)
    subprocess.run(['tar', '-x'], cwd=to, input=archive.stdout, check=True)
    return True
