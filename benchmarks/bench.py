# SPDX-License-Identifier: Apache-2.0
"""make bench: success, times, and the same for the peers, in one run."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import io
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from oracles.arms import chosen, real_arms

from ik_node import kernels

FIGURES = Path(__file__).parents[1] / 'docs' / 'explanation' / 'figures.json'
SECTIONS = (
    'success',
    'cold',
    'batch',
    'general',
    'tracking',
    'lines',
    'trees',
    'cones',
    'calibration',
    'start',
    'before',
    'node',
    'cost',
    'follow_node',
)
OF_ROS = ('node', 'cost', 'follow_node')


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('sections', nargs='*', metavar='section', help=f'one of {", ".join(SECTIONS)}; default all')
    parser.add_argument('--arms', help='names, separated by commas; default all')
    parser.add_argument('--scale', type=float, default=1.0, help='times the number of goals; 0.1 for a quick look')
    parser.add_argument('--keep', action='store_true', help='put the figures into the documentation')
    options = parser.parse_args()
    for section in options.sections:
        if section not in SECTIONS:
            parser.error(f'there is no section {section!r}, only {", ".join(SECTIONS)}')
    try:
        tasks = chosen(options.arms)
    except KeyError as error:
        parser.error(error.args[0])
    print('# ik_node beside its peers\n')
    print(f'Python {platform.python_version()}, numpy {np.__version__}, {processor()}')
    if not real_arms():
        print('The arms of ../shared/arms are absent: shipped arms only.')
    if options.sections not in (['start'], ['cost']):
        kernels.prepare(wait=True)
    for section in options.sections or SECTIONS:
        if section in OF_ROS and importlib.util.find_spec('rclpy') is None:
            print(f'\n{section}: ROS 2 is not installed, not measured')
            continue
        start, copy = perf_counter(), Copy()
        with contextlib.redirect_stdout(copy):
            importlib.import_module(f'benchmarks.{section}').run(tasks, options.scale)
        print(f'\n{section}: {perf_counter() - start:.0f} s', flush=True)
        if options.keep:
            keep(section, options.scale, copy.getvalue())


class Copy(io.StringIO):
    """Prints to the terminal and keeps what was printed."""

    def write(self, text: str) -> int:
        """Write text to both."""
        sys.__stdout__.write(text)
        return super().write(text)

    def flush(self) -> None:
        """Flush the terminal."""
        sys.__stdout__.flush()


def keep(section: str, scale: float, text: str) -> None:
    """Put the figures of a section into the documentation, in place of its last ones."""
    figures = json.loads(FIGURES.read_text(encoding='utf-8'))
    figures[section] = {
        'commit': subprocess.check_output(['git', 'describe', '--always', '--dirty'], text=True).strip(),
        'date': datetime.date.today().isoformat(),
        'machine': f'{processor()}, Python {platform.python_version()}, numpy {np.__version__}',
        'load': f'{os.getloadavg()[1]:.1f}',
        'scale': scale,
        'text': text.strip(),
    }
    FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':')[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == '__main__':
    main()
