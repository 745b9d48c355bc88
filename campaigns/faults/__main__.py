# SPDX-License-Identifier: Apache-2.0
"""make faults: many runs in several processes, and the table of what was found."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import time
from collections import Counter

import campaigns.faults
from campaigns.faults.judge import CRASH, HARD, INFINITE, POSITION, RATE, SNAP, STANDSTILL
from campaigns.faults.kinds import KINDS
from campaigns.faults.run import Result, run

COLUMNS = (POSITION, RATE, HARD, INFINITE, SNAP, STANDSTILL, CRASH)
SHOWN, LONG = 5, 2000  # violations of a run, characters of each
TELL = 30.0  # [s] between two lines of progress


def main() -> int:
    """Do the runs; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(
        prog='make faults',
        description=campaigns.faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--runs', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0, help='number of the first run')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='processes')
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.runs)
    results: list[Result] = []
    begin = told = time.monotonic()
    with multiprocessing.get_context('spawn').Pool(given.jobs) as pool:
        for result in pool.imap_unordered(functools.partial(run, given.seed), numbers):
            results.append(result)
            show(result, given.seed)
            if time.monotonic() > told + TELL:
                told = time.monotonic()
                print(f'{len(results)} of {given.runs} runs, {told - begin:.0f} s', flush=True)
    print(table(results))
    wrong = sum(bool(result.wrong) for result in results)
    samples = sum(result.samples for result in results)
    print(f'{len(results)} runs with seed {given.seed}, {samples} samples judged, {wrong} runs with violations')
    return int(wrong > 0)


def show(result: Result, seed: int) -> None:
    """Print what was wrong in a run, and how to repeat it."""
    if not result.wrong:
        return
    print(f'run {result.number} ({result.setup}; {result.activity}; {", ".join(result.faults)}):')
    print('  ' + ', '.join(f'{count} {kind}' for kind, count in Counter(k for k, _ in result.wrong).items()))
    for kind, what in result.wrong[:SHOWN]:
        print(f'  {kind}: {what if len(what) < LONG else "..." + what[-LONG:]}')
    print(f"  alone: make faults FAULTS='--seed {seed} --first {result.number} --runs 1'", flush=True)


def table(results: list[Result]) -> str:
    """Return a Markdown table: a run counts in the row of each of its faults."""
    lines = ['| fault | runs | samples | ' + ' | '.join(COLUMNS) + ' |', '|---' * (3 + len(COLUMNS)) + '|']
    rows = {name: [result for result in results if name in result.faults] for name in KINDS}
    for name, mine in {**rows, 'all': results}.items():
        counts = Counter(kind for result in mine for kind, _ in result.wrong)
        cells = [name, len(mine), sum(result.samples for result in mine), *(counts[c] for c in COLUMNS)]
        lines.append('| ' + ' | '.join(map(str, cells)) + ' |')
    return '\n'.join(lines)


if __name__ == '__main__':
    sys.exit(main())
