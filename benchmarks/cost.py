# SPDX-License-Identifier: Apache-2.0
"""What the running nodes cost: processor time and memory beside those of a bare node in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from oracles.arms import ROOT, Task

from benchmarks.commits import BASE, base_folder
from benchmarks.tables import Table, heading

WINDOWS, WAITS = 15, 200
NOW = 'now'


class Asked(NamedTuple):
    """A case: who is measured, whether goals stream, whether a viewer runs too, and the parameters."""

    measured: str
    goals: bool
    viewer: bool
    parameters: dict[str, str]
    waits: bool = False


CASES = {
    'ik_node at rest': Asked('ik_node', False, False, {}),
    'ik_node, goals': Asked('ik_node', True, False, {}, waits=True),
    'ik_node, goals, no self-collision': Asked('ik_node', True, False, {'self_collision': "'false'"}),
    'ik_viewer without a browser, goals': Asked('ik_viewer', True, True, {}),
}


def run(tasks: list[Task], scale: float) -> None:
    """Print shares of a core, ratios, memory and latency, of this package and of $BASE."""
    del tasks  # one arm is enough here
    windows, waits = max(3, round(WINDOWS * scale)), max(10, round(WAITS * scale))
    heading(
        'Cost of the nodes',
        f"""The seed arm, publish_rate 100 Hz. Goals: 50 per second along the circle of ik_goals. Bare: an
        rclpy node that publishes five joints at 100 Hz and hears 50 goals per second, at the same time.
        Shares of a core by processor time [%] and their ratio, medians of {windows} windows of 2 s; resident
        memory [MB]. Goal to sample: {waits} goals from rest over DDS [ms]. Beside commit {BASE}.""",
    )
    base = base_folder()
    folders = {NOW: ROOT} if base is None else {NOW: ROOT, BASE: base}
    columns = ('bare', 'share', 'ratio', 'memory', 'bare', 'goal to sample', 'p99')
    table = Table('case'.ljust(36), 'code'.ljust(8) + '  ', *columns)
    for title, asked in CASES.items():
        for name, folder in folders.items():
            table.row(title, name, *_cells(asked, folder, windows, waits))


def _cells(asked: Asked, folder: Path, windows: int, waits: int) -> list[str]:
    """Return what a row shows of the package in folder."""
    wanted = {
        'folder': str(folder),
        'windows': windows,
        **asked._asdict(),
        'waits': waits if asked.waits else 0,
    }
    done = subprocess.run(
        [sys.executable, '-m', 'benchmarks.cost_case', json.dumps(wanted)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return ['not measured: this code does not start so']
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    bare, own = (np.array(found['used'][name]) for name in ('bare', asked.measured))
    cells = [
        f'{100.0 * np.median(bare):.1f}',
        f'{100.0 * np.median(own):.1f}',
        f'{np.median(own / bare):.2f}',
    ]
    cells += [f'{found["memory"][name]:.0f}' for name in (asked.measured, 'bare')]
    times = found['waits']
    return cells + ([f'{np.median(times):.1f}', f'{np.quantile(times, 0.99):.1f}'] if times else [])
