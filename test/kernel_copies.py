# SPDX-License-Identifier: Apache-2.0
"""Copies of the package with a cache of kernels of their own, and programs that use them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Two kernels that compile fast: the first calls kernels of other modules, the second none.
CALLER, ALONE = 'serve_lateral', 'largest_move'


def copied(folder: Path) -> Path:
    """A folder with a copy of the package, in a folder."""
    folder = folder / 'copy'
    shutil.copytree(ROOT / 'ik_node', folder / 'ik_node', ignore=shutil.ignore_patterns('__pycache__'))
    return folder


def environment(folder: Path, cache: Path | None) -> dict[str, str]:
    """The environment of a process that uses the package in folder."""
    there = {key: value for key, value in os.environ.items() if key != 'NUMBA_CACHE_DIR'}
    there['PYTHONPATH'] = str(folder)
    return there if cache is None else {**there, 'NUMBA_CACHE_DIR': str(cache)}


def build(folder: Path, cache: Path, *kernels: str) -> str:
    """Return what the program prints that compiles these kernels of the package in folder."""
    command = [sys.executable, '-m', 'ik_node.kernels.runtime.build', *kernels]
    return subprocess.run(
        command, cwd='/', env=environment(folder, cache), capture_output=True, text=True, check=True
    ).stdout


def run(program: str, folder: Path, cache: Path | None, *before: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program with the package in folder; before: a command that runs it."""
    return subprocess.run(
        [*before, sys.executable, '-c', program],
        cwd='/',
        env=environment(folder, cache),
        capture_output=True,
        text=True,
        check=True,
    )
