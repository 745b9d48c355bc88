"""make bench: success, times, and the same for the peers, in one run."""

from __future__ import annotations

import argparse
import importlib
import platform
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.arms import chosen, real_arms
from ik_node import kernels

SECTIONS = (
    'success',
    'allocations',
    'closed',
    'numeric',
    'million',
    'complete',
    'general',
    'spare',
    'degenerate',
    'verdicts',
    'proofs',
    'unreachable',
    'closest',
    'tracking',
    'lines',
    'determinism',
    'plant',
    'node',
    'cost',
    'start',
    'before',
    'follow',
    'follow_node',
    'follow_plot',
    'hand',
    'trees',
    'tree_peers',
    'lerobot',
    'balls',
)


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        'sections', nargs='*', metavar='section', help=f'one of {", ".join(SECTIONS)}; default all'
    )
    parser.add_argument('--arms', help='names, separated by commas; default all')
    parser.add_argument(
        '--scale', type=float, default=1.0, help='times the number of goals; 0.1 for a quick look'
    )
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
        start = perf_counter()
        importlib.import_module(f'benchmarks.{section}').run(tasks, options.scale)
        print(f'\n{section}: {perf_counter() - start:.0f} s', flush=True)


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':')[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == '__main__':
    main()
